/**
 * What a role, a database or a pooler has set for its sessions must not break our statements: under REPEATABLE READ they
 * would decide by an old snapshot, and a short timeout would reject a whole batch for one contended message.
 *
 * The defaults are read once. Where they suit us nothing changes; otherwise each statement runs behind SET LOCAL, in a
 * transaction of its own: session state would not survive a pooler in transaction mode.
 */
import type { SessionDefaults } from './sql/session.js'

export interface Settings {
  /** What goes before a statement of our own; undefined if nothing is needed. */
  readonly statement: string | undefined
  /** What goes behind the BEGIN of a transaction for handlers. */
  readonly transaction: string | undefined
}

/** Limits above this are none to statements that take milliseconds. */
const AMPLE_MS = 10_000
/** In place of a shorter limit of the role: no statement of ours runs unbounded because of us. */
const STATEMENT_LIMIT = '60s'

export function settingsFor(defaults: SessionDefaults): Settings {
  const both = defaults.read_only === 'true' ? ['set transaction read write'] : []
  // A COMMIT that the server only warns of, since its wait for a standby was cancelled, must not pass for any other. Standbys
  // that a reload of the server's configuration adds are noticed when the defaults are read again.
  if (defaults.standbys === 'true' && defaults.client_min_messages === 'error')
    both.push('set local client_min_messages = warning')
  const statement = [...both]
  if (isTight(defaults.statement_timeout)) statement.push(`set local statement_timeout = '${STATEMENT_LIMIT}'`)
  if (isTight(defaults.lock_timeout)) statement.push('set local lock_timeout = 0')
  if (isTight(defaults.transaction_timeout)) statement.push('set local transaction_timeout = 0')
  // BEGIN says the isolation level; that it has to be said is enough to need one.
  if (defaults.isolation !== 'read committed' && statement.length === 0) statement.push('set local jit = off')

  // The limits on handlers' transactions are what their owner meant them to be.
  return { statement: joined(statement), transaction: joined(both) }
}

function isTight(setting: string): boolean {
  const ms = Number(setting)
  return ms > 0 && ms < AMPLE_MS
}

function joined(commands: readonly string[]): string | undefined {
  return commands.length === 0 ? undefined : commands.join('; ')
}
