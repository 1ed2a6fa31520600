/** Statements of the outbox: send, and what the relay runs. For a link inside one database see link.ts. */
import { statement, type Flag, type Json } from '../statement.js'

interface SendInput {
  readonly source: string
  /** The local sinks, which count until they are registered; `types` null for all. */
  readonly sinks: readonly { readonly name: string; readonly types: readonly string[] | null }[]
  readonly events: readonly SentRow[]
}

/** An event. In letters, since there may be thousands in a parameter, and each pays for its names. */
export interface SentRow {
  /** id */
  readonly i: string
  /** type */
  readonly t: string
  /** key */
  readonly k: string | undefined
  /** shard */
  readonly g: number | undefined
  /** body */
  readonly b: string
  /** hash: the fingerprint, in hex */
  readonly h: string | undefined
  /** envelope */
  readonly e: string
  /** When to publish it. */
  readonly at: string | undefined
}

/**
 * Writes events in the caller's transaction, with a delivery for each sink that wants them. The same id twice is a no-op: no
 * second delivery either.
 *
 * Events of one key get their number here, so they are published in the order of their statements as long as their
 * transactions exclude each other. An event without a key goes to any shard.
 */
export const SEND = statement<SendInput>(`
with input as materialized (select $1::text::jsonb given),
event as materialized (
  select ord, x->>'i' id, x->>'t' type, x->>'k' key, (x->>'g')::int shard, x->>'b' body, x->>'h' hash, x->>'e' envelope,
         (x->>'at')::timestamptz at
  from input, jsonb_array_elements(given->'events') with ordinality a(x, ord)
),
written as (
  insert into ob.outbox as o (source, id, type, key, body, hash, envelope)
  select (select given->>'source' from input), id, type, key, body, decode(hash, 'hex'), envelope from event order by ord
  on conflict (source, id) do nothing
  returning o.n, o.id, o.type
),
sink as materialized (
  select name, types from ob.sink
  union all
  select x->>'name', case when jsonb_typeof(x->'types') = 'array' then array(select jsonb_array_elements_text(x->'types')) end
  from input, jsonb_array_elements(given->'sinks') x
  where not exists (select 1 from ob.sink k where k.name = x->>'name')
)
insert into ob.delivery (n, sink, shard, key, due_at, waiting)
select w.n, coalesce(wanting.name, ''), coalesce(e.shard, (w.n % 32::bigint)::int), e.key, coalesce(e.at, ob.now()),
       wanting.name is not null and coalesce(e.at > ob.now(), false)
from written w join event e using (id)
left join lateral (
  select distinct sink.name from sink where sink.types is null or w.type = any (sink.types)) wanting on true
order by w.n`)

/** Everything that was sent and is still there, in order. For tests. */
export const SENT = statement<null, SentEvent>(`
select source, id, type, key, body, envelope, (extract(epoch from created_at) * 1000.0)::bigint::text received
from ob.outbox where $1::text is not null order by n`)

export interface SentEvent {
  readonly source: string
  readonly id: string
  readonly type: string
  readonly key: string | null
  readonly body: string
  readonly envelope: string
  readonly received: string
}

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
 * Gives events that were sent before there was a sink to the sinks that want them; what nobody wants is put aside. In: how
 * many to look at. Out: how many it looked at. None: there are none, others hold them, or the sinks have just changed.
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
given_to as (
  insert into ob.delivery (n, sink, shard, key, due_at, waiting)
  select d.n, wanted.name, d.shard, d.key, d.due_at, d.due_at > ob.now()
  from wanted cross join lateral (select * from ob.delivery d where d.n = wanted.n and d.sink = '' limit 1) d order by d.n
  on conflict do nothing
),
gone as (delete from ob.delivery d where d.sink = '' and d.n = any (array(select n from wanted))),
put_aside as (update ob.delivery d set waiting = true
  where d.sink = '' and d.n = any (array(select n from seen except select n from wanted)))
