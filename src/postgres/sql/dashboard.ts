/** Statements of the dashboard. All of them read, and none reads further than its limit says, however much there is. */
import { statement, type Flag, type Json } from '../statement.js'
import { EVENT_STATE, keptUntil, laneOf, messageOf, STATE, workOf, type MessageKey } from './rules.js'

/** What is known of the consumers and sinks, for suggestions, and of the server. Out: one row. The tables are small. */
export interface VocabularyRow {
  readonly consumers: Json<readonly { name: string; order: 'none' | 'key'; types: readonly string[] }[]>
  readonly sinks: Json<readonly string[]>
  readonly server: string
}
export const VOCABULARY = statement<null, VocabularyRow>(`
select coalesce((select jsonb_agg(jsonb_build_object('name', o.name, 'order', case when o.ordered then 'key' else 'none' end,
    'types', coalesce((select jsonb_agg(s.type order by s.type) from ob.subscription s where s.consumer = o.name), '[]'))
    order by o.name) from ob.consumer o), '[]')::text consumers,
  coalesce((select jsonb_agg(k.name order by k.name) from ob.sink k), '[]')::text sinks,
  current_setting('server_version') server
where $1::text is not null`)

/** Where a message stands now. */
export interface FateRow {
  readonly of: string
  readonly state: string
  readonly attempts: string
  /** When it falls due, in ms; null if it waits for somebody. */
  readonly due: string | null
  readonly lane: string | null
  readonly blocked: Flag | null
  /** Of a dead one: the group of failures that it is in. Null if an older version has recorded it. */
  readonly fingerprint: string | null
  /** Of what is handled or discarded: until when retention leaves it, in ms. Null if its consumer never said. */
  readonly kept: string | null
}

/** A secret of the box. No row: there is none of this name. Index: the primary key. */
export const SECRET = statement<{ name: string }, { value: string }>(
  `select s.value from ob.secret s where s.name = $1::text::jsonb->>'name'`,
)

/** What has become of messages. Out: with the key's position; no row for what retention has taken. Indexes: the primary keys. */
export const FATES = statement<readonly MessageKey[], FateRow>(`
select (asked.ord - 1)::text "of", case when w.parked = 'failed' then 'pending' else ${STATE} end state,
  coalesce(w.attempts, 0)::text attempts, case when coalesce(l.due_at, w.due_at) < 'infinity'
    then (extract(epoch from coalesce(l.due_at, w.due_at)) * 1000.0)::bigint end::text due, w.lane, l.blocked::text,
  case when w.parked = 'dead' then w.fingerprint end fingerprint,
  case when w.id is null or w.parked = 'discarded' then (select extract(epoch from
    ${keptUntil('m.received_at', 'o.retain_ms')}) * 1000.0 from ob.consumer o where o.name = m.consumer)::bigint end::text kept
from (select x->>0 consumer, x->>1 source, x->>2 id, ord
  from jsonb_array_elements($1::text::jsonb) with ordinality given(x, ord)) asked
${messageOf('asked')} ${workOf('m')} ${laneOf('w')}
order by asked.ord`)

/** Until when retention leaves rows of the quarantine, in ms; null: until somebody decides. Index: the primary key. */
export const HELD_UNTIL = statement<readonly string[], { n: string; kept: string | null }>(`
select q.n::text, (extract(epoch from least(q.expires_at, case when q.discarded is not null then (select
    ${keptUntil('q.received_at', 'o.retain_ms')} from ob.consumer o where o.name = q.consumer) end)) * 1000.0)::bigint::text kept
from jsonb_array_elements_text($1::text::jsonb) x cross join lateral (select * from ob.quarantine q where q.n = x::bigint limit 1) q`)

/** The bodies of messages, as stored. Out: with the key's position. Index: the primary key. */
export const BODIES = statement<
  readonly MessageKey[],
  { of: string; type: string; key: string | null; body: string; envelope: string | null }
>(`
select (asked.ord - 1)::text "of", m.type, m.key, m.body, m.envelope
from (select x->>0 consumer, x->>1 source, x->>2 id, ord
  from jsonb_array_elements($1::text::jsonb) with ordinality given(x, ord)) asked
${messageOf('asked')}
order by asked.ord`)

