/** Statements of the admin that read or change little. Search is in search.ts, retry and discard in bulk.ts. */
import { statement, type Flag, type Json } from '../statement.js'
import { consumersIn, messageOf, type MessageKey } from './rules.js'

/** Numbers of messages by state. */
export interface CountsRow {
  readonly pending: string
  readonly processing?: string
  readonly handled: string
  readonly dead: string
  readonly quarantined?: string
  readonly discarded: string
  /** The age of the oldest that is due, in ms. */
  readonly lag: string
  readonly estimated: Flag
}

/**
 * Counts by consumer and state. In: the names of the local consumers.
 *
 * Exact up to a million messages. Beyond that no count goes through more than 10 000 rows of an index, 50 000 of what is parked
 * or in quarantine, of which there are no statistics; what has more is estimated from the planner's statistics and marked
 * `estimated`. The order under each limit names the index: without it the planner reads the whole table for a consumer that
 * has little in it. What is held is looked for where leases end, apart from what is due.
 */
export const STATUS = statement<readonly string[], CountsRow & { name: string; paused: Flag }>(`
with recursive input as materialized (select $1::text::jsonb given),
${consumersIn('message', 'journal')},
${consumersIn('quarantine', 'held')},
consumer as materialized (
  select name from ob.consumer union select name from journal where name is not null
  union select name from held where name is not null union select jsonb_array_elements_text(given) collate "C" from input
),
size as materialized (
  select case when t.reltuples > 1000000::float4 then 10000 end few, case when t.reltuples > 1000000::float4 then 50000 end most
  from pg_class t where t.oid = (select m.tableoid from ob.message m limit 1)
),
guess as materialized (
  select t.relname "table", v.name, (v.freq * t.reltuples)::bigint n
  from pg_class t join pg_namespace n on n.oid = t.relnamespace
  join pg_stats s on s.schemaname = n.nspname and s.tablename = t.relname and s.attname = 'consumer',
    rows from (unnest(s.most_common_vals::text::text[]), unnest(s.most_common_freqs)) v(name, freq)
  where (select most from size) is not null
    and t.oid in ((select m.tableoid from ob.message m limit 1), (select w.tableoid from ob.work w limit 1))
),
counted as materialized (
  select c.name, coalesce(o.paused, false) paused, journal.n journal,
    greatest(0, loose.n + lane.n - held.loose - held.lane) + parked.failed pending, held.loose + held.lane processing,
    parked.dead, parked.quarantined + quarantine.kept quarantined, parked.discarded + quarantine.discarded discarded,
    loose.n + lane.n + parked.n unsettled,
    coalesce(greatest(journal.n, loose.n, lane.n) >= (select few from size)
      or greatest(parked.n, quarantine.n) >= (select most from size), false) estimated
  from consumer c left join ob.consumer o on o.name = c.name
  cross join lateral (select count(*) n from (
    select 1 from ob.message m where m.consumer = c.name order by m.received_at limit (select few from size)) x) journal
  cross join lateral (select count(*) n from (
    select 1 from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null
    order by w.due_at limit (select few from size)) x) loose
  cross join lateral (select count(*) n from (
    select 1 from ob.work w where w.consumer = c.name and w.lane is not null and w.parked is null
    order by w.lane limit (select few from size)) x) lane
  cross join lateral (select
    (select count(*) filter (where x.token is not null) from (
      select w.token from ob.work w where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at > ob.now()
      order by w.due_at limit (select few from size)) x) loose,
    (select count(*) from (
      select 1 from ob.lane l cross join lateral (select 1 from ob.work w
        where w.consumer = l.consumer and w.lane = l.key and w.parked is null order by w.seq limit (select few from size)) w
      where l.consumer = c.name and l.due_at > ob.now() and l.due_at < 'infinity' and l.token is not null
      limit (select few from size)) x) lane) held
  cross join lateral (select count(*) n, count(*) filter (where x.parked = 'failed') failed,
    count(*) filter (where x.parked = 'dead') dead, count(*) filter (where x.parked = 'quarantined') quarantined,
    count(*) filter (where x.parked = 'discarded') discarded from (
    select w.parked from ob.work w where w.consumer = c.name and w.parked is not null
    order by w.parked limit (select most from size)) x) parked
  cross join lateral (select count(*) n, count(*) filter (where x.discarded is null) kept,
    count(*) filter (where x.discarded is not null) discarded from (
    select q.discarded from ob.quarantine q where q.consumer = c.name order by q.reason limit (select most from size)) x) quarantine
)
select c.name, c.paused::text, c.processing::text, c.dead::text, c.quarantined::text, c.discarded::text,
  c.estimated::text, coalesce(lag.ms, 0)::text lag,
  case when not c.estimated then c.pending else greatest(c.pending, coalesce((
    select n from guess where "table" = 'work' and guess.name = c.name), 0) - c.unsettled + c.pending) end::text pending,
  greatest(0, case when not c.estimated then c.journal - c.unsettled else greatest(c.journal, (
    select n from guess where "table" = 'message' and guess.name = c.name)) - greatest(c.unsettled, (
    select n from guess where "table" = 'work' and guess.name = c.name)) end)::text handled
from counted c cross join lateral (
  select max(extract(epoch from ob.now() - m.received_at) * 1000.0)::bigint ms
  from (
    (select w.consumer, w.source, w.id from ob.work w
     where w.consumer = c.name and w.lane is null and w.parked is null and w.due_at <= ob.now()
     order by w.due_at limit 100)
    union all
    (select w.consumer, w.source, w.id from ob.lane l cross join lateral (
       select * from ob.work w where w.consumer = l.consumer and w.lane = l.key and w.parked is null
       order by w.seq limit 1) w
     where l.consumer = c.name and l.due_at <= ob.now() and l.due_at < 'infinity' order by l.due_at limit 100)
  ) w ${messageOf('w')}
) lag
order by c.name`)

