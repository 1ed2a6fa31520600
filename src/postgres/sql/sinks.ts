/** Statements about the set of sinks: who they are, which events they get, and what becomes of those of a sink that is removed. */
import { statement, type Flag, type Json } from '../statement.js'

/**
 * Locks the set of sinks, so that it is read and changed by one at a time. A statement of its own: the next one sees all.
 * A process that stands still before it commits loses its session, and with it the lock, which all relays need.
 */
export const LOCK_SINKS = statement<null, { version: string }>(`
with limits as materialized (
  select set_config('lock_timeout', '5000', true), set_config('idle_in_transaction_session_timeout', '5000', true)
  where $1::text is not null
)
select s.version::text from limits, ob.sink_set s for update of s`)

interface RegisterSinksInput {
  readonly process: string
  readonly host: string
  /** For how long a process counts without a sign of life. */
  readonly ms: number
  /** Whether to look at what was put aside though nothing has changed. */
  readonly again: boolean
  /** In letters, for the function is older than this. `n` name, `t` types or null, `k` keepMs */
  readonly s: readonly { readonly n: string; readonly t: readonly string[] | null; readonly k: number }[]
}

/** What another process says of a sink. */
export interface Differing {
  readonly sink: string
  readonly host: string
  readonly types: readonly string[] | null
}

/**
 * Registers the sinks of a box, all in one statement, which locks the set itself: events that waited for a sink are then
 * given to all of them. Out: one row, with what others say who do not agree.
 */
export const REGISTER_SINKS = statement<RegisterSinksInput, { differ: Json<readonly Differing[]> }>(`
select ob.register_sinks($1::text::jsonb)::text differ`)

/** A process stops: what it said of its sinks no longer counts. */
export const RETIRE_SINKS = statement<readonly [process: string]>(`
delete from ob.sink_declaration where process = ($1::text::jsonb->>0)::uuid`)

/**
 * Whether the sinks that this statement sees are those there are, and stay so until it has committed: `locked` is the
 * version as it is now, `known` that of the snapshot. Where they differ, the statement must judge nothing. It waits a
 * second at most, then fails with 55P03: who holds the set for longer must not keep what has its sink from being published.
 */
const SINKS_STAND = `
known as materialized (select version from ob.sink_set),
limits as materialized (select set_config('lock_timeout', '1000', true)),
locked as materialized (select s.version from limits, ob.sink_set s for share of s),
stand as materialized (select 1 from known, locked where known.version = locked.version)`

/**
 * Looks again at events that were put aside, from where the sink is, and gives those that it wants to all who want them.
 * Out: how many it `looked` at, of at most `limit`, and whether the sink is `through`. No row back: the sinks have just
 * changed, or another relay is at it. Index: delivery_waiting. Only rows that the sink wants
 * are locked, and they are waited for.
 */
export const CATCH_UP = statement<{ sink: string; limit: number }, { looked: string; through: Flag }>(`
with input as materialized (select $1::text::jsonb given),${SINKS_STAND},
progress as materialized (
  select c.due_at, c.n from input, ob.catch_up c
  where c.sink = given->>'sink' and exists (select 1 from stand) for update of c skip locked
),
seen as materialized (
  select d.n, d.due_at from ob.delivery d
  where d.sink = '' and d.parked is null and d.waiting
    and d.due_at >= (select due_at from progress) and (d.due_at, d.n) > (select due_at, n from progress)
  order by d.due_at, d.n limit (select (given->>'limit')::int from input)
),
claimed as materialized (
  select d.n, d.shard, d.key, d.due_at from ob.delivery d
  where d.n = any (array(
      select seen.n from seen cross join lateral (select type from ob.outbox o where o.n = seen.n limit 1) o
      where exists (select 1 from input, ob.sink s where s.name = given->>'sink' and (s.types is null or o.type = any (s.types)))))
    and d.sink = '' and d.parked is null and d.waiting
  for update
),
given_to as (
  insert into ob.delivery (n, sink, shard, key, due_at, waiting)
  select c.n, s.name, c.shard, c.key, c.due_at, c.due_at > ob.now()
  from claimed c cross join lateral (select type from ob.outbox o where o.n = c.n limit 1) o
  join ob.sink s on s.types is null or o.type = any (s.types) order by c.n
  on conflict do nothing
),
gone as (delete from ob.delivery d where d.sink = '' and d.n in (select n from claimed)),
looked as materialized (select count(*) < (select (given->>'limit')::int from input) through, count(*) n from seen),
moved as (
  update ob.catch_up c set (due_at, n) = (select due_at, n from seen order by due_at desc, n desc limit 1)
  from input, looked where c.sink = given->>'sink' and not looked.through and exists (select 1 from progress)
),
ended as (delete from ob.catch_up c using input, looked where c.sink = given->>'sink' and looked.through
  and exists (select 1 from progress))
select looked.n::text looked, looked.through::text through from looked, progress`)

