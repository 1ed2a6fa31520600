/**
 * The box: wires the parts. Start reading here, then `inbox/` in the order of the flow:
 *
 *     message arrives → prepare → receive → (store) → claim → group → settle → retain
 *
 * `deliver.ts` decides which way a message takes, consumer by consumer; `handle.ts` is the short way, on arrival.
 */
import { createAdmin, type Admin } from './admin/index.js'
import { createRuntime, type BoxOptions } from './box-options.js'
import { INBOX, type InboxTarget } from './brokers/handover.js'
import type { Sink } from './brokers/sink.js'
import type { Source } from './brokers/source.js'
import { checkKnown, checkNumber } from './check-options.js'
import { OnceboxError } from './errors.js'
import { DAY_MS } from './figures.js'
import type { Handlers, SendOptions } from './handler.js'
import { asReceiverSeesIt, declareConsumer } from './inbox/consumer.js'
import { deliver, type DeliverOptions } from './inbox/deliver.js'
import { readHealth, type DatabaseHealth } from './inbox/health.js'
import { createIdleWatch, UNATTENDED_MS } from './inbox/idle.js'
import { once } from './inbox/once.js'
import {
  checkReplay,
  replayProblem,
  resolveFrom,
  type FromArguments,
  type FromOptions,
  type Remembering,
} from './inbox/origin.js'
import { deliverWithin, fullQuarantines } from './inbox/quota.js'
import type { ConsumerOptions } from './inbox/options.js'
import { consumersElsewhere, register, releaseUnrouted, unknownConsumers } from './inbox/registry.js'
import { createJanitor } from './inbox/retain.js'
import { createWorker, type ConsumerWorker } from './inbox/worker.js'
import type { DataIn, Incoming, Json, MessageMap, Name, OnceOutcome, Outcome, SendData } from './message.js'
import type { SinkOptions } from './outbox/options.js'
import { createRelays } from './outbox/relays.js'
import { prepareMany, prepareSend, writeOutgoing } from './outbox/send.js'
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

export interface FrontDoor {
  (message: Incoming): Promise<Outcome>
  (messages: readonly Incoming[]): Promise<Outcome[]>
  (input: Incoming | readonly Incoming[]): Promise<Outcome | Outcome[]>
}

export interface Health {
  readonly ok: boolean
  /** The database answers, and takes writes. */
  readonly database: boolean
  /** Every source that is attached runs, and what it delivers is taken. */
  readonly sources: boolean
  /** The age of the oldest message or event that is due, or held by a worker. */
  readonly lagMs: number
  /** Why it is not ok, in words for people. Beside that, sources whose quarantine is full, which leave it ok. */
  readonly reasons?: readonly string[]
}

export interface Box<M extends MessageMap, Tx, TxIn = Tx> {
  /** Brings the schema up to date, under a lock, and registers the consumers declared so far. */
  migrate(): Promise<{ from: number; to: number }>
  /** Declares a consumer; its name is the unit of deduplication. */
  consumer(name: string, handlers: Handlers<M, Tx>, options?: ConsumerOptions<M>): Consumer
  /** Always stores: persists for every subscribed consumer and answers after the commit, in order. */
  readonly receive: FrontDoor
  /** Always runs now: dedup, run and record in one transaction per group; answers after the commit. */
  readonly handle: FrontDoor
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
  start(): Promise<void>
  /** Stops pulling, settles what is in flight, releases claims, closes sinks. Your pool stays open. */
  stop(options?: { timeoutMs?: number }): Promise<void>
  /**
   * Runs until nothing is due, or until the box is stopped. Works without `start()`, also on a box that was stopped.
   * It does not wait for messages that ask to be run later, not even for those that ask for no delay.
   */
  drain(): Promise<void>
  /** Without `maxLagMs`, messages may wait for as long as something works on others of their consumer. */
  health(limits?: { maxLagMs?: number }): Promise<Health>
  readonly admin: Admin<M>
}

const STOP_TIMEOUT_MS = 30_000
/** How long a stop waits, when its time is up, for what it has aborted. */
const ABORT_MS = 2_000

