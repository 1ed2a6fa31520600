/** What is counted of one sink. */
import type { Counter, Histogram, Registry } from './registry.js'

const OUTCOMES = ['published', 'failed', 'postponed', 'dead'] as const

type Sent = Readonly<Record<(typeof OUTCOMES)[number], Counter>>

/** What became of a batch. */
export interface Published {
  readonly published: readonly unknown[]
  /** Without a delay: given up. */
  readonly failed: readonly { readonly delayMs: number | null }[]
  readonly later: readonly unknown[]
}

export class SinkMetrics {
  readonly #sent: Sent
  readonly #duration: Histogram
  readonly #deadLetters: Counter

  constructor(registry: Registry, name: string) {
    const counter = (outcome: string) => registry.counter('messaging.client.sent.messages', name, outcome)
    this.#sent = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, counter(outcome)])) as Sent
    this.#duration = registry.histogram('oncebox.relay.duration', name)
    this.#deadLetters = registry.counter('oncebox.relay.dead_letters', name)
  }

  /** The sink was asked, and took so long to answer or to fail. */
  asked(ms: number): void {
    this.#duration.observe(ms / 1_000)
  }

  answered({ published, failed, later }: Published): void {
    const dead = failed.filter(({ delayMs }) => delayMs === null).length
    this.#sent.published.value += published.length
    this.#sent.failed.value += failed.length - dead
    this.#sent.dead.value += dead
    this.#sent.postponed.value += later.length
  }

  /** So many went to another box inside the database. */
  moved(count: number): void {
    this.#sent.published.value += count
  }

  gaveUp(count: number): void {
    this.#deadLetters.value += count
  }
}
