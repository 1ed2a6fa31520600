/**
 * Statements of the janitor. None waits for a lock, none goes through more than a batch, and whatever is deleted is
 * judged under its lock: several janitors, receivers and people may be at work at once.
 *
 * A handled message goes once it was received longer ago than `retain` and a margin; a message whose own time is
 * beyond `retain` less the margin is refused as too old (`ob.is_fresh`). Between the two, no copy can pass for new. What
 * was deleted under another `retain` is remembered in `ob.forgotten`, with both margins.
 *
 * The clock that said when it was received may have been behind, and is right by now. So a message stays while a copy of it
 * would not be too old, by its own time, unless that lies in the future: then it counts as none, as it does on arrival.
 */
import { statement, type Flag } from '../statement.js'
import { ownTime, same, workOf } from './rules.js'
import type { FoundRow } from './walk.js'

/** A message that was received before may go, in `ms` its consumer retains it. */
const horizon = (ms: string): string => `ob.now() - ${ms} * interval '1 ms' - ob.margin(${ms})`

/** Would a copy be refused as too old, by its own time `at`? One without a time is judged by when it was received alone. */
const refused = (at: string, ms: string): string =>
  `(${at} is null or ${at} > ob.now() + ob.margin(${ms}) or ${at} < ob.now() - ${ms} * interval '1 ms' + ob.margin(${ms}))`

/** All consumers there are, and how long they retain. A consumer without options has null. */
export const CONSUMERS = statement<null, { name: string; retain_ms: string | null }>(`
with recursive input as (select $1::text),
journal(name) as (
  select (select m.consumer from ob.message m order by m.consumer limit 1) from input
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
select n.name, o.retain_ms::text from (
  select name from ob.consumer union select name from journal where name is not null
  union select name from lanes where name is not null) n left join ob.consumer o on o.name = n.name`)

/**
 * Sees to it that consumers have a watermark, which forgets nothing: a transaction of a stronger isolation level that finds none
 * inserts it, and whoever else comes would wait until that transaction has ended. Fails with 55P03 if one that is open has done
 * so: then it need not be done.
 */
export const BEGIN_WATERMARKS = statement<{ consumers: readonly string[]; wait: string }>(`
with input as materialized (
  select given, set_config('lock_timeout', given->>'wait', true) from (select $1::text::jsonb given) x
)
insert into ob.forgotten (consumer, sent_before)
select name, '-infinity' from input, jsonb_array_elements_text(given->'consumers') name order by name collate "C"
on conflict do nothing`)

interface PrunableInput {
  readonly consumer: string
  readonly retainMs: number
  readonly limit: number
  /** Leaves the bodies out. */
  readonly lean: boolean
  /** Where to go on from. */
  readonly low: readonly [received: string, source: string, id: string] | undefined
}

/**
 * A consumer's messages beyond the horizon that may go: handled or discarded. The last row examined is always in the answer,
 * marked by `fits`. Pending, dead and quarantined messages are passed over. Indexes: message_received, the primary keys.
 */
export const PRUNABLE = statement<PrunableInput, FoundRow>(`
with input as materialized (
  select given, (given->>'limit')::int most, (given->>'retainMs')::float8 retain_ms, given->>'consumer' consumer,
    coalesce((given->'low'->>0)::timestamptz, '-infinity') low from (select $1::text::jsonb given) x
),
examined as materialized (
  select m.*, row_number() over (order by received_at, source, id) ord
  from (
    select * from ob.message m
    where m.consumer = (select consumer from input) and m.received_at < (select ${horizon('retain_ms')} from input)
      and m.received_at >= (select low from input)
      and (m.received_at, m.source, m.id) > ((select low from input),
        (select coalesce(given->'low'->>1, '') from input), (select coalesce(given->'low'->>2, '') from input))
    order by m.received_at, m.source, m.id limit (select most from input)) m
)
select f.fits::text, m.consumer, m.source, m.id, m.origin_source, m.origin_id, m.type, m.key,
  case when f.fits and not (input.given->>'lean')::boolean then m.body end body, m.envelope, m.ord::text,
  case when w.id is null then 'handled' else w.parked end state, w.reason, w.error, w.attempts::text,
  case when f.fits then m.result end result, (select extract(epoch from h.at) * 1000.0 from ob.handled h
    where f.fits and w.id is null and h.n = m.n)::bigint::text handled,
  (extract(epoch from m.received_at) * 1000.0)::bigint::text received,
  to_char(m.received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') "at"
from input cross join examined m ${workOf('m')}
cross join lateral (select ${ownTime('m')} at offset 0) own
cross join lateral (
  select (w.id is null or w.parked is not distinct from 'discarded') and ${refused('own.at', 'input.retain_ms')} fits) f
where f.fits or m.ord = (select count(*) from examined) order by m.ord`)

