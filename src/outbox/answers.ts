/**
 * Answers: what a sink says of a batch, read once. A sink may answer anything: what cannot be read, or is no answer, is a
 * refusal of its own event, so that what became of the others is recorded.
 */
import type { Refusal } from '../brokers/sink.js'
import { OnceboxError } from '../errors.js'
import { readable } from '../readable.js'

/** One for each event, undefined for one that is published. Throws if it is not clear which answer is for which event. */
export function readAnswers(answers: unknown, expected: number): (Refusal | undefined)[] {
  if (!Array.isArray(answers)) throw wrong(`got ${answers === null ? 'null' : typeof answers}`)
  if (answers.length !== expected) throw wrong(`got ${answers.length} answers for ${expected} messages`)
  return Array.from({ length: expected }, (_, at) => readAnswer(answers, at))
}

function readAnswer(answers: object, at: number): Refusal | undefined {
  const answer = read(answers, at)
  if (answer === undefined || answer === null) return undefined
  if (typeof answer !== 'object') return nonsense(`got ${typeof answer} among them`)
  if (!has(answer, 'error')) return nonsense('got object among them')
  const afterMs = read(answer, 'afterMs')
  if (afterMs !== undefined && !(typeof afterMs === 'number' && afterMs >= 0)) return nonsense('afterMs is no time')
  return {
    error: readable(read(answer, 'error')),
    retry: read(answer, 'retry') !== false,
    ...(Boolean(read(answer, 'down')) && { down: true }),
    ...(afterMs !== undefined && { afterMs }),
  }
}

/** The sink is to blame, as far as anybody knows. */
function nonsense(what: string): Refusal {
  return { error: wrong(what), retry: true, down: true }
}

/** What cannot be read is an error. */
function read(from: object, name: PropertyKey): unknown {
  try {
    return (from as Record<PropertyKey, unknown>)[name]
  } catch {
    return new Error('the sink gave an answer that could not be read')
  }
}

function has(answer: object, name: string): boolean {
  try {
    return name in answer
  } catch {
    return false
  }
}

function wrong(what: string): OnceboxError {
  return new OnceboxError(
    'OPTION_INVALID',
    `publish must answer with one undefined or { error, retry } per message; ${what}`,
  )
}
