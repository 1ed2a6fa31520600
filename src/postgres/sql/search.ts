/**
 * Statements that walk through messages, newest or oldest first, by keyset.
 *
 * Each examines at most `n` rows of one index from a position on, and answers with those that fit the criteria. The
 * last row examined is always in the answer, marked by `fits`, so that the walk goes on behind it: no statement scans,
 * however few rows fit.
 *
 * In: `{ n, lean, states, pos, until, consumer, source, type: [], key, ids: [], reason, error, before, after }`; what
 * is absent does not restrict. `lean` leaves the bodies out. `until` ends a walk that goes upwards.
 */

export interface Walk {
  readonly newest: string
  readonly oldest: string
}

/** `past` compares a row with the position of the walk, which begins at `time` or `number`. */
interface Way {
  readonly past: '<' | '>'
  readonly order: 'desc' | 'asc'
  readonly time: string
  readonly number: string
}

const MAX_BIGINT = '9223372036854775807'

/** The same statement in both directions. */
function bothWays(statement: (way: Way) => string): Walk {
  return {
    newest: statement({ past: '<', order: 'desc', time: 'infinity', number: MAX_BIGINT }),
    oldest: statement({ past: '>', order: 'asc', time: '-infinity', number: '-1' }),
  }
}

const CRITERIA = `p as materialized (
  select j, (j->>'n')::int n, coalesce((j->>'lean')::boolean, false) lean,
    array(select jsonb_array_elements_text(j->'states')) states,
    j->>'consumer' collate "C" consumer, j->>'source' source, j->>'key' key, j->>'reason' reason, j->>'error' error,
    case when j->'type' is not null then array(select jsonb_array_elements_text(j->'type')) end types,
    (j->>'before')::timestamptz before, (j->>'after')::timestamptz after
  from (select $1::text::jsonb j) x
)`

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
  case when not p.lean then m.body end body, m.envelope, s.state, w.reason, w.error, w.attempts::text, w.seq::text,
  (extract(epoch from m.received_at) * 1000)::bigint::text received,
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

const QUARANTINE_FITS = `coalesce(s.state = any (p.states)
    and (p.consumer is null or q.consumer = p.consumer)
    and (p.source is null or q.source = p.source)
    and (p.types is null or q.type = any (p.types))
    and (p.key is null or q.key = p.key)
    and (p.reason is null or q.reason = p.reason)
    and (p.error is null or strpos(q.detail, p.error) > 0)
    and (p.before is null or q.received_at < p.before)
    and (p.after is null or q.received_at >= p.after), false)`

const QUARANTINE_COLUMNS = `f.fits::text, q.n::text, q.consumer, q.source, q.id, q.type, q.key,
  case when not p.lean then q.body end body, case when not p.lean then encode(q.bytes, 'base64') end bytes,
  q.envelope, s.state, q.reason, q.detail, (extract(epoch from q.received_at) * 1000)::bigint::text received`

const QUARANTINE_JUDGED = `
  cross join lateral (select case when q.discarded is null then 'quarantined' else 'discarded' end state) s
  cross join lateral (select ${QUARANTINE_FITS} fits) f`

const QUARANTINE_POSITION = ({ past, number }: Omit<Way, 'order'>): string => `
  q.n ${past} coalesce((select (j->>'pos')::bigint from p), ${number})
  and q.n <= coalesce((select (j->>'until')::bigint from p), ${MAX_BIGINT})`

/**
 * Where in the quarantine a time is: the number of the last row received before it, found by bisection, since rows are
 * numbered in the order they come. In: `{ time }`. Out: 0 if there is none.
 */
export const SEEK_QUARANTINE = `
with recursive p as materialized (select (j->>'time')::timestamptz at from (select $1::text::jsonb j) x),
b(lo, hi) as (
  select 0::bigint, coalesce((select max(n) from ob.quarantine), 0)
  union all
  select case when r.before then r.n else b.lo end, case when r.before then b.hi else (b.lo + b.hi + 1) / 2 - 1 end
  from b cross join lateral (
    select q.n, q.received_at < (select at from p) before from ob.quarantine q
    where q.n >= (b.lo + b.hi + 1) / 2 order by q.n limit 1) r
  where b.lo < b.hi
)
select lo::text n from b where lo >= hi`

