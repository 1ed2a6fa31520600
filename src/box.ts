/**
 * The box: wires the parts. Start reading here, then `inbox/` in the order of the flow:
 *
 *     message arrives → prepare → receive → (store) → claim → group → settle → retain
 *
 * `deliver.ts` decides which way a message takes, consumer by consumer; `inline/handle.ts` is the short way, on arrival.
 */
import { createAdmin } from './admin/index.js'
import { createAdvice } from './advice.js'
import { createRuntime, stopTimeout, type BoxOptions } from './box-options.js'
import type { Box } from './box-type.js'
import { INBOX } from './brokers/handover.js'
import type { Source } from './brokers/source.js'
import { requireTransaction } from './check-options.js'
import { drain } from './drain.js'
import { ENDPOINTS } from './endpoint.js'
import type { FrontDoor } from './front-door.js'
import { healthOf } from './health.js'
import { checkClient, checkNew, declareConsumer } from './inbox/consumer.js'
import { deliver, type DeliverOptions } from './inbox/deliver.js'
import { Gathering } from './inbox/gather.js'
import { Elsewhere } from './inbox/others.js'
import { createHost } from './inbox/endpoint.js'
import { createIdleWatch } from './inbox/idle.js'
import { once } from './inbox/once.js'
import { asRemembering, checkReplay, resolveFrom, type FromOptions } from './inbox/origin.js'
import { deliverWithin } from './inbox/quota.js'
import { createPresence } from './inbox/presence.js'
import { register, releaseUnrouted } from './inbox/registry.js'
import { createJanitor } from './inbox/retain.js'
import { createRunning } from './inbox/running.js'
import { tapArrivals } from './inbox/tapped.js'
import { createTarget } from './inbox/target.js'
import { createWorker, type ConsumerWorker } from './inbox/worker.js'
import { createLifecycle } from './lifecycle.js'
import type { Incoming, MessageMap, OnceOutcome, Outcome } from './message.js'
import { METERED } from './metrics/index.js'
import { createMetering } from './metering.js'
import { createRelays } from './outbox/relays.js'
import { send, sendMany } from './outbox/send.js'
import { PARTS, type Parts } from './parts.js'
import { checkVersion, migrate } from './postgres/migrate.js'
import { lacksRights } from './postgres/rights.js'
import { checkServer } from './postgres/server.js'
import { watch } from './runtime.js'
import { backoffMs, sleep } from './backoff.js'
import { createSources } from './worker/sources.js'
import { createWaker } from './worker/wake.js'

export type { Box, BoxOf, Consumer } from './box-type.js'

/** How long a stop waits, when its time is up, for what it has aborted. */
const ABORT_MS = 2_000

