import { sharedByCopies } from '../copies.js'
import { isPromise } from '../promises.js'
import type { Incoming } from '../message.js'
import { wordsOf } from './read.js'

/**
 * How bodies that are not JSON become data, and data becomes bodies: Avro, Protobuf, MessagePack, plain text.
 *
 * Data is what JSON can hold, for it is stored as JSON. A `decode` that throws, or answers what JSON cannot hold, puts the
 * message into quarantine as `undecodable`, with its bytes; an `encode` that throws makes an event a dead letter.
 */
export interface Codec {
  /** Written with every body, and not looked at when reading. */
  readonly contentType: string
  decode(body: Uint8Array, headers: Readonly<Record<string, string>>): unknown
  encode(data: unknown): Uint8Array
}

/** By the body, which a `map` passes on when it copies the message. */
const problems = sharedByCopies('codec-problems', () => new WeakMap<Uint8Array, string>())

/** The message with its data decoded; or as it came, marked as undecodable. */
export function decodeWith(codec: Codec, incoming: Incoming & { body: Uint8Array }): Incoming {
  const { body, ...rest } = incoming
  try {
    const data = codec.decode(body, incoming.headers ?? {})
    const problem = jsonProblem(data)
    if (problem === undefined) return { ...rest, data }
    problems.set(body, `the codec answered ${problem}`)
  } catch (error) {
    // JSON.parse quotes what it was given.
    const words = wordsOf(error)
    problems.set(body, `the codec failed: ${words.startsWith('SyntaxError') ? 'SyntaxError' : words.slice(0, 200)}`)
  }
  return incoming
}

/** Data of which JSON would keep nothing, without a word: null of a function, and `{}` of a promise. */
export function vanishingProblem(data: unknown): string | undefined {
  if (typeof data === 'function' || typeof data === 'symbol') return `a ${typeof data}, which JSON cannot hold`
  return isPromise(data) ? 'a promise; await it' : undefined
}

/** Why data cannot be stored, if it cannot. */
export function jsonProblem(data: unknown): string | undefined {
  if (isPromise(data)) return 'a promise; it must not be async'
  const vanishing = vanishingProblem(data)
  if (vanishing) return vanishing
  try {
    JSON.stringify(data)
    return undefined
  } catch (error) {
    return `data that cannot be written as JSON: ${wordsOf(error).slice(0, 200)}`
  }
}

/** Why a codec could not read the body, if it could not. */
export function codecProblem({ body }: Incoming): string | undefined {
  if (typeof body !== 'object') return undefined
  return problems.get(body)?.toWellFormed().replaceAll('\0', '')
}
