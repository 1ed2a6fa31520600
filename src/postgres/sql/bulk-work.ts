/**
 * Statements of changes of many messages: each is a row, which a process carries for as long as it holds the lease. Whoever
 * changes messages for it has locked the row first, by its token, in the same transaction: of two that believe to carry it one finds
 * that it does not. Lanes and messages are locked after the row, by nobody before it.
 */
import { statement, type Flag } from '../statement.js'
import { workOf, type MessageKey } from './rules.js'

/** A change, as it stands. Times in ms. */
export interface BulkRow {
  readonly id: string
  readonly verb: 'retry' | 'discard'
  readonly state: 'running' | 'done' | 'cancelled' | 'stopped' | 'failed'
  readonly query: string
  readonly zone: string
  /** When the times of the query were read. */
  readonly read: string
  /** How far messages had come when they were counted, as JSON. */
  readonly counted: string
  readonly secret: Flag
  readonly total: string
  readonly most: string
  readonly pace: string | null
  readonly actor: string | null
  readonly reason: string | null
  readonly done: string
  readonly skipped: string
  readonly handled: string
  readonly failed: string
  /** How many are followed. */
  readonly following: string
  /** Of the last that have run, 1 for each that failed again. */
  readonly recent: string
  /** Where the walk stands; null before it has begun. */
  readonly plan: string | null
  readonly cancelled: Flag
  readonly problem: string | null
  readonly started: string
  readonly ended: string | null
  /** It runs, or what became of its messages is still to be seen, and nobody carries it. */
  readonly free: Flag
  /** Another process has carried it before. */
  readonly resumed: Flag
}

/** It is to be carried, and nobody does. */
const FREE = `(b.lease_until <= ob.now() and (b.state = 'running' or b.follow_until > ob.now()))`

const ms = (time: string): string => `(extract(epoch from ${time}) * 1000.0)::bigint::text`

const COLUMNS = `b.id::text, b.verb, b.state, b.query, b.zone::text, b.read_at::text "read", b.counted, b.secret::text, b.total::text,
  b.most::text, b.per_second::text pace, b.actor, b.reason, b.done::text, b.skipped::text, b.handled::text,
  b.failed_again::text failed, b.following::text, b.recent, b.plan, b.cancelled::text, b.problem, ${ms('b.started_at')} started,
  ${ms('b.ended_at')} ended, ${FREE}::text free, (b.carriers > 1)::text resumed`

interface Carrier {
  readonly id: string
  readonly token: string
}

const LEASE = `ob.now() + (given->>'leaseMs')::float8 * interval '1 ms'`

interface StartInput extends Carrier {
  readonly verb: 'retry' | 'discard'
  readonly query: string
  readonly zone: number
  readonly readAt: number
  readonly counted: string
  readonly secret: boolean
  readonly total: number
  readonly most: number
  readonly pace: number | undefined
  readonly actor: string | undefined
  readonly reason: string | undefined
  readonly leaseMs: number
  readonly mostRunning: number
}

/**
 * Begins a change, carried by who asks. No row back: there is one of this id, or so many run already. Two at the same moment
 * may be one more.
 */
export const START_BULK = statement<StartInput, BulkRow>(`
with input as materialized (select $1::text::jsonb given)
insert into ob.bulk as b (id, verb, query, zone, read_at, counted, secret, total, most, per_second, actor, reason, token, lease_until,
  carriers)
select (given->>'id')::uuid, given->>'verb', given->>'query', (given->>'zone')::int, (given->>'readAt')::bigint,
  given->>'counted', (given->>'secret')::boolean, (given->>'total')::bigint, (given->>'most')::bigint, (given->>'pace')::float8, given->>'actor',
  given->>'reason', (given->>'token')::uuid, ${LEASE}, 1
from input
where (select count(*) from ob.bulk r where r.state = 'running') < (given->>'mostRunning')::bigint
on conflict (id) do nothing returning ${COLUMNS}`)

