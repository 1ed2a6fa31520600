/** Statements about consumers themselves: which there are, who runs them, and how one is removed. */
import { statement, type Flag, type Json } from '../statement.js'
import { same } from './rules.js'

export interface Presence {
  /** The process, to the others, and what people know it by. */
  readonly process: string
  readonly host: string
  readonly consumers: readonly string[]
  /** For how long a process counts without a sign of life. */
  readonly goneMs: number
}

/**
 * A process says that it runs these consumers, and forgets those that do not any more. Out: the consumers that are not
 * registered: somebody has removed them while the process could not be seen. Index: the primary keys.
 */
export const SEEN = statement<Presence, { name: string }>(`
with input as materialized (select $1::text::jsonb given),
named as materialized (select jsonb_array_elements_text(given->'consumers') collate "C" as name from input),
gone as (
  delete from ob.consumer_process p using named, input
  where p.consumer = named.name and p.process <> (given->>'process')::uuid
    and (p.stopped or p.seen_at < ob.now() - (given->>'goneMs')::float8 * interval '1 ms')
),
seen as (
  insert into ob.consumer_process as p (consumer, process, host)
  select named.name, (given->>'process')::uuid, given->>'host' from input, named order by named.name
  on conflict (consumer, process) do update set seen_at = excluded.seen_at, host = excluded.host, stopped = false
)
select named.name from named where not exists (select 1 from ob.consumer o where o.name = named.name)`)

/** A process stops, and runs its consumers no longer. In: the process, and their names. Index: the primary key. */
export const LEFT = statement<{ process: string; consumers: readonly string[] }>(`
update ob.consumer_process p set stopped = true, seen_at = ob.now()
from (select $1::text::jsonb given) input, jsonb_array_elements_text(given->'consumers') named(name)
where p.consumer = named.name and p.process = (given->>'process')::uuid`)

export interface RegisteredRow {
  readonly name: string
  readonly types: Json<readonly string[]>
  readonly ordered: Flag
  readonly identity: Flag
  readonly retain_ms: string
  readonly paused: Flag
  /** Of the processes that run it now, their hosts. */
  readonly hosts: Json<readonly string[]>
  /** When a process that runs it was seen last, in ms since 1970. */
  readonly seen: string | null
}

/** The registered consumers, by name. In: for how long a process counts without a sign of life. */
export const REGISTERED = statement<{ goneMs: number }, RegisteredRow>(`
with input as materialized (select $1::text::jsonb given)
select o.name, o.ordered::text, o.identity::text, o.retain_ms::text, o.paused::text,
  (select coalesce(jsonb_agg(s.type order by s.type), '[]') from ob.subscription s where s.consumer = o.name)::text types,
  coalesce(running.hosts, '[]')::text hosts, (extract(epoch from running.seen_at) * 1000.0)::bigint::text seen
from input, ob.consumer o left join lateral (
  select max(p.seen_at) seen_at, jsonb_agg(p.host order by p.host) filter (
    where not p.stopped and p.seen_at >= ob.now() - (given->>'goneMs')::float8 * interval '1 ms') hosts
  from ob.consumer_process p where p.consumer = o.name) running on true
order by o.name`)

export interface RemovalAnswer {
  /** It is registered, or there is something of it. */
  readonly known: boolean
  /** The hosts of processes that run it. */
  readonly users: readonly string[]
  /** A worker holds something of it. */
  readonly held: boolean
  /** What it has not handled: each counted up to ten thousand of a kind. */
  readonly pending: number
  readonly dead: number
  readonly quarantined: number
  /** It is not registered any more. Otherwise nothing was changed. */
  readonly removed: boolean
  /** The time of the removal, and a number behind all that was stored before: what is younger is of a consumer that is back. */
  readonly at: string
  readonly seq: string
}

/**
 * Takes a consumer out of the registry, with its subscriptions, unless a process runs it, or there is what it has not handled
 * and `discard` does not give it up. Out: one row. Waits for the subscriptions for `wait`, then fails with 55P03. What was
 * stored for it is still there. Indexes, in the function: work_due, work_lane, work_parked, lane_due, quarantine_reason.
 */
export const REMOVE_CONSUMER = statement<
  { consumer: string; discard: boolean; goneMs: number; wait: string },
  { answer: Json<RemovalAnswer> }
>(`select ob.remove_consumer($1::text::jsonb)::text answer`)

/** Says whether a consumer is registered: one that was removed may be back. */
export const IS_REGISTERED = statement<{ consumer: string }, { name: string }>(
  `select o.name from ob.consumer o where o.name = $1::text::jsonb->>'consumer'`,
)

interface UnsettledInput {
  readonly consumer: string
  /** Stored before the removal. */
  readonly seq: string
  readonly after: readonly [source: string, id: string]
  readonly limit: number
}

/** What a consumer has not settled, but for what is discarded, by key. Index: the primary key. */
export const UNSETTLED = statement<UnsettledInput, { source: string; id: string }>(`
with input as materialized (select $1::text::jsonb given)
select w.source, w.id from (
  select w.source, w.id, w.parked from ob.work w
  where w.consumer = (select given->>'consumer' from input)
    and (w.source, w.id) > ((select given->'after'->>0 from input), (select given->'after'->>1 from input))
    and w.parked is distinct from 'discarded' and w.seq < (select (given->>'seq')::bigint from input)
  order by w.source, w.id limit (select (given->>'limit')::int from input)) w
order by w.source, w.id`)

