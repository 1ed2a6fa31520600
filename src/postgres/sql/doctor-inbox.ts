/**
 * Statements by which the doctor looks at messages. Each reads a bounded part of an index, whatever there is: counts end at
 * `COUNTED_TO`, and what has no index for the question is judged by a sample. What comes out is one JSON document for each
 * row, so that numbers are numbers.
 */
import { statement, type Json } from '../statement.js'
import { age, consumersIn, COUNTED_TO, messageOf, ownTime, quarantinePairs } from './rules.js'

/** The consumers there are: those that are registered, those with work, found by hopping, and those of the parameter. */
const CONSUMER_NAMES = `
${consumersIn('message', 'journal')},
${consumersIn('work', 'working')},
consumer as materialized (
  select name from ob.consumer union select name from journal where name is not null
  union select name from working where name is not null
)`

export interface ConsumerFacts {
  readonly consumer: string
  readonly registered: boolean
  readonly paused: boolean
  readonly ordered: boolean
  readonly retainMs: number | null
  /** For how long the message that is due longest has been due; null if none is. */
  readonly dueMs: number | null
  readonly due: number
  /** Some worker, anywhere, holds messages of it. */
  readonly held: boolean
  /** Processes that run it, and were seen within `goneMs`. */
  readonly processes: number
  /** Messages and keys whose lease is over and that nobody took since, and for how long it is over. */
  readonly expired: number
  readonly expiredMs: number | null
  /** Messages that wait and will never be due. */
  readonly neverDue: number
  /** Received within the last five minutes. */
  readonly arrived: number
  /**
   * The age of the oldest of its messages that was handled more than an hour ago and is still there, of those among the first 1 000;
   * null if none is. An old dead letter that was handled just now is left to retention for a while.
   */
  readonly oldestHandledMs: number | null
  /** So far in the future lies what retention says it has forgotten; null if it does not. */
  readonly aheadMs: number | null
}

/**
 * What waits for each consumer, and who is at it. In: after which time a process that was not seen is gone. Indexes: work_due,
 * lane_due, work_lane, message_received, and the primary keys.
 */
export const LOOK_CONSUMERS = statement<{ goneMs: number }, { facts: Json<ConsumerFacts> }>(`
with recursive input as materialized (select (given->>'goneMs')::float8 gone_ms from (select $1::text::jsonb given) x),${CONSUMER_NAMES}
select jsonb_build_object('consumer', c.name, 'registered', o.name is not null, 'paused', coalesce(o.paused, false),
  'ordered', coalesce(o.ordered, false), 'retainMs', o.retain_ms, 'dueMs', due.ms, 'due', due.n, 'held', held.loose or held.lane, 'processes', running.n,
  'expired', due.expired, 'expiredMs', due.expired_ms, 'neverDue', never.n, 'arrived', arrived.n, 'oldestHandledMs', handled.ms,
  'aheadMs', (select -${age('f.sent_before')} from ob.forgotten f where f.consumer = c.name and f.sent_before > ob.now())
)::text facts
from consumer c left join ob.consumer o on o.name = c.name
cross join lateral (
  select max(${age('x.due_at')}) ms, count(*) n, count(*) filter (where x.token is not null) expired,
    max(${age('x.due_at')}) filter (where x.token is not null) expired_ms
  from (
    (select w.due_at, w.token from ob.work w
     where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at <= ob.now()
     order by w.due_at limit ${COUNTED_TO})
    union all
    (select l.due_at, l.token from (
       select l.* from ob.lane l where l.consumer = c.name and l.due_at <= ob.now() and l.due_at < 'infinity'
       order by l.due_at limit ${COUNTED_TO}) l
     cross join lateral (select 1 from ob.work w
       where w.consumer = l.consumer and w.lane = l.key and w.parked is null order by w.seq limit 1) w)) x
) due
cross join lateral (
  select exists (select 1 from (
      select w.token from ob.work w
      where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at > ob.now() and w.due_at < 'infinity'
      order by w.due_at limit 100000) ahead where ahead.token is not null) loose,
    exists (select 1 from (
      select l.token from ob.lane l where l.consumer = c.name and l.due_at > ob.now() and l.due_at < 'infinity'
      order by l.due_at limit 100000) ahead where ahead.token is not null) lane
) held
cross join lateral (
  select count(*) n from ob.consumer_process p where p.consumer = c.name and not p.stopped
    and p.seen_at >= ob.now() - (select gone_ms from input) * interval '1 ms'
) running
cross join lateral (
  select count(*) n from (
    select 1 from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at = 'infinity'
    order by w.seq limit ${COUNTED_TO}) x
) never
cross join lateral (
  select count(*) n from (
    select 1 from ob.message m where m.consumer = c.name and m.received_at > ob.now() - interval '5 minutes'
    order by m.received_at limit ${COUNTED_TO}) x
) arrived
cross join lateral (
  select max(${age('greatest(m.received_at, case when own.at <= ob.now() then own.at end)')}) ms from (
    select m.consumer, m.source, m.id, m.n, m.received_at, m.envelope
    from ob.message m where m.consumer = c.name order by m.received_at limit 1000) m
  cross join lateral (select ${ownTime('m')} at offset 0) own
  where not exists (select 1 from ob.work w where w.consumer = m.consumer and w.source = m.source and w.id = m.id)
    and not exists (select 1 from ob.handled h where h.n = m.n and h.at > ob.now() - interval '1 hour')
) handled
order by c.name`)

