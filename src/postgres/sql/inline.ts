/** Statements for handling a message on arrival, and for `once` in the caller's own transaction. */
import { ofTheBox } from './rules.js'
import { statement } from '../statement.js'
import type { FailureDetails, OpenedBy } from './settle.js'

/** A consumer, and from when on it can tell what is new: its dedup horizon. */
export interface Horizon {
  readonly consumer: string
  readonly retainMs: number
  /** What becomes of messages that carry no time. */
  readonly untimed: string
}

/** A message as it arrived, with its key in the journal. In single letters: there are many in one statement. */
export interface ArrivalRow {
  /** The key: source and id. */
  readonly s: string
  readonly i: string
  /** Type, key, body, hash in hex, envelope. */
  readonly t: string
  readonly k?: string | undefined
  readonly b: string
  readonly h?: string | null | undefined
  readonly e?: string | null | undefined
  /** When it was sent. */
  readonly at?: string | undefined
  /** The producer's source and id, where the key is another. */
  readonly os?: string | undefined
  readonly oi?: string | undefined
  /** The copy on record is known to say the same in other words. */
  readonly w?: boolean | undefined
}

/**
 * Marks messages as being handled by this transaction; `untyped` where the caller does not know the type. Raises 40001 if
 * retention has forgotten messages of this age meanwhile.
 * Out: those that are ours to run: new ones, and known ones that wait (an inline failure that its source redelivers,
 * a stored message that nobody holds), with their number in the journal and their attempts so far, which are null for new
 * ones; and a row of nulls. The rest is for CLASSIFY.
 * With `restore`, the lock timeout that bounds the wait for a copy in flight is put back once the marks are made.
 * Where all are new, the usual case, nobody looks for waiting ones. `calm` is as in CLAIM: nothing that carries a token.
 */
export const MARK = statement<
  Horizon & { restore: boolean; calm?: boolean; untyped?: boolean; messages: readonly ArrivalRow[] },
  { source: string | null; id: string | null; n: string | null; attempts: string | null }
