/** Removes a sink that no process has any more, with what was still to be published to it. */
import { sleep } from '../backoff.js'
import { OnceboxError } from '../errors.js'
import { writeAudit } from '../inbox/audit.js'
import { GONE_MS } from '../figures.js'
import { orNone } from '../outbox/assign.js'
import { FINISH_SHARED } from '../postgres/sql/shards.js'
import { LOCK_SINKS, MARK_REMOVED, REMOVE_DELIVERIES, REMOVE_SINK } from '../postgres/sql/sinks.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import { checkSigned } from './signed.js'
import type { Signed } from './types.js'
import { isName, unknownSink } from './unknown.js'

const AT_ONCE = 1_000

export async function removeSink(runtime: Runtime, sink: string, options: Signed = {}): Promise<number> {
  const { by, reason } = checkSigned('removeSink', options)
  const { db } = runtime
  if (!isName(sink)) throw await unknownSink(runtime, sink)
  const [row] = await db.transaction(async (tx) => {
    await db.run(LOCK_SINKS, null, tx)
    return db.run(REMOVE_SINK, { sink, goneMs: GONE_MS }, tx)
  }, 'read committed')
  const { known, leased, last } = row!
  if (known !== 'true') throw await unknownSink(runtime, sink)
  const users = readJson(row!.users)
  if (users.length > 0 || leased === 'true') throw inUse(sink, users)
  // From here on nothing is added to it but by a process that attaches it again. A removal that dies halfway is finished by
  // the next one.
  const done = { count: 0 }
  try {
    await removeDeliveries(runtime, sink, last, done)
  } finally {
    await writeAudit(runtime, { action: 'remove-sink', detail: { sink, count: done.count, reason }, by })
  }
  return done.count
}

async function removeDeliveries({ db }: Runtime, sink: string, last: string, done: { count: number }): Promise<void> {
  for (;;) {
    const rows = await db.run(REMOVE_DELIVERIES, { sink, limit: AT_ONCE, last }).catch(orNone)
    done.count += rows.length
    if (rows.length > 0) {
      await db.run(FINISH_SHARED, rows.map(({ n }) => n)) // prettier-ignore
      continue
    }
    const [end] = await db.run(MARK_REMOVED, { sink, last }).catch(orNone)
    if (end?.state === 'back') throw inUse(sink, [])
    if (end?.state === 'done') return
    await sleep(50)
  }
}

function inUse(sink: string, users: readonly string[]): OnceboxError {
  const who = users.length > 0 ? `processes have it attached: ${users.join(', ')}` : 'a relay is publishing to it'
  const advice = `stop them, or deploy them without it; one that was killed counts for another ${GONE_MS / 1_000} s`
  return new OnceboxError('SINK_IN_USE', `sink ${sink} cannot be removed, ${who}; ${advice}`)
}
