/** The sinks of a box and their relays. A box without sinks only writes to its outbox, and runs no relay. */
import type { Sink } from '../brokers/sink.js'
import type { MessageMap } from '../message.js'
import { watch, type Runtime } from '../runtime.js'
import { sleep } from '../backoff.js'
import { registerSinks } from './assign.js'
import { nameOfSink, resolveSinkOptions, type Attached, type SinkOptions } from './options.js'
import { createRelayLoop, type RelayLoop } from './relay-loop.js'

export interface Relays {
  add<M extends MessageMap>(sink: Sink, options?: SinkOptions<M>): void
  /** Writes all sinks of this box to the database, and gives them the events that waited for one. */
  register(): Promise<void>
  start(): void
  /** Something may have been sent: look again soon. */
  nudge(): void
  /** Publishes what is due. Answers whether there was any; a sink that is down makes it throw, after the others. */
  drain(): Promise<boolean>
  /** Finishes the batches in flight, then closes the sinks. */
  stop(timeoutMs: number): Promise<void>
}

export function createRelays(runtime: Runtime): Relays {
  const loops: RelayLoop[] = []
  const attached = (): Attached[] => loops.map((loop) => loop.attached)
  const registered = new Set<string>()
  /** Sinks that may have opened something since they were last closed. */
  const open = new Set<Sink>()
  /** A sink that is attached late, or while the database is away, is registered by its relay. */
  const ensureRegistered = async (): Promise<void> => {
    if (loops.some(({ attached: { name } }) => !registered.has(name))) await relays.register()
  }

  const relays: Relays = {
    add(sink, options) {
      const name = nameOfSink(sink, loops.length + 1, (one) => loops.some((loop) => loop.attached.name === one))
      const resolved = resolveSinkOptions(name, options, runtime.types, runtime.log)
      const one = { name, sink, options: resolved }
      loops.push(createRelayLoop(runtime, one, ensureRegistered))
      runtime.outbox.sinks = attached().map((one) => ({ name: one.name, types: one.options.types }))
    },
    async register() {
      const sinks = attached()
      await registerSinks(runtime, sinks)
      for (const { name } of sinks) registered.add(name)
    },
    start() {
      for (const loop of loops) {
        open.add(loop.attached.sink)
        loop.start()
      }
    },
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
      await Promise.all(ends)
    },
  }
  runtime.outbox.sent = relays.nudge
  return relays
}
