/** Statements that record messages as handled which somebody else has handled. */
import { statement } from '../statement.js'
import { chosenWork, freeLanes, MARKED, messageOf, same, type MessageKey } from './rules.js'

/** In single letters: there are many in one statement. */
export interface MarkRow {
  /** The key: source and id. */
  readonly s: string
  readonly i: string
  /** The type; empty for any. */
  readonly t: string
  /** When it was handled; now if it is not said. */
  readonly at?: string | undefined
}

interface MarkHandledInput {
  readonly consumer: string
  readonly retainMs: number
  /** How long to wait for a copy that is being handled on arrival, or received. */
  readonly wait: string
  readonly marks: readonly MarkRow[]
}

/**
 * Records messages as handled, in the order of their keys; of several times of one message the latest counts, and none is now.
 * Without a fingerprint: a copy is one by its id. Out: one row: how many there are, and how many of them are recorded now. The
 * others are known already, see SETTLE_MARKED, or so old that retention would delete them at once. Index: the primary key.
 */
export const MARK_HANDLED = statement<MarkHandledInput, { given: string; marked: string }>(`
with input as materialized (
  select given, set_config('lock_timeout', given->>'wait', true) from (select $1::text::jsonb given) x
),
mark as materialized (
  select distinct on (x->>'s', x->>'i') given->>'consumer' consumer, x->>'s' source, x->>'i' id, x->>'t' type,
    case when x->>'at' is not null then least((x->>'at')::timestamptz, ob.now()) end at
  from input, jsonb_array_elements(given->'marks') x order by x->>'s', x->>'i', x->>'at' desc
),
young as materialized (
  select mark.* from input, mark where ob.is_fresh(mark.at, (given->>'retainMs')::float8, 'accept',
    (select f.sent_before from ob.forgotten f where f.consumer = given->>'consumer'))
),
marked as (
  insert into ob.message as m (consumer, source, id, type, body, envelope, received_at)
  select consumer, source, id, type, 'null', '${MARKED}', coalesce(at, ob.now()) from young
  order by source collate "C", id collate "C"
  on conflict do nothing returning m.n, m.received_at
),
times as (insert into ob.handled (n, at) select n, received_at from marked)
select (select count(*) from mark)::text given, (select count(*) from marked)::text marked`)

/**
 * Settles known messages as handled that nobody holds: what waits, is dead, in quarantine for want of an outcome, or discarded. As
 * in DISCARD, the one that blocks or holds up its lane frees it, and a lease that has run out gets another token. Out: one row: how
 * many were settled, and as JSON [source, id] those that somebody holds: a worker, or who has it locked. Lists are matched
 * by grouping, for there are thousands in them, of which the planner expects few. Index: the primary keys, work_lane.
 */
export const SETTLE_MARKED = statement<{ keys: readonly MessageKey[] }, { settled: string; held: string }>(`
with input as materialized (select $1::text::jsonb given),${chosenWork()},
laned as materialized (
  select consumer, source, id, bool_or(live) over (partition by consumer, lane) live from (
    select consumer, source, id, lane, null::boolean live from chosen
    union all select consumer, null, null, key, live from lane) x
),
fitting as materialized (
  select w.consumer, w.source, w.id, w.parked is null waited from laned c join ob.work w on ${same('w', 'c')}
  where w.parked is not null or (w.token is null or w.due_at <= ob.now()) and not coalesce(c.live, false)
  order by w.consumer, w.source, w.id for update of w skip locked
),
settled as (
  delete from ob.work w using fitting f where ${same('w', 'f')}
  returning w.consumer, w.source, w.id, w.lane, w.seq, f.waited
),
times as (
  insert into ob.handled (n, at) select m.n, ob.now() from settled s ${messageOf('s')} where m.n is not null
  on conflict (n) do update set at = excluded.at
),${freeLanes('settled')},
held as materialized (
  select consumer, source, id from chosen except select consumer, source, id from fitting
)
select (select count(*) from settled)::text settled,
  (select coalesce(jsonb_agg(jsonb_build_array(source, id)), '[]') from held)::text held`)
