/**
 * The life of a worker: when its loop begins, and what a stop waits for.
 *
 *     idle ──start──> running ──stop──> stopping ──all that runs has ended──> idle
 *
 * A drain may run beside the loop, or without it; what arrives runs in any state. A stop ends the loop and every drain, and
 * the stop of a whole box the arrivals too: nothing new begins, and what still runs when its patience is at an end is
 * aborted. A start that a stop has overtaken starts nothing.
 */
import { OnceboxError } from '../errors.js'
import { beginTurn } from '../lifecycle.js'
import type { Runtime } from '../runtime.js'
import { Abort } from '../worker/abort.js'
import type { Loop } from '../worker/loop.js'

/** What a stop waits for, beside the loop and the drains. */
export interface Besides {
  /** With these, what runs on arrival is over. Given where the whole box stops. */
  readonly others: Promise<unknown> | undefined
  /** Resolves when all that waits for the database is given back. */
  givenBack(): Promise<unknown>
}

export class WorkerLife {
  readonly #runtime: Runtime
  readonly #name: string
  #abort = new Abort()
  #stopping = false
  #ending = false
  /** Until the next stop: a start or a drain that a stop has overtaken starts nothing more. */
  #turn = beginTurn()
  /** All stops under way. */
  #halting: Promise<unknown> | undefined
  readonly #draining = new Set<Promise<unknown>>()

  constructor(runtime: Runtime, name: string) {
    this.#runtime = runtime
    this.#name = name
  }

  /** Aborted when the patience of a stop is at an end. What begins after that is given another. */
  get abort(): Abort {
    return this.#abort
  }

  readonly isStopping = (): boolean => this.#stopping
  /** The whole box is being stopped, arrivals included. */
  readonly isEnding = (): boolean => this.#ending

  /** Starts the loop once it is `ready`, and once every stop that was asked for before is over. */
  async start(loop: Loop, ready: Promise<unknown> | undefined): Promise<void> {
    const { goesOn } = this.#turn
    await ready
    while (this.#halting) await this.#halting
    // What runs is stopped by the handle that it was started with.
    if (!goesOn() || loop.alive) return
    this.#stopping = false
    this.#abort = new Abort()
    this.#runtime.traces.background(() => loop.start())
  }

  /** Resolves when all has ended; after `timeoutMs` what still runs is aborted. */
  stop(loop: Loop, timeoutMs: number, besides: Besides): Promise<void> {
    this.#turn.end()
    this.#turn = beginTurn()
    const stopped = this.#halt(loop, timeoutMs, besides)
    const all = Promise.allSettled([this.#halting, stopped]).then(() => {
      if (this.#halting === all) this.#halting = undefined
    })
    this.#halting = all
    return stopped
  }

  /** A drain, which the next stop ends. Each call of the answer runs a round, unless it has ended. */
  drain(round: (isOver: () => boolean) => Promise<boolean>): () => Promise<boolean> {
    const { goesOn } = this.#turn
    return async () => {
      // A stop under way ends first.
      await this.#halting
      if (!goesOn()) return false
      const own = round(() => !goesOn())
      this.#draining.add(own)
      try {
        return await own
      } finally {
        this.#draining.delete(own)
      }
    }
  }

  async #halt(loop: Loop, timeoutMs: number, { others, givenBack }: Besides): Promise<void> {
    this.#stopping = true
    this.#ending = others !== undefined
    const ended = Promise.all([loop.stop(), others, Promise.allSettled(this.#draining)])
    const timer = setTimeout(() => {
      this.#abort.abort(new OnceboxError('STOPPED', `the box stopped while ${this.#name} was still running`))
    }, timeoutMs)
    try {
      await ended
      // What was given back on arrival while the database was away is on its way.
      await givenBack()
    } finally {
      clearTimeout(timer)
      this.#ending = false
      // What arrives from now on is run again: `handle` works on a box that is stopped too.
      if (this.#abort.aborted) this.#abort = new Abort()
    }
  }
}
