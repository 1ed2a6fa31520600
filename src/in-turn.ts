/** Runs steps one after the other, each whatever became of the one before: a stop waits for the start it follows. */
export function createTurns(): <T>(step: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (step) => {
    const next = last.then(step, step)
    last = next.catch(() => undefined)
    return next
  }
}
