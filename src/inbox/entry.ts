/** Turns rows of the journal and of the quarantine into entries: what people and archives get to see. */
import type { Entry } from '../hooks.js'
import { toMessage, type Failure, type Message, type MessageMap } from '../message.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import { readData } from '../body.js'
import { fromResult, parseFailure } from './outcome.js'

/** The data is as it was stored: no schema has been run over it. */
export function toEntry<M extends MessageMap>(row: FoundRow): Entry<M> {
  const { state, consumer, result, error, reason, detail, handled } = row
  const failed = Number(row.attempts ?? 0)
  const { data, bytes } = decode(row)
  return {
    // What is to run again shows the attempt to come; what is not, its last one.
    message: messageOf(row, data, state === 'pending' || state === 'processing' ? failed : Math.max(0, failed - 1)),
    consumer,
    state,
    ...(handled != null && { handledAt: new Date(Number(handled)) }),
    ...(result != null && { result: fromResult(result) }),
    ...(error != null && { error: parseFailure(error) satisfies Failure }),
    ...(reason != null && { reason }),
    ...(detail != null && { detail }),
    ...(bytes && { bytes }),
  }
}

type Envelope = Pick<
  FoundRow,
  'id' | 'source' | 'origin_id' | 'origin_source' | 'type' | 'key' | 'envelope' | 'received' | 'attempts'
>

/** The message of a row, under the id and the source that its producer gave it. */
export function messageOf(row: Envelope, data: unknown, attempts: number = Number(row.attempts ?? 0)): Message {
  const { type, envelope, received } = row
  const own = { id: row.origin_id ?? row.id ?? '', source: row.origin_source ?? row.source, key: row.key ?? undefined }
  return toMessage({ ...own, type, envelope, receivedMs: Number(received), attempts }, data)
}

function decode({ body, bytes }: FoundRow): { data: unknown; bytes?: Uint8Array } {
  if (bytes != null) return { data: undefined, bytes: Buffer.from(bytes, 'base64') }
  if (body === null) return { data: undefined }
  return readData(body) ?? { data: undefined, bytes: Buffer.from(body) }
}
