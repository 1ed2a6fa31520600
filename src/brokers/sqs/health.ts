/** Tells the box of a problem when it begins or changes, and once more when the last one is over. */
export interface Health {
  ill(where: Part, error: unknown): void
  well(where: Part): void
}

/** The queue cannot be reached; deliveries fail. */
type Part = 'queue' | 'delivery'

export function createHealth(report: (problem?: unknown) => void): Health {
  const problems = new Map<Part, string>()
  return {
    ill(where, error) {
      const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
      const what = `${String(name)} ${String(code)}`
      if (problems.get(where) === what) return
      problems.set(where, what)
      report(error)
    },
    well(where) {
      if (problems.delete(where) && problems.size === 0) report()
    },
  }
}