/** Nothing is deleted of a consumer that is registered (again). */
const REMOVED = `not exists (select 1 from ob.consumer o where o.name = given->>'consumer')`

/**
 * Deletes what a removed consumer has discarded, with its history: it was not handled, so a copy that comes again is new. A
 * message that was handled, and then replayed, stays handled. Out: how many went, and how many of them are forgotten; none: there
 * is none, somebody has it locked, or the consumer is back. Indexes: work_parked, the primary keys.
 */
export const REMOVE_DISCARDED = statement<
  { consumer: string; seq: string; limit: number },
  { gone: string; forgotten: string }
>(`
with input as materialized (
  select given->>'consumer' consumer, (given->>'seq')::bigint seq, (given->>'limit')::int most from (select $1::text::jsonb given) x where ${REMOVED}
),
chosen as materialized (
  select w.ctid place from ob.work w
  where w.consumer = (select consumer from input) and w.parked = 'discarded' and w.seq < (select seq from input)
  order by w.seq limit (select most from input) for update of w skip locked
),
unworked as (
  delete from ob.work w where w.ctid = any (array(select place from chosen)) and w.parked = 'discarded'
  returning w.consumer, w.source, w.id
),
forgettable as materialized (
  select m.place, u.consumer, u.source, u.id from unworked u cross join lateral (
    select m.ctid place, m.n from ob.message m where ${same('m', 'u')} limit 1) m
  where not exists (select 1 from ob.handled h where h.n = m.n)
),
messages as (delete from ob.message m where m.ctid = any (array(select place from forgettable)) returning 1),
history as (delete from ob.attempt a using forgettable f where ${same('a', 'f')}),
effects as (delete from ob.effect e using forgettable f where ${same('e', 'f')})
select (select count(*) from unworked)::text gone, (select count(*) from messages)::text forgotten`)

/**
 * Deletes what a removed consumer had in quarantine at the time of its removal. Out: how many went. Indexes: quarantine_reason, the
 * primary key.
 */
export const REMOVE_QUARANTINE = statement<{ consumer: string; before: string; limit: number }, { gone: string }>(`
with input as materialized (
  select given->>'consumer' consumer, (given->>'before')::timestamptz before, (given->>'limit')::int most from (select $1::text::jsonb given) x where ${REMOVED}
),
gone as (
  delete from ob.quarantine q where q.n = any (array(
    select q.n from ob.quarantine q
    where q.consumer = (select consumer from input) and q.received_at <= (select before from input)
    order by q.reason, q.n limit (select most from input) for update of q skip locked))
  returning 1
)
select count(*)::text gone from gone`)

/** Deletes lanes of a removed consumer. Out: how many went. Index: the primary key. */
export const REMOVE_LANES = statement<{ consumer: string; limit: number }, { gone: string }>(`
select ob.remove_lanes(given->>'consumer', (given->>'limit')::int)::text gone from (select $1::text::jsonb given) input`)

interface RemoveHandledInput {
  readonly consumer: string
  /** Received before the removal. */
  readonly before: string
  /** Where to go on from: what is older was deleted, and its entries may still be in the index. */
  readonly low: string | undefined
  readonly limit: number
}

/**
 * Deletes what a removed consumer has handled: it forgets. Judged as in PRUNE, by the version that is locked. Out: how many went,
 * and when the last of them was received. Indexes: message_received, the primary keys.
 */
export const REMOVE_HANDLED = statement<RemoveHandledInput, { gone: string; last: string | null }>(`
with input as materialized (
  select given->>'consumer' consumer, (given->>'limit')::int most, (given->>'before')::timestamptz before,
    coalesce((given->>'low')::timestamptz, '-infinity') low from (select $1::text::jsonb given) x where ${REMOVED}
),
chosen as materialized (
  select m.ctid place from ob.message m
  where m.consumer = (select consumer from input) and m.received_at < (select before from input)
    and m.received_at >= (select low from input) and not exists (select 1 from ob.work w where ${same('w', 'm')})
  order by m.received_at limit (select most from input) for update of m skip locked
),
gone as (
  delete from ob.message m where m.ctid = any (array(select place from chosen))
  returning m.consumer, m.source, m.id, m.n, m.received_at
),
times as (delete from ob.handled h using gone g where h.n = g.n),
history as (delete from ob.attempt a using gone g where ${same('a', 'g')}),
effects as (delete from ob.effect e using gone g where ${same('e', 'g')})
select count(*)::text gone, to_json(max(received_at))#>>'{}' last from gone`)

/** Forgets how far back a removed consumer has forgotten: to it, everything is new. Index: the primary key. */
export const REMOVE_HORIZON = statement<{ consumer: string }>(`
delete from ob.forgotten f using (select $1::text::jsonb given) input where f.consumer = given->>'consumer' and ${REMOVED}`)
