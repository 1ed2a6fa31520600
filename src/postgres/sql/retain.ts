/**
 * Statements of the janitor. None waits for a lock, none goes through more than a batch, and whatever is deleted is
 * judged under its lock: several janitors, receivers and people may be at work at once.
 *
 * A handled message goes once it was received longer ago than `retain` and a margin; a message whose own time is
 * beyond `retain` less the margin is refused as too old (`ob.is_fresh`). Between the two, no copy can pass for new. What
 * was deleted under another `retain` is remembered in `ob.forgotten`, with both margins.
 */

const HORIZON = `ob.now() - (r + least(300000, r / 10::float8)) * interval '1 ms'`
const BOTH_MARGINS = `2::float8 * least(300000, r / 10::float8) * interval '1 ms'`

/** All consumers there are, and how long they retain. In: nothing. A consumer without options has null. */
export const CONSUMERS = `
with recursive p as (select $1::text),
journal(name) as (
  select (select m.consumer from ob.message m order by m.consumer limit 1) from p
  union all
  select (select m.consumer from ob.message m where m.consumer > journal.name order by m.consumer limit 1)
  from journal where journal.name is not null
),
lanes(name) as (
  select (select l.consumer from ob.lane l order by l.consumer limit 1)
  union all
  select (select l.consumer from ob.lane l where l.consumer > lanes.name order by l.consumer limit 1)
  from lanes where lanes.name is not null
)
select n.name, o.retain_ms::text "retainMs" from (
  select name from ob.consumer union select name from journal where name is not null
  union select name from lanes where name is not null) n left join ob.consumer o on o.name = n.name`

/**
 * A consumer's messages beyond the horizon that may go: handled or discarded. In: `{ c, r retainMs, n, lean, low }`,
 * where `low` is the position `[received, source, id]` to go on from. The last row examined is always in the answer,
 * marked by `fits`. Pending, dead and quarantined messages are passed over.
 */
export const PRUNABLE = `
with p as materialized (
  select j, (j->>'n')::int n, (j->>'r')::float8 r, j->>'c' c,
    coalesce((j->'low'->>0)::timestamptz, '-infinity') low from (select $1::text::jsonb j) x
),
e as materialized (
  select m.*, row_number() over (order by received_at, source, id) ord
  from (
    select * from ob.message m
    where m.consumer = (select c from p) and m.received_at < (select ${HORIZON} from p)
      and m.received_at >= (select low from p)
      and (m.received_at, m.source, m.id) > (
        (select low from p), (select coalesce(j->'low'->>1, '') from p), (select coalesce(j->'low'->>2, '') from p))
    order by m.received_at, m.source, m.id limit (select n from p)) m
)
select f.fits::text, m.consumer, m.source, m.id, m.origin_source, m.origin_id, m.type, m.key,
  case when f.fits and not (p.j->>'lean')::boolean then m.body end body, m.envelope, m.ord::text,
  case when w.id is null then 'handled' else w.parked end state, w.reason, w.error, w.attempts::text,
  case when f.fits then m.result end result, (select extract(epoch from h.at) * 1000.0 from ob.handled h
    where f.fits and w.id is null and h.n = m.n)::bigint::text handled,
  (extract(epoch from m.received_at) * 1000.0)::bigint::text received,
  to_char(m.received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') "at"
from p cross join e m left join lateral (select * from ob.work w
  where w.consumer = m.consumer and w.source = m.source and w.id = m.id limit 1) w on true
cross join lateral (select w.id is null or w.parked is not distinct from 'discarded' fits) f
where f.fits or m.ord = (select count(*) from e) order by m.ord`

/**
 * Deletes messages that may go, with their history. In: `{ c, r retainMs, k: [[source, id], …] }`. Out: how many went;
 * the rest is held by somebody, or is no longer what it was.
 *
 * Rows are deleted by the very version that was judged: a replay in between makes another one, and its message stays.
 * How far back it has forgotten is written down first: by what was received last among them, not by the clock, which may
 * have been wrong. Other janitors of this consumer wait here, and hold nothing.
 */
export const PRUNE = `
with p as materialized (select j, (j->>'r')::float8 r, j->>'c' c from (select $1::text::jsonb j) x),
k as materialized (select e->>0 source, e->>1 id from p, jsonb_array_elements(j->'k') e),
newest as materialized (
  select max(m.received_at) received_at from k
  join ob.message m on m.consumer = (select c from p) and m.source = k.source and m.id = k.id
  where m.received_at < (select ${HORIZON} from p)
),
watermark as (
  insert into ob.forgotten as f (consumer, sent_before)
  select c, received_at + ${BOTH_MARGINS} from p, newest where received_at is not null
  on conflict (consumer) do update set sent_before = greatest(f.sent_before, excluded.sent_before)
  returning 1
),
handled as materialized (
  select m.ctid from k join ob.message m on m.consumer = (select c from p) and m.source = k.source and m.id = k.id
  where (select count(*) from watermark) > 0 and m.received_at < (select ${HORIZON} from p)
    and not exists (select 1 from ob.work w where w.consumer = m.consumer and w.source = m.source and w.id = m.id)
  order by m.source, m.id for update of m skip locked
),
discarded as materialized (
  select m.ctid, w.ctid work from k
  join ob.message m on m.consumer = (select c from p) and m.source = k.source and m.id = k.id
  join ob.work w on w.consumer = m.consumer and w.source = m.source and w.id = m.id
  where (select count(*) from watermark) > 0 and m.received_at < (select ${HORIZON} from p) and w.parked = 'discarded'
  order by m.source, m.id for update of m, w skip locked
),
unworked as (
  delete from ob.work w where w.ctid = any (array(select work from discarded)) returning w.ctid work
),
gone as (
  delete from ob.message m where m.ctid = any (array(
    select ctid from handled union all select d.ctid from discarded d join unworked u on u.work = d.work))
  returning m.consumer, m.source, m.id, m.n
),
times as (delete from ob.handled h using gone g where h.n = g.n),
history as (
  delete from ob.attempt a using gone g where a.consumer = g.consumer and a.source = g.source and a.id = g.id
),
effects as (
  delete from ob.effect f using gone g where f.consumer = g.consumer and f.source = g.source and f.id = g.id
)
select count(*)::text gone from gone`

