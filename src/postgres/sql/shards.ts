/** Statements of the relay: it leases shards of a sink, reads, completes. For a link inside one database see link.ts. */
import { statement, type Flag, type Json } from '../statement.js'
import { FREE, HELD_BACK } from './held-back.js'

interface ClaimShardsInput extends ShardsHeld {
  readonly lease: number
  /** How many shards. */
  readonly limit: number
}

interface ClaimShardsAnswer {
  readonly shards: Json<readonly number[]>
  /** Waiting events fell due, so that it pays to ask again. */
  readonly promoted: Flag
  /** Events need a sink, so that it pays to ask again. */
  readonly unassigned: Flag
  /** The sink has still to look at what was put aside. */
  readonly behind: 'holds' | 'open' | null
  /** When the next one falls due, in ms. */
  readonly next: string | null
}

/**
 * Leases shards that have something to publish, those first that were served longest ago. Out: one row. Where nothing is due,
 * nothing is written. No shards where the sink must look first, or where so many events need a sink that to tell their keys
 * apart would take too long. A shard that was given back is free whatever its time: the clock may have been set back since.
 *
 * Events fall due by one relay at a time, who has the row of the sink: of two, the second would skip what the first has just
 * locked, and later events of a key would be read before the first has committed the earlier ones. A process that stands still
 * before it commits loses its session, and with it the lock.
 *
 * Shards with events are found by jumping along delivery_live, from each to the next: asked for each shard in turn, the
 * planner would expect an event in every shard, and read the whole table for one that has none. A range of one shard in
 * place of an equation, here and where events are read, because only that index then has the order. Indexes: delivery_live,
 * delivery_waiting, delivery_failed, delivery_unassigned.
 */
export const CLAIM_SHARDS = statement<ClaimShardsInput, ClaimShardsAnswer>(`
with recursive input as materialized (select $1::text::jsonb given),${HELD_BACK},
promoting as materialized (
  select set_config('idle_in_transaction_session_timeout', '5000', true) from ob.sink k where k.name = (select given->>'sink' from input)
    and exists (select 1 from ob.delivery d where d.sink = k.name and d.parked is null and d.waiting and d.due_at <= ob.now())
  for no key update of k skip locked
),
promoted as (
  update ob.delivery d set waiting = false
  where d.ctid = any (array(
    select ctid from ob.delivery
    where exists (select 1 from promoting)
      and sink = (select given->>'sink' from input) and parked is null and waiting and due_at <= ob.now()
    order by due_at, n limit 1000 for update skip locked))
  returning 1
),
live(shard) as (
  (select d.shard from ob.delivery d
   where d.sink = (select given->>'sink' from input) and d.shard >= 0 and d.parked is null and not d.waiting
   order by d.shard, d.n limit 1)
  union all
  select (
    select d.shard from ob.delivery d
    where d.sink = (select given->>'sink' from input) and d.shard > live.shard and d.parked is null and not d.waiting
    order by d.shard, d.n limit 1)
  from live where live.shard is not null
),
claimed as (
  update ob.shard h set token = (select (given->>'token')::uuid from input),
    due_at = ob.now() + (select (given->>'lease')::float8 * interval '1 ms' from input)
  where h.ctid = any (array(
    select h.ctid from live join ob.shard h on h.sink = (select given->>'sink' from input) and h.shard = live.shard
    cross join lateral (
      select 1 from ob.delivery d
      where d.sink = h.sink and d.shard >= live.shard and d.shard <= live.shard and d.parked is null and not d.waiting
        and${FREE}
      order by d.shard, d.n limit 1) d
    where (h.token is null or h.due_at <= ob.now()) and (select it from open)
    order by h.due_at, h.shard limit (select (given->>'limit')::int from input) for update of h skip locked))
  returning h.shard
)
select coalesce((select jsonb_agg(shard) from claimed), '[]')::text shards,
  ((select count(*) from promoted) > 0)::text promoted,
  (exists (select 1 from unassigned))::text unassigned,
  (select case when holds then 'holds' else 'open' end from behind) behind,
  (select greatest(0, extract(epoch from d.due_at - ob.now()) * 1000.0)::bigint::text from ob.delivery d
    where d.sink = (select given->>'sink' from input) and d.parked is null and d.waiting and d.due_at > ob.now()
    order by d.due_at limit 1) next`)

/** Shards of a sink, by the token of who holds them. */
export interface ShardsHeld {
  readonly sink: string
  readonly token: string
}

/** The attempts of a delivery `d` that count. One that waits for nothing but its destination has an error that says so. */
export const COUNTED = `
case when d.attempts = 1 and starts_with(d.error, '{"uncounted":true') then 0 else d.attempts end`

