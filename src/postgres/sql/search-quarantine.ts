/** Walks through the quarantine. How they work is in walk.ts. */
import { statement } from '../statement.js'
import { bothWays, CRITERIA, MAX_BIGINT, type Way } from './walk.js'

const QUARANTINE_FITS = `coalesce(s.state = any (input.states)
    and (input.consumer is null or q.consumer = input.consumer)
    and (input.source is null or q.source = input.source)
    and (input.types is null or q.type = any (input.types))
    and (input.key is null or q.key = input.key)
    and (input.reason is null or q.reason = input.reason)
    and (input.error is null or strpos(q.detail, input.error) > 0)
    and (input.before is null or q.received_at < input.before)
    and (input.after is null or q.received_at >= input.after), false)`

const QUARANTINE_COLUMNS = `f.fits::text, q.n::text, q.consumer, q.source, q.id, q.type, q.key,
  case when not input.lean then q.body end body,
  case when not input.lean and not input.decoded then encode(q.bytes, 'base64') end bytes,
  q.envelope, s.state, q.reason, q.detail, (extract(epoch from q.received_at) * 1000.0)::bigint::text received`

const QUARANTINE_JUDGED = `
  cross join lateral (select case when q.discarded is null then 'quarantined' else 'discarded' end state) s
  cross join lateral (select ${QUARANTINE_FITS} fits) f`

const QUARANTINE_POSITION = ({ past, number }: Omit<Way, 'order'>): string => `
  q.n ${past} coalesce((select (given->>'position')::bigint from input), ${number})
  and q.n <= coalesce((select (given->>'until')::bigint from input), ${MAX_BIGINT})`

/**
 * Where in the quarantine a time is: the number of the last row received before it, found by bisection, since rows are
 * numbered in the order they come. Out: 0 if there is none. Index: the primary key.
 */
export const SEEK_QUARANTINE = statement<{ time: string }, { n: string }>(`
with recursive input as materialized (select (given->>'time')::timestamptz at from (select $1::text::jsonb given) x),
bounds(low, high) as (
  select 0::bigint, coalesce((select max(n) from ob.quarantine), 0)
  union all
  select case when r.before then r.n else b.low end, case when r.before then b.high else (b.low + b.high + 1) / 2 - 1 end
  from bounds b cross join lateral (
    select q.n, q.received_at < (select at from input) before from ob.quarantine q
    where q.n >= (b.low + b.high + 1) / 2 order by q.n limit 1) r
  where b.low < b.high
)
select low::text n from bounds where low >= high`)

/** Everything in quarantine, in the order it came. Its position: the row's number. */
export const QUARANTINED = bothWays(
  ({ order, ...way }) => `
with ${CRITERIA},
examined as materialized (
  select q.*, row_number() over (order by n ${order}) ord
  from (select * from ob.quarantine q where ${QUARANTINE_POSITION(way)}
    order by q.n ${order} limit (select most from input)) q
)
select ${QUARANTINE_COLUMNS}, q.ord::text
from input cross join examined q ${QUARANTINE_JUDGED}
where f.fits or q.ord = (select count(*) from examined) order by q.ord`,
)

/**
 * A consumer's quarantine: one walk through the index for each reason there is, merged. Its position: the row's number. A range
 * of one reason, because only quarantine_reason then has the order: by number alone it would read all.
 */
export const QUARANTINED_OF = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
why(reason) as (
  select coalesce((select reason from input), (select q.reason from ob.quarantine q
    where q.consumer = (select consumer from input) order by q.reason limit 1))
  union all
  select (select q.reason from ob.quarantine q where q.consumer = (select consumer from input) and q.reason > why.reason
    order by q.reason limit 1)
  from why where why.reason is not null and (select reason from input) is null
),
examined as materialized (
  select q.*, row_number() over (order by n ${order}) ord
  from (
    select q.* from why cross join lateral (
      select * from ob.quarantine q
      where q.consumer = (select consumer from input) and q.reason >= why.reason and q.reason <= why.reason
        and ${QUARANTINE_POSITION(way)}
      order by q.reason ${order}, q.n ${order} limit (select most from input)) q
    order by q.n ${order} limit (select most from input)) q
)
select ${QUARANTINE_COLUMNS}, q.ord::text
from input cross join examined q ${QUARANTINE_JUDGED}
where f.fits or q.ord = (select count(*) from examined) order by q.ord`,
)

/** What is in quarantine under these ids; found like BY_ID. Its position: the row's number. */
export const QUARANTINED_BY_ID = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
asked as materialized (select distinct jsonb_array_elements_text(given->'ids') collate "C" id from input),
pair(consumer, source) as (
  (select q.consumer, q.source from ob.quarantine q
    where q.id is not null and q.consumer >= coalesce((select consumer from input), '')
    order by q.consumer, q.source limit 1)
  union all
  select next.consumer, next.source from pair cross join lateral (
    select q.consumer, q.source from ob.quarantine q
    where q.id is not null and (q.consumer, q.source) > (pair.consumer, pair.source)
    order by q.consumer, q.source limit 1) next
  where (select consumer from input) is null or pair.consumer = (select consumer from input)
),
examined as materialized (
  select q.*, row_number() over (order by n ${order}) ord
  from (
    select q.* from input, pair, asked cross join lateral (select * from ob.quarantine q
      where q.consumer = pair.consumer and q.source = pair.source and q.id = asked.id) q
    where (input.consumer is null or pair.consumer = input.consumer) and (input.source is null or pair.source = input.source)
      and ${QUARANTINE_POSITION(way)}
    order by q.n ${order} limit (select most from input)) q
)
select ${QUARANTINE_COLUMNS}, q.ord::text
from input cross join examined q ${QUARANTINE_JUDGED}
where f.fits or q.ord = (select count(*) from examined) order by q.ord`,
)
