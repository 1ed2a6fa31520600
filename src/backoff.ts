/** Waiting that can be cut short. */

/** Full jitter over an exponential ceiling: many workers that fail together do not come back together. */
export function backoffMs(attempt: number, baseMs: number, capMs: number): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30))
  return ceiling / 2 + (Math.random() * ceiling) / 2
}

/** Resolves after so long, or as soon as one of `until` resolves. Rejects if one of them does. */
export async function sleep(ms: number, ...until: readonly (Promise<unknown> | undefined)[]): Promise<void> {
  const forget: (() => void)[] = []
  let timer: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(resolve, ms)
      for (const promise of until) if (promise) forget.push(tell(promise, { resolve, reject }))
    })
  } finally {
    clearTimeout(timer)
    for (const one of forget) one()
  }
}

/** Who waits for a promise. */
interface Waiting {
  resolve(): void
  reject(error: unknown): void
}

/**
 * By promise, who waits for it. A promise keeps whatever it was asked to tell until it settles, and the end of a loop's turn is
 * awaited with every nap for as long as the loop lives: so each is asked once, and tells those who wait still.
 */
const told = new WeakMap<Promise<unknown>, Set<Waiting>>()

/** Answers what takes it back. */
function tell(promise: Promise<unknown>, one: Waiting): () => void {
  const waiting = told.get(promise) ?? ask(promise)
  waiting.add(one)
  return () => void waiting.delete(one)
}

function ask(promise: Promise<unknown>): Set<Waiting> {
  const waiting = new Set<Waiting>()
  told.set(promise, waiting)
  const settled = (act: (one: Waiting) => void): void => {
    // Whoever comes later asks it anew, and is told at once.
    told.delete(promise)
    for (const one of waiting) act(one)
  }
  promise.then(
    () => settled(({ resolve }) => resolve()),
    (error: unknown) => settled(({ reject }) => reject(error)),
  )
  return waiting
}

/** What `work` comes to, if it does in so long; else it rejects with what `late` answers, and `work` is left alone. */
export async function within<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const elapsed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms)
  })
  try {
    return await Promise.race([work, elapsed])
  } finally {
    clearTimeout(timer)
  }
}
