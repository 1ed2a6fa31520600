/** What the steps that run a consumer's messages share. */
import type { Runtime } from '../runtime.js'
import type { Abort } from '../worker/abort.js'
import type { Pace } from '../worker/pace.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { Loss } from './losses.js'

export interface Worker {
  readonly runtime: Runtime
  readonly consumer: ConsumerDeclaration
  readonly pace: Pace
  /** Set when the box stops and its patience is at an end. */
  readonly stop: Abort
  /** True once the box has been asked to stop: finish what runs, start nothing new. */
  readonly stopping: () => boolean
  /** True for a while after an outage: what somebody held in it, whose lease is over, is left to its holder. */
  readonly calm: () => boolean
  /** Told of every error, to notice an outage. */
  readonly noteAway: (error: unknown) => void
  /** Claims that wait for the database to be given back. */
  readonly releasing: Set<Promise<void>>
  /** How often a message lost its connection while it ran alone, by journal key. */
  readonly losses: Map<string, Loss>
}