export interface ReadInput {
  readonly sink: string
  readonly shards: readonly number[]
  /** Events of each shard, and of all. */
  readonly depth: number
  readonly limit: number
  readonly bytes: number
}

/** An event to be published. */
export interface EventRow {
  readonly n: string
  readonly shard: string | number
  readonly attempts: string | number
  readonly source: string
  readonly id: string
  readonly type: string
  readonly key: string | null
  readonly body: string
  readonly envelope: string
  readonly created: string
}

/**
 * Reads the next events of leased shards, oldest first. A statement of its own: the snapshot of the lease could still show
 * what the previous holder published. Indexes: delivery_live, the primary key of the outbox.
 */
export const READ_SHARDS = statement<ReadInput, EventRow>(`
with input as materialized (select $1::text::jsonb given),${HELD_BACK},
next as materialized (
  select d.n, d.shard, d.attempts
  from input, unnest(array(select jsonb_array_elements_text(given->'shards')::int from input)) s(shard)
  cross join lateral (
    select d.n, d.shard,${COUNTED} attempts from ob.delivery d
    where d.sink = given->>'sink' and d.shard >= s.shard and d.shard <= s.shard and d.parked is null and not d.waiting
      and${FREE}
    order by d.shard, d.n limit (select (given->>'depth')::int from input)) d
  where (select it from open)
  order by d.n limit (select (given->>'limit')::int from input)
),
event as (
  select next.shard, next.attempts, o.*, sum(size.it) over (order by next.n) - size.it before
  from next cross join lateral (select * from ob.outbox o where o.n = next.n limit 1) o
    cross join lateral (select octet_length(o.body) + octet_length(o.envelope) it) size
)
select n::text, shard::text, attempts::text, source, id, type, key, body, envelope,
       (extract(epoch from created_at) * 1000.0)::bigint::text created
from event where before < (select (given->>'bytes')::bigint from input) order by event.n`)

/** Events that all their sinks have published, in `finished`, go, or are kept as long as a sink wants. */
export const FINISHED = `
keeping as materialized (select coalesce(max(keep_ms), 0) > 0 it from ob.sink),
gone as (delete from ob.outbox e using finished f, keeping where e.n = f.n and not keeping.it),
kept as (update ob.outbox e set published_at = ob.now() from finished f, keeping where e.n = f.n and keeping.it)`

export interface CompleteInput extends ShardsHeld {
  readonly done: readonly (readonly [n: string, id: string])[]
  readonly failed: readonly FailedDelivery[]
}

interface FailedDelivery {
  readonly n: string
  readonly id: string
  readonly delayMs: number | null
  readonly parked?: 'dead' | undefined
  readonly error: string
  /** The attempt does not count. */
  readonly later?: true
}

interface CompletedAnswer {
  readonly recorded: string
  /** Of those, the numbers of events that are dead now. */
  readonly dead: Json<readonly string[]>
}

interface CompleteAnswer extends CompletedAnswer {
  /** Events that another sink may just be completing too. */
  readonly shared: Json<readonly string[]>
}

/**
 * The delivery of what is in the JSON `x`, to the sink of `given`; its number and its id are pieces of SQL. By both: a server that
 * took over without the last commits may have given the number to another event since.
 */
function deliveryOf(n: string, id: string): string {
  return `cross join lateral (
      select d.ctid, d.shard, d.error, d.parked from ob.delivery d
      where d.n = (${n})::bigint and d.sink = given->>'sink'
        and (select o.id from ob.outbox o where o.n = d.n) = ${id} limit 1) d`
}

/**
 * Records what became of a batch and gives its shards back. Only in shards that still carry our token: the others were taken
 * over, and their events are published again. Out: one row. Indexes: the primary keys.
 */