interface PruneInput {
  readonly consumer: string
  readonly retainMs: number
  /** How long to wait for the watermark: then it fails with 55P03. */
  readonly wait: string
  readonly keys: readonly (readonly [source: string, id: string])[]
}

/**
 * Deletes messages that may go, with their history. Out: how many went; the rest is held by somebody, or is no longer what it
 * was. Indexes: the primary keys.
 *
 * Rows are deleted by the very version that was judged: a replay in between makes another one, and its message stays.
 * How far back it has forgotten is written down first: by what was received last among them and by their own times, not by the
 * clock, which may have been wrong. Other janitors of this consumer wait here, and hold nothing. A plain update where there is
 * a row: an upsert would leave its lock in the new version, and transactions of a stronger isolation level, which take a lock
 * for a newer version (`ob.refuse_forgotten`), would lock the row each time.
 */
export const PRUNE = statement<PruneInput, { gone: string }>(`
with input as materialized (
  select given, (given->>'retainMs')::float8 retain_ms, given->>'consumer' consumer,
    set_config('lock_timeout', given->>'wait', true) from (select $1::text::jsonb given) x
),
horizon as materialized (select ${horizon('retain_ms')} passed from input),
named as materialized (
  select (select consumer from input) consumer, x->>0 source, x->>1 id from input, jsonb_array_elements(given->'keys') x
),
chosen as materialized (
  select m.consumer, m.source, m.id, m.received_at, own.at from named n join ob.message m on ${same('m', 'n')}
  cross join lateral (select ${ownTime('m')} at offset 0) own
  where m.received_at < (select passed from horizon) and (select ${refused('own.at', 'retain_ms')} from input)
),
newest as materialized (
  select greatest(max(received_at) + 2::float8 * (select ob.margin(retain_ms) from input),
    max(at) filter (where at <= ob.now()) + interval '1 ms') sent_before
  from chosen having count(*) > 0
),
moved as (
  update ob.forgotten f set sent_before = greatest(f.sent_before, newest.sent_before)
  from input, newest where f.consumer = input.consumer returning 1
),
begun as (
  insert into ob.forgotten as f (consumer, sent_before) select input.consumer, newest.sent_before from input, newest
  where not exists (select 1 from ob.forgotten known where known.consumer = input.consumer)
  on conflict (consumer) do update set sent_before = greatest(f.sent_before, excluded.sent_before)
  returning 1
),
watermark as (select 1 from moved union all select 1 from begun),
handled as materialized (
  select m.ctid from chosen c join ob.message m on ${same('m', 'c')}
  where (select count(*) from watermark) > 0 and m.received_at < (select passed from horizon)
    and not exists (select 1 from ob.work w where ${same('w', 'm')})
  order by m.source, m.id for update of m skip locked
),
discarded as materialized (
  select m.ctid, w.ctid work from chosen c join ob.message m on ${same('m', 'c')} join ob.work w on ${same('w', 'm')}
  where (select count(*) from watermark) > 0 and m.received_at < (select passed from horizon) and w.parked = 'discarded'
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
history as (delete from ob.attempt a using gone g where ${same('a', 'g')}),
effects as (delete from ob.effect e using gone g where ${same('e', 'g')})
select count(*)::text gone from gone`)

interface PruneLanesInput {
  readonly consumer: string
  /** The key to go on from. */
  readonly after: string
  readonly limit: number
}

/**
 * Removes lanes in which nothing waits. Out: the last key examined, how many were, and how many went. A receiver that has the
 * lane in hand has locked it, or has left it due: both keep it. Indexes: the primary key, work_lane.
 */
export const PRUNE_LANES = statement<PruneLanesInput, { last: string | null; examined: string; gone: string }>(`
with input as materialized (
  select given->>'consumer' consumer, given->>'after' after, (given->>'limit')::int most from (select $1::text::jsonb given) x
),
examined as materialized (
  select l.key from ob.lane l where l.consumer = (select consumer from input) and l.key > (select after from input)
  order by l.key limit (select most from input)
),
gone as (
  delete from ob.lane x where x.ctid = any (array(
    select l.ctid from examined e join ob.lane l on l.consumer = (select consumer from input) and l.key = e.key
    where l.due_at = 'infinity' and l.token is null and not l.blocked and not l.dirty
      and not exists (select 1 from ob.work w where w.consumer = l.consumer and w.lane = l.key and w.parked is null)
    for update of l skip locked))
  returning 1
)
select (select max(key) from examined) last, (select count(*) from examined)::text examined,
  (select count(*) from gone)::text gone`)