export interface EffectRow {
  readonly of: string
  readonly name: string
  readonly state: 'intent' | 'done'
  readonly result: string | null
  readonly called: string
  readonly done: string | null
  readonly calls: string
}

/**
 * The effects of messages, in the order of their calls. Out: with the key's position, 100 of each at most. Index: the primary
 * key.
 */
export const EFFECTS_OF = statement<readonly MessageKey[], EffectRow>(`
select (asked.ord - 1)::text "of", e.name, e.state, e.result, (extract(epoch from e.called_at) * 1000.0)::bigint::text called,
  (extract(epoch from e.done_at) * 1000.0)::bigint::text done, e.calls::text
from jsonb_array_elements($1::text::jsonb) with ordinality asked(x, ord)
cross join lateral (select * from ob.effect e
  where e.consumer = x->>0 and e.source = x->>1 and e.id = x->>2 order by e.name limit 100) e
order by asked.ord, e.called_at, e.name`)

/**
 * The first messages that wait behind each of some keys, in their order. Out: with the key's position. Indexes: work_lane, and
 * the primary key.
 */
export const BEHIND = statement<
  { lanes: readonly (readonly [consumer: string, lane: string])[]; limit: number },
  { of: string; source: string; id: string; type: string; received: string }
>(`
with input as materialized (select $1::text::jsonb given)
select (asked.ord - 1)::text "of", coalesce(m.origin_source, m.source) source, coalesce(m.origin_id, m.id) id, m.type,
  (extract(epoch from m.received_at) * 1000.0)::bigint::text received
from input, jsonb_array_elements(given->'lanes') with ordinality asked(x, ord)
cross join lateral (select w.consumer, w.source, w.id, w.seq from ob.work w
  where w.consumer = x->>0 and w.lane = x->>1 and w.parked is null
  order by w.seq limit (select (given->>'limit')::int from input)) w ${messageOf('w')}
order by asked.ord, w.seq`)

/**
 * What is in quarantine, by consumer and reason, each counted up to `limit`, and when the oldest came. Indexes:
 * quarantine_reason; work_parked for what waits for an answer.
 */
export const QUARANTINE_REASONS = statement<
  { limit: number },
  { consumer: string; reason: string; n: string; oldest: string | null }
>(`
with recursive input as materialized (select ($1::text::jsonb->>'limit')::int most),
kind(consumer, reason) as (
  (select q.consumer, q.reason from ob.quarantine q order by q.consumer, q.reason limit 1)
  union all
  select next.consumer, next.reason from kind cross join lateral (
    select q.consumer, q.reason from ob.quarantine q where (q.consumer, q.reason) > (kind.consumer, kind.reason)
    order by q.consumer, q.reason limit 1) next
),
held as materialized (
  select kind.consumer, kind.reason, x.n, x.oldest from kind cross join lateral (
    select count(*) filter (where q.discarded is null) n, min(q.received_at) filter (where q.discarded is null) oldest from (
      select q.discarded, q.received_at from ob.quarantine q
      where q.consumer = kind.consumer and q.reason >= kind.reason and q.reason <= kind.reason
      order by q.reason, q.n limit (select most from input)) q) x
),
consumer(name) as (
  select (select w.consumer from ob.work w where w.parked is not null order by w.consumer limit 1)
  union all
  select (select w.consumer from ob.work w where w.parked is not null and w.consumer > consumer.name order by w.consumer limit 1)
  from consumer where consumer.name is not null
),
waiting as materialized (
  select consumer.name consumer, x.n from consumer cross join lateral (
    select count(*) n from (
      select 1 from ob.work w where w.consumer = consumer.name and w.parked = 'quarantined'
      order by w.seq limit (select most from input)) w) x
)
select consumer, reason, n::text, (extract(epoch from oldest) * 1000.0)::bigint::text oldest from held where n > 0
union all
select consumer, 'effect-unknown', n::text, null from waiting where n > 0`)

