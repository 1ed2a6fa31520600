/** Statements for handling a message on arrival, and for `once` in the caller's own transaction. */
import { AS_IT_CAME, isCopy, ofTheBox } from './rules.js'
import { statement, type Flag, type Json } from '../statement.js'
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
  /** Type, key, body, envelope; and the fingerprint in hex, null if bodies are not to be compared: for MARK see there. */
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

/** What tells a known message from another one. */
export type KnownRow = Omit<ArrivalRow, 'k' | 'e' | 'at'>

/** Whom messages would have to be stored for besides: subscriptions to one of `types` that are not `covered`. */
export interface OtherTakers {
  /** With `*`. */
  readonly types: readonly string[]
  /** Subscriptions of consumers that run these messages now. As objects: of arrays, `@>` compares neither order nor number. */
  readonly covered: readonly { readonly consumer: string; readonly type: string }[]
  /** Only these consumers; undefined for all. */
  readonly only?: readonly string[] | undefined
  /** Consumers that run now and have no business key here: one that has one in another process counts, too. */
  readonly keyless: readonly string[]
  /** Consumers that run messages with a key now, and keep no order here: one that does in another process counts, too. */
  readonly unordered: readonly string[]
}

interface MarkInput extends Horizon {
  readonly restore: boolean
  readonly others?: OtherTakers | undefined
  /** The fingerprint is empty if bodies are not to be compared. Null, or none: nobody has computed that of the body. */
  readonly messages: readonly ArrivalRow[]
}

interface MarkRow {
  /** If all are new: their numbers in the journal, in the order of the messages, with spaces between. */
  readonly all: string | null
  /** If not: those that are. */
  readonly some: Json<readonly (readonly [source: string, id: string, n: string])[]> | null
  /** Are there `others`? Null if nobody has asked. */
  readonly others: Flag | null
}

/**
 * Marks new messages as being handled by this transaction. Raises 40001 if retention has forgotten messages of this age
 * meanwhile. Out: one row. What is not new is for TAKE_OVER, and then for CLASSIFY.
 * With `restore`, the lock timeout that bounds the wait for a copy in flight is put back, if all are new.
 * Nothing is joined: rows are inserted in the order of their key, so that numbers in their order belong to keys in theirs.
 * To count the rows (`tally`) inserts them all. Index: the primary key of `message`.
 */
export const MARK = statement<MarkInput, MarkRow>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select parsed.*, ob.is_fresh(parsed.at, (j->>'retainMs')::float8, j->>'untimed',
      (select f.sent_before from ob.forgotten f where f.consumer = j->>'consumer')) fresh
  from input, (
    select ord, x->>'s' source, x->>'i' id, x->>'t' type, x->>'k' key, x->>'b' body, x->>'h' hash,
      x->>'e' envelope, x->>'os' origin_source, x->>'oi' origin_id, (x->>'at')::timestamptz at
    from input, jsonb_array_elements(j->'messages') with ordinality a(x, ord) offset 0
  ) parsed
),
inserted as (
  insert into ob.message as m
    (consumer, source, id, type, key, body, hash, unhashed, envelope, origin_source, origin_id)
  select j->>'consumer', source, id, type, key, body, decode(nullif(hash, ''), 'hex'), case when hash is null then true end,
    envelope, origin_source, origin_id
  from input, given where fresh order by source collate "C", id collate "C"
  on conflict do nothing returning m.source, m.id, m.n
),
tally as materialized (select (select count(*) from inserted) inserted, (select count(*) from given) given)
select
  case when inserted = given then (
    select string_agg(n::text, ' ' order by ord) from rows from (
      unnest(array(select ord from given order by source collate "C", id collate "C")),
      unnest(array(select n from inserted order by n))) pair(ord, n)) end "all",
  case when inserted < given then coalesce((
    select jsonb_agg(jsonb_build_array(source, id, n::text)) from inserted), '[]')::text end some,
  case when j->'others' is not null then exists (
      select 1 from ob.subscription s where j->'others'->'types' @> to_jsonb(s.type)
        and not j->'others'->'covered' @> jsonb_build_array(jsonb_build_object('consumer', s.consumer, 'type', s.type))
        and (j->'others'->'only' is null or j->'others'->'only' @> to_jsonb(s.consumer)))
    or exists (
      select 1 from ob.consumer o where o.identity and j->'others'->'keyless' @> to_jsonb(o.name)
        or o.ordered and j->'others'->'unordered' @> to_jsonb(o.name)) end::text others,
  case when inserted > 0 then ob.refuse_forgotten(j->>'consumer', (select min(at) from given where fresh)) end checked,
  case when inserted = given and (j->>'restore')::boolean
    then set_config('lock_timeout', current_setting('oncebox.lock_timeout'), true) end restored
