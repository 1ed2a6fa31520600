/** Statements that tell other processes about consumers. */

/**
 * Registers consumers and their subscriptions. In: a list of `{ n name, o ordered, r retainMs, u untimed, t types }`.
 * Out: the subscriptions that are new.
 */
export const REGISTER = `
with c as materialized (
  select x->>'n' name, (x->>'o')::boolean ordered, (x->>'r')::bigint retain_ms, x->>'u' untimed, x->'t' types
  from jsonb_array_elements($1::text::jsonb) x
),
u as (
  insert into ob.consumer as o (name, ordered, retain_ms, untimed)
  select name, ordered, retain_ms, untimed from c order by name
  on conflict (name) do update set ordered = excluded.ordered, retain_ms = excluded.retain_ms, untimed = excluded.untimed
    where (o.ordered, o.retain_ms, o.untimed) is distinct from (excluded.ordered, excluded.retain_ms, excluded.untimed)
  returning o.name
),
done as (select count(*) from u)
insert into ob.subscription as s (consumer, type)
select c.name, t.type from done, c, jsonb_array_elements_text(c.types) t(type) order by c.name, t.type
on conflict do nothing
returning s.consumer, s.type`

/** Takes out of quarantine what no consumer wanted until now, for its types. Locked, so that it is released once. */
export const UNROUTED = `
select n::text, source, id, type, key, body, encode(hash, 'hex') hash, envelope from ob.quarantine
where reason = 'unrouted' and discarded is null and body is not null and id is not null
  and n > ($1::text::jsonb->>'after')::bigint
order by n limit 500`

/** Removes quarantined messages that found their consumer. */
export const REMOVE_QUARANTINED = `
delete from ob.quarantine q using jsonb_array_elements_text($1::text::jsonb) x where q.n = x::bigint returning q.n::text`

/** The age in ms of the oldest message that is due, of any consumer, or of the oldest event, of any sink. */
export const LAG = `
with p as (select $1::text), c as (select name from ob.consumer, p where not paused)
select greatest(0, extract(epoch from ob.now() - (
  select min(d.due_at) from ob.shard h cross join lateral (
    select due_at from ob.delivery d where d.sink = h.sink and d.shard = h.shard and d.parked is null and not d.waiting
    order by n limit 1) d)) * 1000, max(extract(epoch from ob.now() - m.received_at) * 1000))::bigint::text lag
from c cross join lateral (
  (select consumer, source, id from ob.work where consumer = c.name and lane is null and parked is null
    and due_at <= ob.now() order by due_at limit 1)
  union all
  (select w.consumer, w.source, w.id from ob.lane l cross join lateral (
     select * from ob.work w where w.consumer = l.consumer and w.lane = l.key and w.parked is null order by w.seq limit 1) w
   where l.consumer = c.name and l.due_at <= ob.now() and l.due_at < 'infinity' order by l.due_at limit 1)
) w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id`
