/**
 * Named points at which a test may crash the flow. Nothing is armed unless a test arms it, and then only in its own
 * process and for the box in one schema, unless it means every box. The registry is global, so that the test kit and
 * the box agree even if they were loaded from two copies.
 */
import { isBranded, sharedByCopies } from '../copies.js'
export const POINTS = [
  'received', // stored and committed, not answered yet
  'claimed', // leased to a worker, no handler called yet
  'opened', // the transaction is open, no handler called yet
  'handled', // a handler has returned, nothing is settled
  'settled', // settled, not committed
  'committed', // committed, nobody told
  'intended', // the intent to call an effect is committed, the call is not made
  'called', // the effect was called, its outcome is not recorded
] as const

export type Failpoint = (typeof POINTS)[number]

const SIMULATED_CRASH = Symbol.for('oncebox.simulated-crash')

/** Thrown at an armed point: the flow lets go of everything as if the process had died. */
export class SimulatedCrash extends Error {
  override readonly name = 'SimulatedCrash'
  readonly [SIMULATED_CRASH] = true

  constructor(readonly point: Failpoint) {
    super(`simulated crash at '${point}'`)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isBranded(value, SIMULATED_CRASH)
  }
}

/** By point, and by schema or for every one. */
type Armed = Map<string, { times: number; crash: () => void }>
const armed = sharedByCopies('failpoints', (): Armed => new Map())

export function failpoint(point: Failpoint, { schema }: { readonly schema: string }): void {
  if (armed.size === 0) return
  for (const name of [nameOf(point, schema), nameOf(point)]) {
    const entry = armed.get(name)
    if (!entry) continue
    if (--entry.times <= 0) armed.delete(name)
    entry.crash()
  }
}

/** Arms a point for so many hits, in the box of a schema or in every box; answers with a function that disarms it. */
export function arm(point: Failpoint, times: number, schema?: string): () => void {
  const entry = { times, crash: () => simulate(point) }
  const name = nameOf(point, schema)
  armed.set(name, entry)
  return () => {
    if (armed.get(name) === entry) armed.delete(name)
  }
}

/** No schema has an empty name. */
function nameOf(point: Failpoint, schema = ''): string {
  return `${point} ${schema}`
}

function simulate(point: Failpoint): never {
  throw new SimulatedCrash(point)
}