from input, tally`)

/**
 * Takes over known messages that wait (an inline failure that its source redelivers, a stored message that nobody holds), for
 * this transaction to handle; `untyped` where the caller does not know the type. `calm` is as in CLAIM: nothing that carries a
 * token. Out: those that are ours to run, with their number in the journal and their attempts so far; and a row of nulls, which
 * stands for the lock timeout. The rest is for CLASSIFY. Indexes: the primary keys.
 */
export const TAKE_OVER = statement<
  {
    consumer: string
    restore: boolean
    calm?: boolean | undefined
    untyped?: boolean | undefined
    messages: readonly KnownRow[]
  },
  { source: string | null; id: string | null; n: string | null; attempts: string | null }
>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, x->>'s' source, x->>'i' id, x->>'t' type, x->>'h' hash,
    x->>'os' origin_source, x->>'oi' origin_id, x->>'b' body, (x->>'w')::boolean reworded
  from input, unnest(array(select jsonb_array_elements(j->'messages') from input)) x
),
again as (
  delete from ob.work w using given
  where w.consumer = given.consumer and w.source = given.source and w.id = given.id and w.lane is null
    and (w.parked = 'failed' or w.parked is null and (w.token is null or w.due_at <= ob.now()
      and (select (j->>'calm')::boolean is not true from input)))
    and exists (select 1 from ob.message m where m.consumer = w.consumer and m.source = w.source and m.id = w.id
      and ${isCopy('m', { hash: 'given.hash', body: 'given.body', reworded: 'given.reworded', originId: 'given.origin_id', originSource: 'given.origin_source' })}
      and (m.type = given.type or (select (j->>'untyped')::boolean from input)))
  returning w.consumer, w.source, w.id, w.attempts
)
select source, id, (select m.n from ob.message m where m.consumer = again.consumer and m.source = again.source
  and m.id = again.id)::text n, attempts::text from again
union all
select null, null, null, case when (select count(*) from again) >= 0 and (j->>'restore')::boolean
  then set_config('lock_timeout', current_setting('oncebox.lock_timeout'), true) end from input`)

/** Is a message young enough to be judged new? `ahead`: its time is in the future. */
export const IS_FRESH = statement<Horizon & { at: string | undefined }, { fresh: Flag; ahead: Flag | null }>(`
with input as materialized (select $1::text::jsonb j)
select ob.is_fresh((j->>'at')::timestamptz, (j->>'retainMs')::float8, j->>'untimed',
  (select f.sent_before from ob.forgotten f where f.consumer = j->>'consumer'))::text fresh,
  ((j->>'at')::timestamptz > ob.now())::text ahead from input`)

/**
 * Settles messages on arrival, by their numbers in the journal with spaces between: the last statement before COMMIT. The
 * marks are the settlement; this notes the time, and raises if the transaction is not the one we opened.
 */
export const SETTLE_INLINE = statement<OpenedBy & { handled: string }>(`
with input as materialized (select $1::text::jsonb j),
handled as (
  insert into ob.handled (n, at) select n, ob.now() from input, unnest(string_to_array(j->>'handled', ' ')::bigint[]) n
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
 * another copy handled it meanwhile, or holds it, or another message was stored under its id. What the box has stored it runs again itself: its sender was told so, and
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
    /** Due after so long, and not before this time. */
    delayMs: number
    at?: Date | undefined
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
      else greatest((j->>'at')::timestamptz, ob.now() + (j->>'delayMs')::float8 * interval '1 ms') end,
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
                  then greatest((j->>'at')::timestamptz, ob.now() + (j->>'delayMs')::float8 * interval '1 ms') else 'infinity' end
  from input
  where not exists (select 1 from inserted) and w.consumer = j->>'consumer' and w.source = m->>'s' and w.id = m->>'i'
    and (w.parked = 'failed' or w.parked is null and (w.token is null or w.due_at <= ob.now()))
    and exists (select 1 from ob.message t where t.consumer = w.consumer and t.source = w.source and t.id = w.id
      and ${isCopy('t', AS_IT_CAME)} and t.type = m->>'t')
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
