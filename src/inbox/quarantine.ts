/** Keeps what cannot be handled: the reason, and the message as it came. */
import { storableText } from '../failure.js'
import { MAX_BATCH_BYTES } from '../figures.js'
import type { Entry } from '../hooks.js'
import { toMessage, type Message, type MessageMap, type QuarantineReason } from '../message.js'
import type { Row } from '../postgres/database.js'
import { CONFIRM, QUARANTINE, QUARANTINE_OF_NOBODY } from '../postgres/sql/receive.js'
import { tell, type Runtime } from '../runtime.js'
import { readData } from './body.js'
import type { Prepared, Refused } from './prepare.js'
import { noteUse, QuarantineFull } from './quota.js'

/** Consumer of messages that no consumer asked for, or that were refused before anybody was asked. */
export const NO_CONSUMER = ''

export interface Quarantined {
  readonly consumer: string
  readonly refused: Refused
  /** Of no consumer: those that its source is for; undefined for all. A release goes to nobody else. */
  readonly meant?: readonly string[] | undefined
}

export async function quarantine(runtime: Runtime, list: readonly Quarantined[], tx?: unknown): Promise<void> {
  const ofNobody = list.filter(({ consumer }) => consumer === NO_CONSUMER)
  const others = list.filter(({ consumer }) => consumer !== NO_CONSUMER)
  for (const part of [...parts(ofNobody), ...parts(others)]) {
    const rows = part.map(({ consumer, refused, meant }) => ({
      c: consumer,
      s: refused.source,
      i: refused.id,
      t: refused.type,
      k: refused.key,
      r: refused.reason,
      // What parsers, schemas and identities say may quote the message.
      d: storableText(refused.detail),
      b: refused.body,
      y: refused.bytes && Buffer.from(refused.bytes).toString('base64'),
      h: refused.hash,
      e: refused.envelope,
      v: refused.origin?.account,
      keep: keepMs(refused),
      m: meant,
    }))
    const statement = part[0]!.consumer === NO_CONSUMER ? QUARANTINE_OF_NOBODY : QUARANTINE
    const answer = await runtime.db.run(statement, { m: rows, limit: limitOf(part) }, tx)
    const added = answer.filter(({ used }) => used === null)
    judgeRoom(runtime, part, answer)
    // What was there already is to be as safe as what was added.
    if (added.length === 0 && tx === undefined) await runtime.db.run(CONFIRM, 'quarantined')
    if (added.length > 0) tellNew(runtime, part, added)
  }
}

/** The limit that they are held to: all of them came from one source, or are held to none. */
function limitOf(part: readonly Quarantined[]): object | undefined {
  const { origin } = part[0]!.refused
  if (!origin?.quota) return undefined
  const size = part.reduce((sum, { refused }) => sum + sizeOf(refused), 0)
  return { v: origin.name, rows: origin.quota.maxRows, bytes: origin.quota.maxBytes, size }
}

function judgeRoom(runtime: Runtime, part: readonly Quarantined[], answer: readonly Row[]): void {
  const row = answer.find(({ used }) => used !== null)
  if (row === undefined) return
  const origin = part[0]!.refused.origin!
  const used = Number(row['used'])
  // Of several, those that fit will be taken one by one.
  if (used <= 1 || part.length === 1) noteUse(runtime, origin, used)
  if (used > 1) throw new QuarantineFull(origin)
}

function keepMs({ origin, reason }: Refused): number | undefined {
  return reason === 'not-allowed' ? origin?.quota?.notAllowedMs : origin?.quota?.retainMs
}

function sizeOf({ body, bytes, envelope }: Refused): number {
  return Buffer.byteLength(body ?? '') + (bytes?.byteLength ?? 0) + Buffer.byteLength(envelope ?? '')
}

/** A prepared message that turned out to be unacceptable after all. */
export function refuse(prepared: Prepared, reason: QuarantineReason, detail: string): Refused {
  return { ...prepared, hash: prepared.hash ?? '', reason, detail, bytes: undefined }
}

function tellNew(
  runtime: Runtime,
  list: readonly Quarantined[],
  added: readonly Readonly<Record<string, unknown>>[],
): void {
  const isNew = new Set(added.map((row) => JSON.stringify([row['consumer'], row['source'], row['id'], row['reason']])))
  for (const { consumer, refused } of list) {
    if (!isNew.has(JSON.stringify([consumer, refused.source, refused.id ?? '', refused.reason]))) continue
    const entry: Entry<MessageMap> = {
      message: messageOf(refused),
      consumer,
      state: 'quarantined',
      reason: refused.reason,
      detail: refused.detail,
      ...(refused.bytes && { bytes: refused.bytes }),
    }
    // Without the detail: schemas, codecs and identities say it, and may quote what they were given.
    runtime.log.warn({ id: refused.id, type: refused.type, consumer, reason: refused.reason }, 'message quarantined')
    tell(runtime, 'quarantined', entry)
  }
}

function messageOf(refused: Refused): Message {
  const data = refused.body === undefined ? undefined : readData(refused.body)?.data
  const row = { ...refused, id: refused.id ?? '', attempts: 0, receivedMs: Date.now() }
  return toMessage(row, data)
}

function* parts(list: readonly Quarantined[]): Generator<Quarantined[]> {
  let part: Quarantined[] = []
  let bytes = 0
  for (const one of list) {
    const size = (one.refused.body?.length ?? 0) + (one.refused.bytes?.byteLength ?? 0)
    if (part.length > 0 && bytes + size > MAX_BATCH_BYTES) {
      yield part
      part = []
      bytes = 0
    }
    part.push(one)
    bytes += size
  }
  if (part.length > 0) yield part
}
