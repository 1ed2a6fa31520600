/** What is counted of one consumer. Its series begin at zero when it is declared: an alert sees the first dead letter. */
import { QUARANTINE_REASONS, type QuarantineReason } from '../message.js'
import type { Counter, Histogram, Registry } from './registry.js'

const OUTCOMES = ['handled', 'failed', 'postponed', 'conflict', 'dead', 'quarantined'] as const
type RunOutcome = (typeof OUTCOMES)[number]

const EFFECTS = ['succeeded', 'failed', 'unknown'] as const

/** From this share of the horizon on a copy is near it. */
const NEAR_SHARE = 0.8

interface OfType {
  readonly ok: Histogram
  readonly error: Histogram
  readonly outcomes: Readonly<Record<RunOutcome, Counter>>
}

/** What is known of the message that a copy is of. */
export interface Copied {
  readonly ageMs: number
  /** How long its consumer remembers messages; undefined if no process has said so. */
  readonly retainMs: number | undefined
}

/** What a verdict says of a message, as it was recorded. */
export interface Judged {
  readonly parked?: 'dead' | 'quarantined'
  readonly reason?: QuarantineReason
  readonly asked?: unknown
  readonly failure?: unknown
}

export class ConsumerMetrics {
  readonly #registry: Registry
  readonly #name: string
  readonly #label: (type: string) => string
  readonly #types = new Map<string, OfType>()
  readonly #duplicates: Counter
  readonly #nearHorizon: Counter
  readonly #duplicateAge: Histogram
  readonly #deadLetters: Counter
  readonly #groupSize: Histogram
  readonly #groupDuration: Histogram
  readonly #claimsLost: Counter
  readonly #takeovers: Counter

  constructor(registry: Registry, name: string, label: (type: string) => string) {
    this.#registry = registry
    this.#name = name
    this.#label = label
    this.#duplicates = registry.counter('oncebox.duplicates', name)
    this.#nearHorizon = registry.counter('oncebox.duplicates.near_horizon', name)
    this.#duplicateAge = registry.histogram('oncebox.duplicate.age', name)
    this.#deadLetters = registry.counter('oncebox.dead_letters', name)
    this.#groupSize = registry.histogram('oncebox.group.size', name)
    this.#groupDuration = registry.histogram('oncebox.group.duration', name)
    this.#claimsLost = registry.counter('oncebox.claims.lost', name)
    this.#takeovers = registry.counter('oncebox.takeovers', name)
    for (const outcome of EFFECTS) registry.counter('oncebox.effects', name, outcome)
    for (const reason of QUARANTINE_REASONS) registry.counter('oncebox.quarantined', name, reason)
  }

  /** It takes messages of these types; `*` is none. */
  takes(types: readonly string[]): void {
    for (const type of types) if (type !== '*') this.#of(type)
  }

  /** A handler has run for so many messages of a type. */
  ran(type: string, messages: number, ms: number, outcome: 'ok' | 'error'): void {
    const histogram = this.#of(type)[outcome]
    const each = ms / 1_000 / messages
    for (let n = 0; n < messages; n++) histogram.observe(each)
  }

  /** A transaction has committed in which these were handled. */
  settled(done: readonly { readonly message: { readonly type: string } }[], ms: number): void {
    if (done.length === 0) return
    this.#groupSize.observe(done.length)
    this.#groupDuration.observe(ms / 1_000)
    for (const { message } of done) this.#of(message.type).outcomes.handled.value++
  }

  /** One was handled in a transaction of the caller. */
  handledOnce(type: string): void {
    this.#of(type).outcomes.handled.value++
  }

  /** One was not handled, and this is on record. */
  judged(type: string, { parked, reason, asked, failure }: Judged): void {
    const outcome = parked ?? (asked !== undefined ? 'postponed' : failure !== undefined ? 'failed' : 'conflict')
    this.#of(type).outcomes[outcome].value++
    if (parked === 'dead') this.#deadLetters.value++
    if (parked === 'quarantined') this.quarantined(reason ?? 'effect-unknown')
  }

  quarantined(reason: QuarantineReason): void {
    this.#registry.counter('oncebox.quarantined', this.#name, reason).value++
  }

  duplicate({ ageMs, retainMs }: Copied): void {
    this.#duplicates.value++
    this.#duplicateAge.observe(Math.max(0, ageMs) / 1_000)
    if (retainMs !== undefined && ageMs > retainMs * NEAR_SHARE) this.#nearHorizon.value++
  }

  claimLost(): void {
    this.#claimsLost.value++
  }

  tookOver(messages: number): void {
    this.#takeovers.value += messages
  }

  effect(outcome: (typeof EFFECTS)[number]): void {
    this.#registry.counter('oncebox.effects', this.#name, outcome).value++
  }

  #of(type: string): OfType {
    return this.#types.get(type) ?? this.#add(type)
  }

  #add(type: string): OfType {
    const label = this.#label(type)
    let own = this.#types.get(label)
    if (own === undefined) {
      const duration = (outcome: string) =>
        this.#registry.histogram('messaging.process.duration', this.#name, label, outcome)
      const counter = (outcome: string) =>
        this.#registry.counter('oncebox.consumer.outcomes', this.#name, label, outcome)
      const outcomes = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, counter(outcome)]))
      own = { ok: duration('ok'), error: duration('error'), outcomes: outcomes as OfType['outcomes'] }
      // By its label alone: types that share one are without number.
      this.#types.set(label, own)
    }
    return own
  }
}
