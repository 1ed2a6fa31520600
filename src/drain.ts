/** Drain: runs what is due, of all consumers and the outbox, until nothing is, or until the box is stopped. */
import type { ConsumerWorker } from './inbox/worker.js'
import type { Lifecycle } from './lifecycle.js'
import type { Relays } from './outbox/relays.js'
import type { Runtime } from './runtime.js'

interface Drained {
  readonly runtime: Runtime
  readonly life: Lifecycle
  readonly workers: ReadonlyMap<string, ConsumerWorker>
  readonly relays: Relays
}

export async function drain(drained: Drained): Promise<void> {
  const { drains } = drained.runtime
  const own = { since: performance.now() }
  drains.add(own)
  try {
    await drainAll(drained)
  } finally {
    drains.delete(own)
  }
}

async function drainAll({ life, workers, relays }: Drained): Promise<void> {
  const rounds = new Map<ConsumerWorker, () => Promise<boolean>>()
  const { goesOn } = await life.turn()
  for (let worked = true; worked && goesOn();) {
    worked = false
    for (const worker of workers.values()) {
      if (!goesOn()) return
      const round = rounds.get(worker) ?? worker.drain()
      rounds.set(worker, round)
      if (await round()) worked = true
    }
    if (goesOn() && (await relays.drain({ goesOn }))) worked = true
  }
}
