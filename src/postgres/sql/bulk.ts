/**
 * Statements by which a person changes the fate of messages, at most a few hundred at a time.
 *
 * All take keys that a search found, and judge each row again under its lock: what changed meanwhile, and what
 * somebody holds, is left alone. Lanes are locked first, in the order of their keys, as everywhere.
 */
import type { LocalConsumer } from '../../local-consumer.js'
import { statement, type Flag, type Json } from '../statement.js'
import { chosenWork, freeLanes, headOf, same, wakeLanes, type MessageKey } from './rules.js'

/** Messages, and the states that each must be in. */
interface Chosen {
  readonly keys: readonly MessageKey[]
  readonly states: readonly string[]
}

export interface KeyRow {
  readonly consumer: string
  readonly source: string
  readonly id: string
}

interface ChosenDeliveries {
  readonly keys: readonly (readonly [n: string, sink: string])[]
  readonly states: readonly string[]
}

/** How far things had come: the time, and the last number of each kind. */
export interface WalkEnd {
  readonly at: string
  readonly seq: string
  readonly n: string
  readonly sent: string
}

/**
 * Where a walk upwards must end, so that it does not chase what arrives meanwhile. `nextval` rather than a look at the
 * sequence: workers have the right to it.
 */
export const WALK_END = statement<null, WalkEnd>(`
select to_char(ob.now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') "at", nextval('ob.seq')::text seq,
  coalesce((select max(n) from ob.quarantine), 0)::text n, coalesce((select max(n) from ob.outbox), 0)::text sent
where $1::text is not null`)

/**
 * Makes parked messages pending again, with all their attempts. They keep their place in their lane. The message that
 * blocks its lane frees it; any other waits with the rest if one does. Nor does one that is behind the first of its lane make
 * that one run before the time of its retry. Out: the keys of those that were changed. Index: the primary keys, work_lane.
 */
export const RETRY = statement<Chosen, KeyRow>(`
with input as materialized (select $1::text::jsonb given),${chosenWork()},
fitting as materialized (
  select w.consumer, w.source, w.id from chosen c join ob.work w on ${same('w', 'c')}
  left join lane on lane.consumer = c.consumer and lane.key = c.lane
  where w.parked in (select jsonb_array_elements_text(given->'states') from input)
  order by w.consumer, w.source, w.id for update of w skip locked
),
changed as (
  update ob.work w set parked = null, reason = null, token = null, suspect = false, attempts = 0, due_at = ob.now()
  from fitting f where ${same('w', 'f')}
  returning w.consumer, w.source, w.id, w.lane, w.seq
),
waiting as materialized (
  select consumer, lane, array_agg(seq) seqs, coalesce(min(seq) <= (${headOf('changed.consumer', 'changed.lane')}), true) leads
  from changed where lane is not null group by consumer, lane
),
freed as (
  update ob.lane x set dirty = true, blocked = x.blocked and not w.frees,
    due_at = case when x.token is null and w.frees and (x.blocked or w.leads or x.due_at = 'infinity')
                  then least(x.due_at, ob.now()) else x.due_at end
  from (select w.consumer, w.lane, w.leads, coalesce(lane.front = any (w.seqs), true) frees
        from waiting w join lane on lane.consumer = w.consumer and lane.key = w.lane) w
  where x.consumer = w.consumer and x.key = w.lane
),
laneless as materialized (
  select w.consumer, w.lane from waiting w
  where not exists (select 1 from lane where lane.consumer = w.consumer and lane.key = w.lane)
),
woken as (${wakeLanes('laneless')}
)
select consumer, source, id from changed`)

interface ReplayInput {
  readonly keys: readonly MessageKey[]
  /** The local consumers. */
  readonly consumers: readonly Pick<LocalConsumer, 'name' | 'ordered' | 'types'>[]
}

/**
 * Makes handled messages pending again: a replay. Only what a consumer takes, here or by the word of another process: the keys of
 * endpoints and of `once`, and what a removed consumer has handled, would wait for ever without their results. Nor what was only
 * recorded as handled. Out: the keys of those that were changed. Index: the primary keys.
 *
 * The journal row is written too, in its lock: retention that judged it before finds another version and lets it be.
 */
