/** What the client of a fetch handler is not told, and somebody should be. */
import { OnceboxError } from '../errors.js'
import { callSafely } from '../promises.js'

export type Report = (error: unknown) => void

/**
 * The report where nobody gave one: a warning of the process, with what to do where oncebox knows. Of others it has names
 * and codes only, since their messages may quote what was sent.
 */
export function warning(text: string, warns: string): Report {
  return (error) => {
    const { name, code, message } = (error ?? {}) as { name?: unknown; code?: unknown; message?: unknown }
    const what = [name, code].filter((one) => typeof one === 'string').join(' ') || typeof error
    const advice = error instanceof OnceboxError && code !== 'MESSAGE_INVALID' ? `: ${String(message)}` : ''
    process.emitWarning(`${text} (${what})${advice}`, { code: warns })
  }
}

/** The client is answered all the same. */
export function tellSafely(report: Report, error: unknown): void {
  callSafely(() => report(error))
}
