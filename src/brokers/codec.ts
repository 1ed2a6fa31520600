import type { Incoming } from '../message.js'

/**
 * How bodies that are not JSON become data, and data becomes bodies: Avro, Protobuf, MessagePack, plain text.
 *
 * Data is what JSON can hold, for it is stored as JSON. A `decode` that throws puts the message into quarantine as
 * `undecodable`, with its bytes; an `encode` that throws makes an event a dead letter.
 */
export interface Codec {
  /** Written with every body, and not looked at when reading. */
  readonly contentType: string
  decode(body: Uint8Array, headers: Readonly<Record<string, string>>): unknown
  encode(data: unknown): Uint8Array
}

const problems = new WeakMap<Incoming, string>()

/** The message with its data decoded; or as it came, marked as undecodable. */
export function decodeWith(codec: Codec, incoming: Incoming & { body: Uint8Array }): Incoming {
  const { body, ...rest } = incoming
  try {
    return { ...rest, data: codec.decode(body, incoming.headers ?? {}) }
  } catch (error) {
    // JSON.parse quotes what it was given.
    const words = error instanceof SyntaxError ? 'SyntaxError' : error instanceof Error ? error.message : String(error)
    problems.set(incoming, `the codec failed: ${words.slice(0, 200)}`)
    return incoming
  }
}

/** Why a codec could not read the body, if it could not. */
export function codecProblem(incoming: Incoming): string | undefined {
  return problems.get(incoming)?.toWellFormed().replaceAll('\0', '')
}
