/** Promises that nobody waits for: an async function in the place of one that answers at once. */

/** Nobody will wait for it: its rejection must not end the process. */
export function isPromise(value: unknown): boolean {
  const is = typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
  if (is) Promise.resolve(value).catch(() => undefined)
  return is
}

/** Calls a function that may fail, at once or later, without harm to the caller: nobody is left to tell of that. */
export function callSafely(call: () => unknown): void {
  try {
    isPromise(call())
  } catch {
    // As above.
  }
}
