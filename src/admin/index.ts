/** The admin: what people and their tools do with the messages of a box. One file per verb. */
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import type { MessageMap } from '../message.js'
import type { Runtime } from '../runtime.js'
import { answer } from './answer.js'
import { audit } from './audit.js'
import { consumers } from './consumers.js'
import { discard } from './discard.js'
import { doctor } from './doctor/index.js'
import { markHandled } from './mark-handled.js'
import { message } from './message.js'
import { messages } from './messages.js'
import { pause, resume } from './pause.js'
import { prune } from './prune.js'
import { removeConsumer } from './remove-consumer.js'
import { removeSink } from './remove-sink.js'
import { retry } from './retry.js'
import { sinks } from './sinks.js'
import { status } from './status.js'
import type { Admin, Filter } from './types.js'

export type { DoctorOptions, Finding } from './doctor/index.js'
export type {
  Admin, AuditRecord, Bulk, ConsumerInfo, Counts, Criteria, Filter, HandledId, MarkOptions, Pruning, Removal, Signed, SinkInfo,
  Status,
} from './types.js' // prettier-ignore

export interface AdminDeps {
  /** The consumers that this process has declared. */
  consumers(): readonly ConsumerDeclaration[]
  /** Something became due: tells the workers. */
  wake(): void
  /** Writes the declared consumers down, for other processes. */
  announce(): Promise<unknown>
  /** The sinks whose destination is down, as far as this process has tried, and since when, in ms since 1970. */
  failing(): ReadonlyMap<string, number>
  /** How often an event of a sink is tried at most; undefined: it is not attached here, or its policy decides case by case. */
  attemptsOf(sink: string): number | undefined
}

/** On an admin: what tools of ours need beside its public methods. */
export const BACKSTAGE: unique symbol = Symbol.for('oncebox.backstage') as never

export interface Backstage extends AdminDeps {
  readonly runtime: Runtime
}

export function createAdmin<M extends MessageMap>(runtime: Runtime, deps: AdminDeps): Admin<M> {
  const local = (): string[] => deps.consumers().map(({ name }) => name)
  /** Even a run that failed halfway has changed something. */
  const waking = async <T>(work: Promise<T>): Promise<T> => work.finally(() => deps.wake())
  const registry = { announce: () => deps.announce(), get local() { return local() } } // prettier-ignore
  const admin: Admin<M> = {
    status: () => status(runtime, local()),
    messages: (filter, page) => messages(runtime, filter as Filter, page),
    message: (at) => message(runtime, at),
    retry: (filter, options) => waking(retry(runtime, deps.consumers(), filter as Filter, options)),
    discard: (filter, options) => waking(discard(runtime, local(), filter as Filter, options)),
    pause: (consumer, options) => pause(runtime, registry, consumer, options),
    resume: (consumer, options) => waking(resume(runtime, registry, consumer, options)),
    answer: (at, given, options) => waking(answer(runtime, at, given, options)),
    markHandled: (consumer, ids, options) =>
      waking(markHandled({ runtime, declared: deps.consumers() }, consumer, ids, options)),
    consumers: () => consumers(runtime, deps.consumers()),
    removeConsumer: (name, options) => removeConsumer(runtime, local(), name, options),
    sinks: () => sinks(runtime),
    removeSink: (sink, options) => removeSink(runtime, sink, options),
    prune: (options) => prune(runtime, deps.consumers(), options),
    doctor: (options) => doctor(runtime, deps.consumers(), options),
    audit: (page) => audit(runtime, page),
  }
  return Object.defineProperty(admin, BACKSTAGE, { value: { runtime, ...deps } satisfies Backstage })
}
