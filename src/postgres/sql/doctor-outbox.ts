/** Statements by which the doctor looks at events and sinks, in the manner of `doctor-inbox.ts`. */
import { statement, type Json } from '../statement.js'
import { age, COUNTED_TO, waitingSinks } from './rules.js'

export interface SinkFacts {
  readonly sink: string
  readonly registered: boolean
  /** For how long the event that is due longest has been due; null if none is. */
  readonly dueMs: number | null
  readonly due: number
  /** Some relay, anywhere, publishes to it right now. */
  readonly held: boolean
  /** Processes that attach it, and were seen within `goneMs`. */
  readonly processes: number
  /** Leases that are over and that nobody took since. */
  readonly expired: number
  readonly expiredMs: number | null
  readonly dead: number
  /** How long ago the oldest of the dead was sent, and for how long the first has been dead. */
  readonly deadMs: number | null
  readonly diedMs: number | null
}

/**
 * What waits for each sink, and who is at it. In: after which time a process that was not seen is gone. Indexes: delivery_live,
 * delivery_waiting, delivery_parked, outbox_pkey.
 */
export const LOOK_SINKS = statement<{ goneMs: number }, { facts: Json<SinkFacts> }>(`
with recursive input as materialized (select (given->>'goneMs')::float8 gone_ms from (select $1::text::jsonb given) x),
${waitingSinks()},
dead(name) as (
  (select d.sink from ob.delivery d where d.parked is not null order by d.sink, d.parked, d.n limit 1)
  union all
  select (select d.sink from ob.delivery d where d.sink > dead.name and d.parked is not null order by d.sink, d.parked, d.n limit 1)
  from dead where dead.name is not null
),
sink as materialized (
  select name from ob.sink union select name from live where name is not null
  union select name from sleepers where name is not null union select name from dead where name is not null
)
select jsonb_build_object('sink', s.name, 'registered', k.name is not null, 'dueMs', head.ms, 'due', due.n,
  'held', shard.held, 'processes', declared.n, 'expired', shard.expired, 'expiredMs', shard.expired_ms,
  'dead', parked.n, 'deadMs', parked.ms, 'diedMs', parked.died_ms)::text facts
from sink s left join ob.sink k on k.name = s.name
cross join lateral (
  select max(${age('x.due_at')}) ms from (
    (select d.due_at from generate_series(0, 31) part(shard) cross join lateral (
       select d.due_at from ob.delivery d
       where d.sink = s.name and d.shard = part.shard and d.parked is null and not d.waiting order by d.n limit 1) d)
    union all
    (select d.due_at from ob.delivery d
     where d.sink = s.name and d.parked is null and d.waiting and d.due_at <= ob.now() order by d.due_at limit 1)) x
  where x.due_at <= ob.now()
) head
cross join lateral (
  select count(*) n from (
    (select 1 from ob.delivery d where d.sink = s.name and d.parked is null and not d.waiting
     order by d.shard, d.n limit ${COUNTED_TO})
    union all
    (select 1 from ob.delivery d where d.sink = s.name and d.parked is null and d.waiting and d.due_at <= ob.now()
     order by d.due_at limit ${COUNTED_TO})
    limit ${COUNTED_TO}) x
) due
cross join lateral (
  select coalesce(bool_or(p.due_at > ob.now()), false) held, count(*) filter (where p.due_at <= ob.now()) expired,
    max(${age('p.due_at')}) filter (where p.due_at <= ob.now()) expired_ms
  from ob.shard p where p.sink = s.name and p.token is not null
) shard
cross join lateral (
  select count(*) n from ob.sink_declaration d
  where d.sink = s.name and d.seen_at >= ob.now() - (select gone_ms from input) * interval '1 ms'
) declared
cross join lateral (
  select count(*) n, max(${age('o.created_at')}) ms, max(${age('d.due_at')}) died_ms from (
    select d.n, d.due_at from ob.delivery d where d.sink = s.name and d.parked = 'dead' order by d.n limit ${COUNTED_TO}) d
  cross join lateral (select o.created_at from ob.outbox o where o.n = d.n limit 1) o
) parked
order by s.name`)

export interface UnwantedFacts {
  /** There is a sink, or was. */
  readonly sinks: boolean
  readonly count: number
  readonly oldestMs: number | null
}

/**
 * Events that no sink has wanted so far: put aside, or looked at by no relay, as where there is none. In: nothing. Out: one row.
 * Indexes: delivery_waiting, delivery_unassigned, outbox_pkey.
 */
export const LOOK_UNWANTED = statement<null, { facts: Json<UnwantedFacts> }>(`
with input as (select $1::text)
select jsonb_build_object('count', count(*), 'oldestMs', max(${age('o.created_at')}),
  'sinks', exists (select 1 from ob.sink) or exists (select 1 from ob.removed_sink))::text facts from (
  (select d.n from ob.delivery d where d.sink = '' and d.parked is null and d.waiting order by d.due_at limit ${COUNTED_TO})
  union all
  (select d.n from ob.delivery d where d.sink = '' and d.parked is null and not d.waiting order by d.n limit ${COUNTED_TO})) d
cross join lateral (select o.created_at from ob.outbox o where o.n = d.n limit 1) o`)