/** Everything in quarantine, in the order it came. Its position: the row's number. */
export const QUARANTINED = bothWays(
  ({ order, ...way }) => `
with ${CRITERIA},
e as materialized (
  select q.*, row_number() over (order by n ${order}) ord
  from (select * from ob.quarantine q where ${QUARANTINE_POSITION(way)}
    order by q.n ${order} limit (select n from p)) q
)
select ${QUARANTINE_COLUMNS}, q.ord::text
from p cross join e q ${QUARANTINE_JUDGED}
where f.fits or q.ord = (select count(*) from e) order by q.ord`,
)

/** A consumer's quarantine: one walk through the index for each reason there is, merged. Its position: the row's number. */
export const QUARANTINED_OF = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
r(reason) as (
  select coalesce((select reason from p), (select q.reason from ob.quarantine q
    where q.consumer = (select consumer from p) order by q.reason limit 1))
  union all
  select (select q.reason from ob.quarantine q where q.consumer = (select consumer from p) and q.reason > r.reason
    order by q.reason limit 1)
  from r where r.reason is not null and (select reason from p) is null
),
e as materialized (
  select q.*, row_number() over (order by n ${order}) ord
  from (
    select q.* from r cross join lateral (
      select * from ob.quarantine q
      where q.consumer = (select consumer from p) and q.reason = r.reason and ${QUARANTINE_POSITION(way)}
      order by q.n ${order} limit (select n from p)) q
    order by q.n ${order} limit (select n from p)) q
)
select ${QUARANTINE_COLUMNS}, q.ord::text
from p cross join e q ${QUARANTINE_JUDGED}
where f.fits or q.ord = (select count(*) from e) order by q.ord`,
)

/** What is in quarantine under these ids; found like BY_ID. Its position: the row's number. */
export const QUARANTINED_BY_ID = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
i as materialized (select distinct jsonb_array_elements_text(j->'ids') collate "C" id from p),
c(consumer, source) as (
  (select q.consumer, q.source from ob.quarantine q
    where q.id is not null and q.consumer >= coalesce((select consumer from p), '')
    order by q.consumer, q.source limit 1)
  union all
  select n.consumer, n.source from c cross join lateral (
    select q.consumer, q.source from ob.quarantine q
    where q.id is not null and (q.consumer, q.source) > (c.consumer, c.source)
    order by q.consumer, q.source limit 1) n
  where (select consumer from p) is null or c.consumer = (select consumer from p)
),
e as materialized (
  select q.*, row_number() over (order by n ${order}) ord
  from (
    select q.* from p, c, i cross join lateral (select * from ob.quarantine q
      where q.consumer = c.consumer and q.source = c.source and q.id = i.id) q
    where (p.consumer is null or c.consumer = p.consumer) and (p.source is null or c.source = p.source)
      and ${QUARANTINE_POSITION(way)}
    order by q.n ${order} limit (select n from p)) q
)
select ${QUARANTINE_COLUMNS}, q.ord::text
from p cross join e q ${QUARANTINE_JUDGED}
where f.fits or q.ord = (select count(*) from e) order by q.ord`,
)

/** An event is there once for each sink it is still to be published to, and once if it has been published to all. */
const OUTBOX_STATE = `case
    when d.parked is not null then d.parked when d.sink is null then 'handled' else 'pending' end`

const OUTBOX_FITS = `coalesce(s.state = any (p.states)
    and (p.consumer is null or d.sink = p.consumer)
    and (p.source is null or o.source = p.source)
    and (p.types is null or o.type = any (p.types))
    and (p.key is null or o.key = p.key)
    and p.reason is null
    and (p.error is null or strpos(d.error::jsonb->>'message', p.error) > 0)
    and (p.before is null or o.created_at < p.before)
    and (p.after is null or o.created_at >= p.after), false)`

const OUTBOX_COLUMNS = `f.fits::text, o.n::text, coalesce(d.sink, '') consumer, o.source, o.id, o.type, o.key,
  case when not p.lean then o.body end body, o.envelope, s.state, d.error, d.attempts::text,
  (extract(epoch from o.created_at) * 1000)::bigint::text received`

