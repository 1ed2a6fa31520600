/** Partitions that are at work, and those that wait: for a turn, or for the time of a retry. What waits is paused. */
import { nameOf, type KafkaBatch } from './client.js'

/** As many partitions as may are at work. Another one is paused, and resumed when one of them is done. */
export class Turns {
  readonly #most: number
  readonly #atWork = new Map<string, Promise<void>>()
  /** How to resume those that wait for their turn. */
  readonly #waiting = new Map<string, () => void>()
  #closed = false

  constructor(most: number) {
    this.#most = most
  }

  /** Begins the work on a batch, if it may. */
  begin(payload: KafkaBatch, work: () => Promise<void>): Promise<void> | undefined {
    const name = nameOf(payload.batch)
    // Under an earlier assignment it may be at work still.
    if (this.#closed || this.#atWork.has(name) || this.#atWork.size >= this.#most) {
      this.#waiting.set(name, payload.pause())
      return undefined
    }
    const working = work().finally(() => {
      this.#atWork.delete(name)
      if (!this.#closed) this.#resume(this.#most - this.#atWork.size)
    })
    this.#atWork.set(name, working)
    return working
  }

  /** After another assignment: what was theirs may be somebody else's. */
  resumeAll(): void {
    this.#resume(Infinity)
  }

  close(): void {
    this.#closed = true
  }

  async finish(): Promise<void> {
    await Promise.allSettled(this.#atWork.values())
  }

  #resume(most: number): void {
    for (const [name, resume] of [...this.#waiting].slice(0, Math.max(0, most))) {
      this.#waiting.delete(name)
      resumeIfOurs(resume)
    }
  }
}

/** Partitions that are tried again at a time of their own. */
export class Pauses {
  readonly #timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly resume: () => void }>()
  /** Those of them that were not in an assignment since. */
  readonly #away = new Set<string>()
  #closed = false

  pause(payload: KafkaBatch, ms: number): void {
    if (this.#closed) return
    const name = nameOf(payload.batch)
    const resume = payload.pause()
    clearTimeout(this.#timers.get(name)?.timer)
    this.#away.delete(name)
    this.#timers.set(name, { resume, timer: setTimeout(() => this.#end(name), ms) })
  }

  /**
   * One that was away and is back does not wait for its old time: another member may be done with the message that it was
   * for. The client would keep it paused, for it remembers that over an assignment.
   */
  assigned(names: ReadonlySet<string>): void {
    for (const name of [...this.#timers.keys()]) {
      if (!names.has(name)) this.#away.add(name)
      else if (this.#away.has(name)) this.#end(name)
    }
  }

  /** It is given back to the client, unless it waits for its time. */
  resumeUnlessPaused(payload: KafkaBatch, resume: () => void): void {
    if (!this.#closed && !this.#timers.has(nameOf(payload.batch))) resumeIfOurs(resume)
  }

  close(): void {
    this.#closed = true
    for (const { timer } of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  #end(name: string): void {
    const { timer, resume } = this.#timers.get(name)!
    clearTimeout(timer)
    this.#timers.delete(name)
    this.#away.delete(name)
    resumeIfOurs(resume)
  }
}

function resumeIfOurs(resume: () => void): void {
  try {
    resume()
  } catch {
    // It is no longer ours.
  }
}
