/** Statements of the minutes: what happened in each, by consumer, and what was published, by sink. Consumer '' is the whole box. */
import { statement } from '../statement.js'

/** The minute that a time is in, counted since 1970. */
const minuteOf = (time: string): string => `(extract(epoch from ${time})::bigint / 60)`
/** When a minute began. */
const beginOf = (minute: string): string => `('epoch'::timestamptz + (${minute})::float8 * interval '1 min')`

/**
 * The row `m` is of a sink: a version of before 024 still runs beside this one, and writes what it has published under U+001F
 * and the name of the sink. No consumer of such a name is registered.
 */
const isOfASink = (m: string): string =>
  `(starts_with(${m}.consumer, chr(31)) and not exists (select 1 from ob.consumer o where o.name = ${m}.consumer))`

/** What a process counted of a consumer, and what was read of it; null: nobody read it. */
export type MinuteRow = readonly [
  consumer: string,
  ...counts: [received: number, handled: number, failed: number, duplicates: number],
  ...read: [pending: number | null, lagMs: number | null, dead: number | null, quarantined: number | null],
]

/** What a process has published to a sink. */
export type SinkMinuteRow = readonly [sink: string, published: number]

/**
 * Adds what a process has counted to the minute that `agoMs` is in, the middle of the time it was counted in: any number of processes
 * add theirs. What was read is the same for all. In the order of names: two processes must not wait for each other. Indexes: the primary keys.
 */
export const ADD_MINUTE = statement<{
  agoMs: number
  consumers: readonly MinuteRow[]
  sinks: readonly SinkMinuteRow[]
}>(`
with input as materialized (
  select given, ${beginOf(minuteOf(`(ob.now() - (given->>'agoMs')::float8 * interval '1 ms')`))} "at"
  from (select $1::text::jsonb given) x
),
published as (
  insert into ob.sink_minute as m (sink, at, published)
  select x->>0, input.at, (x->>1)::bigint from input, jsonb_array_elements(given->'sinks') x order by (x->>0) collate "C"
  on conflict (sink, at) do update set published = m.published + excluded.published
)
insert into ob.minute as m (consumer, at, received, handled, failed, duplicates, pending, lag_ms, dead, quarantined)
select x->>0, input.at, (x->>1)::bigint, (x->>2)::bigint, (x->>3)::bigint, (x->>4)::bigint,
  (x->>5)::bigint, (x->>6)::bigint, (x->>7)::bigint, (x->>8)::bigint
from input, jsonb_array_elements(given->'consumers') x order by (x->>0) collate "C"
on conflict (consumer, at) do update set received = m.received + excluded.received, handled = m.handled + excluded.handled,
  failed = m.failed + excluded.failed, duplicates = m.duplicates + excluded.duplicates,
  pending = coalesce(excluded.pending, m.pending), lag_ms = coalesce(excluded.lag_ms, m.lag_ms),
  dead = coalesce(excluded.dead, m.dead), quarantined = coalesce(excluded.quarantined, m.quarantined)`)

/** Values of a consumer within a step; null: nobody recorded it. */
export interface StepRow {
  readonly consumer: string
  /** From 0. */
  readonly step: string
  readonly received: string
  readonly handled: string
  readonly failed: string
  readonly duplicates: string
  readonly pending: string | null
  readonly lag: string | null
}

/**
 * Minutes, put together in steps: sums of what was counted, the most of what was read. In: minutes since 1970. Of more than
 * `limit` consumers those with the longest lag, and then the busiest. Index: minute_at.
 */
export const READ_MINUTES = statement<{ from: number; step: number; count: number; limit: number }, StepRow>(`
with input as materialized (
  select (given->>'from')::bigint first, (given->>'step')::bigint size, (given->>'count')::bigint most, (given->>'limit')::int consumers
  from (select $1::text::jsonb given) x
),
stepped as materialized (
  select m.consumer, (${minuteOf('m.at')} - input.first) / input.size step, sum(m.received) received, sum(m.handled) handled,
    sum(m.failed) failed, sum(m.duplicates) duplicates, max(m.pending) pending, max(m.lag_ms) lag
  from input cross join lateral (
    select * from ob.minute m where m.at >= ${beginOf('input.first')}
      and m.at < ${beginOf('input.first + input.size * input.most')} order by m.at) m
  group by 1, 2
),
shown as materialized (
  select s.consumer from stepped s where not ${isOfASink('s')} group by 1
  order by s.consumer = '' desc, coalesce(max(s.lag), 0) desc, sum(s.received) desc, s.consumer
  limit (select consumers + 1 from input)
)
select s.consumer, s.step::text, s.received::text, s.handled::text, s.failed::text, s.duplicates::text, s.pending::text, s.lag::text
from shown join stepped s using (consumer) order by s.consumer, s.step`)

