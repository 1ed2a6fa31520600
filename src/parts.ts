/** What a box is made of, for the command line: it says what it runs. */
import type { ConsumerWorker } from './inbox/worker.js'
import type { Runtime } from './runtime.js'

/** On a box. */
export const PARTS: unique symbol = Symbol.for('oncebox.parts') as never

export interface Parts {
  readonly consumers: ReadonlyMap<string, Pick<ConsumerWorker, 'consumer'>>
  /** Its sources and sinks, as far as they are attached by now. */
  readonly runtime: Pick<Runtime, 'origins' | 'outbox'>
}

/** Undefined for what is no box, and for one of an earlier version. */
export function partsOf(box: object): Parts | undefined {
  return (box as { readonly [PARTS]?: Parts })[PARTS]
}