/**
 * Removes lanes in which nothing waits. In: `{ c, after key, n }`. Out: the last key examined, how many were, and how
 * many went. A receiver that has the lane in hand has locked it, or has left it due: both keep it.
 */
export const PRUNE_LANES = `
with p as materialized (select j, j->>'c' c, (j->>'n')::int n from (select $1::text::jsonb j) x),
e as materialized (
  select l.key from ob.lane l where l.consumer = (select c from p) and l.key > (select coalesce(j->>'after', '') from p)
  order by l.key limit (select n from p)
),
gone as (
  delete from ob.lane x where x.ctid = any (array(
    select l.ctid from e join ob.lane l on l.consumer = (select c from p) and l.key = e.key
    where l.due_at = 'infinity' and l.token is null and not l.blocked and not l.dirty
      and not exists (select 1 from ob.work w where w.consumer = l.consumer and w.lane = l.key and w.parked is null)
    for update of l skip locked))
  returning 1
)
select (select max(key) from e) last, (select count(*) from e)::text examined, (select count(*) from gone)::text gone`

/**
 * Quarantined messages that were discarded and are beyond the horizon, or that their source need not keep any longer. In: `{ n, after, r: { consumer: retainMs },
 * d default retainMs }`. The last row examined is always in the answer, marked by `fits`, and by `young` if it is
 * within every horizon: then so is all that follows.
 */
export const PRUNABLE_QUARANTINE = `
with p as materialized (select j, (j->>'n')::int n from (select $1::text::jsonb j) x),
e as materialized (
  select q.*, row_number() over (order by q.n) ord from (
    select * from ob.quarantine q where q.n > (select coalesce((j->>'after')::bigint, -1) from p)
    order by q.n limit (select n from p)) q
)
select f.fits::text, q.n::text, q.consumer, q.source, q.id, q.type, q.key, q.reason, q.detail, q.envelope,
  case when f.fits then q.body end body, case when f.fits then encode(q.bytes, 'base64') end bytes,
  case when q.discarded is null then 'quarantined' else 'discarded' end state,
  (extract(epoch from q.received_at) * 1000.0)::bigint::text received, q.ord::text,
  (q.received_at >= ob.now() - (select (j->>'least')::float8 from p) * interval '1 ms')::text young
from e q cross join lateral (
  select coalesce((p.j->'r'->>q.consumer)::float8, (p.j->>'d')::float8) r from p) h
cross join lateral (select q.discarded is not null and q.received_at < ${HORIZON}
  or coalesce(q.expires_at < ob.now(), false) fits) f
where f.fits or q.ord = (select count(*) from e) order by q.ord`

/** Deletes rows of the quarantine that were discarded, or need not be kept any longer. In: their numbers. Out: those that went. */
export const PRUNE_QUARANTINE = `
delete from ob.quarantine q where q.n = any (array(
  select q.n from jsonb_array_elements_text($1::text::jsonb) x join ob.quarantine q on q.n = x::bigint
  where q.discarded is not null or q.expires_at < ob.now() order by q.n for update of q skip locked))
  and (q.discarded is not null or q.expires_at < ob.now())
returning q.n::text`

/** Deletes events that were published and have been kept as long as any sink wants. In: how many. Out: how many went. */
export const PRUNE_PUBLISHED = `
with gone as (
  delete from ob.outbox o where o.n = any (array(
    select o.n from ob.outbox o
    where o.published_at < ob.now() - (select coalesce(max(keep_ms), 0)::float8 from ob.sink) * interval '1 ms'
    order by o.published_at limit (select ($1::text::jsonb->>0)::int) for update skip locked))
  returning 1
)
select count(*)::text gone from gone`

/**
 * Deletes events that were given up. In: `{ n, r retainMs }`. Out: their numbers. An event that another sink still has
 * to publish stays; where that one finishes at this very moment, FINISH_SHARED has to look at it again.
 */
export const PRUNE_GIVEN_UP = `
with recursive p as materialized (select (j->>'n')::int n, (j->>'r')::float8 r from (select $1::text::jsonb j) x),
c(sink) as (
  select (select d.sink from ob.delivery d where d.parked is not null order by d.sink limit 1)
  union all
  select (select d.sink from ob.delivery d where d.parked is not null and d.sink > c.sink order by d.sink limit 1)
  from c where c.sink is not null
),
f as materialized (
  select d.n, d.sink from ob.delivery d where d.ctid = any (array(
    select d.ctid from c cross join lateral (
      select d.ctid, d.n from ob.delivery d where d.sink = c.sink and d.parked = 'discarded'
      order by d.n limit (select n from p)) d
    join ob.outbox o on o.n = d.n
    where o.created_at < (select ${HORIZON} from p)))
  order by d.n, d.sink for update of d skip locked
),
gone as (
  delete from ob.delivery d using f where d.n = f.n and d.sink = f.sink and d.parked = 'discarded' returning d.n, d.sink
),
events as (
  delete from ob.outbox o where o.n in (select n from gone) and o.published_at is null
    and not exists (select 1 from ob.delivery d where d.n = o.n
      and not exists (select 1 from gone where gone.n = d.n and gone.sink = d.sink))
)
select n::text from gone`