export function createBox<Tx, TxIn = Tx, const M extends MessageMap = MessageMap>(
  options: BoxOptions<M, Tx, TxIn>,
): Box<M, Tx, TxIn> {
  const runtime = createRuntime(options)
  const { db } = runtime
  const waker = createWaker(db)
  const workers = new Map<string, ConsumerWorker>()
  const declared = (): ConsumerWorker['consumer'][] => [...workers.values()].map(({ consumer }) => consumer)
  const janitor = createJanitor(runtime, declared)
  let state: 'idle' | 'started' | 'stopping' = 'idle'
  /** How often it was told to stop: a start that a stop has overtaken goes no further. */
  let stops = 0
  let latestStart: { readonly turn: number; readonly done: Promise<void> } | undefined
  let ending: Promise<void> | undefined

  const sources = createSources((name, source) => ({
    broker: watch(runtime, { name, where: { source }, of: 'its broker' }),
    deliveries: watch(runtime, { name, where: { source }, of: 'the database' }),
    warn: (text) => runtime.warnOnce(`source ${name} ${text}`, { source: name }, text),
  }))
  const relays = createRelays(runtime)
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
    const work = deliver(runtime, incoming, { consumers: [...workers.values()].map((w) => w.inline), ...how })
    arriving.add(work)
    const outcomes = await work.finally(() => arriving.delete(work))
    if (outcomes.some(({ consumers }) => consumers.some(({ status }) => status === 'stored' || status === 'failed'))) {
      waker.wake()
      idle.arrived(outcomes)
    }
    return outcomes
  }
  const door = (how: DeliverOptions['how']): FrontDoor =>
    (async (input: Incoming | readonly Incoming[]) => {
      if (Array.isArray(input)) return input.length === 0 ? [] : arrive(input as readonly Incoming[], { how })
      return (await arrive([input as Incoming], { how }))[0]!
    }) as FrontDoor

  const announce = async (): Promise<void> => {
    await register(runtime, declared())
    // All types, not only new ones: whoever registered them may have died before it got here.
    const types = declared().flatMap((consumer) => consumer.types)
    if ((await releaseUnrouted(runtime, declared(), types)) > 0) waker.wake()
    await relays.register()
  }

  const warnAboutPool = (): void => {
    const { capacity } = db.driver
    const needed = declared().reduce((sum, consumer) => sum + consumer.options.concurrency, 0)
    if (capacity === undefined || capacity > needed) return
    const advice = 'raise the pool’s max, or lower concurrency'
    runtime.log.warn({ pool: capacity, concurrency: needed }, `the pool cannot carry all consumers at once; ${advice}`)
  }

  /** Names of consumers that sources are for, until they are looked at. */
  const meant = new Set<string>()
  const warnAboutNames = async (): Promise<void> => {
    const names = [...meant]
    meant.clear()
    for (const { name, hint } of await unknownConsumers(runtime, names, [...workers.keys()])) {
      const text = `from: no process has declared the consumer ${JSON.stringify(name)}, so what is meant for it is unrouted; ${hint}`
      runtime.warnOnce(`from ${name}`, { consumer: name }, text)
    }
  }

  /** Consumers that other processes alone have declared cannot be refused. */
  const warnAboutReplays = async (): Promise<void> => {
    const open = runtime.origins.filter(({ replayMs }) => replayMs !== undefined)
    if (open.length === 0) return
    for (const { name, retainMs } of await consumersElsewhere(runtime, [...workers.keys()])) {
      for (const origin of open) {
        const problem = replayProblem(origin, { name, retainMs, takes: () => true })
        if (problem) runtime.warnOnce(`replay ${origin.name} ${name}`, { consumer: name, source: origin.name }, problem)
      }
    }
  }

  /** A consumer declared after `start()` begins as soon as the database has heard of it. */
  const join = async (worker: ConsumerWorker): Promise<void> => {
    for (let attempt = 0; state === 'started'; attempt++) {
      try {
        await announce()
        if (state === 'started') void worker.start()
        return
      } catch (error) {
        worker.trouble.failed(error)
        await sleep(backoffMs(attempt, 100, 5_000))
      }
    }
  }

  const begin = async (turn: number, before: Promise<void> | undefined): Promise<void> => {
    await before?.catch(() => undefined)
    await ending
    await checkVersion(db)
    await checkServer(db)
    await announce()
    if (stops !== turn) return
    state = 'started'
    warnAboutPool()
    await warnAboutNames()
    await warnAboutReplays()
    await waker.listen((error) => wakeUps.failed(error))
    if (stops !== turn) return waker.close()
    for (const worker of workers.values()) void worker.start()
    relays.start()
    janitor.start()
    sources.startAll()
  }

  /** Also without a start: push sources, single consumers and a drain may have set something going. */
  const end = async (timeoutMs: number): Promise<void> => {
    state = 'stopping'
    idle.close()
    const deadline = performance.now() + timeoutMs
    const left = (): number => Math.max(0, deadline - performance.now())
    try {
      // What is aborted still has to roll back, but a database that does not answer must not keep us.
      const arrived = sleep(left() + ABORT_MS, Promise.allSettled(arriving))
      const others = Promise.all([sources.stopAll(left() + ABORT_MS), arrived])
      const stopped = [...workers.values()].map((worker) => worker.stop(left(), others))
      await sleep(left() + ABORT_MS, Promise.all([others, ...stopped]))
      const rest = Math.max(left(), ABORT_MS)
      await Promise.all([relays.stop(rest), janitor.stop(rest)])
      await sleep(ABORT_MS, waker.close())
    } finally {
      state = 'idle'
      ending = undefined
    }
  }

  const box: Box<M, Tx, TxIn> = {
    async migrate() {
      const moved = await migrate(db)
      await announce()
      return moved
    },
    consumer(name, handlers, consumerOptions) {
      if (workers.has(name)) {
        throw new OnceboxError('CONSUMER_EXISTS', `there is a consumer ${name} already; give each its own name`)
      }
      const consumer = declareConsumer(name, handlers, consumerOptions, options.messages, runtime.log)
      for (const origin of runtime.origins) checkReplay(origin, asRemembering(consumer))
      const worker = createWorker(runtime, consumer)
      workers.set(name, worker)
      waker.subscribe(() => worker.wake())
      if (state === 'started') void join(worker)
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
      const outcome = await once({ runtime, tx, name, declared: workers.get(name)?.consumer }, message, work)
      return outcome as OnceOutcome<never>
    },
    async send(tx, type, data, sendOptions) {
      requireTransaction('send', tx)
      const outgoing = await prepareSend(runtime, type, data, sendOptions)
      await writeOutgoing(runtime, [outgoing], tx)
      return { id: outgoing.id }
    },
    async sendMany(tx, messages) {
      requireTransaction('sendMany', tx)
      const outgoing = await prepareMany(runtime, messages)
      await writeOutgoing(runtime, outgoing, tx)
      return outgoing.map(({ id }) => ({ id }))
    },
    from(source, ...[fromOptions = {}]) {
      const { origins } = runtime
      const origin = resolveFrom(source, fromOptions as FromOptions, { known: runtime.types, attached: origins })
      for (const consumer of declared()) checkReplay(origin, asRemembering(consumer))
      const { consumers: only, unrouted } = origin
      const { fingerprint } = source as Source
      const how = { how: byMode, only, unrouted, fingerprint: fingerprint?.bind(source), bySource: true, origin }
      sources.add(source, (batch) => {
        // Consumers may be declared after the source, so its names are looked at when it begins to matter.
        if (meant.size > 0) void warnAboutNames().catch(() => undefined)
        return deliverWithin(batch, (part) => arrive(part, how))
      })
      origins.push(origin)
      for (const name of only ?? []) meant.add(name)
      if (source.push || state === 'started') sources.start(source)
      return source
    },
    to(sink, sinkOptions) {
      relays.add(sink, sinkOptions)
      if (state === 'started') relays.start()
      return sink
    },
    start() {
      if (latestStart?.turn === stops) return latestStart.done
      const done = begin(stops, latestStart?.done)
      const own = { turn: stops, done }
      latestStart = own
      // One that failed may be tried again.
      done.catch(() => {
        if (latestStart === own) latestStart = undefined
      })
      return done
    },
    async stop(stopOptions) {
      const timeoutMs = stopTimeout(stopOptions)
      stops += 1
      return (ending ??= end(timeoutMs))
    },
    async drain() {
      const turn = stops
      const rounds = new Map<ConsumerWorker, () => Promise<boolean>>()
      // A stop under way ends first, and one that comes later ends this.
      await ending
      for (let worked = true; worked && stops === turn;) {
        worked = false
        for (const worker of workers.values()) {
          if (stops !== turn) return
          const round = rounds.get(worker) ?? worker.drain()
          rounds.set(worker, round)
          if (await round()) worked = true
        }
        if (stops === turn && (await relays.drain())) worked = true
      }
    },
    async health(limits = {}) {
      checkKnown('health', limits, ['maxLagMs'])
      const { maxLagMs } = limits
      if (maxLagMs !== undefined && maxLagMs !== Infinity) checkNumber('health: maxLagMs', maxLagMs, 0)
      const found = await readHealth(runtime, [...workers.keys()])
      const { problems } = sources
      const reasons = [...databaseProblems(found), ...problems, ...relays.problems, ...workerProblems(workers)]
      if (!(found instanceof Error)) reasons.push(...lagProblems(found, maxLagMs, workers))
      const ok = reasons.length === 0
      // For people: one sender that is not taken any more must not take the service from the others.
      if (!(found instanceof Error)) reasons.push(...(await fullQuarantines(runtime).catch(() => [])))
      return {
        ok,
        database: !(found instanceof Error) && found.writable,
        sources: problems.length === 0,
        lagMs: found instanceof Error ? 0 : found.lagMs,
        ...(reasons.length > 0 && { reasons }),
      }
    },
    admin: createAdmin<M>(runtime, { consumers: declared, wake: () => waker.wake(), announce }),
  }
  const inbox: InboxTarget = {
    driver: db.driver,
    schema: db.bind('ob.').slice(0, -1),
    consumers: () => {
      const consumers = declared()
      return consumers.some((one) => one.options.identity) ? undefined : consumers.map(asReceiverSeesIt)
    },
    wake: () => waker.wake(),
  }
  return Object.defineProperty(box, INBOX, { value: inbox })
}

