/** Unheard: gives back what a claim holds whose answer was lost. It may stand all the same, and its worker lives. */
import { isPassing, isSilence } from '../postgres/errors.js'
import { CLAIMED } from '../postgres/sql/claim.js'
import { RELEASE_LANES } from '../postgres/sql/lanes.js'
import { FAIL } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { released } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { isAway } from './transaction.js'

/** A claim that was asked for at `asked`, and of which nothing was heard. */
export interface Unheard {
  readonly runtime: Runtime
  readonly consumer: ConsumerDeclaration
  readonly token: string
  readonly asked: number
}

/** The clocks of two servers, before and after a failover, may differ by so much. */
const CLOCKS_MS = 1_000

/**
 * To be repeated until it resolves. What is refused for good is left to its lease, and so is what does not come right until
 * then. Silence counts as that: the server may be there, and the question too long for it, while nothing else is claimed.
 */
export async function giveBackUnheard(unheard: Unheard): Promise<void> {
  try {
    await giveBack(unheard)
  } catch (error) {
    const isOver = performance.now() - unheard.asked > unheard.consumer.options.leaseMs
    if (isOver ? isAway(error) && !isSilence(error) : isPassing(error)) throw error
  }
}

async function giveBack({ runtime: { db }, consumer: { name, options }, token, asked }: Unheard): Promise<void> {
  const who = { consumer: name, token }
  const { leaseMs } = options
  // The question may wait for a connection, and is looked at only then: right after an outage that takes seconds.
  const sinceMs = performance.now() - asked + Math.max(leaseMs, CLOCKS_MS)
  const rows = await db.run(CLAIMED, { ...who, leaseMs, sinceMs, skewMs: CLOCKS_MS })
  // What runs on arrival waits for its source, which still has it.
  const failures = rows.flatMap(({ source, id, reason }) =>
    source === null ? [] : [{ ...released(source, id), parked: reason === 'arrival' ? 'failed' : undefined }],
  )
  const release = rows.flatMap(({ lane }) => (lane === null ? [] : [[lane, 0] as const]))
  if (failures.length > 0) await db.run(FAIL, { ...who, failures })
  if (release.length > 0) await db.run(RELEASE_LANES, { ...who, release, undo: [] })
}