/**
 * Gives events that were sent before there was a sink, or by a snapshot older than the sinks, to the sinks that want them;
 * what nobody wants is put aside, unless it has a sink that is not registered yet. In: how many to look at. Out: how many it
 * looked at. None: there are none, others hold them, or the sinks have just changed. The delivery to a sink that is not
 * registered is locked: RECLAIM may just be taking it back, and leave the event to the row without a sink.
 * Indexes: delivery_unassigned, and the primary keys.
 */
export const ASSIGN = statement<readonly [limit: number], { looked: string }>(`
with input as materialized (select $1::text::jsonb given),${SINKS_STAND},
seen as materialized (
  select n from ob.delivery where sink = '' and parked is null and not waiting and exists (select 1 from stand)
  order by n limit (select (given->>0)::int from input) for update skip locked
),
wanted as materialized (
  select seen.n, s.name from seen join ob.outbox o using (n) join ob.sink s on s.types is null or o.type = any (s.types)
),
settled as materialized (
  select n from wanted
  union select n from (select n from seen except select n from wanted) unwanted
    where (select 1 from ob.delivery d where d.n = unwanted.n and d.sink > '' limit 1 for key share) is not null
),
given_to as (
  insert into ob.delivery (n, sink, shard, key, due_at, waiting)
  select d.n, wanted.name, d.shard, d.key, d.due_at, d.due_at > ob.now()
  from wanted cross join lateral (select * from ob.delivery d where d.n = wanted.n and d.sink = '' limit 1) d order by d.n
  on conflict do nothing
),
gone as (delete from ob.delivery d where d.sink = '' and d.n = any (array(select n from settled))),
put_aside as (update ob.delivery d set waiting = true
  where d.sink = '' and d.n = any (array(select n from seen except select n from settled)))
select count(*)::text looked from seen`)

/**
 * Removes a sink, under LOCK_SINKS, unless it is in use; `goneMs` is for how long a process counts without a sign of life. Out:
 * one row: whether it is `known`, and `users`: the processes that have it attached, as JSON; it stays if there is one, or
 * if a relay holds one of its shards (`leased`). And `last`, the number of the last event that was sent until the version was counted, see SEND. Indexes:
 * delivery_live, delivery_waiting and delivery_parked, each named by the order under its limit, as in the statements below.
 */
export const REMOVE_SINK = statement<{ sink: string; goneMs: number }, RemoveSinkAnswer>(`
with input as materialized (select $1::text::jsonb given),
users as materialized (
  select d.host from input, ob.sink_declaration d
  where d.sink = given->>'sink' and d.seen_at >= ob.now() - (given->>'goneMs')::float8 * interval '1 ms'
),
shards as materialized (
  select h.shard, h.token is not null and h.due_at > ob.now() live from input, ob.shard h
  where h.sink = given->>'sink' order by h.shard for update of h
),
free as materialized (
  select 1 where not exists (select 1 from users) and not exists (select 1 from shards where live)
),
known as materialized (
  select exists (select 1 from ob.sink k where k.name = given->>'sink') or given->>'sink' <> '' and coalesce(
    (select d.n from ob.delivery d where d.sink = given->>'sink' and d.parked is null and not d.waiting
      order by d.shard, d.n limit 1),
    (select d.n from ob.delivery d where d.sink = given->>'sink' and d.parked is null and d.waiting
      order by d.due_at limit 1),
    (select d.n from ob.delivery d where d.sink = given->>'sink' and d.parked is not null
      order by d.parked, d.n limit 1)) is not null it from input
),
declarations as (delete from ob.sink_declaration d using input, free where d.sink = given->>'sink'),
catching_up as (delete from ob.catch_up c using input, free where c.sink = given->>'sink'),
leases as (delete from ob.shard h using input, free where h.sink = given->>'sink'),
unmarked as (delete from ob.removed_sink r using input where r.sink = given->>'sink'),
gone as (delete from ob.sink k using input, free where k.name = given->>'sink' returning 1),
counted as (
  update ob.sink_set set version = greatest(version + 1, nextval('ob.sink_version'))
  where exists (select 1 from gone) returning 1
)
select known.it::text known, (exists (select 1 from shards where live))::text leased,
  coalesce((select jsonb_agg(host) from users), '[]')::text users,
  case when (select count(*) from counted) >= 0 then greatest(
    (select max(n) from ob.outbox), pg_sequence_last_value(pg_get_serial_sequence('ob.outbox', 'n')), 0) end::text last
from known`)