export const REPLAY = statement<ReplayInput, KeyRow>(`
with input as materialized (select $1::text::jsonb given),
chosen as materialized (
  select distinct x->>0 consumer, x->>1 source, x->>2 id from input, jsonb_array_elements(given->'keys') x
),
local as materialized (
  select x->>'name' name, (x->>'ordered')::boolean ordered, x->'types' types
  from input, jsonb_array_elements(given->'consumers') x
),
known as materialized (
  select name, ordered from ob.consumer where name not in (select name from local)
  union all select name, ordered from local
),
taken as materialized (
  select s.consumer, s.type from ob.subscription s where s.consumer in (select consumer from chosen)
  union select name, jsonb_array_elements_text(types) from local
),
handled as materialized (
  select m.consumer, m.source, m.id, m.received_at,
    case when k.ordered then coalesce(m.envelope::jsonb->>'lane', m.key) end lane
  from chosen c join ob.message m on ${same('m', 'c')}
  left join known k on k.name = m.consumer
  where m.envelope::jsonb->'marked' is null and not exists (select 1 from ob.work w where ${same('w', 'm')})
    and exists (select 1 from taken t where t.consumer = m.consumer and t.type in (m.type, '*'))
  order by m.consumer, m.source, m.id for no key update of m skip locked
),
woken as (${wakeLanes('handled')}
),
queued as (
  insert into ob.work as w (consumer, source, id, seq, lane, due_at)
  select consumer, source, id, nextval('ob.seq'), lane, ob.now()
  from (select * from handled where lane is null or (select count(*) from woken) >= 0
        order by received_at, consumer, source, id) x
  on conflict do nothing
  returning w.consumer, w.source, w.id
)
update ob.message m set result = null from queued q
where ${same('m', 'q')}
returning m.consumer, m.source, m.id`)

/**
 * Discards messages that nobody holds, of the states dead, quarantined and pending. The message that blocks its lane frees
 * it, and so does the first one of a lane that waits for its retry. A lease that has run out gets another token, so that a worker
 * that comes back late cannot settle what was discarded. Out: the keys of those that were changed. Index: the primary keys, work_lane.
 */
export const DISCARD = statement<Chosen, KeyRow>(`
with input as materialized (
  select array(select jsonb_array_elements_text(given->'states')) states, given from (select $1::text::jsonb given) x
),${chosenWork()},
fitting as materialized (
  select w.consumer, w.source, w.id, w.parked is null waited from input, chosen c join ob.work w on ${same('w', 'c')}
  left join lane on lane.consumer = c.consumer and lane.key = c.lane
  where (w.parked in ('dead', 'quarantined') and w.parked = any (input.states))
    or ('pending' = any (input.states) and (w.parked = 'failed' or w.parked is null
        and (w.token is null or w.due_at <= ob.now()) and not coalesce(lane.live, false)))
  order by w.consumer, w.source, w.id for update of w skip locked
),
changed as (
  update ob.work w set parked = 'discarded', token = null, suspect = false, due_at = 'infinity'
  from fitting f where ${same('w', 'f')}
  returning w.consumer, w.source, w.id, w.lane, w.seq, f.waited
),${freeLanes('changed')}
select consumer, source, id from changed`)

/** Discards what is in quarantine. In: the numbers of rows, and why. Out: the rows that were changed. */
export const DISCARD_QUARANTINED = statement<{ rows: readonly string[]; reason: string }, { n: string }>(`
with input as materialized (select $1::text::jsonb given),
fitting as materialized (
  select q.n from input, jsonb_array_elements_text(given->'rows') x join ob.quarantine q on q.n = x::bigint
  where q.discarded is null order by q.n for update of q skip locked
)
update ob.quarantine q set discarded = given->>'reason' from input, fitting f
where q.n = f.n and q.discarded is null returning q.n::text`)

/** A row of the quarantine, with all that came. */
export interface QuarantinedRow {
  readonly n: string
  readonly consumer: string
  readonly source: string
  readonly id: string
  readonly type: string
  readonly key: string | null
  readonly reason: string
  readonly body: string | null
  readonly bytes: string | null
  readonly hash: string
  readonly fingerprint: string | null
  readonly envelope: string | null
  readonly via: string | null
  readonly since: string
  /** There are more than fit. */
  readonly more: Flag
}

/**
 * What is in quarantine, to be released. In: the numbers of `rows`. Out, by number: as many as fit into so many `bytes`, one
 * at least. A row missing from an answer without more is gone already. Index: the primary key.
 */
export const READ_QUARANTINED = statement<{ rows: readonly string[]; bytes: number }, QuarantinedRow>(`
with input as materialized (select $1::text::jsonb given),
sized as materialized (
  select q.n, sum(coalesce(octet_length(q.body), 0) + coalesce(octet_length(q.bytes), 0)) over (order by q.n)
    - coalesce(octet_length(q.body), 0) - coalesce(octet_length(q.bytes), 0) before
  from input, jsonb_array_elements_text(given->'rows') x join ob.quarantine q on q.n = x::bigint
)
select q.n::text, q.consumer, q.source, q.id, q.type, q.key, q.reason, q.body, encode(q.bytes, 'base64') bytes,
  encode(q.hash, 'hex') hash, encode(q.fingerprint, 'hex') fingerprint, q.envelope, q.via, to_json(q.received_at)#>>'{}' since,
  exists (select 1 from sized s, input where s.before >= (given->>'bytes')::bigint)::text more
from input, sized join ob.quarantine q using (n) where sized.before < (given->>'bytes')::bigint order by q.n`)

