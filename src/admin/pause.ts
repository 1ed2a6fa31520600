/** Pauses and resumes a consumer, in all processes: claims look at the row that this writes. */
import { writeAudit } from '../inbox/audit.js'
import { SET_PAUSED } from '../postgres/sql/admin.js'
import type { Runtime } from '../runtime.js'
import { checkSigned } from './signed.js'
import type { Signed } from './types.js'
import { unknownConsumer } from './unknown.js'

export interface Registry {
  /** Names of the consumers that this process has declared. */
  readonly local: readonly string[]
  /** Writes them down for other processes. */
  announce(): Promise<unknown>
}

export function pause(runtime: Runtime, registry: Registry, consumer: string, options?: Signed): Promise<void> {
  return change({ runtime, registry, action: 'pause' }, consumer, options)
}

export function resume(runtime: Runtime, registry: Registry, consumer: string, options?: Signed): Promise<void> {
  return change({ runtime, registry, action: 'resume' }, consumer, options)
}

interface Wanted {
  readonly runtime: Runtime
  readonly registry: Registry
  readonly action: 'pause' | 'resume'
}

async function change(wanted: Wanted, consumer: string, options: Signed = {}): Promise<void> {
  const { registry, action } = wanted
  const signed = checkSigned(action, options)
  let known = await write(wanted, consumer, signed)
  if (!known && registry.local.includes(consumer)) {
    await registry.announce()
    known = await write(wanted, consumer, signed)
  }
  if (known) return
  throw await unknownConsumer(wanted.runtime, registry.local, consumer)
}

async function write({ runtime, action }: Wanted, consumer: unknown, { by, reason }: Signed): Promise<boolean> {
  if (typeof consumer !== 'string' || consumer.includes('\0') || !consumer.isWellFormed()) return false
  const { db } = runtime
  return db.transaction(async (tx) => {
    const rows = await db.run(SET_PAUSED, { name: consumer, paused: action === 'pause' }, tx)
    if (rows.length === 0) return false
    await writeAudit(runtime, { action, detail: { consumer, reason }, by }, tx)
    return true
  }, 'read committed')
}
