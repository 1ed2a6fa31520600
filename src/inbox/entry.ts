/** Turns rows of the journal and of the quarantine into entries: what people and archives get to see. */
import type { Entry } from '../hooks.js'
import { toMessage, type Failure, type MessageMap, type QuarantineReason, type State } from '../message.js'
import type { Row } from '../postgres/database.js'
import { readData } from './body.js'
import { fromResult, parseFailure } from './outcome.js'

/** The data is as it was stored: no schema has been run over it. */
export function toEntry<M extends MessageMap>(row: Row): Entry<M> {
  const state = row['state'] as State
  const failed = Number(row['attempts'] ?? 0)
  const envelope = {
    id: (row['origin_id'] ?? row['id'] ?? '') as string,
    source: (row['origin_source'] ?? row['source']) as string,
    type: row['type'] as string,
    key: (row['key'] ?? undefined) as string | undefined,
    envelope: (row['envelope'] ?? null) as string | null,
    receivedMs: Number(row['received']),
    // What is to run again shows the attempt to come; what is not, its last one.
    attempts: state === 'pending' || state === 'processing' ? failed : Math.max(0, failed - 1),
  }
  const { data, bytes } = decode(row)
  return {
    message: toMessage(envelope, data),
    consumer: row['consumer'] as string,
    state,
    ...(typeof row['handled'] === 'string' && { handledAt: new Date(Number(row['handled'])) }),
    ...(typeof row['result'] === 'string' && { result: fromResult(row['result']) }),
    ...(typeof row['error'] === 'string' && { error: parseFailure(row['error']) satisfies Failure }),
    ...(typeof row['reason'] === 'string' && { reason: row['reason'] as QuarantineReason }),
    ...(typeof row['detail'] === 'string' && { detail: row['detail'] }),
    ...(bytes && { bytes }),
  }
}

function decode(row: Row): { data: unknown; bytes?: Uint8Array } {
  if (typeof row['bytes'] === 'string') return { data: undefined, bytes: Buffer.from(row['bytes'], 'base64') }
  if (typeof row['body'] !== 'string') return { data: undefined }
  return readData(row['body']) ?? { data: undefined, bytes: Buffer.from(row['body']) }
}