/** A text is not looked at: `process.on('SIGTERM', box.stop)` passes the name of the signal. */
function stopTimeout(given: { timeoutMs?: number } | undefined): number {
  if (typeof given !== 'object' || given === null) return STOP_TIMEOUT_MS
  checkKnown('stop', given, ['timeoutMs'])
  const { timeoutMs = STOP_TIMEOUT_MS } = given
  // A timer of more than 24 days, or of Infinity, would end at once.
  return timeoutMs === Infinity ? DAY_MS : Math.min(checkNumber('stop: timeoutMs', timeoutMs, 0), DAY_MS)
}

/** A consumer as `checkReplay` looks at it. One that keeps no record remembers nothing anyway, and says so. */
function asRemembering({ name, options, handlerOf }: ConsumerWorker['consumer']): Remembering {
  const takes = (type: string): boolean => handlerOf(type) !== undefined
  return { name, takes, retainMs: options.mode === 'direct' ? Infinity : options.retainMs }
}

/** Without one, the driver would use a connection of its own, and what was meant to be atomic would not be. */
function requireTransaction(what: string, tx: unknown): void {
  if (tx !== undefined && tx !== null) return
  throw new OnceboxError(
    'TRANSACTION_REQUIRED',
    `${what} needs your transaction as its first argument; got ${String(tx)}`,
  )
}

