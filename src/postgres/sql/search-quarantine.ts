/** Walks through the quarantine. How they work is in walk.ts. */
import { bothWays, CRITERIA, MAX_BIGINT, type Way } from './walk.js'

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
  q.envelope, s.state, q.reason, q.detail, (extract(epoch from q.received_at) * 1000.0)::bigint::text received`

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

/**
 * A consumer's quarantine: one walk through the index for each reason there is, merged. Its position: the row's number. A range
 * of one reason, because only quarantine_reason then has the order: by number alone it would read all.
 */
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
      where q.consumer = (select consumer from p) and q.reason >= r.reason and q.reason <= r.reason
        and ${QUARANTINE_POSITION(way)}
      order by q.reason ${order}, q.n ${order} limit (select n from p)) q
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