export interface LastRow {
  readonly consumer: string
  readonly received: string
  readonly handled: string
  readonly failed: string
  readonly duplicates: string
}

/** What was counted within a minute. In: which one, since 1970. No row of '': nobody recorded it. Index: minute_at. */
export const READ_MINUTE = statement<{ minute: number }, LastRow>(`
select m.consumer, m.received::text, m.handled::text, m.failed::text, m.duplicates::text
from ob.minute m where m.at = (select ${beginOf(`(given->>'minute')::bigint`)} from (select $1::text::jsonb given) x)`)

/**
 * What was published within a minute. In: which one, since 1970. No row: nothing was, or nobody recorded it. Indexes: sink_minute_at,
 * and the primary key of minutes for what another version has written.
 */
export const READ_PUBLISHED = statement<{ minute: number }, { sink: string; published: string }>(`
with input as materialized (select ${beginOf(`(given->>'minute')::bigint`)} "at" from (select $1::text::jsonb given) x)
select x.sink, sum(x.published)::text published from (
  select m.sink, m.published from ob.sink_minute m where m.at = (select "at" from input)
  union all
  select substr(m.consumer, 2), m.handled from ob.minute m where m.at = (select "at" from input) and ${isOfASink('m')}) x
group by x.sink`)

export interface SinceRow {
  readonly what: 'behind' | 'dead' | 'quarantined'
  readonly consumer: string
  /** In ms. */
  readonly since: string
}

/**
 * Since when consumers are behind, and since when there are messages that are dead or in quarantine: the first minute after
 * the last that was read in which it was not so, or the first on record. No row: nobody has seen it yet. Index: the primary key, for each backwards to that minute.
 */
export const READ_SINCE = statement<{ consumers: readonly string[]; limitMs: number }, SinceRow>(`
with input as materialized (select given, (given->>'limitMs')::bigint most from (select $1::text::jsonb given) x),
asked as materialized (
  select 'behind' what, x consumer from input, jsonb_array_elements_text(given->'consumers') x
  union all select 'dead', '' union all select 'quarantined', ''
)
select a.what, a.consumer, (extract(epoch from began.at) * 1000.0)::bigint::text since
from input cross join asked a
left join lateral (
  select b.at from ob.minute b
  left join lateral (select m.lag_ms from ob.minute m where m.consumer = a.consumer and m.at = b.at limit 1) own on true
  where b.consumer = '' and b.pending is not null and not coalesce(
    case a.what when 'behind' then own.lag_ms > input.most when 'dead' then b.dead > 0 else b.quarantined > 0 end, false)
  order by b.at desc limit 1
) before on true
cross join lateral (
  select b.at from ob.minute b where b.consumer = '' and b.pending is not null and b.at > coalesce(before.at, '-infinity')
  order by b.at limit 1
) began`)

/**
 * Forgets minutes that are older than `keepMs`, the oldest first, no more than `limit` of consumers and of sinks. Out: how many, of
 * those of which there were more. Nobody writes to them any more. Indexes: minute_at, sink_minute_at.
 */
export const PRUNE_MINUTES = statement<{ keepMs: number; limit: number }, { gone: string }>(`
with input as materialized (select $1::text::jsonb given),
gone as (
  delete from ob.minute m where m.ctid = any (array(select o.ctid from ob.minute o
    where o.at < (select ob.now() - (given->>'keepMs')::float8 * interval '1 ms' from input)
    order by o.at limit (select (given->>'limit')::int from input) for update of o skip locked)) returning 1
),
gone_of_sinks as (
  delete from ob.sink_minute m where m.ctid = any (array(select o.ctid from ob.sink_minute o
    where o.at < (select ob.now() - (given->>'keepMs')::float8 * interval '1 ms' from input)
    order by o.at limit (select (given->>'limit')::int from input) for update of o skip locked)) returning 1
)
select greatest((select count(*) from gone), (select count(*) from gone_of_sinks))::text gone`)