export const COMPLETE = statement<CompleteInput, CompleteAnswer>(`
with input as materialized (select $1::text::jsonb given),
leased as materialized (
  select h.shard from input, ob.shard h
  where h.sink = given->>'sink' and h.token = (given->>'token')::uuid order by h.shard for update of h
),
done as (
  delete from ob.delivery d where d.ctid = any (array(
    select d.ctid from input, jsonb_array_elements(given->'done') x ${deliveryOf('x->>0', 'x->>1')}
    where d.shard in (select shard from leased)))
  returning d.n
),
failure as materialized (
  select d.ctid tid, x->>'error' error, x->>'parked' parked, x->>'later' is not null later,
    coalesce((x->>'delayMs')::float8, 0) ms
  from input, jsonb_array_elements(given->'failed') x ${deliveryOf("x->>'n'", "x->>'id'")}
  where d.shard in (select shard from leased)
),
failed as (
  update ob.delivery d set attempts = case when f.later then greatest(1, d.attempts) else${COUNTED} + 1 end,
    error = f.error, parked = f.parked, waiting = f.parked is null, due_at = ob.now() + f.ms * interval '1 ms'
  from failure f where d.ctid = f.tid
  returning d.n, d.parked
),
over as materialized (
  select done.n, exists (select 1 from input, ob.delivery x where x.n = done.n and x.sink <> given->>'sink') shared
  from done
),
finished as (select n from over where not shared),${FINISHED},
given_back as (
  update ob.shard x set token = null, due_at = ob.now()
  from input, leased where x.sink = given->>'sink' and x.shard = leased.shard
)
select ((select count(*) from done) + (select count(*) from failed))::text recorded,
  coalesce((select jsonb_agg(n::text) from failed where parked = 'dead'), '[]')::text dead,
  coalesce((select jsonb_agg(n::text) from over where shared), '[]')::text shared`)

/**
 * Whether COMPLETE has done its work, after its answer was lost. In: what COMPLETE was given. Out: how many deliveries are
 * as it leaves them: gone, or with the error. Indexes: the primary keys.
 */
export const COMPLETED = statement<CompleteInput, CompletedAnswer>(`
with input as materialized (select $1::text::jsonb given),
failed as materialized (
  select x->>'n' n, d.parked from input, jsonb_array_elements(given->'failed') x ${deliveryOf("x->>'n'", "x->>'id'")}
  where d.error = x->>'error'
)
select (
  (select count(*) from input, jsonb_array_elements(given->'done') x)
  - (select count(*) from input, jsonb_array_elements(given->'done') x ${deliveryOf('x->>0', 'x->>1')})
  + (select count(*) from failed))::text recorded,
  coalesce((select jsonb_agg(n) from failed where parked = 'dead'), '[]')::text dead`)

/**
 * Finishes events of several sinks, after the completion of the last of them has committed: two that complete at the
 * same time see each other's delivery, and neither of them finishes the event. In: their numbers. Out: how many.
 */
export const FINISH_SHARED = statement<readonly string[], { finished: string }>(`
with finished as materialized (
  select o.n from ob.outbox o
  where o.n in (select x::bigint from jsonb_array_elements_text($1::text::jsonb) x)
    and o.published_at is null and not exists (select 1 from ob.delivery d where d.n = o.n)
  order by o.n for update skip locked
),${FINISHED}
select count(*)::text finished from finished`)

/**
 * Finishes events that all their sinks have published, but whose last relay died before FINISH_SHARED: an event without
 * a delivery. Several sinks can leave one, and one of them may be removed since. In: the number to go on `after`, and how many
 * to look at. Out: the `last` number it looked at; null at the end. Index: the primary keys.
 */
export const FINISH_LEFT = statement<{ after: string; limit: number }, { last: string | null }>(`
with input as materialized (
  select (given->>'after')::bigint after, (given->>'limit')::int most from (select $1::text::jsonb given) x
),
seen as materialized (
  select o.n from ob.outbox o where o.n > (select after from input)
  order by o.n limit (select most from input)
),
finished as materialized (
  select o.n from ob.outbox o
  where o.n = any (array(
      select seen.n from seen where (select 1 from ob.delivery d where d.n = seen.n limit 1) is null))
    and o.published_at is null
  order by o.n for update skip locked
),${FINISHED}
select case when count(*) >= (select most from input) then max(n)::text end last from seen`)

/**
 * Heartbeat. It waits for shards that others have locked: a heartbeat that skipped them would extend nothing and not know it.
 * Out: how many still carried our token, and were extended. None: the lease is lost.
 */
export const EXTEND_SHARDS = statement<ShardsHeld & { lease: number }, { extended: string }>(`
with input as materialized (select $1::text::jsonb given),
held as materialized (
  select h.shard from input, ob.shard h
  where h.sink = given->>'sink' and h.token = (given->>'token')::uuid order by h.shard for update of h
),
extended as (
  update ob.shard h set due_at = ob.now() + (select (given->>'lease')::float8 * interval '1 ms' from input)
  where h.sink = (select given->>'sink' from input) and h.token = (select (given->>'token')::uuid from input)
    and h.shard in (select shard from held)
  returning 1
)
select count(*)::text extended from extended`)

/** Gives shards back. */
export const RELEASE_SHARDS = statement<ShardsHeld>(`
with input as materialized (select $1::text::jsonb given)
update ob.shard h set token = null, due_at = ob.now() from input
where h.sink = given->>'sink' and h.token = (given->>'token')::uuid`)
