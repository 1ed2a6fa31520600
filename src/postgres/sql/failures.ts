/** Statements about failures: what groups there are, and what an older version has left out. */
import { statement, type Flag, type Json } from '../statement.js'
import { causeOf, messageOf, parkingConsumers, same, wordsOf } from './rules.js'

/** As `wordsOf` gives them. */
export interface WordsRow {
  readonly name: string | null
  readonly code: string | null
  readonly message: string | null
}

export interface CausedRow extends WordsRow {
  readonly cause: string | null
}

export interface GroupRow extends CausedRow {
  readonly consumer: string
  readonly fingerprint: string
  /** As far as they were counted. */
  readonly n: string
  /** In ms. Of what an older version has recorded, nothing. */
  readonly first: string | null
  readonly last: string | null
  /** Of the last 24, from 1, which is the first → how many. */
  readonly hours: Json<Readonly<Record<string, number>>>
  /** The newest. */
  readonly source: string
  readonly id: string
  /** Of the newest few. */
  readonly types: Json<readonly string[]>
  /** So many of each were counted at most. */
  readonly most: string
  /** How many groups there are, of which these are some, and messages in all of them. */
  readonly groups: string
  readonly messages: string
  /** One of them has more than were counted, or there may be more of them. */
  readonly cut: Flag
}

/** The newest `most` of a group. */
function newest(most: string, group: string): string {
  return `select w.seq, w.failed_at from ob.work w
    where w.consumer = ${group}.consumer and w.parked = 'dead' and w.error is not null and w.fingerprint = ${group}.fingerprint
    order by w.seq desc limit ${most}`
}

/** How many of them there are, and when they failed. */
function counted(most: string, group: string): string {
  return `select count(*) n, min(w.failed_at) first, max(w.failed_at) last, max(w.seq) newest
    from (${newest(most, group)}) w`
}

/**
 * Dead messages by what they died of, the largest groups first, without the first `skipped`, and those alone of which one failed in
 * the last `minutes`. Groups are found by hopping through the
 * index, `groups` of each consumer at most; then `limit` rows are shared out among them, and read from the index alone. What small
 * groups leave of their share the large ones get. Hours, words and types are looked up for the `shown` alone. Index: work_failure,
 * and the primary keys for the newest of each.
 */
export const FAILURE_GROUPS = statement<
  { consumer: string | null; minutes: number | null; groups: number; limit: number; shown: number; skipped: number },
  GroupRow
>(`
with recursive input as materialized (
  select given->>'consumer' collate "C" consumer, (given->>'groups')::int groups, (given->>'limit')::bigint most,
    (given->>'shown')::int shown, (given->>'skipped')::int skipped,
    coalesce(ob.now() - (given->>'minutes')::float8 * interval '1 minute', '-infinity') since,
    array(select ob.now() - i::float8 * interval '1 hour' from generate_series(24, 0, -1) i) hours
  from (select $1::text::jsonb given) x
),
${parkingConsumers()},
hop(consumer, fingerprint, n) as (
  select c.name, w.fingerprint, 1 from consumer c cross join lateral (
    select w.fingerprint from ob.work w
    where w.consumer = c.name and w.parked = 'dead' and w.error is not null and w.fingerprint > ''
    order by w.fingerprint limit 1) w
  union all
  select hop.consumer, w.fingerprint, hop.n + 1 from hop cross join lateral (
    select w.fingerprint from ob.work w
    where w.consumer = hop.consumer and w.parked = 'dead' and w.error is not null and w.fingerprint > hop.fingerprint
    order by w.fingerprint limit 1) w
  where hop.n < (select groups from input)
),
share as materialized (
  select greatest(100, (select most from input) / greatest(1, count(*))) most, count(*) groups from hop
),
counted as materialized (
  select hop.consumer, hop.fingerprint, g.* from hop cross join lateral (${counted('(select most from share)', 'hop')}) g
),
rest as materialized (
  select share.most, greatest(0, (select most from input) - sum(c.n)::bigint)
    / greatest(1, count(*) filter (where c.n >= share.most)) more
  from share cross join counted c group by share.most
),
recounted as materialized (
  select c.* from counted c where c.n < (select most from share)
  union all
  select c.consumer, c.fingerprint, g.* from counted c
  cross join lateral (${counted('(select most + more from rest)', 'c')}) g
  where c.n >= (select most from share)
),
late as materialized (
  select * from recounted where coalesce(last, ob.now()) >= (select since from input)
),
largest as materialized (
  select g.*, coalesce((select most + more from rest), 0) most from late g
  order by g.n desc, g.last desc nulls last, g.consumer, g.fingerprint
  limit (select shown from input) offset (select skipped from input)
)
select g.consumer, g.fingerprint, g.n::text, (extract(epoch from g.first) * 1000.0)::bigint::text "first",
  (extract(epoch from g.last) * 1000.0)::bigint::text "last", hours.all::text hours, w.source, w.id, ${wordsOf('f.j')}, ${causeOf('f.j')},
  types.all::text types, g.most::text, total.groups::text, total.messages::text,
  (total.cut or share.groups >= (select groups from input))::text "cut"
from share cross join (select count(*) groups, sum(n) messages,
  bool_or(n >= (select most + more from rest)) cut from late) total cross join largest g
cross join lateral (select * from ob.work w where w.consumer = g.consumer and w.parked = 'dead' and w.error is not null
  and w.fingerprint = g.fingerprint and w.seq = g.newest limit 1) w
cross join lateral (select w.error::jsonb j) f
cross join lateral (select coalesce(jsonb_object_agg(h.hour::text, h.n), '{}') "all" from (
    select width_bucket(w.failed_at, (select hours from input)) "hour", count(*) n from (${newest('g.n', 'g')}) w
    where w.failed_at >= (select hours[1] from input) group by 1) h) hours
cross join lateral (select coalesce(jsonb_agg(distinct m.type), '[]') "all" from (
    select w.consumer, w.source, w.id from ob.work w where w.consumer = g.consumer and w.parked = 'dead'
      and w.error is not null and w.fingerprint = g.fingerprint order by w.seq desc limit 3) w ${messageOf('w')}) types
order by g.n desc, g.last desc nulls last, g.consumer, g.fingerprint`)

