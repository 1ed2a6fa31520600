/** Walks through the inbox: what was stored, what waits, what is parked. How they work is in walk.ts. */
import { bothWays, CRITERIA, MAX_BIGINT, type Way } from './walk.js'

const MESSAGE_STATE = `case
    when w.id is null then 'handled'
    when w.parked = 'failed' then 'pending'
    when w.parked is not null then w.parked
    when coalesce(l.token, w.token) is not null and coalesce(l.due_at, w.due_at) > ob.now() then 'processing'
    else 'pending' end`

const MESSAGE_FITS = `coalesce(s.state = any (p.states)
    and (p.consumer is null or m.consumer = p.consumer)
    and (p.source is null or coalesce(m.origin_source, m.source) = p.source)
    and (p.types is null or m.type = any (p.types))
    and (p.key is null or m.key = p.key)
    and (p.reason is null or w.reason = p.reason)
    and (p.error is null or strpos(w.error::jsonb->>'message', p.error) > 0)
    and (p.before is null or m.received_at < p.before)
    and (p.after is null or m.received_at >= p.after), false)`

const MESSAGE_COLUMNS = `f.fits::text, m.consumer, m.source, m.id, m.origin_source, m.origin_id, m.type, m.key,
  case when not p.lean then m.body end body, m.envelope, s.state, nullif(w.reason, 'arrival') reason, w.error, w.attempts::text, w.seq::text,
  case when w.id is null and not p.lean then m.result end result, (select extract(epoch from h.at) * 1000.0 from ob.handled h
    where w.id is null and h.n = m.n)::bigint::text handled,
  (extract(epoch from m.received_at) * 1000.0)::bigint::text received,
  to_char(m.received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') "at"`

/** Joins that find one row by its key. As lateral subqueries, or a generic plan might hash the whole table. */
const WORK_OF_MESSAGE = `left join lateral (select * from ob.work w
    where w.consumer = m.consumer and w.source = m.source and w.id = m.id limit 1) w on true`
const MESSAGE_OF_WORK = `cross join lateral (select * from ob.message m
    where m.consumer = w.consumer and m.source = w.source and m.id = w.id limit 1) m`
const LANE_OF_WORK = `left join lateral (select * from ob.lane l
    where l.consumer = w.consumer and l.key = w.lane limit 1) l on true`
const JUDGED = `cross join lateral (select ${MESSAGE_STATE} state) s
  cross join lateral (select ${MESSAGE_FITS} fits) f`

/** The comparison of times comes apart from the rest: a scan starts at its bound, and not at that of a whole row. */
const JOURNAL_POSITION = ({ past, time }: Omit<Way, 'order'>): string => `
  (m.received_at ${past} coalesce((select (j->'pos'->>0)::timestamptz from p), '${time}')
    or m.received_at = (select (j->'pos'->>0)::timestamptz from p) and (m.consumer, m.source, m.id) ${past} (
      (select j->'pos'->>1 from p), (select j->'pos'->>2 from p), (select j->'pos'->>3 from p)))`

const NEWEST_ALLOWED = `least((j->>'until')::timestamptz, before, 'infinity')`
const OLDEST_ALLOWED = `greatest(after, '-infinity')`
const JOURNAL_BOUNDS = ({ past }: Omit<Way, 'order'>): string =>
  past === '<'
    ? `m.received_at <= (select least((j->'pos'->>0)::timestamptz, ${NEWEST_ALLOWED}) from p)
        and m.received_at >= (select ${OLDEST_ALLOWED} from p)`
    : `m.received_at >= (select greatest((j->'pos'->>0)::timestamptz, ${OLDEST_ALLOWED}) from p)
        and m.received_at <= (select ${NEWEST_ALLOWED} from p)`

