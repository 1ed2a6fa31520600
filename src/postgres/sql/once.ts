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

/** Notes when the message was handled. In: `[xid, n]`. Raises if the transaction is not the one in which it was marked. */
export const ONCE_CHECK = `
with p as materialized (select $1::text::jsonb j),
handled as (
  insert into ob.handled (n, at) select (j->>1)::bigint, ob.now() from p where j->>1 is not null
  on conflict (n) do update set at = excluded.at
)
select case when pg_current_xact_id() <> (j->>0)::xid8
  then ob.refuse('OB002', 'the transaction is not the one that was opened') end from p`
