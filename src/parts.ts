/** What a box is made of, for the command line: it says what it runs. */
import type { ConsumerWorker } from './inbox/worker.js'
import type { LocalOutbox, Origin } from './runtime.js'

/** On a box. */
export const PARTS: unique symbol = Symbol.for('oncebox.parts') as never

export interface Parts {
  readonly consumers: ReadonlyMap<string, Pick<ConsumerWorker, 'consumer'>>
  readonly sources: readonly Pick<Origin, 'name'>[]
  readonly sinks: LocalOutbox['sinks']
}

/** Undefined for what is no box, and for one of an earlier version. */
export function partsOf(box: object): Parts | undefined {
  return (box as { readonly [PARTS]?: () => Parts })[PARTS]?.()
}
