/** What a start warns of: what works, and will not do what was meant. */
import { plainWords } from './failure.js'
import { replayProblem } from './inbox/origin.js'
import { consumersElsewhere, unknownConsumers } from './inbox/registry.js'
import type { Running } from './inbox/running.js'
import type { ConsumerWorker } from './inbox/worker.js'
import { encodingProblem } from './postgres/encoding.js'
import type { Runtime } from './runtime.js'

export interface Advice {
  /** A source is for these consumers. Others may declare them later, so they are looked at when it begins to matter. */
  meant(consumers: readonly string[]): void
  aboutNames(): Promise<void>
  /** Never rejects: a start that can do its work does not fail for what it would have warned of. */
  all(): Promise<void>
}

export function createAdvice(runtime: Runtime, workers: ReadonlyMap<string, ConsumerWorker>, running: Running): Advice {
  /** Until they are looked at. */
  const unseen = new Set<string>()

  const aboutPool = (): void => {
    const { capacity } = runtime.db.driver
    const needed = [...running.workers().values()].reduce((sum, { consumer }) => sum + consumer.options.concurrency, 0)
    if (capacity === undefined || capacity > needed) return
    const advice = 'raise the pool’s max, or lower concurrency'
    runtime.log.warn({ pool: capacity, concurrency: needed }, `the pool cannot carry all consumers at once; ${advice}`)
  }

  const aboutEncoding = async (): Promise<void> => {
    const problem = await encodingProblem(runtime.db)
    if (problem) runtime.warnOnce('encoding', {}, problem)
  }

  const aboutNames = async (): Promise<void> => {
    if (unseen.size === 0) return
    const names = [...unseen]
    const unknown = await unknownConsumers(runtime, names, [...workers.keys()])
    for (const name of names) unseen.delete(name)
    for (const { name, hint } of unknown) {
      const text = `from: no process has declared the consumer ${JSON.stringify(name)}, so what is meant for it is unrouted; ${hint}`
      runtime.warnOnce(`from ${name}`, { consumer: name }, text)
    }
  }

  /** Consumers that other processes alone have declared cannot be refused. */
  const aboutReplays = async (): Promise<void> => {
    const open = runtime.origins.filter(({ replayMs }) => replayMs !== undefined)
    if (open.length === 0) return
    for (const { name, retainMs } of await consumersElsewhere(runtime, [...workers.keys()])) {
      for (const origin of open) {
        const problem = replayProblem(origin, { name, retainMs, takes: () => true })
        if (problem) runtime.warnOnce(`replay ${origin.name} ${name}`, { consumer: name, source: origin.name }, problem)
      }
    }
  }

  return {
    meant: (consumers) => consumers.forEach((name) => unseen.add(name)),
    aboutNames,
    async all() {
      aboutPool()
      for (const look of [aboutEncoding, aboutNames, aboutReplays]) {
        await look().catch((error: unknown) =>
          runtime.log.debug({ error: plainWords(error) }, 'what a start warns of could not be looked for'),
        )
      }
    },
  }
}
