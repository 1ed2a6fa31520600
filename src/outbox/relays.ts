/** The sinks of a box and their relays. A box without sinks only writes to its outbox, and runs no relay. */
import { sleep } from '../backoff.js'
import type { Sink } from '../brokers/sink.js'
import { beginTurn, type OwnTurn, type Turn } from '../lifecycle.js'
import type { MessageMap } from '../message.js'
import { watch, type Runtime } from '../runtime.js'
import { nameOfSink, resolveSinkOptions, type Attached, type SinkOptions } from './options.js'
import { Registration } from './registration.js'
import { createRelayLoop, type RelayLoop } from './relay-loop.js'
import { tidy } from './tidy.js'

export interface Relays {
  add<M extends MessageMap>(sink: Sink, options?: SinkOptions<M>): void
  /** Writes all sinks of this box to the database. Their relays give them the events that waited for one. */
  register(): Promise<void>
  start(): void
  /** True from start to stop. */
  readonly running: boolean
  /** Something may have been sent: look again soon. */
  nudge(): void
  /**
   * Publishes what is due, as long as the turn goes on. Answers whether there was any; a sink that is down makes it throw, after
   * the others.
   */
  drain(turn: Turn): Promise<boolean>
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
  const registration = new Registration(runtime, attached)
  /** Sinks that may have opened something since they were last closed. */
  const open = new Set<Sink>()
  let turn: OwnTurn | undefined
  let tidying: Promise<void> | undefined

  const startLoops = (own: OwnTurn): void => {
    for (const loop of loops) {
      open.add(loop.attached.sink)
      loop.start()
    }
    if (loops.length === 0) return
    tidying ??= tidy(runtime, own)
    registration.keepSaying(() => !turn)
  }

  const stopLoop = async (loop: RelayLoop, timeoutMs: number): Promise<void> => {
    await loop.stop(timeoutMs)
    if (open.delete(loop.attached.sink)) await close(runtime, loop.attached, timeoutMs)
  }

  return {
    add(sink, options) {
      const taken = attached().map(({ name }) => name)
      const name = nameOfSink(sink, options?.name, taken)
      const one = { name, sink, options: resolveSinkOptions(name, options, runtime.types, runtime.log) }
      runtime.metrics.sink(name)
      // A sink that is attached late, or while the database is away, is registered by its relay.
      loops.push(createRelayLoop(runtime, one, () => registration.ensure()))
      runtime.outbox.sinks = attached().map(({ name, options: { types } }) => ({ name, types }))
    },
    register: () => registration.register(),
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
    async drain(turn) {
      for (const { sink } of attached()) open.add(sink)
      const results = await Promise.allSettled(loops.map((loop) => loop.drain(turn)))
      for (const result of results) if (result.status === 'rejected') throw result.reason
      return results.some((result) => result.status === 'fulfilled' && result.value)
    },
    async stop(timeoutMs) {
      const stopped = loops.map((loop) => stopLoop(loop, timeoutMs))
      turn?.end()
      turn = undefined
      registration.saysNoMore()
      await Promise.all(stopped)
      await sleep(timeoutMs, Promise.all([registration.retire(), tidying]))
      registration.forget()
      tidying = undefined
    },
  }
}

async function close(runtime: Runtime, { name, sink }: Attached, timeoutMs: number): Promise<void> {
  try {
    await sleep(timeoutMs, sink.close())
  } catch (error) {
    watch(runtime, { name, where: { sink }, of: 'its broker' }).failed(error)
  }
}
