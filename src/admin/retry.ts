/** Makes messages pending again: redrives what is dead, releases what is in quarantine, replays what was handled. */
import { asReceiverSeesIt, type ConsumerDeclaration } from '../inbox/consumer.js'
import { createRelease, type Held } from '../inbox/release.js'
import type { State } from '../message.js'
import { REPLAY, RETRY, RETRY_DELIVERIES, type KeyRow } from '../postgres/sql/bulk.js'
import type { MessageKey } from '../postgres/sql/rules.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { changeAll, type Change } from './bulk.js'
import { onlyRunnable } from './runnable.js'
import type { Bulk, Filter } from './types.js'

export async function retry(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  filter: Filter | 'all',
  options: Bulk = {},
): Promise<number> {
  return changeAll(runtime, filter, options, retrying(runtime, consumers))
}

export interface Retrying {
  /** Is told of the messages that run again. */
  readonly note?: (keys: readonly MessageKey[]) => void
  /** The lanes that a release holds back, where the batches of one change are released one by one. */
  readonly heldBack?: Set<string>
}

export function retrying(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  { note = () => undefined, heldBack = new Set() }: Retrying = {},
): Change {
  const release = createRelease(runtime, { consumers, by: 'person', heldBack })
  const counted = (rows: readonly KeyRow[]): number => {
    note(rows.map(({ consumer, source, id }) => [consumer, source, id]))
    return rows.length
  }
  return {
    verb: 'retry',
    declared: consumers.map(({ name }) => name),
    takes: ['dead', 'quarantined', 'discarded', 'handled'],
    unlessTold: ['dead', 'quarantined', 'discarded'],
    narrow: (filter, states) => onlyRunnable(runtime, consumers, filter, states),
    async inbox(rows, states) {
      const handled = rows.filter(({ state }) => state === 'handled')
      const parked = rows.filter(({ n, state }) => n === undefined && state !== 'handled')
      return (
        counted(await unpark(runtime, parked, states)) +
        counted(await replay(runtime, handled, consumers)) +
        (await release(rows.flatMap(toHeld))).stored
      )
    },
    outbox: (rows, states) => publishAgain(runtime, rows, states),
  }
}

async function unpark(
  { db }: Runtime,
  rows: readonly FoundRow[],
  states: readonly State[],
): Promise<readonly KeyRow[]> {
  return rows.length === 0 ? [] : db.run(RETRY, { keys: rows.map(keyOf), states })
}

async function replay(
  { db }: Runtime,
  rows: readonly FoundRow[],
  local: readonly ConsumerDeclaration[],
): Promise<readonly KeyRow[]> {
  if (rows.length === 0) return []
  return db.run(REPLAY, { keys: rows.map(keyOf), consumers: local.map(asReceiverSeesIt) })
}

/** Of the rows, those that are in quarantine. */
function toHeld({ n, state }: FoundRow): Held[] {
  return n !== undefined && (state === 'quarantined' || state === 'discarded') ? [{ n, state }] : []
}

async function publishAgain({ db }: Runtime, rows: readonly FoundRow[], states: readonly State[]): Promise<number> {
  const keys = rows.filter(({ state }) => state !== 'handled').map(deliveryOf)
  return keys.length === 0 ? 0 : (await db.run(RETRY_DELIVERIES, { keys, states })).length
}

export function keyOf({ consumer, source, id }: FoundRow): MessageKey {
  return [consumer, source, id]
}

/** The delivery of an event to a sink. */
export function deliveryOf({ n, consumer }: FoundRow): [n: string, sink: string] {
  return [n!, consumer]
}
