/** Results of handlers: stored as JSON, and round-tripped on the first run too, so that a duplicate sees no other. */
import { OnceboxError } from '../errors.js'

/** An error that is returned was meant to be thrown: taken for a result, it would be a message that is handled. */
export function refuseError(result: unknown): void {
  if (!(result instanceof Error)) return
  throw new OnceboxError('RESULT_INVALID', `the handler returned a ${result.name}; throw it`, { cause: result })
}

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
