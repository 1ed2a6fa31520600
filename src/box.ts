/**
 * The box: wires the parts. Start reading here, then `inbox/` in the order of the flow:
 *
 *     message arrives → prepare → receive → (store) → claim → group → settle → retain
 *
 * `deliver.ts` decides which way a message takes, consumer by consumer; `inline/handle.ts` is the short way, on arrival.
 */
import { createAdmin, type Admin } from './admin/index.js'
import { createAdvice } from './advice.js'
import { createRuntime, stopTimeout, type BoxOptions } from './box-options.js'
import { INBOX } from './brokers/handover.js'
import type { Sink } from './brokers/sink.js'
import type { Source } from './brokers/source.js'
import { requireTransaction } from './check-options.js'
import { ENDPOINTS } from './endpoint.js'
import type { FrontDoor } from './front-door.js'
import type { Handlers, SendOptions } from './handler.js'
import { healthOf, type Health } from './health.js'
import { checkClient, checkNew, declareConsumer } from './inbox/consumer.js'
import { deliver, type DeliverOptions } from './inbox/deliver.js'
import { createHost } from './inbox/endpoint.js'
import { createIdleWatch } from './inbox/idle.js'
import { once } from './inbox/once.js'
import { asRemembering, checkReplay, resolveFrom, type FromArguments, type FromOptions } from './inbox/origin.js'
import { deliverWithin } from './inbox/quota.js'
import type { ConsumerOptions } from './inbox/options.js'
import { register, releaseUnrouted } from './inbox/registry.js'
import { createJanitor } from './inbox/retain.js'
import { createRunning, type StartOptions } from './inbox/running.js'
import { tapArrivals } from './inbox/tapped.js'
import { createTarget } from './inbox/target.js'
import { createWorker, type ConsumerWorker } from './inbox/worker.js'
import { createLifecycle } from './lifecycle.js'
import type { DataIn, Incoming, Json, MessageMap, Name, OnceOutcome, Outcome, SendData } from './message.js'
import { METERED } from './metrics/index.js'
import { createMetering } from './metering.js'
import type { SinkOptions } from './outbox/options.js'
import { createRelays } from './outbox/relays.js'
import { send, sendMany } from './outbox/send.js'
import { PARTS, type Parts } from './parts.js'
import type { Driver } from './postgres/driver.js'
import { checkVersion, migrate } from './postgres/migrate.js'
import { checkServer } from './postgres/server.js'
import { watch } from './runtime.js'
import { backoffMs, sleep } from './backoff.js'
import { createSources } from './worker/sources.js'
import { createWaker } from './worker/wake.js'

export interface Consumer {
  readonly name: string
  start(): Promise<void>
  stop(options?: { timeoutMs?: number }): Promise<void>
  drain(): Promise<void>
}

export interface Box<M extends MessageMap, Tx, TxIn = Tx> {
  /** Brings the schema up to date, under a lock, and registers the consumers declared so far. */
  migrate(): Promise<{ from: number; to: number }>
  /** Declares a consumer; its name is the unit of deduplication. */
  consumer(name: string, handlers: Handlers<M, Tx>, options?: ConsumerOptions<M>): Consumer
  /** Always stores: persists for every subscribed consumer and answers after the commit, in order. */
  readonly receive: FrontDoor<M>
  /** Always runs now: dedup, run and record in one transaction per group; answers after the commit. */
  readonly handle: FrontDoor<M>
  /** Runs `work` in your transaction, only if this consumer has not handled this message. Throws BUSY. */
  once<R>(
    tx: TxIn,
    consumer: string,
    message: { id: string; source?: string; type?: Name<M>; data?: unknown; time?: Date | string },
    work: () => R | Promise<R>,
  ): Promise<OnceOutcome<Json<R>>>
  /** Writes an event to the outbox, in your transaction. */
  send<const K extends Name<M>>(tx: TxIn, type: K, data: SendData<M, K>, options?: SendOptions): Promise<{ id: string }>
  sendMany(
    tx: TxIn,
    messages: readonly { [K in Name<M>]: { type: K; data: DataIn<M, K> } & SendOptions }[Name<M>][],
  ): Promise<{ id: string }[]>
  /** Attaches a source to take messages from, and says what it may send. A push source has to name its `types`. */
  from<S extends Source>(source: S, ...options: FromArguments<M, S>): S
  /** Attaches a broker to publish to. Other processes know the sink by its name: the option, else its `name` property. */
  to<S extends Sink>(sink: S, options?: SinkOptions<M>): S
  /** With `consumers`, runs these alone: what arrives for the others is stored for a process that runs them. */
  start(options?: StartOptions): Promise<void>
  /** Stops pulling, settles what is in flight, releases claims, closes sinks. Your pool stays open. */
  stop(options?: { timeoutMs?: number }): Promise<void>
  /**
   * Runs until nothing is due, or until the box is stopped. Works without `start()`, also on a box that was stopped.
   * It does not wait for messages that ask to be run later, not even for those that ask for no delay.
   */
  drain(): Promise<void>
  /** Without `maxLagMs`, messages may wait for as long as something works on others of their consumer. */
  health(limits?: { maxLagMs?: number }): Promise<Health>
  /** What this process has counted, and the figures of the database, as text for Prometheus. See `oncebox/monitoring`. */
  metrics(): Promise<string>
  readonly admin: Admin<M>
}

