/** Assign: events that were sent before there was a sink find theirs. */
import { ASSIGN, FINISH_LEFT, RECONSIDER, REGISTER_SINKS } from '../postgres/sql/outbox.js'
import type { Runtime } from '../runtime.js'
import type { Attached } from './options.js'

const AT_ONCE = 1_000

/**
 * Tells senders in all processes which sinks there are: all of a box at once, or an event that waited for a sink could
 * be given to the first of them and go before the second is known.
 */
export async function registerSinks(runtime: Runtime, attached: readonly Attached[]): Promise<void> {
  if (attached.length === 0) return
  const sinks = attached.map(({ name, options: { types, keepMs } }) => ({ n: name, t: types, k: keepMs }))
  const rows = await runtime.db.run(REGISTER_SINKS, sinks)
  if (Number(rows[0]!['changed']) > 0) await runtime.db.run(RECONSIDER, null)
  await assign(runtime)
  await untilDone(runtime, FINISH_LEFT, 'finished')
}

/** Gives every event that has none its sinks. */
export async function assign(runtime: Runtime): Promise<void> {
  await untilDone(runtime, ASSIGN, 'looked')
}

async function untilDone({ db }: Runtime, statement: string, count: string): Promise<void> {
  for (;;) {
    const rows = await db.run(statement, [AT_ONCE])
    if (Number(rows[0]![count]) < AT_ONCE) return
  }
}