export interface ParkedFacts {
  readonly consumer: string
  /** As the row has it: `dead`, `quarantined` for an effect whose outcome is unknown, `failed` for what its source has. */
  readonly parked: 'dead' | 'quarantined' | 'failed'
  readonly count: number
  readonly oldestMs: number
  readonly olderThanDay: number
  readonly olderThanWeek: number
  /** Keys that are blocked, of those of the first 1 000 dead messages, and what waits behind them. */
  readonly blockedKeys: number
  readonly blockedMessages: number
}

/**
 * What is parked for each consumer, by age. In: nothing. No row back for a consumer: nothing is. Indexes: work_parked,
 * message_pkey, lane_pkey, work_lane.
 */
export const LOOK_PARKED = statement<null, { facts: Json<ParkedFacts> }>(`
with recursive input as (select $1::text),${CONSUMER_NAMES}
select jsonb_build_object('consumer', c.name, 'parked', kind.parked, 'count', parked.n, 'oldestMs', parked.oldest_ms,
  'olderThanDay', parked.day, 'olderThanWeek', parked.week, 'blockedKeys', blocked.n, 'blockedMessages', blocked.messages)::text facts
from consumer c cross join (values ('dead'), ('quarantined'), ('failed')) kind(parked)
cross join lateral (
  select count(*) n, max(${age('m.received_at')}) oldest_ms,
    count(*) filter (where m.received_at < ob.now() - interval '1 day') "day",
    count(*) filter (where m.received_at < ob.now() - interval '7 days') week
  from (select w.consumer, w.source, w.id from ob.work w where w.consumer = c.name and w.parked = kind.parked
    order by w.seq limit ${COUNTED_TO}) w ${messageOf('w')}
) parked
cross join lateral (
  select count(*) n, coalesce(sum(behind.n), 0) messages
  from (select distinct w.lane from (
      select w.lane from ob.work w where w.consumer = c.name and w.parked = kind.parked order by w.seq limit 1000) w
    where w.lane is not null and kind.parked <> 'failed') w
  cross join lateral (select 1 from ob.lane l where l.consumer = c.name and l.key = w.lane and l.blocked limit 1) l
  cross join lateral (select count(*) n from (
    select 1 from ob.work behind where behind.consumer = c.name and behind.lane = w.lane and behind.parked is null
    order by behind.seq limit 1000) x) behind
) blocked
where parked.n > 0 order by c.name, kind.parked`)

export interface StrayFacts {
  /** Of how many of each kind was looked at. */
  readonly looked: number
  /** Work whose message is not there. */
  readonly orphans: number
  /** Keys with work that no claim of a key finds: they have no lane, or one that sleeps. */
  readonly asleep: number
}

