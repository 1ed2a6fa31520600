/** Walks through the outbox. How they work is in walk.ts. */
import { EVENT_STATE } from './rules.js'
import { bothWays, CRITERIA, MAX_BIGINT, type Way } from './walk.js'

const OUTBOX_FITS = `coalesce(s.state = any (input.states)
    and (input.consumer is null or d.sink = input.consumer)
    and (input.source is null or o.source = input.source)
    and (input.types is null or o.type = any (input.types))
    and (input.key is null or o.key = input.key)
    and input.reason is null
    and (input.error is null or strpos(d.error::jsonb->>'message', input.error) > 0)
    and (input.before is null or o.created_at < input.before)
    and (input.after is null or o.created_at >= input.after), false)`

const OUTBOX_COLUMNS = `f.fits::text, o.n::text, coalesce(d.sink, '') consumer, o.source, o.id, o.type, o.key,
  case when not input.lean then o.body end body, o.envelope, s.state, d.error, d.attempts::text,
  (extract(epoch from o.created_at) * 1000.0)::bigint::text received`

const OUTBOX_JUDGED = `
  cross join lateral (select ${EVENT_STATE} state) s
  cross join lateral (select ${OUTBOX_FITS} fits) f`

const OUTBOX_POSITION = ({ past, number }: Omit<Way, 'order'>, sink: string): string => `
  (o.n, ${sink}) ${past} (
    coalesce((select (given->'position'->>0)::bigint from input), ${number}), coalesce((select given->'position'->>1 from input), ''))
  and o.n <= coalesce((select (given->>'until')::bigint from input), ${MAX_BIGINT})`

/** What was sent, in that order. Its position: `[number, sink]`. One event more is read: the first may be through. */
export const OUTBOX = bothWays(
  ({ past, order, number }) => `
with ${CRITERIA},
examined as materialized (
  select o.*, row_number() over (order by o.n ${order}, o.sink ${order} nulls first) ord
  from (
    select o.n, d.sink from (
      select o.n from ob.outbox o
      where o.n ${past}= coalesce((select (given->'position'->>0)::bigint from input), ${number})
      order by o.n ${order} limit (select most + 1 from input)) o
    left join ob.delivery d on d.n = o.n
    where ${OUTBOX_POSITION({ past, number, time: '' }, "coalesce(d.sink, '')")}
    order by o.n ${order}, d.sink ${order} nulls first limit (select most from input)) o
)
select ${OUTBOX_COLUMNS}, e.ord::text
from input cross join examined e join ob.outbox o on o.n = e.n left join ob.delivery d on d.n = e.n and d.sink = e.sink
${OUTBOX_JUDGED}
where f.fits or e.ord = (select count(*) from examined) order by e.ord`,
)

/** What could not be published, or was given up, in the order it was sent. Its position is that of OUTBOX. */
export const OUTBOX_PARKED = bothWays(
  ({ past, order, number }) => `
with recursive ${CRITERIA},
sink(name) as (
  select coalesce((select consumer from input),
    (select d.sink from ob.delivery d where d.parked is not null order by d.sink limit 1)) collate "C"
  union all
  select (select d.sink from ob.delivery d where d.parked is not null and d.sink > sink.name order by d.sink limit 1)
  from sink where sink.name is not null and (select consumer from input) is null
),
examined as materialized (
  select o.*, row_number() over (order by o.n ${order}, o.sink ${order}) ord
  from (
    select o.* from sink cross join (select unnest(states) state from input) wanted cross join lateral (
      select o.n, o.sink from ob.delivery o
      where o.sink = sink.name and o.parked = wanted.state
        and o.n ${past}= coalesce((select (given->'position'->>0)::bigint from input), ${number})
        and ${OUTBOX_POSITION({ past, number, time: '' }, 'o.sink')}
      order by o.n ${order} limit (select most from input)) o
    order by o.n ${order}, o.sink ${order} limit (select most from input)) o
)
select ${OUTBOX_COLUMNS}, e.ord::text
from input cross join examined e join ob.outbox o on o.n = e.n join ob.delivery d on d.n = e.n and d.sink = e.sink
${OUTBOX_JUDGED}
where f.fits or e.ord = (select count(*) from examined) order by e.ord`,
)

/** What was sent under these ids: probed for each source there is. Its position is that of OUTBOX. */
export const OUTBOX_BY_ID = bothWays(
  ({ order, ...way }) => `
with recursive ${CRITERIA},
asked as materialized (select distinct jsonb_array_elements_text(given->'ids') collate "C" id from input),
sender(source) as (
  select (select o.source from ob.outbox o order by o.source limit 1)
  union all
  select (select o.source from ob.outbox o where o.source > sender.source order by o.source limit 1)
  from sender where sender.source is not null
),
examined as materialized (
  select o.*, row_number() over (order by o.n ${order}, o.sink ${order} nulls first) ord
  from (
    select o.n, d.sink from sender, asked cross join lateral (select o.n from ob.outbox o
      where o.source = sender.source and o.id = asked.id limit 1) o
    left join ob.delivery d on d.n = o.n
    where ${OUTBOX_POSITION(way, "coalesce(d.sink, '')")}
    order by o.n ${order}, d.sink ${order} nulls first limit (select most from input)) o
)
select ${OUTBOX_COLUMNS}, e.ord::text
from input cross join examined e join ob.outbox o on o.n = e.n left join ob.delivery d on d.n = e.n and d.sink = e.sink
${OUTBOX_JUDGED}
where f.fits or e.ord = (select count(*) from examined) order by e.ord`,
)
