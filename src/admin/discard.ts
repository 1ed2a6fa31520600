/** Gives messages up. They stay until retention takes them, and can be retried until then. */
import { OnceboxError } from '../errors.js'
import type { State } from '../message.js'
import type { Row } from '../postgres/database.js'
import { DISCARD, DISCARD_DELIVERIES, DISCARD_QUARANTINED } from '../postgres/sql/bulk.js'
import type { Runtime } from '../runtime.js'
import { changeAll, checkBulkNames } from './bulk.js'
import { keyOf } from './retry.js'
import { checkSigned } from './signed.js'
import type { Bulk, Filter } from './types.js'

export async function discard(
  runtime: Runtime,
  declared: readonly string[],
  filter: Filter | 'all',
  options: Bulk & { reason: string },
): Promise<number> {
  const reason = checkReason(options)
  return changeAll(
    runtime,
    filter,
    { ...options, reason },
    {
      verb: 'discard',
      declared,
      takes: ['dead', 'quarantined', 'pending'],
      unlessTold: ['dead', 'quarantined'],
      async inbox(rows, states) {
        const held = rows.filter((row) => row['n'] !== undefined)
        const stored = rows.filter((row) => row['n'] === undefined)
        return (await discardStored(runtime, stored, states)) + (await discardHeld(runtime, held, reason))
      },
      async outbox(rows, states) {
        const k = rows.map((row) => [row['n'], row['consumer']])
        return (await runtime.db.run(DISCARD_DELIVERIES, { k, s: states })).length
      },
    },
  )
}

function checkReason(options: Bulk & { reason: string }): string {
  checkBulkNames('discard', options ?? {}, ['reason', 'by', 'limit', 'perSecond', 'dryRun'])
  const reason: unknown = options?.reason
  if (typeof reason !== 'string' || reason.trim() === '') {
    throw new OnceboxError('OPTION_INVALID', `discard needs a reason: discard(filter, { reason: 'sent by mistake' })`)
  }
  return checkSigned('discard', options).reason!
}

async function discardStored({ db }: Runtime, rows: readonly Row[], states: readonly State[]): Promise<number> {
  if (rows.length === 0) return 0
  return (await db.run(DISCARD, { k: rows.map(keyOf), s: states })).length
}

async function discardHeld({ db }: Runtime, rows: readonly Row[], reason: string): Promise<number> {
  if (rows.length === 0) return 0
  return (await db.run(DISCARD_QUARANTINED, { n: rows.map((row) => row['n']), r: reason })).length
}
