/** What the steps of the flow count, by what happened. One for each box, in every process. */
import type { ConsumerOutcome, Incoming, Outcome } from '../message.js'
import { ConsumerMetrics } from './consumer-metrics.js'
import { NOBODY } from './declarations.js'
import { Bounded, OTHER, Registry, type Counter } from './registry.js'
import { SinkMetrics } from './sink-metrics.js'

/** Consumers and sinks are named by code, which may still make names up. */
const MOST_NAMES = 500

/** Handed in by a call, and by a link inside one database. */
const CALL = '(call)'
const LINK = '(link)'

type Status = Outcome['status'] | ConsumerOutcome['status']

/** A consumer takes messages of this type. Of the others anybody may have made it up. */
const TAKEN: ReadonlySet<Status> = new Set(['stored', 'handled', 'duplicate', 'failed', 'dead'])

/** It was not known before, and is the box's from now on. One that failed is, if its sender may forget it. */
function isNew(status: Status, ack: boolean): boolean {
  return status === 'stored' || status === 'handled' || (status === 'failed' && ack)
}

export class Metrics {
  readonly registry = new Registry()
  readonly #types: Bounded
  readonly #names = new Bounded([], MOST_NAMES)
  readonly #consumers = new Map<string, ConsumerMetrics>()
  readonly #sinks = new Map<string, SinkMetrics>()
  /** New messages by consumer; of '' those of which only their number is known. */
  readonly received = new Map<string, number>()
  /** By source, type and what was answered. */
  readonly #arrived = new Map<string, Map<string, Partial<Record<Status, Counter>>>>()

  constructor(types: readonly string[]) {
    this.#types = new Bounded(types)
    this.registry.counter('oncebox.reading.failures')
    for (const what of ['messages', 'quarantined', 'events']) this.registry.counter('oncebox.retention.deleted', what)
    for (const outcome of ['ok', 'failed']) this.registry.counter('oncebox.retention.passes', outcome)
    this.consumer('')
  }

  /** Of what was refused before anybody was asked, its name is empty. */
  consumer(name: string): ConsumerMetrics {
    let own = this.#consumers.get(name)
    if (own === undefined) {
      const label = name === '' ? NOBODY : this.#names.of(name)
      own = new ConsumerMetrics(this.registry, label, (type) => this.#types.of(type))
      if (label !== OTHER) this.#consumers.set(name, own)
    }
    return own
  }

  sink(name: string): SinkMetrics {
    let own = this.#sinks.get(name)
    if (own === undefined) {
      own = new SinkMetrics(this.registry, name)
      this.#sinks.set(name, own)
    }
    return own
  }

  /** Messages came in, from a source or by a call, and this was answered. */
  arrived(source: string | undefined, incoming: readonly Incoming[], outcomes: readonly Outcome[]): void {
    const name = source ?? CALL
    let byType = this.#arrived.get(name)
    if (byType === undefined) {
      byType = new Map<string, Partial<Record<Status, Counter>>>()
      this.#arrived.set(name, byType)
    }
    for (const [at, { status, ack, consumers }] of outcomes.entries()) {
      const type = this.#typeOf(incoming[at], status)
      let cells = byType.get(type)
      if (cells === undefined) byType.set(type, (cells = {}))
      const cell = (cells[status] ??= this.registry.counter('messaging.client.consumed.messages', name, type, status))
      cell.value++
      for (const one of consumers) if (isNew(one.status, ack)) this.took(one.consumer)
    }
  }

  /** A consumer was given a new message. */
  took(consumer: string): void {
    const name = this.#consumers.has(consumer) ? consumer : this.#names.of(consumer)
    this.received.set(name, (this.received.get(name) ?? 0) + 1)
  }

  /** A source may hand over anything, also what throws when it is looked at. */
  #typeOf(incoming: unknown, status: Status): string {
    try {
      const { type } = incoming as Partial<Incoming>
      if (typeof type !== 'string') return OTHER
      return TAKEN.has(status) ? this.#types.of(type) : this.#types.known(type)
    } catch {
      return OTHER
    }
  }

  /** A link has moved so many into this box, inside the database. */
  moved(count: number): void {
    this.registry.counter('messaging.client.consumed.messages', LINK, OTHER, 'stored').value += count
    this.received.set('', (this.received.get('') ?? 0) + count)
  }

  /** Events were written to the outbox. */
  wrote(events: readonly { readonly type: string }[]): void {
    for (const { type } of events) this.registry.counter('oncebox.outbox.written', this.#types.of(type)).value++
  }

  deleted(what: 'messages' | 'quarantined' | 'events', count: number): void {
    this.registry.counter('oncebox.retention.deleted', what).value += count
  }

  retentionPassed(outcome: 'ok' | 'failed'): void {
    this.registry.counter('oncebox.retention.passes', outcome).value++
  }

  readingFailed(): void {
    this.registry.counter('oncebox.reading.failures').value++
  }
}
