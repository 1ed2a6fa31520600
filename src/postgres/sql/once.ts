/** Statements for `once`, which runs in a transaction that its caller opened and will end. */

/** Bounds the wait for a copy in flight; MARK puts the old limit back. Out: the transaction's id. */
export const ONCE_BEGIN = `
select pg_current_xact_id()::text xid, set_config('oncebox.lock_timeout', current_setting('lock_timeout'), true),
  set_config('lock_timeout', '100ms', true) where $1::text is not null`

/** Raises if the transaction is not the one in which the message was marked. */
export const ONCE_CHECK = `
select case when pg_current_xact_id() <> ($1::text::jsonb->>0)::xid8
  then ob.refuse('OB002', 'the transaction is not the one that was opened') end`
