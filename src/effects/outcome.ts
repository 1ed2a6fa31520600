/** The outcome of a call, as it is kept. */
import { escapeUnits } from '../escape.js'
import { inspect } from 'node:util'

/** Larger outcomes are not stored: PostgreSQL takes 256 MB in a parameter, and JSON in JSON may double in size. */
export const MAX_RESULT_BYTES = 64 * 1024 * 1024

/** The call has happened: a result that cannot be stored is no reason to call again, so what can be told of it is kept. */
export function toText(result: unknown): string | null {
  try {
    const text = result === undefined ? null : (JSON.stringify(result) ?? null)
    const bytes = text === null ? 0 : Buffer.byteLength(text)
    return bytes > MAX_RESULT_BYTES ? JSON.stringify({ tooLarge: bytes }) : text
  } catch {
    return JSON.stringify({ unserializable: describe(result).slice(0, 1_000).toWellFormed() })
  }
}

/** The same JSON with escapes for whatever is not ASCII, for a database whose encoding lacks some of it. */
export function toAscii(text: string): string {
  return escapeUnits(text, /[^\0-\x7F]/g)
}

/** Getters and inspectors of the result may throw as well. */
function describe(result: unknown): string {
  try {
    return inspect(result, { depth: 1, customInspect: false })
  } catch {
    return typeof result
  }
}