export function createBox<Tx, TxIn = Tx, const M extends MessageMap = MessageMap>(
  options: BoxOptions<M, Tx, TxIn>,
): Box<M, Tx, TxIn> {
  const runtime = createRuntime(options)
  const { db } = runtime
  const waker = createWaker(db)
  const workers = new Map<string, ConsumerWorker>()
  const endpoints = new Map<string, ConsumerWorker['consumer']>()
  const running = createRunning(workers)
  const consumersOf = (some: ReadonlyMap<string, ConsumerWorker>) => [
    ...[...some.values()].map(({ consumer }) => consumer),
    ...endpoints.values(),
  ]
  const declared = () => consumersOf(workers)
  const presence = createPresence(runtime, () => consumersOf(running.workers()))
  const janitor = createJanitor(runtime, declared)
  const advice = createAdvice(runtime, workers, running)

  const sources = createSources((name, source) => ({
    broker: watch(runtime, { name, where: { source }, of: 'its broker' }),
    deliveries: watch(runtime, { name, where: { source }, of: 'the database' }),
    warn: (text) => runtime.warnOnce(`source ${name} ${text}`, { source: name }, text),
  }))
  const relays = createRelays(runtime)
  const metering = createMetering(runtime)
  const idle = createIdleWatch(runtime, workers, relays)
  runtime.outbox.sent = () => {
    relays.nudge()
    idle.sent()
  }
  const wakeUps = watch(runtime, { name: 'wake-ups', where: { part: 'wake-ups' }, of: 'the database' })
  waker.subscribe(() => relays.nudge())

  const elsewhere = new Elsewhere()
  const gathering = new Gathering(runtime)
  /** What is on its way through a front door. */
  const arriving = new Set<Promise<unknown>>()
  const arrive = async (
    incoming: readonly Incoming[],
    how: Omit<DeliverOptions, 'consumers' | 'elsewhere' | 'gathering'>,
  ): Promise<Outcome[]> => {
    const consumers = [...workers.values()].map((w) => w.inline)
    const work = tapArrivals(incoming, deliver(runtime, incoming, { consumers, elsewhere, gathering, ...how }))
    arriving.add(work)
    const outcomes = await work.finally(() => arriving.delete(work))
    runtime.metrics.arrived(how.origin?.name, incoming, outcomes)
    if (outcomes.some(({ consumers }) => consumers.some(({ status }) => status === 'stored' || status === 'failed'))) {
      runtime.traces.background(() => waker.wake())
      idle.arrived(outcomes)
    }
    return outcomes
  }
  const door = (how: DeliverOptions['how']): FrontDoor<M> =>
    (async (input: Incoming | readonly Incoming[]) => {
      if (Array.isArray(input)) return input.length === 0 ? [] : arrive(input as readonly Incoming[], { how })
      return (await arrive([input as Incoming], { how }))[0]!
    }) as FrontDoor<M>

  const announce = async (): Promise<void> => {
    // Again: a client may not have known when they were declared.
    for (const consumer of declared()) checkClient(consumer, db.driver)
    await register(runtime, declared())
    // All types, not only new ones: whoever registered them may have died before it got here.
    const types = declared().flatMap((consumer) => consumer.types)
    if ((await releaseUnrouted(runtime, declared(), types)) > 0) waker.wake()
    await relays.register()
  }

  const life = createLifecycle({
    async prepare() {
      await checkVersion(db)
      await checkServer(db)
      await announce()
    },
    async begin({ goesOn }) {
      await advice.all()
      await waker.listen((error) => wakeUps.failed(error))
      if (!goesOn()) return waker.close()
      for (const worker of running.workers().values()) void worker.start()
      relays.start()
      metering.start()
      runtime.traces.detached(() => sources.startAll())
      janitor.start()
      // Others know which consumers run here before anybody is told that it has started.
      await presence.start()
    },
    async end(timeoutMs) {
      idle.close()
      metering.stop()
      const deadline = performance.now() + timeoutMs
      const left = (): number => Math.max(0, deadline - performance.now())
      // What is aborted still has to roll back, but a database that does not answer must not keep us.
      const arrived = sleep(left() + ABORT_MS, Promise.allSettled(arriving))
      const others = Promise.all([sources.stopAll(left() + ABORT_MS), arrived])
      const stopped = [...workers.values()].map((worker) => worker.stop(left(), others))
      await sleep(left() + ABORT_MS, Promise.all([others, ...stopped]))
      const rest = Math.max(left(), ABORT_MS)
      await Promise.all([relays.stop(rest), janitor.stop(rest), presence.stop(rest), metering.end(rest)])
      await sleep(ABORT_MS, waker.close())
    },
  })

  /** A consumer declared after `start()` begins as soon as the database has heard of it. */
  const join = async (worker: ConsumerWorker): Promise<void> => {
    for (let attempt = 0; life.state === 'started'; attempt++) {
      try {
        await announce()
        await presence.seen()
        if (life.state === 'started' && running.has(worker.consumer.name)) void worker.start()
        return
      } catch (error) {
        worker.trouble.failed(error)
        await sleep(backoffMs(attempt, 100, 5_000))
      }
    }
  }

  const box: Box<M, Tx, TxIn> = {
    async migrate() {
      const moved = await migrate(db)
      await announce().catch((error: unknown) => lacksRights(db, error))
      return moved
    },
    consumer(name, handlers, consumerOptions) {
      checkNew(name, workers, endpoints)
      const known = { messages: options.messages, log: runtime.log }
      const consumer = declareConsumer(name, handlers, consumerOptions, known)
      checkClient(consumer, db.driver)
      for (const origin of runtime.origins) checkReplay(origin, asRemembering(consumer))
      const worker = createWorker(runtime, consumer)
      workers.set(name, worker)
      waker.subscribe(worker.wake)
      if (life.state === 'started') void join(worker)
      return {
        name,
        async start() {
          await worker.start(checkVersion(db).then(announce))
        },
        stop: async (stopOptions) => worker.stop(stopTimeout(stopOptions)),
        async drain() {
          const round = worker.drain()
          while (await round());
        },
      }
    },
    receive: door(() => 'store'),
    handle: door(({ options: { mode, order } }) => (order === 'key' ? 'store' : mode === 'direct' ? 'direct' : 'run')),
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
    from(source, ...[fromOptions = {}]) {
      const { origins } = runtime
      const origin = resolveFrom(source, fromOptions as FromOptions, { known: runtime.types, attached: origins })
      for (const consumer of declared()) checkReplay(origin, asRemembering(consumer))
      const { consumers: only, unrouted } = origin
      const { fingerprint } = source as Source
      const how = {
        how: running.byMode,
        only,
        unrouted,
        fingerprint: fingerprint?.bind(source),
        bySource: true,
        origin,
      }
      sources.add(source, (batch) => {
        void advice.aboutNames().catch(() => undefined)
        return deliverWithin(batch, (part) => arrive(part, how))
      })
      origins.push(origin)
      advice.meant(only ?? [])
      if (source.push || life.state === 'started') runtime.traces.detached(() => sources.start(source))
      return source
    },
    to(sink, sinkOptions) {
      relays.add(sink, sinkOptions)
      if (life.state === 'started') relays.start()
      return sink
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
      announce,
      failing: () => relays.failing,
      attemptsOf: (sink) => relays.attemptsOf(sink),
    }),
  }
  const inbox = createTarget(runtime, declared, () => waker.wake())
  const host = createHost(runtime, workers, endpoints, () => {
    if (life.state === 'started') announce().catch((error: unknown) => wakeUps.failed(error))
  })
  const parts: Parts = { consumers: workers, runtime }
  const seams = { [INBOX]: { value: inbox }, [ENDPOINTS]: { value: host } }
  return Object.defineProperties(box, { ...seams, [METERED]: { value: metering }, [PARTS]: { value: parts } })
}
