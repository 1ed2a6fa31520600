/** Walks through the outbox. How they work is in walk.ts. */
import { bothWays, CRITERIA, MAX_BIGINT, type Way } from './walk.js'

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
  (extract(epoch from o.created_at) * 1000.0)::bigint::text received`

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
