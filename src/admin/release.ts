/**
 * Releases messages from quarantine: they come through the front door again. Their age was judged by the person who
 * releases them; what they are, and whether they are known already, is judged as for any other message.
 *
 * A message is received first and leaves the quarantine after that: a crash in between leaves it in both places, and
 * its next release finds a duplicate.
 */
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { prepare, type Prepared } from '../inbox/prepare.js'
import { NO_CONSUMER } from '../inbox/quarantine.js'
import { receive } from '../inbox/receive.js'
import type { Incoming, Outcome } from '../message.js'
import type { Row } from '../postgres/database.js'
import { READ_QUARANTINED } from '../postgres/sql/bulk.js'
import { REMOVE_QUARANTINED } from '../postgres/sql/registry.js'
import type { Runtime } from '../runtime.js'

/** Bodies may be large, those that were too large among them. */
const READ_AT_ONCE = 50

/** Refused after they were prepared: their fingerprint is the one that their source chose. */
const PREPARED: readonly unknown[] = ['conflict', 'too-old', 'unrouted']

/** Answers how many were stored for a consumer. */
export async function release(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  rows: readonly Row[],
): Promise<number> {
  let count = 0
  for (let at = 0; at < rows.length; at += READ_AT_ONCE) {
    const numbers = rows.slice(at, at + READ_AT_ONCE).map((row) => row['n'])
    const held = await runtime.db.run(READ_QUARANTINED, numbers)
    for (const consumer of new Set(held.map((row) => row['consumer'] as string))) {
      const own = held.filter((row) => row['consumer'] === consumer)
      count += await releaseFor(runtime, consumers, consumer, own)
    }
  }
  return count
}

async function releaseFor(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  consumer: string,
  rows: readonly Row[],
): Promise<number> {
  const only = consumer === NO_CONSUMER ? undefined : [consumer]
  const own = only ? consumers.filter(({ name }) => name === consumer) : consumers
  const accepted: { readonly n: unknown; readonly message: Prepared }[] = []
  for (const row of rows) {
    const message = await prepare(runtime, toIncoming(row), { consumers: own, anySize: true })
    if ('reason' in message) continue
    accepted.push({
      n: row['n'],
      message: PREPARED.includes(row['reason']) ? { ...message, hash: hashOf(row) } : message,
    })
  }
  if (accepted.length === 0) return 0
  const messages = accepted.map(({ message }) => message)
  const outcomes = await receive(runtime, messages, { consumers, only, unrouted: 'skip', force: true })
  const through = accepted.filter((_, at) => isThrough(outcomes[at]!, only !== undefined))
  if (through.length > 0) {
    await runtime.db.run(
      REMOVE_QUARANTINED,
      through.map(({ n }) => n),
    )
  }
  return outcomes.filter(({ consumers: some }) => some.some(({ status }) => status === 'stored')).length
}

/**
 * Is the message safe elsewhere? For one consumer, if it is stored for it, or was with the same body. For all, if any
 * wants it: a consumer that refuses it has put it in its own quarantine.
 */
function isThrough({ consumers }: Outcome, one: boolean): boolean {
  if (consumers.length === 0 || consumers.some(({ status }) => status === 'busy')) return false
  return !one || consumers.every(({ status }) => status !== 'quarantined')
}

function toIncoming(row: Row): Incoming {
  const envelope = (row['envelope'] ? JSON.parse(row['envelope'] as string) : {}) as Partial<Incoming>
  return {
    ...envelope,
    id: (row['id'] ?? undefined) as string | undefined,
    source: row['source'] as string,
    type: row['type'] as string,
    ...(row['key'] !== null && { key: row['key'] as string }),
    data: undefined,
    body: typeof row['body'] === 'string' ? row['body'] : Buffer.from((row['bytes'] as string | null) ?? '', 'base64'),
  }
}

function hashOf(row: Row): string | null {
  return (row['hash'] as string) || null
}