/** All messages that were stored, in the order of their receipt. Its position: `[received, consumer, source, id]`. */
export const JOURNAL = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
c(name) as (
  select coalesce((select consumer from p), (select m.consumer from ob.message m order by m.consumer limit 1)) collate "C"
  union all
  select (select m.consumer from ob.message m where m.consumer > c.name order by m.consumer limit 1)
  from c where c.name is not null and (select consumer from p) is null
),
e as materialized (
  select m.*, row_number() over (order by received_at ${order}, consumer ${order}, source ${order}, id ${order}) ord
  from (
    select m.* from c cross join lateral (
      select * from ob.message m
      where m.consumer = c.name and ${JOURNAL_BOUNDS(way)} and ${JOURNAL_POSITION(way)}
      order by m.received_at ${order}, m.source ${order}, m.id ${order} limit (select n from p)) m
    order by m.received_at ${order}, m.consumer ${order}, m.source ${order}, m.id ${order} limit (select n from p)) m
)
select ${MESSAGE_COLUMNS}, m.ord::text
from p cross join e m ${WORK_OF_MESSAGE} ${LANE_OF_WORK} ${JUDGED}
where f.fits or m.ord = (select count(*) from e) order by m.ord`,
)

/** Messages that wait for somebody, by `parked`, in the order of their sequence. Its position: the sequence number. */
export const PARKED = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
c(name) as (
  select coalesce((select consumer from p),
    (select w.consumer from ob.work w where w.parked is not null order by w.consumer limit 1)) collate "C"
  union all
  select (select w.consumer from ob.work w where w.parked is not null and w.consumer > c.name
    order by w.consumer limit 1)
  from c where c.name is not null and (select consumer from p) is null
),
e as materialized (
  select w.*, row_number() over (order by seq ${order}) ord
  from (
    select w.* from c cross join (select unnest(states) state from p) k cross join lateral (
      select * from ob.work w
      where w.consumer = c.name and w.parked = case k.state when 'pending' then 'failed' else k.state end
        and w.seq ${past} coalesce((select (j->>'pos')::bigint from p), ${number})
        and w.seq <= coalesce((select (j->>'until')::bigint from p), ${MAX_BIGINT})
      order by w.seq ${order} limit (select n from p)) w
    order by w.seq ${order} limit (select n from p)) w
)
select ${MESSAGE_COLUMNS}, w.ord::text
from p cross join e w ${MESSAGE_OF_WORK} ${LANE_OF_WORK} ${JUDGED}
where f.fits or w.ord = (select count(*) from e) order by w.ord`,
)

/** The consumers with unsettled messages, or the one that is asked for, found by hopping through the index. */
const WORKING = `c(name) as (
  select coalesce((select consumer from p), (select w.consumer from ob.work w order by w.consumer limit 1)) collate "C"
  union all
  select (select w.consumer from ob.work w where w.consumer > c.name order by w.consumer limit 1)
  from c where c.name is not null and (select consumer from p) is null
)`

/** How many messages wait for a worker, counted up to `n` of each consumer. In: `{ consumer, n }`. */
export const BACKLOG = `
with recursive ${CRITERIA},
${WORKING}
select count(*)::text backlog from c cross join lateral (
  (select 1 from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null
    order by w.due_at limit (select n from p))
  union all
  (select 1 from ob.work w where w.consumer = c.name and w.lane is not null and w.parked is null
    order by w.lane limit (select n from p))) x`

/**
 * Messages that wait for a worker or are held by one, in the order of their sequence. It sorts all of them, so it is
 * for a small backlog; a large one is found faster in JOURNAL, whose newest rows it is. Its position: the sequence number.
 */
export const WAITING = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
${WORKING},
e as materialized (
  select w.*, row_number() over (order by seq ${order}) ord
  from (
    select w.* from c cross join lateral (
      select * from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null
      union all
      select * from ob.work w where w.consumer = c.name and w.lane is not null and w.parked is null) w
    where w.seq ${past} coalesce((select (j->>'pos')::bigint from p), ${number})
      and w.seq <= coalesce((select (j->>'until')::bigint from p), ${MAX_BIGINT})
    order by w.seq ${order} limit (select n from p)) w
)
select ${MESSAGE_COLUMNS}, w.ord::text
from p cross join e w ${MESSAGE_OF_WORK} ${LANE_OF_WORK} ${JUDGED}
where f.fits or w.ord = (select count(*) from e) order by w.ord`,
)

/**
 * Messages by the producer's id. The key starts with (consumer, source), so it is probed once for each pair there is,
 * and the pairs are found by hopping through the index. Its position is that of JOURNAL.
 */
export const BY_ID = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
i as materialized (select distinct jsonb_array_elements_text(j->'ids') collate "C" id from p),
c(consumer, source) as (
  (select m.consumer, m.source from ob.message m where m.consumer >= coalesce((select consumer from p), '')
    order by m.consumer, m.source limit 1)
  union all
  select n.consumer, n.source from c cross join lateral (
    select m.consumer, m.source from ob.message m where (m.consumer, m.source) > (c.consumer, c.source)
    order by m.consumer, m.source limit 1) n
  where (select consumer from p) is null or c.consumer = (select consumer from p)
),
e as materialized (
  select m.*, row_number() over (order by received_at ${order}, consumer ${order}, source ${order}, id ${order}) ord
  from (
    select * from (
      select m.* from p, c, i cross join lateral (select * from ob.message m
        where m.consumer = c.consumer and m.source = c.source and m.id = i.id limit 1) m
      where m.origin_id is null and (p.consumer is null or c.consumer = p.consumer)
        and (p.source is null or c.source = p.source)
      union all
      select m.* from i cross join lateral (select * from ob.message m where m.origin_id = i.id) m) m
    where ${JOURNAL_POSITION(way)}
    order by m.received_at ${order}, m.consumer ${order}, m.source ${order}, m.id ${order} limit (select n from p)) m
)
select ${MESSAGE_COLUMNS}, m.ord::text
from p cross join e m ${WORK_OF_MESSAGE} ${LANE_OF_WORK} ${JUDGED}
where f.fits or m.ord = (select count(*) from e) order by m.ord`,
)
