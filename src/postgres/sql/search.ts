/** Walks through the inbox: what was stored, what waits, what is parked. How they work is in walk.ts. */
import { statement } from '../statement.js'
import { frontOf, laneOf, messageOf, parkingConsumers, STATE, workOf } from './rules.js'
import { bothWays, CRITERIA, MAX_BIGINT, type Criteria, type Way } from './walk.js'

/** To people, what waits for its source is pending. */
const MESSAGE_STATE = `case when w.parked = 'failed' then 'pending' else ${STATE} end`

const MESSAGE_FITS = `coalesce(s.state = any (input.states)
    and (input.consumer is null or m.consumer = input.consumer)
    and (input.source is null or coalesce(m.origin_source, m.source) = input.source)
    and (input.types is null or m.type = any (input.types))
    and (input.key is null or m.key = input.key)
    and (input.reason is null or w.reason = input.reason)
    and (input.error is null or strpos(w.error::jsonb->>'message', input.error) > 0)
    and (input.fingerprints is null or w.parked is not null and w.fingerprint = any (input.fingerprints))
    and (not input.blocking or l.blocked and w.seq = (select f.seq from (${frontOf('w.consumer', 'w.lane')}) f))
    and (input.before is null or m.received_at < input.before)
    and (input.after is null or m.received_at >= input.after)
    and (input.as_of is null or m.received_at <= input.as_of and coalesce(case
      when w.id is null then (select h.at from ob.handled h where h.n = m.n)
      when w.parked <> 'failed' then w.failed_at end, '-infinity') <= input.as_of), false)`

const MESSAGE_COLUMNS = `f.fits::text, m.consumer, m.source, m.id, m.origin_source, m.origin_id, m.type, m.key,
  case when not input.lean then m.body end body, m.envelope, s.state, nullif(w.reason, 'arrival') reason, w.error, w.attempts::text, w.seq::text,
  case when w.id is null and not input.lean then m.result end result, (select extract(epoch from h.at) * 1000.0 from ob.handled h
    where w.id is null and h.n = m.n)::bigint::text handled,
  (extract(epoch from m.received_at) * 1000.0)::bigint::text received,
  to_char(m.received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') "at"`

const JUDGED = `cross join lateral (select ${MESSAGE_STATE} state) s
  cross join lateral (select ${MESSAGE_FITS} fits) f`

/** The end of a walk through `work`: what was `examined`, with its message. */
export function foundWork(): string {
  return `select ${MESSAGE_COLUMNS}, w.ord::text
from input cross join examined w ${messageOf('w')} ${laneOf('w')} ${JUDGED}
where f.fits or w.ord = (select count(*) from examined) order by w.ord`
}

/** The comparison of times comes apart from the rest: a scan starts at its bound, and not at that of a whole row. */
const JOURNAL_POSITION = ({ past, time }: Omit<Way, 'order'>): string => `
  (m.received_at ${past} coalesce((select (given->'position'->>0)::timestamptz from input), '${time}')
    or m.received_at = (select (given->'position'->>0)::timestamptz from input) and (m.consumer, m.source, m.id) ${past} (
      (select given->'position'->>1 from input), (select given->'position'->>2 from input), (select given->'position'->>3 from input)))`

const NEWEST_ALLOWED = `least((given->>'until')::timestamptz, before, 'infinity')`
const OLDEST_ALLOWED = `greatest(after, '-infinity')`
const JOURNAL_BOUNDS = ({ past }: Omit<Way, 'order'>): string =>
  past === '<'
    ? `m.received_at <= (select least((given->'position'->>0)::timestamptz, ${NEWEST_ALLOWED}) from input)
        and m.received_at >= (select ${OLDEST_ALLOWED} from input)`
    : `m.received_at >= (select greatest((given->'position'->>0)::timestamptz, ${OLDEST_ALLOWED}) from input)
        and m.received_at <= (select ${NEWEST_ALLOWED} from input)`

