/** What the steps that run a consumer's messages are given. */
import type { ConsumerMetrics } from '../metrics/consumer-metrics.js'
import type { Runtime } from '../runtime.js'
import type { Abort } from '../worker/abort.js'
import type { Pace } from '../worker/pace.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { Held } from './held.js'
import type { Loss } from './losses.js'

/** A run of messages that are held: who runs them, what is held, and what ends it before its time. */
export interface Run {
  readonly worker: Worker
  readonly held: Held
  /** Set when the lease is lost, or the patience of a box that stops is at an end. */
  readonly abort: Abort
}

export interface Worker {
  readonly runtime: Runtime
  readonly consumer: ConsumerDeclaration
  readonly pace: Pace
  readonly metrics: ConsumerMetrics
  /** Set when the box stops and its patience is at an end. */
  readonly stop: Abort
  /** True once the box has been asked to stop: finish what runs, start nothing new. */
  readonly stopping: () => boolean
  /** True for a while after an outage: what somebody held in it, whose lease is over, is left to its holder. */
  readonly calm: () => boolean
  /** Told of every error, to notice an outage. */
  readonly noteAway: (error: unknown) => void
  /** Gives something back once the database takes it, and before anything is claimed. */
  readonly giveBackLater: (giveBack: () => Promise<void>) => void
  /** How often a message lost its connection while it ran alone, by journal key. */
  readonly losses: Map<string, Loss>
}