export interface SinkRow {
  readonly sink: string
  readonly types: Json<readonly string[]> | null
  /** Processes that have it attached. */
  readonly hosts: Json<readonly string[]>
  /** Each counted up to `limit`. */
  readonly ready: string
  readonly delayed: string
  readonly dead: string
  readonly died: string | null // when the first of the dead was given up
  /** How long the event has been due that has been due for longest, in ms. */
  readonly lag: string
  /** The last failure of one that waits for another try, or is being tried again: then it is among the first of its shard. */
  readonly error: string | null
  /** Of the newest that is dead. */
  readonly fatal: string | null
  /** A relay publishes to it right now. */
  readonly held: Flag
}

/**
 * Sinks, those that have events and no process included; '' has the events that no sink wants yet. Indexes: delivery_live,
 * delivery_waiting, delivery_parked, delivery_failed.
 */
export const DELIVERIES = statement<{ limit: number; goneMs: number }, SinkRow>(`
with recursive input as materialized (
  select (given->>'limit')::int most, (given->>'goneMs')::float8 * interval '1 ms' gone from (select $1::text::jsonb given) x
),
live(name) as (
  select (select d.sink from ob.delivery d where d.parked is null and not d.waiting order by d.sink limit 1)
  union all
  select (select d.sink from ob.delivery d where d.parked is null and not d.waiting and d.sink > live.name order by d.sink limit 1)
  from live where live.name is not null
),
late(name) as (
  select (select d.sink from ob.delivery d where d.parked is null and d.waiting order by d.sink limit 1)
  union all
  select (select d.sink from ob.delivery d where d.parked is null and d.waiting and d.sink > late.name order by d.sink limit 1)
  from late where late.name is not null
),
gone(name) as (
  select (select d.sink from ob.delivery d where d.parked is not null order by d.sink limit 1)
  union all
  select (select d.sink from ob.delivery d where d.parked is not null and d.sink > gone.name order by d.sink limit 1)
  from gone where gone.name is not null
),
sink as materialized (
  select name from ob.sink union select name from live where name is not null
  union select name from late where name is not null union select name from gone where name is not null
)
select s.name sink, to_jsonb(k.types)::text types,
  coalesce((select jsonb_agg(distinct c.host) from ob.sink_declaration c
    where c.sink = s.name and c.seen_at >= ob.now() - (select gone from input)), '[]')::text hosts,
  ready.n::text ready, delayed.n::text delayed, dead.n::text dead,
  (extract(epoch from dead.at) * 1000.0)::bigint::text died,
  greatest(0, extract(epoch from ob.now() - first.at) * 1000.0)::bigint::text lag, failed.error, fatal.error fatal,
  exists (select 1 from ob.shard h where h.sink = s.name and h.token is not null and h.due_at > ob.now())::text held
from sink s left join ob.sink k on k.name = s.name
cross join lateral (select count(*) n from (select 1 from ob.delivery d
  where d.sink = s.name and d.parked is null and not d.waiting order by d.shard limit (select most from input)) x) ready
cross join lateral (select count(*) n from (select 1 from ob.delivery d
  where d.sink = s.name and d.parked is null and d.waiting order by d.due_at limit (select most from input)) x) delayed
cross join lateral (select count(*) n, min(x.due_at) at from (select d.due_at from ob.delivery d
  where d.sink = s.name and d.parked >= 'dead' and d.parked <= 'dead' order by d.parked limit (select most from input)) x) dead
cross join lateral (select min(d.due_at) at from (
  (select d.due_at from generate_series(0, 31) g(shard) cross join lateral (
    select d.due_at from ob.delivery d where d.sink = s.name and d.shard = g.shard and d.parked is null and not d.waiting
    order by d.n limit 1) d)
  union all
  (select d.due_at from ob.delivery d
    where d.sink = s.name and s.name > '' and d.parked is null and d.waiting and d.due_at <= ob.now() order by d.due_at limit 1)) d) first
cross join lateral (select coalesce(
  (select d.error from ob.delivery d
    where d.sink = s.name and d.parked is null and d.waiting and d.attempts > 0 order by d.key limit 1),
  (select d.error from generate_series(0, 31) g(shard) cross join lateral (
      select d.attempts, d.error from ob.delivery d
      where d.sink = s.name and d.shard = g.shard and d.parked is null and not d.waiting order by d.n limit 10) d
    where d.attempts > 0 limit 1)) error) failed
left join lateral (select d.error from ob.delivery d
  where d.sink = s.name and d.parked >= 'dead' and d.parked <= 'dead' order by d.parked desc, d.n desc limit 1) fatal on true
order by s.name`)

