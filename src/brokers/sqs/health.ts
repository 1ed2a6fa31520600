/** Tells the box that the queue is out of reach when that begins or changes, and once more when it is over. */
export interface Health {
  ill(error: unknown): void
  /** Something was answered that was asked at this time, by `performance.now()`. Before a failure it tells nothing. */
  well(askedAt: number): void
}

export function createHealth(report: (problem?: unknown) => void): Health {
  let problem: string | undefined
  let lastIll = -Infinity
  return {
    ill(error) {
      lastIll = performance.now()
      const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
      const what = `${String(name)} ${String(code)}`
      if (problem === what) return
      problem = what
      report(error)
    },
    well(askedAt) {
      if (problem === undefined || askedAt < lastIll) return
      problem = undefined
      report()
    },
  }
}
