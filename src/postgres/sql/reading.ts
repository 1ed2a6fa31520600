/** Statements that read the figures of the database for metrics, once for all processes of a box. */
import { statement, type Flag, type Json } from '../statement.js'
import { quarantinePairs, waitingSinks } from './rules.js'

/** What makes another reading due. One from the future was taken by another clock, before a failover. */
const DUE = `(r.due_at <= ob.now() or r.taken_at > ob.now())`

/**
 * Elects who reads: locks the row until the transaction ends, with limits for all that follows in it: a process that is frozen
 * while it reads must not keep the others from it. No row back: the last reading is not over its time yet, or somebody else
 * reads.
 */
export const ELECT_READER = statement<null, { elected: string }>(`
with bounds as materialized (
  select set_config('statement_timeout', '5s', true), set_config('lock_timeout', '1s', true),
    set_config('idle_in_transaction_session_timeout', '10s', true)
  where $1::text is not null
)
select r.one::text elected from bounds cross join ob.reading r
where ${DUE} for update of r skip locked`)

/** Keeps a reading. Its writer has been elected in the same transaction. */
export const WRITE_READING = statement<{ figures: string; everyMs: number }>(`
update ob.reading r set figures = given->>'figures', taken_at = ob.now(),
  due_at = ob.now() + (given->>'everyMs')::float8 * interval '1 ms'
from (select $1::text::jsonb given) input`)

/** The last reading, its age in ms, and whether it is time for another. No age: there was none yet. */
export const READ_READING = statement<null, { figures: string; age: string | null; due: Flag }>(`
select r.figures, ${DUE}::text due, case when r.taken_at > '-infinity'
  then greatest(0, extract(epoch from ob.now() - r.taken_at) * 1000.0)::bigint::text end age
from ob.reading r where $1::text is not null`)

export interface ConsumerFigures {
  readonly name: string
  readonly paused: Flag
  readonly retain_ms: string
  readonly pending: string
  readonly processing: string
  readonly dead: string
  readonly quarantined: string
  readonly discarded: string
  /** The age of the oldest that is due, in ms. */
  readonly lag: string
}

/** The frequent values of a column, and how many rows have each, by the planner's statistics. */
function guess(table: string, column: string): string {
  return `
  select v.name, (v.freq * t.reltuples)::bigint n
  from pg_class t join pg_namespace s on s.oid = t.relnamespace
  join pg_stats p on p.schemaname = s.nspname and p.tablename = t.relname and p.attname = '${column}',
    rows from (unnest(p.most_common_vals::text::text[]), unnest(p.most_common_freqs)) v(name, freq)
  where t.oid = 'ob.${table}'::regclass::oid`
}

/**
 * What is not handled, by consumer: of every one that is registered, so that none is missed that is in trouble. In: how many
 * rows a count goes through; of what has more, the number is the planner's. Handled messages are not counted, for nobody needs to go through
 * them. Each order names the index of its limit: work_due, work_lane, work_parked, lane_due. What is held is found among what
 * falls due next, which is where leases end.
 */
export const READ_CONSUMERS = statement<readonly [most: number], ConsumerFigures>(`
with input as materialized (select ($1::text::jsonb->>0)::bigint most),
guess as materialized (${guess('work', 'consumer')}
)
select c.name, c.paused::text, c.retain_ms::text, (later.live + held.n)::text processing,
  greatest(0, case when greatest(due.n, later.n, lane.n) < (select most from input)
    then due.n + later.n + lane.n + parked.failed - later.live - held.n
    else greatest(due.n + later.n + lane.n, coalesce((select g.n from guess g where g.name = c.name), 0)
      - parked.dead - parked.quarantined - parked.discarded) end)::text pending,
  parked.dead::text, parked.quarantined::text, parked.discarded::text, coalesce(lag.ms, 0)::text lag
from ob.consumer c
cross join lateral (select count(*) n from (
  select 1 from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at <= ob.now()
  order by w.due_at limit (select most from input)) x) due
cross join lateral (select count(*) n, count(*) filter (where x.token is not null) live from (
  select w.token from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at > ob.now()
  order by w.due_at limit (select most from input)) x) later
cross join lateral (select count(*) n from (
  select 1 from ob.work w where w.consumer = c.name and w.lane is not null and w.parked is null
  order by w.lane limit (select most from input)) x) lane
cross join lateral (select coalesce(sum(own.n), 0)::bigint n from (
  select l.key, l.token from ob.lane l where l.consumer = c.name and l.due_at > ob.now() and l.due_at < 'infinity'
  order by l.due_at limit 1000) leased
  cross join lateral (select count(*) n from (
    select 1 from ob.work w where w.consumer = c.name and w.lane = leased.key and w.parked is null
    order by w.seq limit 100) x) own
  where leased.token is not null) held
cross join lateral (select coalesce(sum(own.n) filter (where s.state = 'failed'), 0)::bigint failed,
  coalesce(sum(own.n) filter (where s.state = 'dead'), 0)::bigint dead,
  coalesce(sum(own.n) filter (where s.state = 'quarantined'), 0)::bigint quarantined,
  coalesce(sum(own.n) filter (where s.state = 'discarded'), 0)::bigint discarded
  from (values ('failed'), ('dead'), ('quarantined'), ('discarded')) s(state)
  cross join lateral (select count(*) n from (
    select 1 from ob.work w where w.consumer = c.name and w.parked is not null and w.parked = s.state
    order by w.seq limit (select most from input)) x) own) parked
cross join lateral (
  select max(extract(epoch from ob.now() - m.received_at) * 1000.0)::bigint ms
  from (
    (select w.source, w.id from ob.work w
     where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at <= ob.now()
     order by w.due_at limit 100)
    union all
    (select w.source, w.id from (
       select l.key from ob.lane l where l.consumer = c.name and l.due_at <= ob.now() and l.due_at < 'infinity'
       order by l.due_at limit 100) l
     cross join lateral (select w.source, w.id from ob.work w
       where w.consumer = c.name and w.lane = l.key and w.parked is null order by w.seq limit 1) w)
  ) oldest cross join lateral (select m.received_at from ob.message m
    where m.consumer = c.name and m.source = oldest.source and m.id = oldest.id limit 1) m
) lag
order by c.name`)

