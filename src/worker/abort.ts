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