export interface CausedRow {
  readonly consumer: string
  readonly source: string
  readonly id: string
  readonly type: string
  readonly state: string
  readonly received: string
  readonly cause: string | null
  readonly examined: string
}

/**
 * Messages that say that others caused them: of each consumer, no more than `limit` of those received from a time on are looked
 * at, for nothing leads from a cause to its consequences. In: the causes' ids, and the time in ms. Index: message_received.
 */
export const CAUSED = statement<{ ids: readonly string[]; from: number; limit: number }, CausedRow>(`
with recursive input as materialized (
  select array(select jsonb_array_elements_text(given->'ids')) ids, (given->>'limit')::int most,
    'epoch'::timestamptz + (given->>'from')::float8 * interval '1 ms' since
  from (select $1::text::jsonb given) x
),
consumer(name) as (
  select (select m.consumer from ob.message m order by m.consumer limit 1)
  union all
  select (select m.consumer from ob.message m where m.consumer > consumer.name order by m.consumer limit 1)
  from consumer where consumer.name is not null
),
examined as materialized (
  select m.* from consumer cross join lateral (
    select m.consumer, m.source, m.id, m.type, m.envelope, m.received_at, m.origin_source, m.origin_id from ob.message m
    where m.consumer = consumer.name and m.received_at >= (select since from input)
    order by m.received_at limit (select most from input)) m
),
caused as materialized (
  select e.*, x.cause from input cross join examined e
  cross join lateral (select e.envelope::jsonb->'headers'->>'causationid' cause) x
  where x.cause = any (input.ids) limit 200
)
select c.consumer, coalesce(c.origin_source, c.source) source, coalesce(c.origin_id, c.id) id, c.type,
  case when w.parked = 'failed' then 'pending' else ${STATE} end state,
  (extract(epoch from c.received_at) * 1000.0)::bigint::text received, c.cause, (select count(*) from examined)::text examined
from caused c ${workOf('c')} ${laneOf('w')}
order by c.received_at`)

/**
 * Events in the outbox that a message caused: `consumer` is the sink. Where to begin is found by bisection, since events are numbered
 * as they are sent; no more than `limit` of those sent from a time on are looked at. Out: `examined` in every row. Index: outbox_pkey.
 */
export const CAUSED_EVENTS = statement<{ id: string; from: number; limit: number }, CausedRow>(`
with recursive input as materialized (
  select given->>'id' id, (given->>'limit')::int most, 'epoch'::timestamptz + (given->>'from')::float8 * interval '1 ms' since
  from (select $1::text::jsonb given) x
),
bounds(low, high) as (
  select 0::bigint, coalesce((select max(n) from ob.outbox), 0)
  union all
  select case when r.before then r.n else b.low end, case when r.before then b.high else (b.low + b.high + 1) / 2 - 1 end
  from bounds b cross join lateral (
    select o.n, o.created_at < (select since from input) before from ob.outbox o
    where o.n >= (b.low + b.high + 1) / 2 order by o.n limit 1) r
  where b.low < b.high
),
examined as materialized (
  select o.n, o.source, o.id, o.type, o.envelope, o.created_at from ob.outbox o
  where o.n > (select low from bounds where low >= high) order by o.n limit (select most from input)
),
caused as materialized (
  select e.* from input cross join examined e
  where e.envelope::jsonb->'headers'->>'causationid' = input.id limit 200
)
select coalesce(d.sink, '') consumer, c.source, c.id, c.type, ${EVENT_STATE} state,
  (extract(epoch from c.created_at) * 1000.0)::bigint::text received, (select id from input) cause,
  (select count(*) from examined)::text examined
from caused c left join ob.delivery d on d.n = c.n
order by c.n, d.sink`)