/**
 * What is in the outbox, by type: one count for each sink that an event is still to be published to, and `handled` for
 * those that were published and are kept. The `lag` is how long the event has been due that has been due for longest; what no sink
 * wants is pending, and behind nothing. Beyond 20 000 of each, 5 000 are
 * counted, the oldest, and stand for all of them: `estimated`. Indexes: delivery_pkey, outbox_pkey, outbox_published.
 */
export const OUTBOX_STATUS = statement<null, CountsRow & { type: string }>(`
with size as materialized (
  select greatest(d.reltuples, 0::float4)::bigint open, greatest(o.reltuples - d.reltuples, 0::float4)::bigint kept,
    case when d.reltuples > 20000::float4 then 5000 else 200000 end most_open,
    case when o.reltuples - d.reltuples > 20000::float4 then 5000 else 200000 end most_kept
  from pg_class d, pg_class o
  where d.oid = 'ob.delivery'::regclass::oid and o.oid = 'ob.outbox'::regclass::oid and $1::text is not null
),
open as materialized (
  select d.n, d.sink, d.parked, d.due_at from ob.delivery d order by d.n, d.sink limit (select most_open from size)
),
kept as materialized (
  select o.type from ob.outbox o where o.published_at is not null order by o.published_at limit (select most_kept from size)
),
scale as materialized (
  select x.opened, x.finished, x.opened >= most_open or x.finished >= most_kept estimated,
    case when x.opened >= most_open then greatest(1::float8, size.open::float8 / most_open::float8) else 1::float8 end open,
    case when x.finished >= most_kept then greatest(1::float8, size.kept::float8 / most_kept::float8) else 1::float8 end kept
  from size, (select (select count(*) from open) opened, (select count(*) from kept) finished) x
),
counted as (
  select o.type, count(*) filter (where d.parked is null) pending, count(*) filter (where d.parked = 'dead') dead,
    count(*) filter (where d.parked = 'discarded') discarded, 0 handled,
    max(extract(epoch from ob.now() - d.due_at) * 1000.0)
      filter (where d.parked is null and d.due_at <= ob.now() and d.sink > '') lag
  from open d cross join lateral (select o.type from ob.outbox o where o.n = d.n limit 1) o group by o.type
  union all
  select type, 0, 0, 0, count(*), null from kept group by type
)
select type, (sum(pending)::float8 * scale.open)::bigint::text pending, (sum(dead)::float8 * scale.open)::bigint::text dead,
  (sum(discarded)::float8 * scale.open)::bigint::text discarded, (sum(handled)::float8 * scale.kept)::bigint::text handled,
  greatest(0, coalesce(max(lag), 0))::bigint::text lag, scale.estimated::text estimated
from counted, scale group by type, scale.open, scale.kept, scale.estimated order by type`)

export interface AttemptRow {
  readonly of: string
  readonly attempt: string
  readonly at: string
  readonly error: string
  readonly ms: string | null
  readonly worker: string | null
}

/** The failed attempts of messages, oldest first. Out: with the key's position. Index: the primary key. */
export const ATTEMPTS = statement<readonly MessageKey[], AttemptRow>(`
select (asked.ord - 1)::text "of", a.attempt::text, (extract(epoch from a.at) * 1000.0)::bigint::text "at", a.error, a.ms::text, a.worker
from jsonb_array_elements($1::text::jsonb) with ordinality asked(x, ord)
cross join lateral (select * from ob.attempt a
  where a.consumer = x->>0 and a.source = x->>1 and a.id = x->>2 order by a.n desc limit 100) a
order by asked.ord, a.n`)

/** Pauses or resumes a consumer. No row back: it is not registered. */
export const SET_PAUSED = statement<{ name: string; paused: boolean }, { name: string }>(`
update ob.consumer o set paused = (given->>'paused')::boolean from (select $1::text::jsonb given) input
where o.name = given->>'name' returning o.name`)

/** The sinks there are, and who said lately that they have them. A process that was not seen for `goneMs` is gone. */
export const SINKS = statement<
  { goneMs: number },
  { name: string; types: Json<string[]> | null; hosts: Json<string[]>; seen: string | null }
>(`
with input as (select ob.now() - (($1::text::jsonb)->>'goneMs')::float8 * interval '1 ms' since)
select k.name, to_jsonb(k.types)::text "types", coalesce(d.hosts, '[]'::jsonb)::text hosts,
  (extract(epoch from d.seen) * 1000.0)::bigint::text seen
from ob.sink k cross join lateral (
  select jsonb_agg(d.host order by d.host) filter (where d.seen_at > input.since) hosts, max(d.seen_at) seen
  from input, ob.sink_declaration d where d.sink = k.name) d
order by k.name`)