export interface UngroupedRow extends CausedRow {
  readonly consumer: string
  readonly source: string
  readonly id: string
  readonly type: string
  /** When it failed for the last time, in ms; when it was received, if no attempt was written down. */
  readonly at: string
}

/**
 * Dead messages that have no fingerprint yet (the order names the index, or all of the dead would be looked at), newest first, no more than `limit` of each consumer and of all: an older version
 * has recorded them. Indexes: work_failure, and the primary keys.
 */
export const UNGROUPED = statement<{ consumer: string | null; limit: number }, UngroupedRow>(`
with recursive input as materialized (
  select given->>'consumer' collate "C" consumer, (given->>'limit')::int most from (select $1::text::jsonb given) x
),
${parkingConsumers()},
dead as materialized (
  select w.* from consumer cross join lateral (
    select w.consumer, w.source, w.id, w.seq, w.error from ob.work w
    where w.consumer = consumer.name and w.parked = 'dead' and w.error is not null and w.fingerprint is null
    order by w.fingerprint desc, w.seq desc limit (select most from input)) w
  limit (select most from input)
)
select d.consumer, d.source, d.id, m.type, ${wordsOf('f.j')}, ${causeOf('f.j')},
  (extract(epoch from coalesce(a.at, m.received_at)) * 1000.0)::bigint::text "at"
from dead d ${messageOf('d')}
cross join lateral (select d.error::jsonb j) f
left join lateral (select a.at from ob.attempt a where ${same('a', 'd')} order by a.n desc limit 1) a on true
order by d.seq desc`)

/**
 * What is parked and has an error without a fingerprint, oldest first: an older version has recorded it. `digest` is of the error.
 * Index: work_failure.
 */
export const UNMARKED = statement<
  { consumer: string; limit: number },
  CausedRow & { source: string; id: string; digest: string }
>(`
with input as materialized (
  select given->>'consumer' collate "C" consumer, (given->>'limit')::int most from (select $1::text::jsonb given) x
)
select w.source, w.id, ${wordsOf('f.j')}, ${causeOf('f.j')}, hashtextextended(w.error, 0)::text digest
from input cross join (select unnest(array['dead', 'quarantined', 'discarded', 'failed']) parked) state
cross join lateral (select w.source, w.id, w.error from ob.work w
  where w.consumer = input.consumer and w.parked = state.parked and w.parked is not null and w.error is not null
    and w.fingerprint is null order by w.fingerprint, w.seq limit (select most from input)) w
cross join lateral (select w.error::jsonb j) f
limit (select most from input)`)

/**
 * Writes fingerprints down, and when it failed, as far as that is known. What is locked is left for the next time, and so is what
 * has failed otherwise since it was read. Out: a row for each. Index: the primary keys.
 */
export const MARK_FAILURES = statement<
  { consumer: string; rows: readonly (readonly [source: string, id: string, fingerprint: string, digest: string])[] },
  { id: string }
>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, x->>0 source, x->>1 id, x->>2 fingerprint, (x->>3)::bigint digest
  from input, unnest(array(select jsonb_array_elements(j->'rows') from input)) x
),
locked as materialized (
  select w.consumer, w.source, w.id, given.fingerprint from given, ob.work w
  where ${same('w', 'given')} and w.parked is not null and w.fingerprint is null
    and hashtextextended(w.error, 0) = given.digest
  order by w.source, w.id for update of w skip locked
)
update ob.work w set fingerprint = locked.fingerprint, failed_at = coalesce(w.failed_at,
  (select a.at from ob.attempt a where ${same('a', 'locked')} order by a.n desc limit 1),
  (select m.received_at from ob.message m where ${same('m', 'locked')}))
from locked where ${same('w', 'locked')} returning w.id`)
