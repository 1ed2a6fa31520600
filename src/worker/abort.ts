/** A reason to stop what is running: one for many listeners, cheaper than a tree of AbortSignals per message. */
export class Abort {
  #reason: Error | undefined
  readonly #listeners = new Set<Abortable>()

  get aborted(): Error | undefined {
    return this.#reason
  }

  /** Tells this listener, until it is forgotten. */
  tell(listener: Abortable): void {
    this.#listeners.add(listener)
  }

  forget(listener: Abortable): void {
    this.#listeners.delete(listener)
  }

  onAbort(aborted: (reason: Error) => void): () => void {
    const listener = { aborted }
    this.tell(listener)
    return () => this.forget(listener)
  }

  abort(reason: Error): void {
    if (this.#reason) return
    this.#reason = reason
    for (const listener of [...this.#listeners]) listener.aborted(reason)
  }
}

export interface Abortable {
  aborted(reason: Error): void
}

/** Tells when the time is up, and when it is aborted, until the returned function is called. */
export function deadline(abort: Abort, ms: number, tell: Abortable & { passed(): void }): () => void {
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
