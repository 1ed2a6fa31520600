/** Statements of the outbox. */

/** Writes events in the caller's transaction. In: a list of `{ s, i, t, k, b, e, at }`. The same id twice is a no-op. */
export const SEND = `
insert into ob.outbox (source, id, type, key, body, envelope, due_at)
select x->>'s', x->>'i', x->>'t', x->>'k', x->>'b', x->>'e', coalesce((x->>'at')::timestamptz, ob.now())
from jsonb_array_elements($1::text::jsonb) with ordinality a(x, ord) order by ord
on conflict (source, id) do nothing`

/** Everything that was sent, in order. For tests. */
export const SENT = `
select source, id, type, key, body, envelope, (extract(epoch from created_at) * 1000)::bigint::text received
from ob.outbox where $1::text is not null order by n`