export interface QuarantineFigures {
  /** Empty: it was refused before anybody was asked. */
  readonly consumer: string
  readonly reason: string
  readonly kept: string
}

/**
 * What is in quarantine, by consumer and reason, and nobody has discarded: there are as many pairs as the code has names for.
 * In: how many rows are looked at for each, the newest ones. Index: quarantine_reason.
 */
export const READ_QUARANTINE = statement<readonly [most: number], QuarantineFigures>(`
with recursive input as materialized (select ($1::text::jsonb->>0)::bigint most),${quarantinePairs('pair')}
select pair.consumer, pair.reason, own.kept::text from pair
cross join lateral (select count(*) filter (where x.discarded is null) kept from (
  select q.discarded from ob.quarantine q where q.consumer = pair.consumer and q.reason = pair.reason
  order by q.n desc limit (select most from input)) x) own`)

export interface SinkFigures {
  /** Empty: of events that no sink wants. */
  readonly name: string
  readonly pending: string
  readonly dead: string
  readonly discarded: string
  /** How long the event has been due that has been due for longest, in ms. */
  readonly lag: string
}

/**
 * What is to be published, by sink: of every one that is registered, and of those that have events and no process has started
 * yet. In: how many rows a count goes through; of what has more, the number is the planner's. Indexes: delivery_live,
 * delivery_waiting, delivery_parked.
 */
export const READ_SINKS = statement<readonly [most: number], SinkFigures>(`
with recursive input as materialized (select ($1::text::jsonb->>0)::bigint most),
${waitingSinks()},
guess as materialized (${guess('delivery', 'sink')}
)
select s.name, parked.dead::text, parked.discarded::text,
  greatest(0, case when greatest(live.n, waiting.n) < (select most from input) then live.n + waiting.n
    else greatest(live.n + waiting.n, coalesce((select g.n from guess g where g.name = s.name), 0)
      - parked.dead - parked.discarded) end)::text pending,
  coalesce(greatest(0, (case when s.name > '' then extract(epoch from ob.now() - lag.due_at) * 1000.0 end)::bigint), 0)::text lag
from (select k.name from ob.sink k union select '' union select name from live where name is not null
  union select name from sleepers where name is not null) s
cross join lateral (select count(*) n from (
  select 1 from ob.delivery d where d.sink = s.name and d.parked is null and not d.waiting
  order by d.shard, d.n limit (select most from input)) x) live
cross join lateral (select count(*) n from (
  select 1 from ob.delivery d where d.sink = s.name and d.parked is null and d.waiting
  order by d.due_at limit (select most from input)) x) waiting
cross join lateral (select coalesce(sum(own.n) filter (where p.state = 'dead'), 0)::bigint dead,
  coalesce(sum(own.n) filter (where p.state = 'discarded'), 0)::bigint discarded
  from (values ('dead'), ('discarded')) p(state)
  cross join lateral (select count(*) n from (
    select 1 from ob.delivery d where d.sink = s.name and d.parked is not null and d.parked = p.state
    order by d.n limit (select most from input)) x) own) parked
cross join lateral (select min(head.due_at) due_at from (
  (select d.due_at from generate_series(0, 31) part(shard) cross join lateral (
    select d.due_at from ob.delivery d
    where d.sink = s.name and d.shard = part.shard and d.parked is null and not d.waiting order by d.n limit 1) d)
  union all
  (select d.due_at from ob.delivery d
   where d.sink = s.name and d.parked is null and d.waiting order by d.due_at limit 1)) head) lag
order by s.name`)

/** The sizes of the tables that grow with the messages, with their indexes. */
export const READ_SIZES = statement<null, { sizes: Json<Readonly<Record<string, number>>> }>(`
select jsonb_build_object('message', pg_total_relation_size('ob.message'::regclass),
  'handled', pg_total_relation_size('ob.handled'::regclass), 'work', pg_total_relation_size('ob.work'::regclass),
  'attempt', pg_total_relation_size('ob.attempt'::regclass), 'effect', pg_total_relation_size('ob.effect'::regclass),
  'quarantine', pg_total_relation_size('ob.quarantine'::regclass), 'outbox', pg_total_relation_size('ob.outbox'::regclass),
  'delivery', pg_total_relation_size('ob.delivery'::regclass))::text sizes
where $1::text is not null`)
