/** What a box is made of: each part made once, and none of it runs yet. `box-life.ts` sets it going. */
import { createAdvice, type Advice } from './advice.js'
import type { ConsumerDeclaration } from './inbox/consumer.js'
import { createIdleWatch, type IdleWatch } from './inbox/idle.js'
import { createPresence, type Presence } from './inbox/presence.js'
import { createJanitor, type Janitor } from './inbox/retain.js'
import { createRunning, type Running } from './inbox/running.js'
import type { ConsumerWorker } from './inbox/worker.js'
import { createMetering, type Metering } from './metering.js'
import { createRelays, type Relays } from './outbox/relays.js'
import { watch, type Runtime } from './runtime.js'
import { createSources, type Sources } from './worker/sources.js'
import type { Trouble } from './worker/trouble.js'
import { createWaker, type Waker } from './worker/wake.js'

export interface Assembly {
  readonly runtime: Runtime
  readonly waker: Waker
  /** Tells of failures to wake, or to be woken. */
  readonly wakeUps: Trouble
  /** The consumers that are declared here, by name, and those of them that run here. */
  readonly workers: Map<string, ConsumerWorker>
  readonly running: Running
  /** Endpoints are consumers that run in the transaction of a request. */
  readonly endpoints: Map<string, ConsumerDeclaration>
  /** Both. */
  readonly declared: () => ConsumerDeclaration[]
  readonly sources: Sources
  readonly relays: Relays
  readonly presence: Presence
  readonly janitor: Janitor
  readonly metering: Metering
  readonly idle: IdleWatch
  readonly advice: Advice
}

export function assemble(runtime: Runtime): Assembly {
  const workers = new Map<string, ConsumerWorker>()
  const endpoints = new Map<string, ConsumerDeclaration>()
  const running = createRunning(workers)
  const consumersOf = (some: ReadonlyMap<string, ConsumerWorker>): ConsumerDeclaration[] => [
    ...[...some.values()].map(({ consumer }) => consumer),
    ...endpoints.values(),
  ]
  const declared = () => consumersOf(workers)

  const waker = createWaker(runtime.db)
  const relays = createRelays(runtime)
  const idle = createIdleWatch(runtime, workers, relays)
  waker.subscribe(() => relays.nudge())
  runtime.outbox.sent = () => {
    relays.nudge()
    idle.sent()
  }

  const sources = createSources((name, source) => ({
    broker: watch(runtime, { name, where: { source }, of: 'its broker' }),
    deliveries: watch(runtime, { name, where: { source }, of: 'the database' }),
    warn: (text) => runtime.warnOnce(`source ${name} ${text}`, { source: name }, text),
  }))

  return {
    ...{ runtime, waker, workers, running, endpoints, declared, sources, relays, idle },
    wakeUps: watch(runtime, { name: 'wake-ups', where: { part: 'wake-ups' }, of: 'the database' }),
    presence: createPresence(runtime, {
      all: () => consumersOf(running.workers()),
      alive: () => [...workers.values()].filter(({ alive }) => alive).map(({ consumer }) => consumer),
      declared,
    }),
    janitor: createJanitor(runtime, declared),
    metering: createMetering(runtime),
    advice: createAdvice(runtime, workers, running),
  }
}
