/** Work in slices: a generator that yields now and then runs for a few milliseconds at a time, so that the page stays alive. */

const SLICE_MS = 8

export interface SliceOptions {
  /** Lets the page do what it has to do. Default: a task of its own. */
  readonly rest?: () => Promise<void>
  readonly signal?: AbortSignal
}

/** Resolves with what the work returns; undefined if it was given up. */
export async function inSlices<T>(work: Generator<void, T>, options: SliceOptions = {}): Promise<T | undefined> {
  const { rest = nextTask, signal } = options
  let began = performance.now()
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
    if (performance.now() - began < SLICE_MS) continue
    await rest()
    if (signal?.aborted) return undefined
    began = performance.now()
  }
}

/** Runs it to its end at once. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0))
}
