/** Statements about sessions: what a role's defaults are, whether a session still hears its client, and how long it may work. */
import { statement, type Flag } from '../statement.js'

export interface SessionDefaults {
  readonly isolation: string
  readonly read_only: Flag
  /** Limits, in ms. */
  readonly statement_timeout: string
  readonly lock_timeout: string
  /** Empty where the server knows of none. */
  readonly transaction_timeout: string
  /** The least that the client is told of, by its level. */
  readonly client_min_messages: string
  /** Commits wait for standbys here, or may: sessions can choose not to. */
  readonly standbys: Flag
}

/**
 * The defaults of a session, read outside a transaction. In: nothing. Out: one row, always: the isolation level, whether
 * the role or the database (not the whole server) makes transactions read-only, the limits in ms, 0 for none, which
 * messages of the server the client is told, and whether the server has synchronous standbys.
 */
export const SESSION_DEFAULTS = statement<null, SessionDefaults>(`
select current_setting('default_transaction_isolation') isolation,
  exists (select from pg_settings where name = 'default_transaction_read_only' and setting = 'on'
    and source in ('database', 'user', 'database user', 'client', 'session'))::text read_only,
  (select setting from pg_settings where name = 'statement_timeout') statement_timeout,
  (select setting from pg_settings where name = 'lock_timeout') lock_timeout,
  coalesce((select setting from pg_settings where name = 'transaction_timeout'), '') transaction_timeout,
  current_setting('client_min_messages') client_min_messages,
  (current_setting('synchronous_standby_names') <> '')::text standbys
where $1::text is not null`)

/**
 * Which of these transactions, in each of which a client waits for an answer, the server is not at work for. Out: those that
 * are over, which are `deaf`, and those whose session waits for its client in its turn. The latter are deaf if they have for
 * more than `ms`, and are ended then, so that their locks go. No row back: the server is at work for all of them.
 */
export const DEAF = statement<{ ms: number; transactions: readonly string[] }, { xid: string; deaf: Flag }>(`
with input as materialized (
  select transaction::xid8 xid, make_interval(secs => ($1::text::jsonb->>'ms')::float8 / 1000::float8) silence
  from jsonb_array_elements_text($1::text::jsonb->'transactions') transaction
)
select input.xid::text xid, case when session.state_change < clock_timestamp() - silence
  then pg_terminate_backend(session.pid) else session.pid is null end::text deaf
from input left join pg_stat_activity session on session.backend_xid = input.xid::xid
where case when session.pid is null then pg_xact_status(input.xid) <> 'in progress'
  else session.state like 'idle in transaction%' end`)

/** Bounds what follows in the transaction: no statement of it takes longer. */
export const BOUND_READS = statement<{ ms: string }>(`
select set_config('statement_timeout', $1::text::jsonb->>'ms', true)`)
