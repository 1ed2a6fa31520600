/** Results of handlers: stored as JSON, and round-tripped on the first run too, so that a duplicate sees no other. */
import { OnceboxError } from '../errors.js'

/** The JSON text of a result; undefined if there is none. */
export function toResult(result: unknown): string | undefined {
  if (result === undefined) return undefined
  try {
    return JSON.stringify(result)
  } catch (error) {
    throw new OnceboxError('RESULT_INVALID', 'the result cannot be written as JSON; return plain data, or nothing', {
      cause: error,
    })
  }
}

/** What a caller gets back: the same on the first run and for a duplicate. */
export function fromResult(text: string | undefined): unknown {
  return text === undefined ? undefined : (JSON.parse(text) as unknown)
}
