/**
 * Statements of a transaction that runs handlers: how it opens, how it settles, and how a failure is recorded.
 *
 * Lists of messages carry the consumer and the token in each element, and go through `unnest(array(…))`, which the
 * planner takes for ten rows. Otherwise it reads a consumer's whole backlog for the few rows with our token: 50 ms for
 * 20 000 messages.
 */
import { statement } from '../statement.js'
import { ofTheBox } from './rules.js'

/** Whose claim it is: its consumer, and its random token. */
export interface ClaimOf {
  readonly consumer: string
  readonly token: string
}

/** The transaction that was opened, and the place of its guard. */
export interface OpenedBy {
  readonly xid: string
  readonly guard: string
}

/** A message by its key in a consumer's journal. */
export type Key = readonly [source: string, id: string]

/** A message by its key, with the number of its row in the journal; null if it has none. */
export type NumberedKey = readonly [source: string, id: string, n: string | null]

/** What is known of an attempt that has failed. */
export interface FailureDetails {
  /** The JSON text of the error, and whether it belongs in the history of attempts. */
  readonly error?: string | undefined
  readonly history: boolean
  /** Of the error: what it has in common with others. */
  readonly fingerprint?: string | undefined
  /** How long the attempt took, and where it ran. */
  readonly ms?: number | undefined
  readonly worker?: string | undefined
}

/** What is recorded of a failure, or of a message that is given back. */
export interface FailureRow extends FailureDetails {
  readonly source: string
  readonly id: string
  /** Attempts to add, or to set instead. */
  readonly attempts: number
  readonly total?: number | undefined
  /** Due after so long, and not before this time. */
  readonly delayMs: number
  readonly at?: Date | undefined
  /** Whom it waits for; it runs again by itself if undefined. */
  readonly parked?: string | undefined
  readonly reason?: string | undefined
}

/**
 * The first statement of a transaction that runs handlers, with a lock timeout or none. Out, between spaces: the
 * transaction's id, the place of its guard in open_group, which is a row that refuses every COMMIT until the
 * settlement has deleted it, how long the session may idle by its owner's word ('0': there is none), and settings that nobody
 * reads (one column costs the client less than four). The old lock
 * timeout is kept in a setting of ours, for MARK to put back. A worker that freezes in the transaction would keep its row
 * locks for ever: the server ends a session that idles beyond every deadline (`idleMs`), unless it has its own limit.
 */
export const OPEN = statement<{ lockTimeout: string | null; idleMs: number }, { opened: string }>(`
insert into ob.open_group (token) values ('00000000-0000-0000-0000-000000000000')
returning concat_ws(' ', pg_current_xact_id(), ctid, current_setting('idle_in_transaction_session_timeout'),
  case when current_setting('idle_in_transaction_session_timeout') = '0'
    then set_config('idle_in_transaction_session_timeout', $1::text::jsonb->>'idleMs', true) end,
  case when $1::text::jsonb->>'lockTimeout' is not null
    then set_config('oncebox.lock_timeout', current_setting('lock_timeout'), true)
      || set_config('lock_timeout', $1::text::jsonb->>'lockTimeout', true) end) opened`)

/** Any answer, also an error, shows that the connection is alive. */
export const ALIVE = statement<null>(`select 1 where $1::text is not null`)

/** May this session still do all that a run needs? Asked when one of its statements was denied. */
export const RIGHTS = statement<null, { complete: 'true' | 'false' }>(`
select bool_and(has_table_privilege(name, privilege))::text complete
from unnest(array['ob.message', 'ob.work', 'ob.lane', 'ob.open_group', 'ob.outbox', 'ob.delivery']) tables(name),
  unnest(array['select', 'insert', 'update', 'delete']) privileges(privilege)
where $1::text is not null`)

/**
 * Which server this is, as far as a restart goes: a crash of one of its processes does not change the answer, a new
 * postmaster does.
 */
export const SERVER = statement<null, { started: string }>(
  `select pg_postmaster_start_time()::text started where $1::text is not null`,
)

/**
 * Settles claimed messages: the last statement before COMMIT. Raises unless every message still carries our token (OB001)
 * and the transaction is the one we opened (OB002): an answer that JavaScript looked at after a pipelined COMMIT would
 * come too late, and a zombie's writes would stay. Index: the primary key of `work`.
 */
export const SETTLE = statement<ClaimOf & OpenedBy & { done: readonly NumberedKey[] }>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, x->>0 source, x->>1 id, (x->>2)::bigint n, (j->>'token')::uuid token
  from input, unnest(array(select jsonb_array_elements(j->'done') from input)) x
),
deleted as (
  delete from ob.work w using given
  where w.consumer = given.consumer and w.source = given.source and w.id = given.id and w.token = given.token
  returning given.n
),
handled as (
  insert into ob.handled (n, at) select n, ob.now() from deleted where n is not null
  on conflict (n) do update set at = excluded.at
)
select ob.close_transaction((j->>'xid')::xid8, (j->>'guard')::tid), case
  when (select count(*) from deleted) <> jsonb_array_length(j->'done') then ob.refuse('OB001', 'the claim was lost')
end from input`)

/** The same for one message. Its keys are those of the function: `x` is the xid, `g` the guard, `k` the token. */
export const SETTLE_ONE = statement<{
  c: string
  k: string
  x: string
  g: string
  s: string
  i: string
  n: string | null
}>(`select ob.settle_one($1::text::jsonb)`)

/** Stores handlers' results, in the transaction of their settlement. Index: the primary key of `message`. */
export const STORE_RESULTS = statement<{
  consumer: string
  results: readonly (readonly [source: string, id: string, result: string])[]
}>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, x->>0 source, x->>1 id, x->>2 result
  from input, unnest(array(select jsonb_array_elements(j->'results') from input)) x
)
update ob.message m set result = given.result from given
where m.consumer = given.consumer and m.source = given.source and m.id = given.id`)

