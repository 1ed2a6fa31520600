/**
 * The box: what users call, and which part does it. Start reading here, then `inbox/` in the order of the flow:
 *
 *     message arrives → prepare → receive → (store) → claim → group → settle → retain
 *
 * `assembly.ts` makes the parts, `arrive.ts` is the door that messages come in by, `box-life.ts` is a start and a stop.
 * `deliver.ts` decides which way a message takes, consumer by consumer; `inline/handle.ts` is the short way, on arrival.
 */
import { createAdmin } from './admin/index.js'
import { createArrivals } from './arrive.js'
import { assemble, type Assembly } from './assembly.js'
import { announce, createBoxLife, join } from './box-life.js'
import { createRuntime, stopTimeout, type BoxOptions } from './box-options.js'
import type { Box, Consumer } from './box-type.js'
import { INBOX } from './brokers/handover.js'
import { requireTransaction } from './check-options.js'
import { drain } from './drain.js'
import { ENDPOINTS } from './endpoint.js'
import { healthOf } from './health.js'
import { checkClient, checkNew, declareConsumer, type ConsumerDeclaration } from './inbox/consumer.js'
import { createHost } from './inbox/endpoint.js'
import { once } from './inbox/once.js'
import { asRemembering, checkReplay, resolveFrom, type FromOptions } from './inbox/origin.js'
import { createTarget } from './inbox/target.js'
import { createWorker } from './inbox/worker.js'
import type { Lifecycle } from './lifecycle.js'
import type { MessageMap, OnceOutcome } from './message.js'
import { METERED } from './metrics/index.js'
import { send, sendMany } from './outbox/send.js'
import { PARTS, type Parts } from './parts.js'
import { checkVersion, migrate } from './postgres/migrate.js'
import { lacksRights } from './postgres/rights.js'

export type { Box, BoxOf, Consumer } from './box-type.js'

export function createBox<Tx, TxIn = Tx, const M extends MessageMap = MessageMap>(
  options: BoxOptions<M, Tx, TxIn>,
): Box<M, Tx, TxIn> {
  const runtime = createRuntime(options)
  const made = assemble(runtime)
  const arrivals = createArrivals(made)
  const life = createBoxLife(made, arrivals)
  const { workers, endpoints, running, declared, sources, relays, metering, waker, advice } = made

  const box: Box<M, Tx, TxIn> = {
    async migrate() {
      const moved = await migrate(runtime.db)
      await announce(made).catch((error: unknown) => lacksRights(runtime.db, error))
      return moved
    },

    consumer(name, handlers, consumerOptions) {
      checkNew(name, workers, endpoints)
      const known = { messages: options.messages, log: runtime.log }
      return addConsumer(made, life, declareConsumer(name, handlers, consumerOptions, known))
    },
    from(source, ...[fromOptions = {}]) {
      const { origins } = runtime
      const origin = resolveFrom(source, fromOptions as FromOptions, { known: runtime.types, attached: origins })
      for (const consumer of declared()) checkReplay(origin, asRemembering(consumer))
      sources.add(source, arrivals.from(source, origin))
      origins.push(origin)
      advice.meant(origin.consumers ?? [])
      if (source.push || life.state === 'started') runtime.traces.detached(() => sources.start(source))
      return source
    },
    to(sink, sinkOptions) {
      relays.add(sink, sinkOptions)
      if (life.state === 'started') relays.start()
      return sink
    },

    receive: arrivals.door('receive', () => 'store'),
    handle: arrivals.door('handle', ({ options: { mode, order } }) =>
      order === 'key' ? 'store' : mode === 'direct' ? 'direct' : 'run',
    ),
    async once(tx, name, message, work) {
      requireTransaction('once', tx)
      const declared = workers.get(name)?.consumer ?? endpoints.get(name)
      const outcome = await once({ runtime, tx, name, declared, owner: 'caller' }, message, work)
      return outcome as OnceOutcome<never>
    },
    async send(tx, type, data, sendOptions) {
      requireTransaction('send', tx)
      return send(runtime, { type, data }, sendOptions, tx)
    },
    async sendMany(tx, messages) {
      requireTransaction('sendMany', tx)
      return sendMany(runtime, messages, tx)
    },

    start: (startOptions) => running.start(life, startOptions),
    stop: async (stopOptions) => life.stop(stopTimeout(stopOptions)),
    drain: () => drain({ runtime, life, workers, relays }),
    metrics: () => metering.text(),
    health: (limits) => {
      const writes = life.state === 'started' || runtime.origins.length > 0
      return healthOf(runtime, { workers: running.workers(), sources, relays, writes }, limits)
    },
    admin: createAdmin<M>(runtime, {
      consumers: declared,
      wake: () => waker.wake(),
      announce: () => announce(made),
      failing: () => relays.failing,
      attemptsOf: (sink) => relays.attemptsOf(sink),
    }),
  }
  return Object.defineProperties(box, seamsOf(made, life))
}

/** It runs at once if the box does, else with the box, or by its own `start`. */
function addConsumer(made: Assembly, life: Lifecycle, consumer: ConsumerDeclaration): Consumer {
  const { runtime, workers, waker, presence } = made
  checkClient(consumer, runtime.db.driver)
  for (const origin of runtime.origins) checkReplay(origin, asRemembering(consumer))
  const worker = createWorker(runtime, consumer)
  workers.set(consumer.name, worker)
  waker.subscribe(worker.wake)
  if (life.state === 'started') void join(made, life, worker)
  return {
    name: consumer.name,
    async start() {
      await worker.start(checkVersion(runtime.db).then(() => announce(made)))
      await presence.seen()
    },
    async stop(stopOptions) {
      await worker.stop(stopTimeout(stopOptions))
      await presence.left()
    },
    async drain() {
      const round = worker.drain()
      while (await round());
    },
  }
}

/** What other parts of oncebox ask a box for: links, endpoints, monitoring, the command line. Users do not see it. */
function seamsOf(made: Assembly, life: Lifecycle): PropertyDescriptorMap {
  const { runtime, workers, endpoints, declared, waker, wakeUps, metering } = made
  const host = createHost(runtime, workers, endpoints, () => {
    if (life.state === 'started') announce(made).catch((error: unknown) => wakeUps.failed(error))
  })
  const parts: Parts = { consumers: workers, runtime }
  return {
    [INBOX]: { value: createTarget(runtime, declared, () => waker.wake()) },
    [ENDPOINTS]: { value: host },
    [METERED]: { value: metering },
    [PARTS]: { value: parts },
  }
}
