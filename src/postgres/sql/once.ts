/** Statements for `once`, which runs in a transaction that its caller opened and will end. */
import { statement } from '../statement.js'

/** The transaction's id, also behind a savepoint of it. */
export const ONCE_TRANSACTION = statement<null, { xid: string }>(`
select pg_current_xact_id()::text xid where $1::text is not null`)

/**
 * Bounds the wait for a copy in flight; MARK puts the old limit back. In a transaction of ours, also how long its session may
 * idle (`idleMs`), as LIMIT_IDLE does. Out: the transaction's id, and whether a process has registered the consumer with a
 * business key. Index: the primary key of `consumer`.
 */
export const ONCE_BEGIN = statement<
  { consumer: string; idleMs: number | null },
  { xid: string; keyed: 'true' | 'false' }
>(`
select pg_current_xact_id()::text xid,
  exists (select 1 from ob.consumer o where o.name = $1::text::jsonb->>'consumer' and o.identity)::text keyed,
  set_config('oncebox.lock_timeout', current_setting('lock_timeout'), true),
  set_config('lock_timeout', '100ms', true),
  case when $1::text::jsonb->>'idleMs' is not null and current_setting('idle_in_transaction_session_timeout') = '0'
    then set_config('idle_in_transaction_session_timeout', $1::text::jsonb->>'idleMs', true) end`)

/** The server ends the session if its process freezes in the transaction, with row locks. A limit of its owner's stays. Out: the transaction's id. */
export const LIMIT_IDLE = statement<{ idleMs: number }, { xid: string }>(`
select pg_current_xact_id()::text xid,
  case when current_setting('idle_in_transaction_session_timeout') = '0'
    then set_config('idle_in_transaction_session_timeout', $1::text::jsonb->>'idleMs', true) end`)

/** What is registered of a consumer that this process has not declared. No row back: it is not registered. */
export const ONCE_OPTIONS = statement<{ consumer: string }, { retain_ms: string; untimed: string }>(`
select retain_ms::text, untimed from ob.consumer where name = $1::text::jsonb->>'consumer'`)

/** Notes when the message was handled. Raises if the transaction is not the one in which it was marked. */
export const ONCE_CHECK = statement<{ xid: string; n: string | null }>(`
with input as materialized (select $1::text::jsonb j),
handled as (
  insert into ob.handled (n, at) select (j->>'n')::bigint, ob.now() from input where j->>'n' is not null
  on conflict (n) do update set at = excluded.at
)
select case when pg_current_xact_id() <> (j->>'xid')::xid8
  then ob.refuse('OB002', 'the transaction is not the one that was opened') end from input`)
