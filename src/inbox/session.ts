/** Session: why a transaction may have lost its own, in words for the author of its handler. */
import { OnceboxError } from '../errors.js'
import { someCause } from '../failure.js'
import { isConnectionLoss } from '../postgres/errors.js'

export interface Session {
  /** When its first handler was called. */
  readonly called?: number | undefined
  /** How long it may be idle in a transaction by its owner's word, in the server's words: '0' if there is no limit. */
  readonly idle?: string | undefined
}

/**
 * A session that idles in its transaction for longer than its owner allows is ended by the server, and few clients tell why. A
 * loss after so long a time is most probably that: it is judged like every other loss, and told in these words.
 */
export function explainLoss(error: unknown, { called, idle = '0' }: Session): unknown {
  const limitMs = millisecondsOf(idle)
  if (called === undefined || limitMs === 0 || !someCause(error, isConnectionLoss)) return error
  const ranMs = performance.now() - called
  if (ranMs < limitMs) return error
  const what = `the connection was lost after the handler had run for ${Math.round(ranMs)} ms`
  const why = `the server ends sessions that idle in a transaction for ${idle} (idle_in_transaction_session_timeout)`
  const advice = `raise that above timeoutMs, or wait outside the transaction, in an effect`
  return new OnceboxError('SESSION_ENDED', `${what}; ${why}; ${advice}`, { cause: error })
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** Of a setting as the server shows it. */
function millisecondsOf(setting: string): number {
  const [, figure = '0', unit = 'ms'] = /^(\d+)([a-z]+)?$/.exec(setting) ?? []
  return Number(figure) * (UNITS[unit] ?? 1)
}