/** All messages that were stored, in the order of their receipt. Its position: `[received, consumer, source, id]`. */
export const JOURNAL = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
consumer(name) as (
  select coalesce((select consumer from input), (select m.consumer from ob.message m order by m.consumer limit 1)) collate "C"
  union all
  select (select m.consumer from ob.message m where m.consumer > consumer.name order by m.consumer limit 1)
  from consumer where consumer.name is not null and (select consumer from input) is null
),
examined as materialized (
  select m.*, row_number() over (order by received_at ${order}, consumer ${order}, source ${order}, id ${order}) ord
  from (
    select m.* from consumer cross join lateral (
      select * from ob.message m
      where m.consumer = consumer.name and ${JOURNAL_BOUNDS(way)} and ${JOURNAL_POSITION(way)}
      order by m.received_at ${order}, m.source ${order}, m.id ${order} limit (select most from input)) m
    order by m.received_at ${order}, m.consumer ${order}, m.source ${order}, m.id ${order} limit (select most from input)) m
)
select ${MESSAGE_COLUMNS}, m.ord::text
from input cross join examined m ${workOf('m')} ${laneOf('w')} ${JUDGED}
where f.fits or m.ord = (select count(*) from examined) order by m.ord`,
)

/** Messages that wait for somebody, by `parked`, in the order of their sequence. Its position: the sequence number. */
export const PARKED = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
${parkingConsumers()},
examined as materialized (
  select w.*, row_number() over (order by seq ${order}) ord
  from (
    select w.* from consumer cross join (select unnest(states) state from input) wanted cross join lateral (
      select * from ob.work w
      where w.consumer = consumer.name and w.parked = case wanted.state when 'pending' then 'failed' else wanted.state end
        and w.seq ${past} coalesce((select (given->>'position')::bigint from input), ${number})
        and w.seq <= coalesce((select (given->>'until')::bigint from input), ${MAX_BIGINT})
      order by w.seq ${order} limit (select most from input)) w
    order by w.seq ${order} limit (select most from input)) w
)
${foundWork()}`,
)

/** The consumers with unsettled messages, or the one that is asked for, found by hopping through the index. */
const WORKING = `consumer(name) as (
  select coalesce((select consumer from input), (select w.consumer from ob.work w order by w.consumer limit 1)) collate "C"
  union all
  select (select w.consumer from ob.work w where w.consumer > consumer.name order by w.consumer limit 1)
  from consumer where consumer.name is not null and (select consumer from input) is null
)`

/** How many messages wait for a worker, counted up to `limit` of each consumer. Indexes: work_due, work_lane. */
export const BACKLOG = statement<Criteria, { backlog: string }>(`
with recursive ${CRITERIA},
${WORKING}
select count(*)::text backlog from consumer cross join lateral (
  (select 1 from ob.work w where w.consumer = consumer.name and w.lane is null and w.parked is null
    order by w.due_at limit (select most from input))
  union all
  (select 1 from ob.work w where w.consumer = consumer.name and w.lane is not null and w.parked is null
    order by w.lane limit (select most from input))) x`)

/**
 * Messages that wait for a worker or are held by one, in the order of their sequence. It sorts all of them, so it is
 * for a small backlog; a large one is found faster in JOURNAL, whose newest rows it is. Its position: the sequence number.
 */
export const WAITING = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
${WORKING},
examined as materialized (
  select w.*, row_number() over (order by seq ${order}) ord
  from (
    select w.* from consumer cross join lateral (
      select * from ob.work w where w.consumer = consumer.name and w.lane is null and w.parked is null
      union all
      select * from ob.work w where w.consumer = consumer.name and w.lane is not null and w.parked is null) w
    where w.seq ${past} coalesce((select (given->>'position')::bigint from input), ${number})
      and w.seq <= coalesce((select (given->>'until')::bigint from input), ${MAX_BIGINT})
    order by w.seq ${order} limit (select most from input)) w
)
${foundWork()}`,
)

/**
 * Messages by the producer's id. The key starts with (consumer, source), so it is probed once for each pair there is,
 * and the pairs are found by hopping through the index. Its position is that of JOURNAL.
 */
export const BY_ID = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
asked as materialized (select distinct jsonb_array_elements_text(given->'ids') collate "C" id from input),
pair(consumer, source) as (
  (select m.consumer, m.source from ob.message m where m.consumer >= coalesce((select consumer from input), '')
    order by m.consumer, m.source limit 1)
  union all
  select next.consumer, next.source from pair cross join lateral (
    select m.consumer, m.source from ob.message m where (m.consumer, m.source) > (pair.consumer, pair.source)
    order by m.consumer, m.source limit 1) next
  where (select consumer from input) is null or pair.consumer = (select consumer from input)
),
examined as materialized (
  select m.*, row_number() over (order by received_at ${order}, consumer ${order}, source ${order}, id ${order}) ord
  from (
    select * from (
      select m.* from input, pair, asked cross join lateral (select * from ob.message m
        where m.consumer = pair.consumer and m.source = pair.source and m.id = asked.id limit 1) m
      where m.origin_id is null and (input.consumer is null or pair.consumer = input.consumer)
        and (input.source is null or pair.source = input.source)
      union all
      select m.* from asked cross join lateral (select * from ob.message m where m.origin_id = asked.id) m) m
    where ${JOURNAL_POSITION(way)}
    order by m.received_at ${order}, m.consumer ${order}, m.source ${order}, m.id ${order} limit (select most from input)) m
)
select ${MESSAGE_COLUMNS}, m.ord::text
from input cross join examined m ${workOf('m')} ${laneOf('w')} ${JUDGED}
where f.fits or m.ord = (select count(*) from examined) order by m.ord`,
)
