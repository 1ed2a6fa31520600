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
