/** Waiting that can be cut short. */

/** Full jitter over an exponential ceiling: many workers that fail together do not come back together. */
export function backoffMs(attempt: number, baseMs: number, capMs: number): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30))
  return ceiling / 2 + (Math.random() * ceiling) / 2
}

/** Resolves after so long, or as soon as `until` resolves. */
export async function sleep(ms: number, until?: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await (until ? Promise.race([elapsed, until]) : elapsed)
  } finally {
    clearTimeout(timer)
  }
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
