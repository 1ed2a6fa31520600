/** Keeps what cannot be handled: the reason, and the message as it came. */
import { aboutMessage } from '../about.js'
import { hash } from 'node:crypto'
import { storableText } from '../failure.js'
import type { Entry } from '../hooks.js'
import { toMessage, type Message, type MessageMap, type QuarantineReason } from '../message.js'
import {
  QUARANTINE, QUARANTINE_APART, QUARANTINE_LONGER, QUARANTINE_OF_NOBODY, type AddedRow, type QuarantineAnswer, type QuarantineLimit,
  type QuarantineRow,
} from '../postgres/sql/quarantine.js' // prettier-ignore
import { CONFIRM } from '../postgres/sql/receive.js'
import { tell, type Runtime } from '../runtime.js'
import { hashOf, readData } from '../body.js'
import { inParts } from '../carried.js'
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
  for (const part of [...inParts(ofNobody, lengthOf), ...inParts(others, lengthOf)]) {
    const statement = part[0]!.consumer === NO_CONSUMER ? QUARANTINE_OF_NOBODY : QUARANTINE
    let there = await insert(runtime, statement, part.map(toKept), tx)
    // What was there already may be of another type, and is not this message then.
    if (there.length > 0) there = await insert(runtime, QUARANTINE_APART, there.map(toldApart), tx)
    if (there.length > 0) await runtime.db.run(QUARANTINE_LONGER, there.map(({ row }) => row), tx) // prettier-ignore
    // It is to be as safe as what was added.
    if (there.length === part.length) await runtime.db.run(CONFIRM, 'quarantined', tx)
  }
}

interface Kept extends Quarantined {
  readonly row: QuarantineRow
}

/** Inserts them, and tells of those that are new. Answers those that were there. */
async function insert(
  runtime: Runtime,
  statement: typeof QUARANTINE,
  list: readonly Kept[],
  tx: unknown,
): Promise<readonly Kept[]> {
  const messages = list.map(({ row }) => row)
  const answer = await runtime.db.run(statement, { messages, limit: limitOf(list) }, tx)
  judgeRoom(runtime, list, answer)
  const added = new Set(answer.flatMap((row) => (row.used === null ? keyOf(row) : [])))
  for (const one of list) if (added.has(keyOf(one.row))) tellNew(runtime, one)
  return list.filter(({ row }) => !added.has(keyOf(row)))
}

function toKept(one: Quarantined): Kept {
  const { consumer, refused, meant } = one
  const row = {
    consumer,
    meant,
    ...{ source: refused.source, id: refused.id, type: refused.type, key: refused.key, reason: refused.reason },
    // What parsers, schemas and identities say may quote the message.
    detail: storableText(refused.detail),
    body: refused.body,
    bytes: refused.bytes && Buffer.from(refused.bytes).toString('base64'),
    ...{ hash: refused.hash, envelope: refused.envelope },
    fingerprint: refused.compared === null ? '' : refused.compared,
    account: refused.origin?.account,
    keepMs: keepMs(refused),
  }
  return { ...one, row }
}

/** With the type in its key. */
function toldApart(one: Kept): Kept {
  const { hash: untyped, type } = one.row
  return { ...one, row: { ...one.row, untyped, hash: hash('sha256', `${untyped} ${type}`, 'hex') } }
}

function keyOf({
  consumer,
  source,
  id,
  reason,
  type,
  hash,
}: Omit<AddedRow, 'used' | 'id'> & { id: string | undefined }): string {
  return JSON.stringify([consumer, source, id ?? '', reason, type, hash])
}

/** The limit that they are held to: all of them came from one source, or are held to none. */
function limitOf(list: readonly Quarantined[]): QuarantineLimit | undefined {
  const { origin } = list[0]!.refused
  if (!origin?.quota) return undefined
  const size = list.reduce((sum, { refused }) => sum + sizeOf(refused), 0)
  return { account: origin.name, rows: origin.quota.maxRows, bytes: origin.quota.maxBytes, size }
}

function judgeRoom(runtime: Runtime, list: readonly Quarantined[], answer: readonly QuarantineAnswer[]): void {
  const row = answer.find(({ used }) => used !== null)
  if (row === undefined) return
  const origin = list[0]!.refused.origin!
  const used = Number(row.used)
  // Of several, those that fit will be taken one by one.
  if (used <= 1 || list.length === 1) noteUse(runtime, origin, used)
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
  const compared = hashOf(prepared)
  return { ...prepared, hash: compared ?? '', compared, reason, detail, bytes: undefined }
}

function tellNew(runtime: Runtime, { consumer, refused }: Quarantined): void {
  const message = messageOf(refused)
  const entry: Entry<MessageMap> = {
    message,
    consumer,
    state: 'quarantined',
    reason: refused.reason,
    detail: refused.detail,
    ...(refused.bytes && { bytes: refused.bytes }),
  }
  runtime.metrics.consumer(consumer).quarantined(refused.reason)
  const about = { ...aboutMessage(message), id: refused.id, consumer, reason: refused.reason, ...whyOf(refused) }
  runtime.log.warn(about, 'message quarantined')
  tell(runtime, 'quarantined', entry)
}

/** What the box itself says of the envelope, or the receiver's own code of itself. */
const OURS: readonly QuarantineReason[] = ['conflict', 'too-old', 'too-large', 'unrouted', 'unmapped', 'not-allowed']

/** For logs, so that a person knows what to mend. Schemas, codecs and identities may quote what they were given: not their words. */
function whyOf({ reason, detail, why, fields, origin }: Refused): object {
  return {
    ...(origin && { via: origin.name }),
    ...(fields && fields.length > 0 && { fields }),
    ...(why !== undefined && { why }),
    ...(OURS.includes(reason) && { why: detail }),
  }
}

function messageOf(refused: Refused): Message {
  const data = refused.body === undefined ? undefined : readData(refused.body)?.data
  const row = { ...refused, id: refused.id ?? '', attempts: 0, receivedMs: Date.now() }
  return toMessage(row, data)
}

function lengthOf({ refused: { body, bytes } }: Quarantined): number {
  return (body?.length ?? 0) + (bytes?.byteLength ?? 0)
}