function byMode({ options: { mode } }: ConsumerWorker['consumer']): 'store' | 'run' | 'direct' {
  return mode === 'stored' ? 'store' : mode === 'inline' ? 'run' : 'direct'
}

function databaseProblems(found: DatabaseHealth | Error): string[] {
  if (found instanceof Error) return [`the database cannot be used: ${found.message}`]
  return found.writable ? [] : ['the database takes no writes: it is a standby, or read-only']
}

function workerProblems(workers: ReadonlyMap<string, ConsumerWorker>): string[] {
  const failing = [...workers].filter(([, worker]) => worker.failing)
  return failing.map(([name]) => `consumer ${name} fails every time that it looks for work; hooks.error has said why`)
}

function lagProblems(
  { lagMs, consumers }: DatabaseHealth,
  maxLagMs: number | undefined,
  workers: ReadonlyMap<string, ConsumerWorker>,
): string[] {
  if (maxLagMs !== undefined) return lagMs <= maxLagMs ? [] : [`lagMs is ${lagMs}, above maxLagMs, ${maxLagMs}`]
  // Others than the local ones may be gone for good: nobody here could do anything about them.
  const unattended = consumers.filter((one) => workers.has(one.consumer) && !one.held && one.dueMs !== null)
  return unattended
    .filter(({ dueMs }) => dueMs! > UNATTENDED_MS)
    .map(({ consumer, dueMs }) => `messages of consumer ${consumer} have been due for ${dueMs} ms, and nothing runs it`)
}
