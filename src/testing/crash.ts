/** Crashes on demand: the flow lets go of everything at a named point, as if the process had died there. */
import { OnceboxError } from '../errors.js'
import { integer, resolve } from '../options.js'
import { arm, POINTS, SimulatedCrash, type Failpoint } from '../worker/failpoints.js'

export { SimulatedCrash, type Failpoint }

const CRASH = { times: integer({ least: 1, fallback: 1 }) }

/**
 * Crashes the flow of every box in this process the next time (or the next `times` times) it reaches the point; of one
 * box with `box.crashAt`. Messages that were claimed stay
 * claimed until their lease runs out: move the clock past it, and run the box again.
 * Answers with a function that disarms the point.
 */
export function crashAt(point: Failpoint, options: { times?: number } = {}): () => void {
  return crashIn(undefined, point, options)
}

/** The same for the box in one schema. */
export function crashIn(schema: string | undefined, point: Failpoint, options: { times?: number } = {}): () => void {
  const { times } = resolve('crashAt', options, CRASH)
  if (!POINTS.includes(point)) {
    throw new OnceboxError('OPTION_INVALID', `there is no point ${String(point)}; there are ${POINTS.join(', ')}`)
  }
  return arm(point, times, schema)
}
