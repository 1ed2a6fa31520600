/** Deletes now what retention would delete by and by. */
import { writeAudit } from '../inbox/audit.js'
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { createMemory, prune as retain, type Pruned } from '../inbox/retain.js'
import { callback, optional, resolve } from '../options.js'
import type { Runtime } from '../runtime.js'
import { BULK } from './bulk.js'
import { SIGNED } from './signed.js'
import type { Pruning } from './types.js'

const OPTIONS = { ...SIGNED, signal: BULK.signal, held: optional(callback<(consumer: string) => void>()) }

export async function prune(
  runtime: Runtime,
  consumers: readonly ConsumerDeclaration[],
  options: Pruning = {},
): Promise<number> {
  const { by, reason, signal, held = warnOf(runtime) } = resolve('prune', options, OPTIONS)
  const turn = { goesOn: () => !signal?.aborted }
  const done: Pruned = { count: 0, held: [] }
  try {
    await retain(runtime, consumers, createMemory(runtime, turn), done)
  } finally {
    await writeAudit(runtime, { action: 'prune', detail: { count: done.count, reason }, by })
  }
  for (const consumer of done.held) held(consumer)
  // A janitor comes again and tells of it; whoever calls this takes an answer for all that there was to delete.
  if (done.refused) throw done.refused.error
  return done.count
}

function warnOf({ log }: Runtime): (consumer: string) => void {
  return (consumer) =>
    log.warn({ consumer }, 'prune has left something: a transaction holds the watermark of the consumer')
}
