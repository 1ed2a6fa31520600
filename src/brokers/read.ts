/**
 * The one way from what a client hands out to what the box gets.
 *
 * A reader looks at what strangers have sent, and calls functions of the user's: `map`, `type`, `key`, a codec. If it threw
 * for one message, the source would lose the batch of that message, or come back to it for ever. So every reader of an
 * adapter is made by `guarded`, and a test sees to it that no adapter calls another one.
 */
import { storableText, toFailure } from '../failure.js'
import type { Incoming } from '../message.js'

/** What is kept of a message that could not be read. */
export interface Remains {
  readonly body: Uint8Array | string
  readonly source?: string | undefined
  readonly type?: string | undefined
  readonly redelivered?: boolean | undefined
}

/** Names and values together. Brokers allow far less; an event in structured mode may bring any number. */
const MAX_HEADER_CHARACTERS = 1_048_576

/** A reader that never throws: what `read` throws at becomes a message without an id, which the box keeps in quarantine. */
export function guarded<Given extends readonly unknown[]>(
  remains: (...given: Given) => Remains,
  read: (...given: Given) => Incoming,
): (...given: Given) => Incoming {
  return (...given) => {
    try {
      const message = read(...given)
      const size = sizeOf(message.headers)
      if (size <= MAX_HEADER_CHARACTERS) return message
      return kept(() => remains(...given), `the headers have ${size} characters, the limit is ${MAX_HEADER_CHARACTERS}`)
    } catch (error) {
      return kept(() => remains(...given), `the message could not be read: ${wordsOf(error)}`)
    }
  }
}

/** What a thrown thing says, whatever it is. It can be stored in a header. */
export function wordsOf(error: unknown): string {
  const { name, message } = toFailure(error)
  return problemText(name === 'NonError' ? message : `${name}: ${message}`)
}

export function problemText(problem: string): string {
  return storableText(problem.slice(0, 500))
}

function kept(remains: () => Remains, problem: string): Incoming {
  let rest: Remains
  try {
    const { body, source, type, redelivered } = remains()
    rest = { body, source, type, redelivered }
  } catch {
    rest = { body: '' }
  }
  return {
    id: undefined,
    type: typeof rest.type === 'string' ? rest.type : '',
    ...(typeof rest.source === 'string' && { source: rest.source }),
    ...(rest.redelivered === true && { redelivered: true }),
    headers: { 'oncebox-problem': problemText(problem) },
    body: rest.body,
  }
}

function sizeOf(headers: Incoming['headers'] = {}): number {
  let size = 0
  for (const name in headers) size += name.length + (headers[name]?.length ?? 0)
  return size
}
