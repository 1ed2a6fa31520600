/** Statements that tell other processes about consumers. */

/** How long the word of a process holds that it is not heard of again: several rounds of its janitor. */
const WORD_HOLDS = `ob.now() + interval '5 minutes'`

/**
 * Registers consumers and their subscriptions. In: a list of `{ n name, o ordered, r retainMs, u untimed, t types, identity,
 * declared }`, where `declared` says who and when. Out: what was registered before, of those that were.
 *
 * The last process to say so decides, but for two options, which make a promise to receivers: a consumer is ordered, and
 * has a business key, as long as the word of one process holds.
 */
export const REGISTER = `
with c as materialized (
  select x->>'n' name, (x->>'o')::boolean ordered, (x->>'r')::bigint retain_ms, x->>'u' untimed, x->'t' types,
    (x->>'identity')::boolean identity, x->>'declared' declared
  from jsonb_array_elements($1::text::jsonb) x
),
before as materialized (
  select o.name, o.ordered::text, o.retain_ms::text "retainMs", o.untimed, o.identity::text, o.declared
  from c join ob.consumer o on o.name = c.name
),
u as (
  insert into ob.consumer as o
    (name, ordered, retain_ms, untimed, identity, ordered_until, identity_until, declared)
  select name, ordered, retain_ms, untimed, identity, case when ordered then ${WORD_HOLDS} end,
    case when identity then ${WORD_HOLDS} end, declared
  from c order by name
  on conflict (name) do update set
    ordered = excluded.ordered or o.ordered and coalesce(o.ordered_until > ob.now(), false),
    ordered_until = coalesce(excluded.ordered_until, o.ordered_until),
    identity = excluded.identity or o.identity and coalesce(o.identity_until > ob.now(), false),
    identity_until = coalesce(excluded.identity_until, o.identity_until),
    retain_ms = excluded.retain_ms, untimed = excluded.untimed, declared = excluded.declared
  returning o.name
),
done as (select count(*) from u),
subscriptions as (
  insert into ob.subscription as s (consumer, type)
  select c.name, t.type from done, c, jsonb_array_elements_text(c.types) t(type) order by c.name, t.type
  on conflict do nothing
)
select * from before`

/**
 * Renews the word of this process, and lets go of what no process says any more. In: a list of `{ n name, o ordered,
 * identity }`. A consumer that was removed stays so.
 */
export const RENEW = `
with c as materialized (
  select x->>'n' name, (x->>'o')::boolean ordered, (x->>'identity')::boolean identity
  from jsonb_array_elements($1::text::jsonb) x
),
locked as materialized (
  select o.name from c join ob.consumer o on o.name = c.name order by o.name for no key update of o
)
update ob.consumer o set
  ordered = c.ordered or o.ordered and coalesce(o.ordered_until > ob.now(), false),
  ordered_until = case when c.ordered then ${WORD_HOLDS} else o.ordered_until end,
  identity = c.identity or o.identity and coalesce(o.identity_until > ob.now(), false),
  identity_until = case when c.identity then ${WORD_HOLDS} else o.identity_until end
from c join locked using (name) where o.name = c.name`

/** Messages that no consumer wanted until now, oldest first. In: `{ after number }`. */
export const UNROUTED = `
select q.n::text, q.source, q.id, q.type, q.key, q.body, encode(q.hash, 'hex') hash, q.envelope from ob.quarantine q
where q.reason = 'unrouted' and q.discarded is null and q.body is not null and q.id is not null
  and q.n > ($1::text::jsonb->>'after')::bigint
order by q.n limit 500`

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
