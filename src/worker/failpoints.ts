/**
 * Named points at which a test may crash the flow. Nothing is armed unless a test arms it, and then only in its own
 * process. The registry is global, so that the test kit and the box agree even if they were loaded from two copies.
 */
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

/** Thrown at an armed point: the flow lets go of everything as if the process had died. */
export class SimulatedCrash extends Error {
  override readonly name = 'SimulatedCrash'
  constructor(readonly point: Failpoint) {
    super(`simulated crash at '${point}'`)
  }
}

type Armed = Map<string, { times: number; crash: () => void }>
const REGISTRY = Symbol.for('oncebox.failpoints')
const armed: Armed = ((globalThis as Record<symbol, unknown>)[REGISTRY] ??= new Map()) as Armed

export function failpoint(point: Failpoint): void {
  if (armed.size === 0) return
  const entry = armed.get(point)
  if (!entry) return
  if (--entry.times <= 0) armed.delete(point)
  entry.crash()
}

/** Arms a point for so many hits; answers with a function that disarms it. */
export function arm(point: Failpoint, times: number, crash: () => void = () => simulate(point)): () => void {
  armed.set(point, { times, crash })
  return () => void armed.delete(point)
}

function simulate(point: Failpoint): never {
  throw new SimulatedCrash(point)
}
