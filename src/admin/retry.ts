/** Makes messages pending again: redrives what is dead, releases what is in quarantine, replays what was handled. */
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { createRelease, type Held } from '../inbox/release.js'
import type { State } from '../message.js'
import type { Row } from '../postgres/database.js'
import { REPLAY, RETRY, RETRY_DELIVERIES } from '../postgres/sql/bulk.js'
import type { Runtime } from '../runtime.js'
import { changeAll, checkBulkNames } from './bulk.js'
import type { Bulk, Filter } from './types.js'

export async function retry(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  filter: Filter | 'all',
  options: Bulk = {},
): Promise<number> {
  checkBulkNames('retry', options, ['limit', 'perSecond', 'dryRun', 'by', 'reason'])
  return changeAll(runtime, filter, options, {
    verb: 'retry',
    declared: consumers.map(({ name }) => name),
    takes: ['dead', 'quarantined', 'discarded', 'handled'],
    unlessTold: ['dead', 'quarantined', 'discarded'],
    async inbox(rows, states) {
      const held = rows.filter((row) => row['n'] !== undefined)
      const handled = rows.filter((row) => row['state'] === 'handled')
      const parked = rows.filter((row) => row['n'] === undefined && row['state'] !== 'handled')
      return (
        (await unpark(runtime, parked, states)) +
        (await replay(runtime, handled, consumers)) +
        (await createRelease(runtime, { consumers, by: 'person' })(held.map(toHeld))).stored
      )
    },
    outbox: (rows, states) => publishAgain(runtime, rows, states),
  })
}

async function unpark({ db }: Runtime, rows: readonly Row[], states: readonly State[]): Promise<number> {
  if (rows.length === 0) return 0
  return (await db.run(RETRY, { k: rows.map(keyOf), s: states })).length
}

async function replay({ db }: Runtime, rows: readonly Row[], local: readonly ConsumerDeclaration[]): Promise<number> {
  if (rows.length === 0) return 0
  const c = local.map(({ name, options }) => ({ n: name, o: options.order === 'key' }))
  return (await db.run(REPLAY, { k: rows.map(keyOf), c })).length
}

function toHeld(row: Row): Held {
  return { n: row['n'] as string, state: row['state'] as Held['state'] }
}

async function publishAgain({ db }: Runtime, rows: readonly Row[], states: readonly State[]): Promise<number> {
  const k = rows.filter((row) => row['state'] !== 'handled').map((row) => [row['n'], row['consumer']])
  return k.length === 0 ? 0 : (await db.run(RETRY_DELIVERIES, { k, s: states })).length
}

export function keyOf(row: Row): unknown[] {
  return [row['consumer'], row['source'], row['id']]
}
