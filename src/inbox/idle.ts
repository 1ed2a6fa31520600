/**
 * Idle: notices messages that wait for a consumer of this process which nothing runs, and events that wait for a sink of
 * it, as when `box.start()` was forgotten. Other processes may run it, so the messages decide: what is due for long and held by nobody.
 */
import type { Outcome } from '../message.js'
import { ANY_SINK } from '../postgres/sql/sinks.js'
import type { Runtime } from '../runtime.js'
import { readHealth } from './health.js'
import type { ConsumerWorker } from './worker.js'

/** A message that is due for so long, and no worker holds another one of its consumer: nothing runs it. */
export const UNATTENDED_MS = 30_000
/** So long after something was stored it is looked for, and it must have been due for most of it. */
const LOOK_MS = 10_000
const NO_SINK =
  'events are sent, and no process has attached a sink: they stay in the outbox; attach one with box.to(…), or link(…) for consumers of a box'
const ADVICE = 'call box.start(), or make sure that another process does'

export interface IdleWatch {
  /** What became of messages that arrived. */
  arrived(outcomes: readonly Outcome[]): void
  /** Events were written. */
  sent(): void
  close(): void
}

export function createIdleWatch(
  runtime: Runtime,
  workers: ReadonlyMap<string, ConsumerWorker>,
  relays: { readonly running: boolean },
): IdleWatch {
  let events: NodeJS.Timeout | undefined
  /** It looks once. */
  let nobody: NodeJS.Timeout | undefined
  const looks = new Map<string, NodeJS.Timeout>()

  const look = async (consumer: string): Promise<void> => {
    looks.delete(consumer)
    if (workers.get(consumer)!.alive) return
    const health = await readHealth(runtime, [consumer])
    if (health instanceof Error) return
    const waiting = health.consumers.find((one) => one.consumer === consumer)
    if (!waiting || waiting.held || (waiting.dueMs ?? 0) < LOOK_MS / 2) return
    const text = `messages are stored for consumer ${consumer}, and nothing runs it; ${ADVICE}`
    runtime.warnOnce(`idle ${consumer}`, { consumer, dueMs: waiting.dueMs }, text)
  }

  const lookForEvents = async (): Promise<void> => {
    events = undefined
    if (relays.running) return
    const health = await readHealth(runtime, [])
    if (health instanceof Error) return
    const local = new Set(runtime.outbox.sinks.map(({ name }) => name))
    for (const { sink, dueMs, held } of health.sinks) {
      if (!local.has(sink) || held || (dueMs ?? 0) < LOOK_MS / 2) continue
      runtime.warnOnce(
        `idle sink ${sink}`,
        { sink, dueMs },
        `events wait for sink ${sink}, and nothing publishes them; ${ADVICE}`,
      )
    }
  }

  /** Nobody may have called `to()`: what is sent stays where it is, and nothing else would say so. */
  const lookForSinks = async (): Promise<void> => {
    if (runtime.outbox.sinks.length > 0) return
    const [row] = await runtime.db.run(ANY_SINK, null).catch(() => [])
    if (row?.any === 'false') runtime.warnOnce('no sink', {}, NO_SINK)
  }

  return {
    sent() {
      if (runtime.outbox.sinks.length === 0) {
        nobody ??= setTimeout(() => void lookForSinks(), LOOK_MS).unref()
      } else if (!relays.running) events ??= setTimeout(() => void lookForEvents(), LOOK_MS).unref()
    },
    arrived(outcomes) {
      for (const { consumers } of outcomes) {
        for (const { consumer, status } of consumers) {
          if (status !== 'stored' && status !== 'failed') continue
          const worker = workers.get(consumer)
          if (!worker || worker.alive) continue
          if (status === 'failed' && worker.consumer.options.retryBy === 'box') {
            const text = `a failed message waits for the box to retry it, and no loop of consumer ${consumer} runs here; ${ADVICE}`
            runtime.warnOnce(`failed ${consumer}`, { consumer }, text)
          }
          if (status === 'stored' && !looks.has(consumer)) {
            looks.set(consumer, setTimeout(() => void look(consumer), LOOK_MS).unref())
          }
        }
      }
    },
    close() {
      for (const timer of looks.values()) clearTimeout(timer)
      looks.clear()
      clearTimeout(events)
      clearTimeout(nobody)
      events = nobody = undefined
    },
  }
}
