/** Tells the box that the queue is out of reach when that begins or changes, and once more when it is over. */
export interface Health {
  ill(error: unknown): void
  well(): void
}

export function createHealth(report: (problem?: unknown) => void): Health {
  let problem: string | undefined
  return {
    ill(error) {
      const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
      const what = `${String(name)} ${String(code)}`
      if (problem === what) return
      problem = what
      report(error)
    },
    well() {
      if (problem === undefined) return
      problem = undefined
      report()
    },
  }
}