const OUTBOX_JUDGED = `
  cross join lateral (select ${OUTBOX_STATE} state) s
  cross join lateral (select ${OUTBOX_FITS} fits) f`

const OUTBOX_POSITION = ({ past, number }: Omit<Way, 'order'>, sink: string): string => `
  (o.n, ${sink}) ${past} (
    coalesce((select (j->'pos'->>0)::bigint from p), ${number}), coalesce((select j->'pos'->>1 from p), ''))
  and o.n <= coalesce((select (j->>'until')::bigint from p), ${MAX_BIGINT})`

/** What was sent, in that order. Its position: `[number, sink]`. One event more is read: the first may be through. */
export const OUTBOX = bothWays(
  ({ past, order, number }) => `
with ${CRITERIA},
e as materialized (
  select o.*, row_number() over (order by o.n ${order}, o.sink ${order} nulls first) ord
  from (
    select o.n, d.sink from (
      select o.n from ob.outbox o
      where o.n ${past}= coalesce((select (j->'pos'->>0)::bigint from p), ${number})
      order by o.n ${order} limit (select n + 1 from p)) o
    left join ob.delivery d on d.n = o.n
    where ${OUTBOX_POSITION({ past, number, time: '' }, "coalesce(d.sink, '')")}
    order by o.n ${order}, d.sink ${order} nulls first limit (select n from p)) o
)
select ${OUTBOX_COLUMNS}, e.ord::text
from p cross join e join ob.outbox o on o.n = e.n left join ob.delivery d on d.n = e.n and d.sink = e.sink
${OUTBOX_JUDGED}
where f.fits or e.ord = (select count(*) from e) order by e.ord`,
)

/** What could not be published, or was given up, in the order it was sent. Its position is that of OUTBOX. */
export const OUTBOX_PARKED = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
c(name) as (
  select coalesce((select consumer from p),
    (select d.sink from ob.delivery d where d.parked is not null order by d.sink limit 1)) collate "C"
  union all
  select (select d.sink from ob.delivery d where d.parked is not null and d.sink > c.name order by d.sink limit 1)
  from c where c.name is not null and (select consumer from p) is null
),
e as materialized (
  select o.*, row_number() over (order by o.n ${order}, o.sink ${order}) ord
  from (
    select o.* from c cross join (select unnest(states) state from p) k cross join lateral (
      select o.n, o.sink from ob.delivery o
      where o.sink = c.name and o.parked = k.state
        and o.n ${past}= coalesce((select (j->'pos'->>0)::bigint from p), ${number})
        and ${OUTBOX_POSITION({ past, number, time: '' }, 'o.sink')}
      order by o.n ${order} limit (select n from p)) o
    order by o.n ${order}, o.sink ${order} limit (select n from p)) o
)
select ${OUTBOX_COLUMNS}, e.ord::text
from p cross join e join ob.outbox o on o.n = e.n join ob.delivery d on d.n = e.n and d.sink = e.sink
${OUTBOX_JUDGED}
where f.fits or e.ord = (select count(*) from e) order by e.ord`,
)

/** What was sent under these ids: probed for each source there is. Its position is that of OUTBOX. */
export const OUTBOX_BY_ID = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
i as materialized (select distinct jsonb_array_elements_text(j->'ids') collate "C" id from p),
c(source) as (
  select (select o.source from ob.outbox o order by o.source limit 1)
  union all
  select (select o.source from ob.outbox o where o.source > c.source order by o.source limit 1)
  from c where c.source is not null
),
e as materialized (
  select o.*, row_number() over (order by o.n ${order}, o.sink ${order} nulls first) ord
  from (
    select o.n, d.sink from c, i cross join lateral (select o.n from ob.outbox o
      where o.source = c.source and o.id = i.id limit 1) o
    left join ob.delivery d on d.n = o.n
    where ${OUTBOX_POSITION(way, "coalesce(d.sink, '')")}
    order by o.n ${order}, d.sink ${order} nulls first limit (select n from p)) o
)
select ${OUTBOX_COLUMNS}, e.ord::text
from p cross join e join ob.outbox o on o.n = e.n left join ob.delivery d on d.n = e.n and d.sink = e.sink
${OUTBOX_JUDGED}
where f.fits or e.ord = (select count(*) from e) order by e.ord`,
)
