/** Gives messages up. They stay until retention takes them, and can be retried until then. */
import type { State } from '../message.js'
import { invalid, resolve } from '../options.js'
import { DISCARD, DISCARD_DELIVERIES, DISCARD_QUARANTINED } from '../postgres/sql/bulk.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { BULK, changeAll, type Change } from './bulk.js'
import { deliveryOf, keyOf } from './retry.js'
import type { Bulk, Filter } from './types.js'

export async function discard(
  runtime: Runtime,
  declared: readonly string[],
  filter: Filter | 'all',
  options: Bulk & { reason: string },
): Promise<number> {
  const reason = checkReason(options)
  return changeAll(runtime, filter, { ...options, reason }, discarding(runtime, declared, reason))
}

export function discarding(runtime: Runtime, declared: readonly string[], reason: string): Change {
  return {
    verb: 'discard',
    declared,
    takes: ['dead', 'quarantined', 'pending'],
    unlessTold: ['dead', 'quarantined'],
    async inbox(rows, states) {
      const held = rows.flatMap(({ n }) => n ?? [])
      const stored = rows.filter(({ n }) => n === undefined)
      return (await discardStored(runtime, stored, states)) + (await discardHeld(runtime, held, reason))
    },
    async outbox(rows, states) {
      return (await runtime.db.run(DISCARD_DELIVERIES, { keys: rows.map(deliveryOf), states })).length
    },
  }
}

/** A reason is asked for: people who look at the message later have nothing else to go by. */
function checkReason(options: Bulk & { reason: string }): string {
  const { reason } = resolve<Bulk, typeof BULK>('discard', options ?? {}, BULK)
  if (reason?.trim()) return reason
  throw invalid(`discard needs a reason: discard(filter, { reason: 'sent by mistake' })`)
}

async function discardStored({ db }: Runtime, rows: readonly FoundRow[], states: readonly State[]): Promise<number> {
  if (rows.length === 0) return 0
  return (await db.run(DISCARD, { keys: rows.map(keyOf), states })).length
}

async function discardHeld({ db }: Runtime, rows: readonly string[], reason: string): Promise<number> {
  if (rows.length === 0) return 0
  return (await db.run(DISCARD_QUARANTINED, { rows, reason })).length
}
