/** Expose: rows as answers, with what the reader may see of them. Every message that leaves the server comes through here. */
import { parseFailure } from '../inbox/outcome.js'
import type { Failure } from '../message.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Access } from './access.js'
import type { FailureHead, FailureTree, Item, Payload, StateName } from './answers/index.js'
import { see, type Redact, type Seen } from './redact.js'

/** Who looks, and through which glasses. */
export interface Viewer {
  readonly access: Access
  readonly redact: Redact | undefined
  report(error: unknown): void
}

export function maySeeBodies({ access }: Viewer): boolean {
  return access.may.has('bodies')
}

/** What `redact` says counts for everybody: a key may be as secret as a body. */
export function seenBy(viewer: Viewer, row: FoundRow): Seen {
  return see(row, viewer.redact, (error) => viewer.report(error))
}

export function toItem(viewer: Viewer, row: FoundRow, seen: Seen = seenBy(viewer, row)): Item {
  const { consumer, type, state, reason, attempts, handled, n, detail, error } = row
  return {
    consumer,
    source: row.origin_source ?? row.source,
    id: row.origin_id ?? row.id ?? '',
    type,
    ...(seen.key !== undefined && { key: seen.key }),
    state: state satisfies StateName,
    ...(reason != null && { reason }),
    attempts: Number(attempts ?? 0),
    receivedAt: time(row.received),
    ...(handled != null && { handledAt: time(handled) }),
    ...(n !== undefined && reason != null && { n }),
    ...(error != null && { error: toHead(viewer, parseFailure(error), seen) }),
    ...(detail != null && maySeeBodies(viewer) && { detail: seen.mask(detail) }),
  }
}

const MOST_WORDS = 500

/** An error in one line. Its name and its code are the program's, its words may be the message's. */
export function toHead(
  viewer: Viewer,
  { name, code, message }: Pick<Failure, 'name' | 'message'> & { readonly code?: string | undefined },
  seen: Pick<Seen, 'mask'>,
): FailureHead {
  return {
    name: plainName(name),
    ...(code !== undefined && { code: plainName(code) }),
    ...(maySeeBodies(viewer) && { message: seen.mask(String(message)).slice(0, MOST_WORDS) }),
  }
}

export function toTree(viewer: Viewer, failure: Failure, seen: Pick<Seen, 'mask'>): FailureTree {
  const { name, code, message, stack, cause } = failure
  if (!maySeeBodies(viewer))
    return { ...toHead(viewer, failure, seen), ...(cause && { cause: toTree(viewer, cause, seen) }) }
  return {
    name: plainName(name),
    ...(code !== undefined && { code: plainName(code) }),
    message: seen.mask(message),
    ...(stack !== undefined && { stack: seen.mask(stack) }),
    ...(cause && { cause: toTree(viewer, cause, seen) }),
  }
}

/** A handler may put anything into a name: what is no name of a class or a code is not one. */
function plainName(name: unknown): string {
  return typeof name === 'string' && /^[\w.$:-]{1,100}$/.test(name) ? name : 'Error'
}

const WHOLE_CHARACTERS = 256 * 1_024
const PART_CHARACTERS = 64 * 1_024

export function toPayload(viewer: Viewer, seen: Seen, row: Pick<FoundRow, 'body' | 'bytes'>): Payload {
  const raw = row.bytes == null ? undefined : Buffer.from(row.bytes, 'base64')
  const bytes = raw?.length ?? Buffer.byteLength(row.body ?? '')
  if (!maySeeBodies(viewer)) return { bytes, whole: false, withheld: 'hidden' }
  if (seen.unredactable || (raw && viewer.redact)) return { bytes, whole: false, withheld: 'unredactable' }
  if (raw)
    return { bytes, base64: raw.subarray(0, PART_CHARACTERS).toString('base64'), whole: raw.length <= PART_CHARACTERS }
  return { bytes, ...part(seen.body), ...(seen.redacted && { redacted: true as const }) }
}

export function part(text: string | undefined): Pick<Payload, 'text' | 'whole'> {
  if (text === undefined) return { whole: true }
  if (text.length <= WHOLE_CHARACTERS) return { text, whole: true }
  return { text: text.slice(0, PART_CHARACTERS).toWellFormed(), whole: false }
}

/** ISO 8601, of milliseconds as a column has them. */
export function time(ms: string | number): string {
  return new Date(Number(ms)).toISOString()
}
