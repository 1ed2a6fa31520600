/**
 * Redact: what may be shown of a message, judged here before anything leaves the server.
 *
 * The user's `redact` gets the message, and answers what may be seen of it. What it takes out of the data or the headers is taken
 * out of error messages, stacks and results too, for they tend to quote what was sent. If it fails, or has nothing that it
 * could look at, nothing is shown.
 */
import { messageOf } from '../inbox/entry.js'
import type { Message } from '../message.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import { isPromise } from '../promises.js'
import { leavesOf, parseExact, writeExact, type ExactNode } from './exact.js'
import { createMask, MASK } from './mask.js'

/** A message, and what its handler returned. */
export type Redactable = Message & { readonly result?: unknown }

/** Answers the message without what must not be seen; nothing, if none of it may be. */
export type Redact = (message: Redactable) => Partial<Redactable> | null | undefined

/** What a row says, as far as it may be said. */
export interface Seen {
  readonly key: string | undefined
  readonly subject: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** JSON; undefined if there is none to show. */
  readonly body: string | undefined
  readonly result: string | undefined
  readonly redacted: boolean
  /** It cannot be shown without what is secret. */
  readonly unredactable: boolean
  /** Takes the same values out of other words about the message. */
  mask(text: string): string
}

type Stored = Pick<
  FoundRow,
  | 'id'
  | 'source'
  | 'origin_id'
  | 'origin_source'
  | 'type'
  | 'key'
  | 'body'
  | 'bytes'
  | 'envelope'
  | 'result'
  | 'received'
  | 'attempts'
>

/** A larger one is not parsed to be looked through. */
const MOST_CHARACTERS = 8 * 1_024 * 1_024

export function see(row: Stored, redact: Redact | undefined, report: (error: unknown) => void): Seen {
  const message = messageOf(row, undefined)
  if (!redact) {
    const { key, subject, headers } = message
    const body = row.body ?? undefined
    return { key, subject, headers, body, result: row.result ?? undefined, ...PLAIN }
  }
  try {
    return redacted(row, redact)
  } catch (error) {
    report(error)
    return BLACK
  }
}

const PLAIN = { redacted: false, unredactable: false, mask: (text: string) => text }
const BLACK: Seen = {
  ...{ key: undefined, subject: undefined, headers: {}, body: undefined, result: undefined },
  ...{ redacted: true, unredactable: true, mask: () => MASK },
}

function redacted(row: Stored, redact: Redact): Seen {
  const node = read(row.body)
  const result = read(row.result)
  if (row.body != null && node === undefined) return BLACK
  const before = messageOf(row, node?.value)
  // Before `redact`, which may change in place what it is given.
  const asItWas = node && writeExact(node.value, node)
  const answer: unknown = redact({ ...before, headers: { ...before.headers }, ...(result && { result: result.value }) })
  if (answer === null || answer === undefined) return BLACK
  if (typeof answer !== 'object' || isPromise(answer)) {
    throw new TypeError('redact must answer a message at once, not a promise or something else')
  }
  const after = answer as Partial<Redactable>
  const headers = textsOf(after.headers)
  const written = after.data === undefined ? undefined : writeExact(after.data, node)
  const returned = after.result === undefined ? undefined : writeExact(after.result, result)
  const gone = new Set([
    ...missing(leaves(node), leaves(read(written))),
    ...missing(leaves(result), leaves(read(returned))),
    ...missing(Object.values(before.headers), Object.values(headers)),
    ...[before.key, before.subject].filter((value) => value !== after.key && value !== after.subject),
  ])
  return {
    key: typeof after.key === 'string' ? after.key : undefined,
    subject: typeof after.subject === 'string' ? after.subject : undefined,
    headers,
    body: written,
    result: returned,
    redacted: written !== asItWas,
    unredactable: false,
    // Which values are in bytes that nobody could decode is not known: words about them may quote any.
    mask: row.bytes == null ? createMask(gone) : () => MASK,
  }
}

function read(text: string | null | undefined): ExactNode | undefined {
  return text == null || text.length > MOST_CHARACTERS ? undefined : parseExact(text)
}

function textsOf(headers: unknown): Record<string, string> {
  const entries = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

function leaves(node: ExactNode | undefined): Iterable<string> {
  return node ? leavesOf(node) : []
}

/** What was there, and is not any more. */
function missing(before: Iterable<string>, after: Iterable<string>): Set<string> {
  const gone = new Set(before)
  for (const value of after) gone.delete(value)
  return gone
}
