/** One reading for all who look: a request while it is under way, or for a while after, gets the same. */
export function sharedReading<T>(read: () => Promise<T>, keptMs: (tookMs: number) => number): () => Promise<T> {
  let last: { readonly reading: Promise<T>; until: number } | undefined
  return () => {
    const began = performance.now()
    if (last && began < last.until) return last.reading
    const own = { reading: read(), until: Infinity }
    last = own
    own.reading.then(
      () => {
        const now = performance.now()
        own.until = now + keptMs(now - began)
      },
      // One that failed is kept for nobody.
      () => (last = undefined),
    )
    return own.reading
  }
}