interface PrunableQuarantineInput {
  readonly limit: number
  /** The number to go on from. */
  readonly after: string | undefined
  readonly retainMs: Readonly<Record<string, number>>
  readonly defaultMs: number
  /** The shortest time that any row is kept. */
  readonly leastMs: number
}

/**
 * Quarantined messages that were discarded and are beyond the horizon, or that their source need not keep any longer. The last
 * row examined is always in the answer, marked by `fits`, and by `young` if it is within every horizon: then so is all that
 * follows. Index: the primary key.
 */
export const PRUNABLE_QUARANTINE = statement<PrunableQuarantineInput, FoundRow & { n: string; young: Flag }>(`
with input as materialized (select given, (given->>'limit')::int most from (select $1::text::jsonb given) x),
examined as materialized (
  select q.*, row_number() over (order by q.n) ord from (
    select * from ob.quarantine q where q.n > (select coalesce((given->>'after')::bigint, -1) from input)
    order by q.n limit (select most from input)) q
)
select f.fits::text, q.n::text, q.consumer, q.source, q.id, q.type, q.key, q.reason, q.detail, q.envelope,
  case when f.fits then q.body end body, case when f.fits then encode(q.bytes, 'base64') end bytes,
  case when q.discarded is null then 'quarantined' else 'discarded' end state,
  (extract(epoch from q.received_at) * 1000.0)::bigint::text received, q.ord::text,
  (q.received_at >= ob.now() - (select (given->>'leastMs')::float8 from input) * interval '1 ms')::text young
from examined q cross join lateral (
  select coalesce((given->'retainMs'->>q.consumer)::float8, (given->>'defaultMs')::float8) ms from input) retained
cross join lateral (select q.discarded is not null and q.received_at < ${horizon('retained.ms')}
  or coalesce(q.expires_at < ob.now(), false) fits) f
where f.fits or q.ord = (select count(*) from examined) order by q.ord`)

/** Deletes rows of the quarantine that were discarded, or need not be kept any longer. In: their numbers. Out: those that went. */
export const PRUNE_QUARANTINE = statement<readonly string[], { n: string }>(`
delete from ob.quarantine q where q.n = any (array(
  select q.n from jsonb_array_elements_text($1::text::jsonb) x join ob.quarantine q on q.n = x::bigint
  where q.discarded is not null or q.expires_at < ob.now() order by q.n for update of q skip locked))
  and (q.discarded is not null or q.expires_at < ob.now())
returning q.n::text`)

/** Deletes events that were published and have been kept as long as any sink wants. In: how many. Out: how many went. */
export const PRUNE_PUBLISHED = statement<readonly [limit: number], { gone: string }>(`
with gone as (
  delete from ob.outbox o where o.n = any (array(
    select o.n from ob.outbox o
    where o.published_at < ob.now() - (select coalesce(max(keep_ms), 0)::float8 from ob.sink) * interval '1 ms'
    order by o.published_at limit (select ($1::text::jsonb->>0)::int) for update skip locked))
  returning 1
)
select count(*)::text gone from gone`)

/**
 * Deletes events that were given up. Out: their numbers. An event that another sink still has to publish stays; where that one
 * finishes at this very moment, FINISH_SHARED has to look at it again. Indexes: delivery_parked, the primary keys.
 */
export const PRUNE_GIVEN_UP = statement<{ limit: number; retainMs: number }, { n: string }>(`
with recursive input as materialized (
  select (given->>'limit')::int most, (given->>'retainMs')::float8 retain_ms from (select $1::text::jsonb given) x
),
sink(name) as (
  select (select d.sink from ob.delivery d where d.parked is not null order by d.sink limit 1)
  union all
  select (select d.sink from ob.delivery d where d.parked is not null and d.sink > sink.name order by d.sink limit 1)
  from sink where sink.name is not null
),
fitting as materialized (
  select d.n, d.sink from ob.delivery d where d.ctid = any (array(
    select d.ctid from sink cross join lateral (
      select d.ctid, d.n from ob.delivery d where d.sink = sink.name and d.parked = 'discarded'
      order by d.n limit (select most from input)) d
    join ob.outbox o on o.n = d.n
    where o.created_at < (select ${horizon('retain_ms')} from input)))
  order by d.n, d.sink for update of d skip locked
),
gone as (
  delete from ob.delivery d using fitting f where d.n = f.n and d.sink = f.sink and d.parked = 'discarded'
  returning d.n, d.sink
),
events as (
  delete from ob.outbox o where o.n in (select n from gone) and o.published_at is null
    and not exists (select 1 from ob.delivery d where d.n = o.n
      and not exists (select 1 from gone where gone.n = d.n and gone.sink = d.sink))
)
select n::text from gone`)
