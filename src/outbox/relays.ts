/** The sinks of a box and their relays. A box without sinks only writes to its outbox, and runs no relay. */
import { randomUUID } from 'node:crypto'
import type { Sink } from '../brokers/sink.js'
import type { MessageMap } from '../message.js'
import type { Differing } from '../postgres/sql/sinks.js'
import { watch, type Runtime } from '../runtime.js'
import { backoffMs, sleep } from '../backoff.js'
import { plainWords } from '../failure.js'
import { SEEN_EVERY_MS } from '../figures.js'
import { processName } from '../process-name.js'
import { beginTurn, type OwnTurn } from '../lifecycle.js'
import { finishLeft, reclaim, registerSinks, retireSinks } from './assign.js'
import { nameOfSink, resolveSinkOptions, type Attached, type SinkOptions } from './options.js'
import { createRelayLoop, type RelayLoop } from './relay-loop.js'

export interface Relays {
  add<M extends MessageMap>(sink: Sink, options?: SinkOptions<M>): void
  /** Writes all sinks of this box to the database. Their relays give them the events that waited for one. */
  register(): Promise<void>
  start(): void
  /** True from start to stop. */
  readonly running: boolean
  /** Something may have been sent: look again soon. */
  nudge(): void
  /** Publishes what is due. Answers whether there was any; a sink that is down makes it throw, after the others. */
  drain(): Promise<boolean>
  /** Finishes the batches in flight, then closes the sinks. */
  stop(timeoutMs: number): Promise<void>
  /** What keeps events from being published, for people. */
  readonly problems: readonly string[]
  /** The sinks whose destination is down, as far as this process has tried, and since when, in ms since 1970. */
  readonly failing: ReadonlyMap<string, number>
  /** How often an event of a sink is tried at most; undefined: it is not attached here, or its policy decides case by case. */
  attemptsOf(sink: string): number | undefined
}

export function createRelays(runtime: Runtime): Relays {
  const loops: RelayLoop[] = []
  const attached = (): Attached[] => loops.map((loop) => loop.attached)
  const registered = new Set<string>()
  /** Sinks that may have opened something since they were last closed. */
  const open = new Set<Sink>()
  const self = { id: randomUUID(), host: processName() }
  let turn: OwnTurn | undefined
  const isOver = (): boolean => !turn
  let tidying: Promise<void> | undefined
  let seen: NodeJS.Timeout | undefined

  const warned = new Set<string>()
  const warn = ({ sink, host, types }: Differing): void => {
    const ours = attached().find(({ name }) => name === sink)?.options.types ?? null
    const what = JSON.stringify([sink, host, types])
    if (warned.has(what)) return
    warned.add(what)
    const rule = 'events of either go to it while both run; make them agree'
    runtime.log.warn(
      { sink, types: ours ?? 'all', host, others: types ?? 'all' },
      `processes differ in what a sink wants; ${rule}`,
    )
  }
  /** Says that this process is still there. If it cannot, the next time will do. */
  const beSeen = async (): Promise<void> => {
    try {
      const differing = await registerSinks(runtime, self, attached(), 'go on')
      differing.forEach(warn)
      await reclaim(runtime, isOver)
    } catch (error) {
      runtime.log.debug({ error: plainWords(error) }, 'sinks could not be registered again')
    }
  }
  /** Tried until it works: that the database is away is told by the relays. */
  const tidy = async ({ goesOn, over }: OwnTurn): Promise<void> => {
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

  /** A sink that is attached late, or while the database is away, is registered by its relay. */
  const ensureRegistered = async (): Promise<void> => {
    if (loops.some(({ attached: { name } }) => !registered.has(name))) await relays.register()
  }

  const startLoops = (own: OwnTurn): void => {
    for (const loop of loops) {
      open.add(loop.attached.sink)
      loop.start()
    }
    if (loops.length === 0) return
    tidying ??= tidy(own)
    seen ??= setInterval(() => void beSeen(), SEEN_EVERY_MS).unref()
  }

  const relays: Relays = {
    add(sink, options) {
      const name = nameOfSink(
        sink,
        options?.name,
        attached().map((one) => one.name),
      )
      const resolved = resolveSinkOptions(name, options, runtime.types, runtime.log)
      const one = { name, sink, options: resolved }
      runtime.metrics.sink(name)
      loops.push(createRelayLoop(runtime, one, ensureRegistered))
      runtime.outbox.sinks = attached().map((one) => ({ name: one.name, types: one.options.types }))
    },
    async register() {
      const sinks = attached()
      const differing = await registerSinks(runtime, self, sinks, 'look again')
      for (const { name } of sinks) registered.add(name)
      differing.forEach(warn)
    },
    get running() {
      return turn !== undefined
    },
    start() {
      const own = (turn ??= beginTurn())
      runtime.traces.background(() => startLoops(own))
    },
    get problems() {
      return loops.flatMap(({ problem }) => problem ?? [])
    },
    get failing() {
      const down = loops.map(({ attached: { name }, downSince }): [string, number | undefined] => [name, downSince])
      return new Map(down.filter((one): one is [string, number] => one[1] !== undefined))
    },
    attemptsOf: (sink) => attached().find(({ name }) => name === sink)?.options.attempts,
    nudge() {
      for (const loop of loops) loop.nudge()
    },
    async drain() {
      for (const { sink } of attached()) open.add(sink)
      const results = await Promise.allSettled(loops.map((loop) => loop.drain()))
      for (const result of results) if (result.status === 'rejected') throw result.reason
      return results.some((result) => result.status === 'fulfilled' && result.value)
    },
    async stop(timeoutMs) {
      const ends = loops.map(async (loop) => {
        const { sink } = loop.attached
        await loop.stop(timeoutMs)
        if (!open.delete(sink)) return
        try {
          await sleep(timeoutMs, sink.close())
        } catch (error) {
          const { name } = loop.attached
          watch(runtime, { name, where: { sink }, of: 'its broker' }).failed(error)
        }
      })
      turn?.end()
      turn = undefined
      clearInterval(seen)
      seen = undefined
      await Promise.all(ends)
      const retired = registered.size > 0 ? retireSinks(runtime, self).catch(() => undefined) : undefined
      await sleep(timeoutMs, Promise.all([retired, tidying]))
      registered.clear()
      tidying = undefined
    },
  }
  return relays
}
