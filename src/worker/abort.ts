/** A reason to stop what is running: one for many listeners, cheaper than a tree of AbortSignals per message. */
export class Abort {
  #reason: Error | undefined
  readonly #listeners = new Set<(reason: Error) => void>()

  get aborted(): Error | undefined {
    return this.#reason
  }

  onAbort(listener: (reason: Error) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  abort(reason: Error): void {
    if (this.#reason) return
    this.#reason = reason
    for (const listener of [...this.#listeners]) listener(reason)
  }
}

/** Tells when the time is up, and when it is aborted, until the returned function is called. */
export function deadline(abort: Abort, ms: number, tell: { passed(): void; aborted(reason: Error): void }): () => void {
  const timer = setTimeout(() => tell.passed(), ms)
  const forget = abort.onAbort((reason) => {
    // What goes on all the same keeps no process alive.
    timer.unref()
    tell.aborted(reason)
  })
  return () => {
    clearTimeout(timer)
    forget()
  }
}
