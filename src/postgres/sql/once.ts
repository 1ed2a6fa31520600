/** Statements for `once`, which runs in a transaction that its caller opened and will end. */

/** Bounds the wait for a copy in flight; MARK puts the old limit back. Out: the transaction's id. */
export const ONCE_BEGIN = `
select pg_current_xact_id()::text xid, set_config('oncebox.lock_timeout', current_setting('lock_timeout'), true),
  set_config('lock_timeout', '100ms', true) where $1::text is not null`

/**
 * What is registered of a consumer that this process has not declared. In: `[name]`. No row back: it is not registered.
 * A statement of its own: who has declared it need not hold a lock on this table for as long as the transaction lasts.
 */
export const ONCE_OPTIONS = `
select retain_ms::text "retainMs", untimed, identity::text from ob.consumer where name = $1::text::jsonb->>0`

/** Raises if the transaction is not the one in which the message was marked. */
export const ONCE_CHECK = `
select case when pg_current_xact_id() <> ($1::text::jsonb->>0)::xid8
  then ob.refuse('OB002', 'the transaction is not the one that was opened') end`