/**
 * Which of these messages are not handled: they have work to do still, whoever holds it by now, or a failover has taken them out
 * of the journal. After a COMMIT whose answer was lost, no row back means that it committed. Indexes: the primary keys.
 */
export const STILL_OPEN = statement<{ consumer: string; messages: readonly Key[] }, { source: string; id: string }>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, x->>0 source, x->>1 id
  from input, unnest(array(select jsonb_array_elements(j->'messages') from input)) x
)
select given.source, given.id from given
where exists (select 1 from ob.work w
    where w.consumer = given.consumer and w.source = given.source and w.id = given.id)
  or not exists (select 1 from ob.message m
    where m.consumer = given.consumer and m.source = given.source and m.id = given.id)`)

/** What became of a transaction whose COMMIT got no answer; null if nobody knows any more. */
export const TRANSACTION_STATUS = statement<
  { xid: string },
  { status: 'in progress' | 'committed' | 'aborted' | null }
>(`select pg_xact_status(($1::text::jsonb->>'xid')::xid8) status`)

/**
 * Records failures, or releases claims. A message missing from the answer has lost its claim: somebody else decides its
 * fate. One that is to wait for its source ('failed') runs again by itself if the box has taken it over meanwhile: its source
 * was told so, and has forgotten it. Index: the primary key of `work`.
 */
export const FAIL = statement<
  ClaimOf & { failures: readonly FailureRow[] },
  { source: string; id: string; attempts: string }
>(`
with input as materialized (select $1::text::jsonb j),
given as materialized (
  select j->>'consumer' consumer, (j->>'token')::uuid token, x->>'source' source, x->>'id' id,
         (x->>'attempts')::int attempts, (x->>'total')::int total, x->>'parked' parked,
         greatest((x->>'at')::timestamptz, ob.now() + (x->>'delayMs')::float8 * interval '1 ms') due,
         x->>'reason' reason, x->>'error' error, (x->>'history')::boolean history,
         x->>'fingerprint' fingerprint, (x->>'ms')::float8 ms, x->>'worker' worker
  from input, unnest(array(select jsonb_array_elements(j->'failures') from input)) x
),
locked as materialized (
  select w.source, w.id from given, ob.work w
  where w.consumer = given.consumer and w.source = given.source and w.id = given.id and w.token = given.token
  order by w.source, w.id for update of w
),
failed as (
  update ob.work w set token = null, suspect = false,
    attempts = coalesce(given.total, greatest(0, w.attempts + given.attempts)),
    error = coalesce(given.error, w.error), reason = given.reason,
    parked = case when ${ofTheBox('w')} and given.parked = 'failed' then null else given.parked end,
    fingerprint = case when given.error is null then w.fingerprint else given.fingerprint end,
    failed_at = case when given.error is null then w.failed_at else ob.now() end,
    due_at = case when given.parked is null or ${ofTheBox('w')} and given.parked = 'failed' then given.due else 'infinity' end
  from given join locked using (source, id)
  where w.consumer = given.consumer and w.source = given.source and w.id = given.id and w.token = given.token
  returning w.consumer, w.source, w.id, w.attempts, given.error, given.history, given.ms, given.worker
),
noted as (
  insert into ob.attempt (consumer, source, id, attempt, error, ms, worker)
  select consumer, source, id, attempts, error, ms, worker from failed where history and error is not null
)
select source, id, attempts::text from failed`)

/**
 * Counts an attempt before a suspect runs. `total` counts it: whoever holds the message is the only one to count, so the
 * statement may be repeated after a lost answer, and a release may put back what was before without knowing whether it
 * took effect. No row back: the claim was lost. The lane is locked first, as everywhere: it carries the claim, and who
 * waits for the message alone would count for a claim that has ended meanwhile.
 */
export const COUNT_ATTEMPT = statement<
  ClaimOf & { source: string; id: string; lane: string | undefined; total: number },
  { attempts: string }
>(`
with input as materialized (select $1::text::jsonb j),
held as materialized (
  select l.key from input, ob.lane l
  where l.consumer = j->>'consumer' and l.key = j->>'lane' and l.token = (j->>'token')::uuid for share of l
)
update ob.work w set attempts = (j->>'total')::int from input
where w.consumer = j->>'consumer' and w.source = j->>'source' and w.id = j->>'id'
  and (w.token = (j->>'token')::uuid or w.lane in (select key from held))
returning w.attempts::text`)

/**
 * How many of a message's failed attempts found no handler for it, given the attempts so far. One row: `missed`. Only
 * those since it was last retried or replayed, which counts from one again: there the history, which keeps all attempts,
 * does not go up, or is ahead of the count. Index: the primary key of `attempt`.
 */
export const MISSED_ATTEMPTS = statement<
  { consumer: string; source: string; id: string; attempts: number },
  { missed: string }
>(`
with input as materialized (select $1::text::jsonb j),
history as materialized (
  select a.n, a.attempt, a.error, a.attempt <= lag(a.attempt) over (order by a.n) anew from input, ob.attempt a
  where a.consumer = j->>'consumer' and a.source = j->>'source' and a.id = j->>'id'
)
select count(*)::text missed from input, history h
where h.error::jsonb->>'code' = 'HANDLER_MISSING'
  and h.n >= (select coalesce(max(n) filter (where anew), 0) from history)
  and (select attempt from history order by n desc limit 1) <= (j->>'attempts')::int`)