/**
 * Changes that run, the newest first, then those that ended within `keptMs`, the last one first; no more than `limit`. One that runs, or
 * has just ended, may have begun long before others. Index: none, for a day's changes are few.
 */
export const LIST_BULK = statement<{ keptMs: number; limit: number }, BulkRow>(`
with input as materialized (select $1::text::jsonb given)
select ${COLUMNS} from ob.bulk b
where b.ended_at is null or b.ended_at > (select ob.now() - (given->>'keptMs')::float8 * interval '1 ms' from input)
order by coalesce(b.ended_at, 'infinity') desc, b.started_at desc limit (select (given->>'limit')::int from input)`)

/** A change by its id. Index: the primary key. */
export const READ_BULK = statement<{ id: string }, BulkRow>(`
select ${COLUMNS} from ob.bulk b where b.id = (select (given->>'id')::uuid from (select $1::text::jsonb given) input)`)

/**
 * Cancels a change that runs, or gives it another rate; the process that carries it sees that. No row back: it has ended, or is none of
 * this verb. Index: the primary key.
 */
export const CHANGE_BULK = statement<
  { id: string; verb: 'retry' | 'discard'; cancel: boolean; pace: number | undefined },
  BulkRow
>(`
update ob.bulk b set cancelled = b.cancelled or (given->>'cancel')::boolean,
  per_second = coalesce((given->>'pace')::float8, b.per_second)
from (select $1::text::jsonb given) input
where b.id = (given->>'id')::uuid and b.verb = given->>'verb' and b.state = 'running' returning ${COLUMNS}`)

/** Takes over a change that nobody carries any more, the oldest. No row back: there is none. Index: bulk_started. */
export const TAKE_BULK = statement<{ token: string; leaseMs: number }, BulkRow>(`
with input as materialized (select $1::text::jsonb given),
free as materialized (
  select b.id from ob.bulk b where ${FREE} order by b.started_at limit 1 for update of b skip locked
)
update ob.bulk b set token = (given->>'token')::uuid, lease_until = ${LEASE}, carriers = b.carriers + 1
from input, free where b.id = free.id returning ${COLUMNS}`)

/**
 * Locks a change for the transaction in which messages are changed for it, with limits for all that follows: a process that is
 * frozen meanwhile must not keep the change from others. No row back: another process carries it, or it has ended. Index: the primary key.
 */
export const LOCK_BULK = statement<Carrier, BulkRow>(`
with input as materialized (
  select given, set_config('lock_timeout', '5s', true), set_config('idle_in_transaction_session_timeout', '10s', true)
  from (select $1::text::jsonb given) x
)
select ${COLUMNS} from input join ob.bulk b on b.id = (given->>'id')::uuid and b.token = (given->>'token')::uuid
where b.state = 'running' for update of b`)

interface AdvanceInput {
  readonly id: string
  readonly done: number
  readonly skipped: number
  /** Undefined leaves it as it is. */
  readonly plan: string | undefined
  /** What was made pending again, to be followed. */
  readonly keys: readonly MessageKey[]
  /** So many are followed at most. */
  readonly mostFollowed: number
  readonly leaseMs: number
}

/** Writes down what was done in the same transaction, of a change that is locked. Index: the primary key. */
export const ADVANCE_BULK = statement<AdvanceInput>(`
with input as materialized (select $1::text::jsonb given),
followed as (
  insert into ob.bulk_message (bulk, consumer, source, id)
  select b.id, x->>0, x->>1, x->>2 from input join ob.bulk b on b.id = (given->>'id')::uuid,
    jsonb_array_elements(given->'keys') with ordinality k(x, ord)
  where b.following + k.ord <= (given->>'mostFollowed')::bigint order by k.ord returning 1
)
update ob.bulk b set done = b.done + (given->>'done')::bigint, skipped = b.skipped + (given->>'skipped')::bigint,
  plan = coalesce(given->>'plan', b.plan), following = b.following + (select count(*) from followed), lease_until = ${LEASE}
from input where b.id = (given->>'id')::uuid`)