interface LockInput {
  readonly rows: readonly (readonly [n: string, state: 'quarantined' | 'discarded'])[]
  /** For how long. */
  readonly wait: string
}

/** `meant` is null for all. */
export interface LockedRow {
  readonly n: string
  readonly meant: Json<readonly string[]> | null
}

/**
 * Locks what is to be released, before it is received in the same transaction. Out, by number: those that are still there in
 * that state, and whom they are meant for. They are locked in the order in which copies of them come in, see
 * QUARANTINE_OF_NOBODY. Index: the primary key.
 */
export const LOCK_QUARANTINED = statement<LockInput, LockedRow>(`
with input as materialized (
  select given, set_config('lock_timeout', given->>'wait', true) from (select $1::text::jsonb given) x
),
locked as materialized (
  select q.n, q.meant from input, jsonb_array_elements(given->'rows') x join ob.quarantine q on q.n = (x->>0)::bigint
  where case when q.discarded is null then 'quarantined' else 'discarded' end = x->>1
  order by q.consumer, q.source, q.id, q.reason, q.hash for update of q
)
select locked.n::text, to_json(locked.meant)::text meant from locked order by locked.n`)

/** Removes messages from quarantine, locked before, that were received. In: their numbers. */
export const REMOVE_QUARANTINED = statement<readonly string[], { n: string }>(`
delete from ob.quarantine q using jsonb_array_elements_text($1::text::jsonb) x where q.n = x::bigint returning q.n::text`)

/**
 * Publishes events again that are dead or discarded; one that was never tried, no earlier than it was to be. One without a sink is
 * looked at anew, whenever it is due: a sink may have come for it since. Out: those that were changed. Index: the primary key.
 */
export const RETRY_DELIVERIES = statement<ChosenDeliveries, { n: string }>(`
with input as materialized (select $1::text::jsonb given),
fitting as materialized (
  select d.n, d.sink from input, jsonb_array_elements(given->'keys') x
  join ob.delivery d on d.n = (x->>0)::bigint and d.sink = x->>1
  where d.parked in (select jsonb_array_elements_text(given->'states') from input)
  order by d.n, d.sink for update of d skip locked
)
update ob.delivery d set parked = null, attempts = 0, waiting = d.sink <> '' and d.attempts = 0 and d.due_at > ob.now(),
  due_at = case when d.attempts = 0 then greatest(d.due_at, ob.now()) else ob.now() end
from fitting f where d.n = f.n and d.sink = f.sink returning d.n::text`)

/**
 * Gives up events that no relay holds, of the states dead and pending. A lease that has run out gets another token, so that
 * its relay cannot record anything any more. Out: those that were changed. Index: the primary key.
 */
export const DISCARD_DELIVERIES = statement<ChosenDeliveries, { n: string }>(`
with input as materialized (
  select array(select jsonb_array_elements_text(given->'states')) states, given from (select $1::text::jsonb given) x
),
chosen as materialized (
  select distinct d.n, d.sink, d.shard from input, jsonb_array_elements(given->'keys') x
  join ob.delivery d on d.n = (x->>0)::bigint and d.sink = x->>1
),
shard as materialized (
  select h.sink, h.shard, h.token is not null and h.due_at > ob.now() live
  from (select distinct sink, shard from chosen) c join ob.shard h on h.sink = c.sink and h.shard = c.shard
  order by h.sink, h.shard for update of h
),
fitting as materialized (
  select d.n, d.sink, d.shard from input, chosen c join ob.delivery d on d.n = c.n and d.sink = c.sink
  left join shard on shard.sink = c.sink and shard.shard = c.shard
  where (d.parked = 'dead' and 'dead' = any (input.states))
    or (d.parked is null and 'pending' = any (input.states) and not coalesce(shard.live, false))
  order by d.n, d.sink for update of d skip locked
),
fenced as (
  update ob.shard x set token = gen_random_uuid() from shard h
  where x.sink = h.sink and x.shard = h.shard and x.token is not null and not h.live
    and exists (select 1 from fitting f where f.sink = h.sink and f.shard = h.shard)
)
update ob.delivery d set parked = 'discarded', waiting = false
from fitting f where d.n = f.n and d.sink = f.sink returning d.n::text`)