/** The box of a vocabulary, for a field or a parameter: with a transaction, `PoolClient`, or with a driver, `typeof db`. */
export type BoxOf<M extends MessageMap, D> = D extends Driver<infer Tx, infer TxIn> ? Box<M, Tx, TxIn> : Box<M, D>

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
  const declared = () => [...[...workers.values()].map(({ consumer }) => consumer), ...endpoints.values()]
  const running = createRunning(workers)
  const run = () => [...[...running.workers().values()].map(({ consumer }) => consumer), ...endpoints.values()]
  const janitor = createJanitor(runtime, declared, run)
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

  /** What is on its way through a front door. */
  const arriving = new Set<Promise<unknown>>()
  const arrive = async (incoming: readonly Incoming[], how: Omit<DeliverOptions, 'consumers'>): Promise<Outcome[]> => {
    const consumers = [...workers.values()].map((w) => w.inline)
    const work = tapArrivals(incoming, deliver(runtime, incoming, { consumers, ...how }))
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
      await janitor.start()
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
      await Promise.all([relays.stop(rest), janitor.stop(rest), metering.end(rest)])
      await sleep(ABORT_MS, waker.close())
    },
  })

  /** A consumer declared after `start()` begins as soon as the database has heard of it. */
  const join = async (worker: ConsumerWorker): Promise<void> => {
    for (let attempt = 0; life.state === 'started'; attempt++) {
      try {
        await announce()
        await janitor.joined()
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
      await announce()
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
      waker.subscribe(() => worker.wake())
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
      const [{ origins }, { byMode }] = [runtime, running]
      const origin = resolveFrom(source, fromOptions as FromOptions, { known: runtime.types, attached: origins })
      for (const consumer of declared()) checkReplay(origin, asRemembering(consumer))
      const { consumers: only, unrouted } = origin
      const { fingerprint } = source as Source
      const how = { how: byMode, only, unrouted, fingerprint: fingerprint?.bind(source), bySource: true, origin }
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
    async drain() {
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
        if (goesOn() && (await relays.drain())) worked = true
      }
    },
    metrics: () => metering.text(),
    health: (limits) => healthOf(runtime, { workers: running.workers(), sources, relays }, limits),
    admin: createAdmin<M>(runtime, { consumers: declared, wake: () => waker.wake(), announce }),
  }
  const inbox = createTarget(runtime, declared, () => waker.wake())
  const host = createHost(runtime, workers, endpoints, () => {
    if (life.state === 'started') announce().catch((error: unknown) => wakeUps.failed(error))
  })
  const parts: Parts = { consumers: workers, runtime }
  const seams = { [INBOX]: { value: inbox }, [ENDPOINTS]: { value: host } }
  return Object.defineProperties(box, { ...seams, [METERED]: { value: metering }, [PARTS]: { value: parts } })
}