select count(*)::text looked from seen`)

/**
 * What has to wait. `behind`: the sink has still to look at events that were put aside; where it `holds`, they may be
 * older than all that it has. `held`: keys that have to wait: one of their events failed and is not due again, or was sent before there was a sink and still
 * needs one. A list to be hashed, next to nothing as a rule: as a join or a correlated subquery the planner would expect
 * few events to be left, and read the whole backlog to sort it.
 */
export const HELD_BACK = `
behind as materialized (select c.holds from input, ob.catch_up c where c.sink = given->>'sink'),
held as materialized (
  select f.key from ob.delivery f
  where f.sink = (select given->>'sink' from input) and f.parked is null and f.waiting and f.attempts > 0 and f.key is not null
  union
  select u.key from ob.delivery u where u.sink = '' and u.parked is null and not u.waiting and u.key is not null
)`

interface ClaimShardsInput extends ShardsHeld {
  readonly lease: number
  /** How many shards. */
  readonly limit: number
  /** More events than that without a sink go first. */
  readonly most: number
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
 * apart would take too long.
 *
 * Shards with events are found by jumping along delivery_live, from each to the next: asked for each shard in turn, the
 * planner would expect an event in every shard, and read the whole table for one that has none. A range of one shard in
 * place of an equation, here and where events are read, because only that index then has the order. Indexes: delivery_live,
 * delivery_waiting, delivery_failed, delivery_unassigned.
 */
export const CLAIM_SHARDS = statement<ClaimShardsInput, ClaimShardsAnswer>(`
with recursive input as materialized (select $1::text::jsonb given),${HELD_BACK},
promoted as (
  update ob.delivery d set waiting = false
  where d.ctid = any (array(
    select ctid from ob.delivery
    where sink = (select given->>'sink' from input) and parked is null and waiting and due_at <= ob.now()
    order by due_at limit 1000 for update skip locked))
  returning 1
),
unassigned as materialized (
  select count(*) n from (
    select 1 from ob.delivery where sink = '' and parked is null and not waiting
    limit (select (given->>'most')::int + 1 from input)) x
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
        and (d.key is null or d.key not in (select key from held))
      order by d.shard, d.n limit 1) d
    where h.due_at <= ob.now() and not exists (select 1 from behind where holds)
      and (select n from unassigned) <= (select (given->>'most')::int from input)
    order by h.due_at, h.shard limit (select (given->>'limit')::int from input) for update of h skip locked))
  returning h.shard
)
select coalesce((select jsonb_agg(shard) from claimed), '[]')::text shards,
  ((select count(*) from promoted) > 0)::text promoted,
  ((select n from unassigned) > 0)::text unassigned,
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
      and (d.key is null or d.key not in (select key from held))
    order by d.shard, d.n limit (select (given->>'depth')::int from input)) d
  where not exists (select 1 from behind where holds)
  order by d.n limit (select (given->>'limit')::int from input)
),
event as (
  select next.shard, next.attempts, o.*, sum(octet_length(o.body)) over (order by next.n) - octet_length(o.body) before
  from next cross join lateral (select * from ob.outbox o where o.n = next.n limit 1) o
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
  readonly done: readonly string[]
  readonly failed: readonly FailedDelivery[]
}

interface FailedDelivery {
  readonly n: string
  readonly delayMs: number | null
  readonly parked?: 'dead' | undefined
  readonly error: string
  /** The attempt does not count. */
  readonly later?: true
}

interface CompleteAnswer {
  readonly recorded: string
  /** Events that another sink may just be completing too. */
  readonly shared: Json<readonly string[]>
}

/**
 * Records what became of a batch and gives its shards back. Only in shards that still carry our token: the others were taken
 * over, and their events are published again. Out: one row; how many were recorded. Indexes: the primary keys.
 */
export const COMPLETE = statement<CompleteInput, CompleteAnswer>(`
with input as materialized (select $1::text::jsonb given),
leased as materialized (
  select h.shard from input, ob.shard h
  where h.sink = given->>'sink' and h.token = (given->>'token')::uuid order by h.shard for update of h
),
done as (
  delete from ob.delivery d where d.ctid = any (array(
    select d.ctid from input, jsonb_array_elements_text(given->'done') x
    cross join lateral (
      select d.ctid, d.shard from ob.delivery d where d.n = x::bigint and d.sink = given->>'sink' limit 1) d
    where d.shard in (select shard from leased)))
  returning d.n
),
failure as materialized (
  select d.ctid tid, d.n, x->>'error' error, x->>'parked' parked, x->>'later' is not null later,
    coalesce((x->>'delayMs')::float8, 0) ms
  from input, jsonb_array_elements(given->'failed') x cross join lateral (
    select d.ctid, d.n, d.shard from ob.delivery d where d.n = (x->>'n')::bigint and d.sink = given->>'sink' limit 1) d
  where d.shard in (select shard from leased)
),
failed as (
  update ob.delivery d set (attempts, error, parked, waiting, due_at) = (
    select case when f.later then greatest(1, d.attempts) else${COUNTED} + 1 end, f.error, f.parked, f.parked is null,
      ob.now() + f.ms * interval '1 ms' from failure f where f.n = d.n)
  where d.ctid = any (array(select tid from failure))
  returning d.n
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
  coalesce((select jsonb_agg(n::text) from over where shared), '[]')::text shared`)

/**
 * Whether COMPLETE has done its work, after its answer was lost. In: what COMPLETE was given. Out: how many deliveries are
 * as it leaves them: gone, or with the error. Index: the primary key.
 */
export const COMPLETED = statement<CompleteInput, { recorded: string }>(`
with input as materialized (select $1::text::jsonb given)
select (
  (select count(*) from input, jsonb_array_elements_text(given->'done') x
   where not exists (select 1 from ob.delivery d where d.n = x::bigint and d.sink = given->>'sink'))
  + (select count(*) from input, jsonb_array_elements(given->'failed') x
   where exists (select 1 from ob.delivery d
     where d.n = (x->>'n')::bigint and d.sink = given->>'sink' and d.error = x->>'error')))::text recorded`)

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

/**
 * Removes a sink, under LOCK_SINKS, unless it is in use; `goneMs` is for how long a process counts without a sign of life. Out:
 * one row: whether it is `known`, and `users`: the processes that have it attached, as JSON; it stays if there is one, or
 * if a relay holds one of its shards (`leased`). And `last`, the number of the last event that was sent until now. Indexes:
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
counted as (update ob.sink_set set version = version + 1 where exists (select 1 from gone))
select known.it::text known, (exists (select 1 from shards where live))::text leased,
  coalesce((select jsonb_agg(host) from users), '[]')::text users,
  greatest((select max(n) from ob.outbox), pg_sequence_last_value(pg_get_serial_sequence('ob.outbox', 'n')), 0)::text last
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