interface FollowInput extends Carrier {
  readonly after: string
  readonly limit: number
  readonly leaseMs: number
}

/**
 * Holds the lease, and sees what has become of messages that were made pending again, no more than `limit` of them from a number on:
 * each that has run is counted and forgotten; one that a person has discarded before is only forgotten. Out: the change, and the number of the last that was looked at; null after the last of all.
 * No row back: another process carries it. Indexes: the primary keys.
 */
export const FOLLOW_BULK = statement<FollowInput, BulkRow & { last: string | null }>(`
with input as materialized (select $1::text::jsonb given, ($1::text::jsonb->>'limit')::bigint most),
mine as materialized (
  select b.id from input join ob.bulk b on b.id = (given->>'id')::uuid and b.token = (given->>'token')::uuid for update of b
),
seen as materialized (
  select o.* from input cross join mine cross join lateral (
    select o.n, o.consumer, o.source, o.id from ob.bulk_message o
    where o.bulk = mine.id and o.n > (given->>'after')::bigint order by o.n limit (select most from input)) o
),
judged as materialized (
  select s.n, w.id is not null failed, w.id is not null and w.parked = 'discarded' and w.attempts = 0 dropped from seen s ${workOf('s')}
  where w.id is null or w.attempts > 0 or w.parked is not null
),
gone as (delete from ob.bulk_message o using mine, judged j where o.bulk = mine.id and o.n = j.n)
update ob.bulk b set lease_until = ${LEASE},
  handled = b.handled + (select count(*) filter (where not failed) from judged),
  failed_again = b.failed_again + (select count(*) filter (where failed and dropped is not true) from judged),
  following = b.following - (select count(*) from judged),
  recent = right(b.recent || coalesce((select string_agg(case when failed then '1' else '0' end, '' order by n) filter (where dropped is not true) from judged), ''), 50)
from input, mine where b.id = mine.id
returning ${COLUMNS}, (select case when count(*) = (select most from input) then max(n) end from seen)::text last`)

interface EndInput extends Carrier {
  readonly state: 'done' | 'cancelled' | 'stopped' | 'failed'
  readonly problem: string | undefined
  /** So long what becomes of its messages is still followed. */
  readonly followMs: number
}

/** Ends a change. No row back: another process carries it, or it has ended. Index: the primary key. */
export const END_BULK = statement<EndInput, BulkRow>(`
update ob.bulk b set state = given->>'state', problem = given->>'problem', ended_at = ob.now(),
  follow_until = ob.now() + (given->>'followMs')::float8 * interval '1 ms'
from (select $1::text::jsonb given) input
where b.id = (given->>'id')::uuid and b.token = (given->>'token')::uuid and b.state = 'running' returning ${COLUMNS}`)

/**
 * Lets a change go: another process may carry it at once; one that has been `seen` to its end needs nobody. Index: the primary
 * key.
 */
export const LEAVE_BULK = statement<Carrier & { seen: boolean }>(`
with input as materialized (select $1::text::jsonb given),
mine as (
  update ob.bulk b set token = null, lease_until = '-infinity',
    follow_until = case when (given->>'seen')::boolean then '-infinity' else b.follow_until end
  from input where b.id = (given->>'id')::uuid and b.token = (given->>'token')::uuid returning b.id
)
delete from ob.bulk_message o using input, mine where (given->>'seen')::boolean and o.bulk = mine.id`)

/** Forgets changes that ended longer ago than `keepMs`. The audit has them for good. */
export const PRUNE_BULK = statement<{ keepMs: number }>(`
delete from ob.bulk b using (select $1::text::jsonb given) input
where b.ended_at < ob.now() - (given->>'keepMs')::float8 * interval '1 ms'`)
