/** Statements about keys that are blocked: by which message, since when, and how much waits behind. */
import { statement, type Flag } from '../statement.js'
import type { WordsRow } from './failures.js'
import { frontOf, same, wordsOf } from './rules.js'

export interface BlockedRow extends WordsRow {
  readonly consumer: string
  readonly lane: string
  /** Of the message in front; all of it null if there is none. */
  readonly source: string | null
  readonly id: string | null
  readonly origin_source: string | null
  readonly origin_id: string | null
  readonly type: string | null
  readonly key: string | null
  readonly parked: 'dead' | 'quarantined' | null
  readonly reason: string | null
  readonly attempts: string | null
  /** Since when, in ms. */
  readonly at: string | null
  /** How many wait behind it, a thousand and one at most, and when the first of them was received. */
  readonly waiting: string
  readonly first: string | null
}

/** The consumers with blocked keys, or the one that is asked for, from a position on. */
const BLOCKING = `consumer(name) as (
  select coalesce((select consumer from input), (select l.consumer from ob.lane l
    where l.blocked and l.consumer >= (select coalesce(given->'position'->>0, '') from input) collate "C"
    order by l.consumer limit 1)) collate "C"
  union all
  select (select l.consumer from ob.lane l where l.blocked and l.consumer > consumer.name order by l.consumer limit 1)
  from consumer where consumer.name is not null and (select consumer from input) is null
)`

/** Some of their keys, `most` at most. Who asks for them twice has them materialized; to count them nobody has to. */
const SOME_BLOCKED = `shown as (
  select l.consumer, l.lane from consumer cross join lateral (
    select l.consumer, l.key lane from ob.lane l where l.consumer = consumer.name and l.blocked
    order by l.key limit (select most from input)) l
  limit (select most from input)
)`

/**
 * Keys that are blocked, with the message in front of each, in the order of consumers and keys. `position` is the last one before:
 * `[consumer, key]`. Indexes: lane_blocked, work_front, work_lane, and the primary keys.
 */
export const BLOCKED = statement<
  { consumer: string | null; position: readonly [consumer: string, key: string] | null; limit: number },
  BlockedRow
>(`
with recursive input as materialized (
  select given, given->>'consumer' collate "C" consumer, (given->>'limit')::int most from (select $1::text::jsonb given) x
),
${BLOCKING},
shown as materialized (
  select l.* from consumer cross join lateral (
    select l.consumer, l.key lane from ob.lane l where l.consumer = consumer.name and l.blocked
      and (l.consumer, l.key) > ((select coalesce(given->'position'->>0, '') from input),
        (select coalesce(given->'position'->>1, '') from input))
    order by l.key limit (select most from input)) l
  order by l.consumer, l.lane limit (select most from input)
)
select s.consumer, s.lane, w.source, w.id, m.origin_source, m.origin_id, m.type, m.key, w.parked, w.reason, ${wordsOf('f.j')},
  w.attempts::text, (extract(epoch from coalesce(w.failed_at, a.at, m.received_at)) * 1000.0)::bigint::text "at",
  behind.n::text waiting, (extract(epoch from behind.first) * 1000.0)::bigint::text "first"
from shown s
left join lateral (${frontOf('s.consumer', 's.lane')}) w on true
left join lateral (select * from ob.message m where ${same('m', 'w')} limit 1) m on true
cross join lateral (select w.error::jsonb j) f
left join lateral (select a.at from ob.attempt a where ${same('a', 'w')} order by a.n desc limit 1) a on true
cross join lateral (
  select count(*) n, (select o.received_at from (
      select w.consumer, w.source, w.id from ob.work w
      where w.consumer = s.consumer and w.lane = s.lane and w.parked is null order by w.seq limit 1) w
    cross join lateral (select * from ob.message o where ${same('o', 'w')} limit 1) o) first
  from (select 1 from ob.work w where w.consumer = s.consumer and w.lane = s.lane and w.parked is null
    order by w.seq limit 1001) x
) behind
order by s.consumer, s.lane`)

/** How many keys are blocked, counted up to `limit`; of one consumer, or of all. Index: lane_blocked. */
export const BLOCKED_KEYS = statement<{ consumer: string | null; limit: number }, { keys: string }>(`
with recursive input as materialized (
  select given, given->>'consumer' collate "C" consumer, (given->>'limit')::int most from (select $1::text::jsonb given) x
),
${BLOCKING},
${SOME_BLOCKED}
select count(*)::text keys from shown`)

export interface BlockedConsumerRow {
  readonly consumer: string
  /** As far as they were counted. */
  readonly keys: string
  readonly waiting: string
  /** Since when the first of them is, in ms; null if an older version has recorded it. */
  readonly since: string | null
}

/**
 * By consumer: how many keys are blocked, `keys` of all at most, since when, and how many messages wait behind them, `waiting` of all
 * at most. No row: none is. Indexes: lane_blocked, work_front, work_lane.
 */
export const BLOCKED_CONSUMERS = statement<{ keys: number; waiting: number }, BlockedConsumerRow>(`
with recursive input as materialized (
  select given, null::text collate "C" consumer, (given->>'keys')::int most, (given->>'waiting')::int waiting
  from (select $1::text::jsonb given) x
),
${BLOCKING},
${SOME_BLOCKED},
behind as materialized (
  select w.consumer from shown s cross join lateral (
    select w.consumer from ob.work w where w.consumer = s.consumer and w.lane = s.lane and w.parked is null
    order by w.seq limit (select waiting from input)) w
  limit (select waiting from input)
)
select s.consumer, count(*)::text keys, (select count(*) from behind b where b.consumer = s.consumer)::text waiting,
  (extract(epoch from min(front.failed_at)) * 1000.0)::bigint::text since
from shown s left join lateral (${frontOf('s.consumer', 's.lane')}) front on true
group by s.consumer order by s.consumer`)

export interface BlockingGroupRow {
  readonly consumer: string
  readonly fingerprint: string
  readonly keys: string
  /** There are more than `limit` blocked keys: others may be blocked by the same. */
  readonly cut: Flag
}

/**
 * How many keys are blocked by a message of each group of failures. No more than `limit` keys are looked at, of one consumer, or of
 * all. Indexes: lane_blocked, work_front.
 */
export const BLOCKING_GROUPS = statement<{ consumer: string | null; limit: number }, BlockingGroupRow>(`
with recursive input as materialized (
  select given, given->>'consumer' collate "C" consumer, (given->>'limit')::int most from (select $1::text::jsonb given) x
),
${BLOCKING},
${SOME_BLOCKED}
select s.consumer, front.fingerprint, count(*)::text keys,
  ((select count(*) from shown) >= (select most from input))::text "cut"
from shown s cross join lateral (${frontOf('s.consumer', 's.lane')}) front
where front.parked = 'dead' and front.fingerprint is not null
group by s.consumer, front.fingerprint`)
