/** What a start of a box prepares and begins, and what its stop ends, each in this order. `lifecycle.ts` says when. */
import type { Arrivals } from './arrive.js'
import type { Assembly } from './assembly.js'
import { backoffMs, sleep } from './backoff.js'
import { checkClient } from './inbox/consumer.js'
import { register, releaseUnrouted } from './inbox/registry.js'
import type { ConsumerWorker } from './inbox/worker.js'
import { createLifecycle, ENDLESS, type Lifecycle, type Turn } from './lifecycle.js'
import { checkVersion } from './postgres/migrate.js'
import { checkServer } from './postgres/server.js'

/** How long a stop waits, when its time is up, for what it has aborted. */
const ABORT_MS = 2_000

export function createBoxLife(made: Assembly, arrivals: Arrivals): Lifecycle {
  return createLifecycle({
    prepare: (turn) => prepare(made, turn),
    begin: (turn) => begin(made, turn),
    end: (timeoutMs) => end(made, arrivals, timeoutMs),
  })
}

async function prepare(made: Assembly, turn: Turn): Promise<void> {
  await checkVersion(made.runtime.db)
  if (turn.goesOn()) await checkServer(made.runtime.db)
  if (turn.goesOn()) await announce(made, turn)
}

/** Tells the database which consumers and sinks are declared here, and takes what waited for such consumers. */
export async function announce(made: Assembly, turn: Turn = ENDLESS): Promise<void> {
  const { runtime, waker, relays, declared } = made
  // Again: a client may not have known when they were declared.
  for (const consumer of declared()) checkClient(consumer, runtime.db.driver)
  await register(runtime, declared())
  // All types, not only new ones: the process that registered them may have died before it got here.
  const types = declared().flatMap((consumer) => consumer.types)
  if ((await releaseUnrouted(runtime, declared(), types, turn)) > 0) waker.wake()
  if (turn.goesOn()) await relays.register()
}

async function begin(made: Assembly, { goesOn }: Turn): Promise<void> {
  const { runtime, advice, waker, wakeUps, running, relays, metering, sources, janitor, presence } = made
  await advice.all()
  if (!goesOn()) return
  await waker.listen((error) => wakeUps.failed(error))
  if (!goesOn()) return waker.close()
  for (const worker of running.workers().values()) void worker.start()
  relays.start()
  metering.start()
  runtime.traces.detached(() => sources.startAll())
  janitor.start()
  // Others know which consumers run here before anybody is told that it has started.
  await presence.start()
}

async function end(made: Assembly, arrivals: Arrivals, timeoutMs: number): Promise<void> {
  const { workers, idle, metering, sources, relays, janitor, presence, waker } = made
  idle.close()
  metering.stop()
  const deadline = performance.now() + timeoutMs
  const left = (): number => Math.max(0, deadline - performance.now())
  // What is aborted still has to roll back, but a database that does not answer must not keep us.
  const arrived = sleep(left() + ABORT_MS, arrivals.settled())
  const others = Promise.all([sources.stopAll(left() + ABORT_MS), arrived])
  const stopped = [...workers.values()].map((worker) => worker.stop(left(), others))
  await sleep(left() + ABORT_MS, Promise.all([others, ...stopped]))
  const rest = Math.max(left(), ABORT_MS)
  await Promise.all([relays.stop(rest), janitor.stop(rest), presence.stop(rest), metering.end(rest)])
  await sleep(ABORT_MS, waker.close())
}

/** A consumer declared after `start()` begins as soon as the database has heard of it. */
export async function join(made: Assembly, life: Lifecycle, worker: ConsumerWorker): Promise<void> {
  for (let attempt = 0; life.state === 'started'; attempt++) {
    try {
      await announce(made)
      await made.presence.seen()
      if (life.state === 'started' && made.running.has(worker.consumer.name)) void worker.start()
      return
    } catch (error) {
      worker.trouble.failed(error)
      await sleep(backoffMs(attempt, 100, 5_000))
    }
  }
}
