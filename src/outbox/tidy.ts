/** Tidy: what processes that died have left undone in the outbox is finished by those that start. */
import { backoffMs, sleep } from '../backoff.js'
import { plainWords } from '../failure.js'
import type { OwnTurn } from '../lifecycle.js'
import type { Runtime } from '../runtime.js'
import { finishLeft, reclaim } from './assign.js'

/** Tried until it works: that the database is away is told by the relays. */
export async function tidy(runtime: Runtime, { goesOn, over }: OwnTurn): Promise<void> {
  for (let attempt = 0; goesOn(); attempt++) {
    try {
      await reclaim(runtime, () => !goesOn())
      return await finishLeft(runtime, () => !goesOn())
    } catch (error) {
      runtime.log.debug({ error: plainWords(error) }, 'published events could not be finished, and are tried again')
      await sleep(backoffMs(attempt, 500, 30_000), over)
    }
  }
}