>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select distinct on (x->>'s', x->>'i') j->>'consumer' consumer, x->>'s' source, x->>'i' id, x->>'t' type, x->>'k' key,
    x->>'b' body, x->>'h' hash, x->>'e' envelope, x->>'os' origin_source, x->>'oi' origin_id, (x->>'at')::timestamptz at,
    (x->>'w')::boolean reworded
  from input, unnest(array(select jsonb_array_elements(j->'messages') from input)) x order by x->>'s', x->>'i'
),
young as materialized (
  select given.* from input, given where ob.is_fresh(given.at, (j->>'retainMs')::float8, j->>'untimed',
    (select f.sent_before from ob.forgotten f where f.consumer = j->>'consumer'))
),
inserted as (
  insert into ob.message as m
    (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id)
  select consumer, source, id, type, key, body, decode(hash, 'hex'), envelope, origin_source, origin_id
  from young
  order by source collate "C", id collate "C"
  on conflict do nothing returning m.source, m.id, m.n
),
again as (
  delete from ob.work w using given
  where (select count(*) from inserted) < (select count(*) from given)
    and w.consumer = given.consumer and w.source = given.source and w.id = given.id and w.lane is null
    and (w.parked = 'failed' or w.parked is null and (w.token is null or w.due_at <= ob.now()
      and (select (j->>'calm')::boolean is not true from input)))
    and not exists (select 1 from inserted where inserted.source = given.source and inserted.id = given.id)
    and exists (select 1 from ob.message m where m.consumer = w.consumer and m.source = w.source and m.id = w.id
      and (m.hash is null and (m.unhashed is not true or m.body = given.body or given.reworded)
        or given.hash is null or m.hash = decode(given.hash, 'hex') or given.origin_id is not null
        and (m.origin_id, m.origin_source) is distinct from (given.origin_id, given.origin_source))
      and (m.type = given.type or (select (j->>'untyped')::boolean from input)))
  returning w.consumer, w.source, w.id, w.attempts
),
still_fresh as materialized (
  select case when exists (select 1 from inserted)
    then ob.refuse_forgotten(j->>'consumer', (select min(at) from young)) end from input
),
ours as (
  select source, id, n, null::int attempts from inserted
  union all
  select source, id, (select m.n from ob.message m where m.consumer = again.consumer and m.source = again.source
    and m.id = again.id), attempts from again
)
select ours.source, ours.id, ours.n::text, ours.attempts::text from ours
union all
select null, null, null, case when (select count(*) from ours) >= 0 and (j->>'restore')::boolean
  then set_config('lock_timeout', current_setting('oncebox.lock_timeout'), true) end from input, still_fresh`)

/** Is a message young enough to be judged new? */
export const IS_FRESH = statement<Horizon & { at: string | undefined }, { fresh: 'true' | 'false' }>(`
with input as materialized (select $1::text::jsonb j)
select ob.is_fresh((j->>'at')::timestamptz, (j->>'retainMs')::float8, j->>'untimed',
  (select f.sent_before from ob.forgotten f where f.consumer = j->>'consumer'))::text fresh from input`)

/**
 * Settles messages on arrival, by their numbers in the journal: the last statement before COMMIT. The marks are the
 * settlement; this notes the time, and raises if the transaction is not the one we opened.
 */
export const SETTLE_INLINE = statement<OpenedBy & { handled: readonly string[] }>(`
with input as materialized (select $1::text::jsonb j),
handled as (
  insert into ob.handled (n, at) select x::bigint, ob.now() from input, jsonb_array_elements_text(j->'handled') x
  on conflict (n) do update set at = excluded.at
)
select ob.close_transaction((j->>'xid')::xid8, (j->>'guard')::tid) from input`)

/**
 * Takes back the marks of messages that did not run, with one look at the index for each: they are this transaction's own,
 * so nobody moves them, and a join planned on an empty table would read the whole journal.
 */
export const DROP_MARKS = statement<{ consumer: string; drop: readonly (readonly [source: string, id: string])[] }>(`
with input as materialized (select $1::text::jsonb j)
delete from ob.message m where m.ctid = any (array(
  select own.ctid from input, jsonb_array_elements(j->'drop') x cross join lateral (select m.ctid from ob.message m
    where m.consumer = j->>'consumer' and m.source = x->>0 and m.id = x->>1 limit 1) own))`)

/**
 * Records a failure on arrival: the message, and work that waits for its source ('failed'), for the box, or for a person
 * ('dead', 'quarantined'). `attempts` are added. Raises 40001 if retention has forgotten messages of this age. No row back:
 * another copy handled it meanwhile, or holds it. What the box has stored it runs again itself: its sender was told so, and
 * has forgotten it.
 *
 * Work is inserted only where this statement inserted the message. A known one is updated in place: an upsert guarded by
 * a look at `work` would see a row that a copy is deleting as it settles, wait for it, and insert it afresh for a message
 * that is handled by then.
 */
export const FAIL_INLINE = statement<
  {
    consumer: string
    message: ArrivalRow
    attempts: number
    delayMs: number
    parked?: string | undefined
    reason?: string | undefined
  } & FailureDetails,
  { attempts: string }
>(`
with input as materialized (select j, j->'message' m from (select $1::text::jsonb j offset 0) given),
inserted as (
  insert into ob.message as t (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id)
  select j->>'consumer', m->>'s', m->>'i', m->>'t', m->>'k', m->>'b', decode(m->>'h', 'hex'), m->>'e', m->>'os', m->>'oi'
  from input on conflict do nothing returning 1
),
first as (
  insert into ob.work as w (consumer, source, id, due_at, attempts, parked, reason, error, fingerprint, failed_at)
  select j->>'consumer', m->>'s', m->>'i', case when j->>'parked' is not null then 'infinity'
      else ob.now() + (j->>'delayMs')::float8 * interval '1 ms' end,
    (j->>'attempts')::int, j->>'parked', j->>'reason', j->>'error', j->>'fingerprint',
    case when j->>'error' is not null then ob.now() end
  from input where case when exists (select 1 from inserted)
    then ob.refuse_forgotten(j->>'consumer', (m->>'at')::timestamptz) is not null else false end
  returning w.consumer, w.source, w.id, w.attempts
),
again as (
  update ob.work w set
    attempts = greatest(0, w.attempts + (j->>'attempts')::int), error = coalesce(j->>'error', w.error),
    fingerprint = case when j->>'error' is null then w.fingerprint else j->>'fingerprint' end,
    failed_at = case when j->>'error' is null then w.failed_at else ob.now() end,
    token = null, suspect = false, reason = j->>'reason',
    parked = case when ${ofTheBox('w')} and j->>'parked' = 'failed' then null else j->>'parked' end,
    due_at = case when j->>'parked' is null or ${ofTheBox('w')} and j->>'parked' = 'failed'
                  then ob.now() + (j->>'delayMs')::float8 * interval '1 ms' else 'infinity' end
  from input
  where not exists (select 1 from inserted) and w.consumer = j->>'consumer' and w.source = m->>'s' and w.id = m->>'i'
    and (w.parked = 'failed' or w.parked is null and (w.token is null or w.due_at <= ob.now()))
  returning w.consumer, w.source, w.id, w.attempts
),
recorded as (select * from first union all select * from again),
noted as (
  insert into ob.attempt (consumer, source, id, attempt, error, ms, worker)
  select r.consumer, r.source, r.id, r.attempts, j->>'error', (j->>'ms')::float8, j->>'worker' from input, recorded r where (j->>'history')::boolean
)
select attempts::text from recorded`)

/** Bounds every wait for a lock in this transaction. */
export const LOCK_TIMEOUT = statement<{ lockTimeout: string }>(
  `select set_config('lock_timeout', $1::text::jsonb->>'lockTimeout', true)`,
)