/** Rows that no loop will ever reach, of a sample of each kind. In: nothing. Out: one row. Indexes: the primary keys. */
export const LOOK_STRAYS = statement<null, { facts: Json<StrayFacts> }>(`
with input as (select $1::text),
work as materialized (select w.consumer, w.source, w.id from ob.work w limit ${COUNTED_TO}),
lanes as materialized (
  select distinct w.consumer, w.lane from (
    select w.consumer, w.lane from ob.work w where w.lane is not null and w.parked is null
    order by w.consumer, w.lane, w.seq limit ${COUNTED_TO}) w
)
select jsonb_build_object('looked', (select count(*) from work),
  'orphans', (select count(*) from work w left join lateral (
     select 1 found from ob.message m where m.consumer = w.consumer and m.source = w.source and m.id = w.id limit 1) m on true
   where m.found is null),
  'asleep', (select count(*) from lanes w left join lateral (
     select l.due_at, l.token, l.blocked from ob.lane l where l.consumer = w.consumer and l.key = w.lane limit 1) l on true
   where l.due_at is null or l.due_at = 'infinity' and l.token is null and not l.blocked)
)::text facts from input`)

export interface QuarantineFacts {
  readonly consumer: string
  readonly reason: string
  /** Those that nobody has discarded. */
  readonly count: number
  readonly oldestMs: number | null
  /** When the first of them may be deleted, whether anybody has looked at it or not; null if all of them are kept. */
  readonly deletedInMs: number | null
  /** Of messages that were too old: the envelopes of those of the last week, 100 at most. */
  readonly envelopes: readonly { readonly receivedMs: number; readonly envelope: string | null }[] | null
}

/** What is in quarantine, by consumer and reason. In: nothing. Index: quarantine_reason. */
export const LOOK_QUARANTINE = statement<null, { facts: Json<QuarantineFacts> }>(`
with recursive input as (select $1::text),${quarantinePairs('kind')}
select jsonb_build_object('consumer', kind.consumer, 'reason', kind.reason, 'count', kept.n, 'oldestMs', kept.ms,
  'deletedInMs', kept.left_ms, 'envelopes', case when kind.reason = 'too-old' then late.found end)::text facts
from kind
cross join lateral (
  select count(*) n, max(${age('q.received_at')}) ms, min(-${age('q.expires_at')}) left_ms from (
    select q.received_at, q.expires_at, q.discarded from ob.quarantine q
    where q.consumer = kind.consumer and q.reason = kind.reason order by q.reason, q.n limit ${COUNTED_TO}) q
  where q.discarded is null
) kept
cross join lateral (
  select jsonb_agg(jsonb_build_object('receivedMs', (extract(epoch from q.received_at) * 1000.0)::bigint, 'envelope', q.envelope)) found
  from (select q.received_at, q.envelope from ob.quarantine q
    where q.consumer = kind.consumer and q.reason = kind.reason and kind.reason = 'too-old' order by q.reason desc, q.n desc limit 100) q
  where q.received_at > ob.now() - interval '7 days'
) late
order by kind.consumer, kind.reason`)

/**
 * Whose messages the accounts of sources have in quarantine: of each account the producers with the most, `most` of them. In: the
 * accounts. No row back: none of those that were looked at. Index: quarantine_reason.
 */
export const LOOK_QUARANTINE_PRODUCERS = statement<
  { readonly accounts: readonly string[]; readonly most: number },
  { via: string; source: string }
>(`
with recursive input as materialized (select $1::text::jsonb given),${quarantinePairs('kind')},
kept as materialized (
  select q.via, q.source, row_number() over (partition by q.via order by count(*) desc, q.source) place
  from kind cross join lateral (
    select q.via, q.source, q.discarded from ob.quarantine q
    where q.consumer = kind.consumer and q.reason = kind.reason order by q.reason, q.n limit ${COUNTED_TO}) q
  where q.discarded is null and q.via in (
    select x collate "C" from input, jsonb_array_elements_text(given->'accounts') x)
  group by q.via, q.source
)
select via, source from kept, input where place <= (given->>'most')::int order by via, place`)