interface RemoveSinkAnswer {
  readonly known: Flag
  readonly leased: Flag
  readonly users: Json<readonly string[]>
  readonly last: string
}

/**
 * Deletes deliveries of a sink that there is no longer, up to the number `last`: later ones are of a process that has attached the sink again. Out: their numbers, for FINISH_SHARED. No row back: there are none, others hold them,
 * or the sink is back; see MARK_REMOVED. Indexes: delivery_live, delivery_waiting and delivery_parked.
 */
export const REMOVE_DELIVERIES = statement<{ sink: string; limit: number; last: string }, { n: string }>(`
with input as materialized (
  select given->>'sink' sink, (given->>'limit')::int most, (given->>'last')::bigint last from (select $1::text::jsonb given) x
),${SINKS_STAND},
free as materialized (select 1 from stand where not exists (select 1 from input join ob.sink k on k.name = input.sink))
delete from ob.delivery d where exists (select 1 from free) and d.ctid = any (
    array(select d.ctid from ob.delivery d
      where d.sink = (select sink from input) and d.parked is null and not d.waiting and d.n <= (select last from input)
      order by d.shard, d.n limit (select most from input) for update skip locked)
    || array(select d.ctid from ob.delivery d
      where d.sink = (select sink from input) and d.parked is null and d.waiting and d.n <= (select last from input)
      order by d.due_at limit (select most from input) for update skip locked)
    || array(select d.ctid from ob.delivery d
      where d.sink = (select sink from input) and d.parked is not null and d.n <= (select last from input)
      order by d.parked, d.n limit (select most from input) for update skip locked))
returning d.n::text`)

/**
 * Ends a removal. Out: `done`; `back`, a process has attached the sink again; or `more`: there
 * are deliveries left, or the sinks have just changed.
 */
export const MARK_REMOVED = statement<{ sink: string; last: string }, { state: 'done' | 'back' | 'more' }>(`
with input as materialized (
  select given->>'sink' sink, (given->>'last')::bigint last from (select $1::text::jsonb given) x
),${SINKS_STAND},
state as materialized (
  select case when not exists (select 1 from stand) then 'more'
    when exists (select 1 from ob.sink k where k.name = input.sink) then 'back'
    when coalesce(
      (select d.n from ob.delivery d where d.sink = input.sink and d.parked is null and not d.waiting and d.n <= input.last
        order by d.shard, d.n limit 1),
      (select d.n from ob.delivery d where d.sink = input.sink and d.parked is null and d.waiting and d.n <= input.last
        order by d.due_at limit 1),
      (select d.n from ob.delivery d where d.sink = input.sink and d.parked is not null and d.n <= input.last
        order by d.parked, d.n limit 1)) is not null then 'more'
    else 'done' end state from input
),
marked as (
  insert into ob.removed_sink as r (sink, n) select input.sink, input.last from input, state where state = 'done'
  on conflict (sink) do update set n = excluded.n
)
select state from state`)

/**
 * Finds other sinks for events whose transactions were open while their sink was removed, and committed since: nobody else
 * would. A sink that has had such an event may get it again. In: how many to look at. Out: how many there were. Indexes:
 * delivery_live and delivery_waiting.
 */
export const RECLAIM = statement<readonly [limit: number], { found: string }>(`
with input as materialized (select ($1::text::jsonb->>0)::int most),${SINKS_STAND},
removed as materialized (
  select r.sink, r.n from stand, ob.removed_sink r where not exists (select 1 from ob.sink k where k.name = r.sink)
),
gone as (
  delete from ob.delivery d where d.ctid = any (
    array(select d.ctid from removed r cross join lateral (
      select d.ctid from ob.delivery d where d.sink = r.sink and d.parked is null and not d.waiting and d.n <= r.n
      order by d.shard, d.n limit (select most from input) for update skip locked) d)
    || array(select d.ctid from removed r cross join lateral (
      select d.ctid from ob.delivery d where d.sink = r.sink and d.parked is null and d.waiting and d.n <= r.n
      order by d.due_at limit (select most from input) for update skip locked) d))
  returning d.n, d.shard, d.key, d.due_at
),
unassigned as (
  insert into ob.delivery (n, sink, shard, key, due_at)
  select distinct on (n) n, '', shard, key, due_at from gone order by n
  on conflict do nothing
)
select count(*)::text found from gone`)

/** Has any process a sink? In: nothing. */
export const ANY_SINK = statement<null, { any: Flag }>(
  `select exists (select 1 from ob.sink)::text "any" where $1::text is not null`,
)
