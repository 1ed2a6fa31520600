/** Statements of the audit: what people did, and what the box did on its own that somebody may ask about. */

/** Writes down what was done. In: `{ a action, d detail, by who says so or null }`. The server adds who is logged in. */
export const AUDIT = `
insert into ob.audit (action, detail, actor) select j->>'a', j->>'d', j->>'by' from (select $1::text::jsonb j) p`

/** A page, newest first. In: `{ before number, n rows at most }`. Index: the primary key. */
export const READ_AUDIT = `
with input as materialized (select ($1::text::jsonb->>'before')::bigint before, ($1::text::jsonb->>'n')::int most)
select a.n::text, (extract(epoch from a.at) * 1000.0)::bigint::text "at", a.action, a.detail, a.actor, a.role, a.login
from input cross join lateral (
  select * from ob.audit a where a.n < input.before order by a.n desc limit (select most from input)
) a order by a.n desc`
