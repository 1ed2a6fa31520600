/** Shared: the handlers of a group, called one after the other in its transaction. */
import { OnceboxError } from '../errors.js'
import { callHandler, type Effects } from './call.js'
import type { Done, HeldMessage } from './held.js'
import type { Pass } from './pass.js'
import type { Run } from './run.js'
import type { Opened } from './transaction.js'

/** Longer waits for a row lock end a shared group; detecting a deadlock would take a second. */
export const LOCK_TIMEOUT = '20ms'

/** The calls of a group, and what is known of them if it fails. */
export interface GroupCalls extends Pass {
  /** Those whose handlers were called. */
  readonly begun: readonly HeldMessage[]
  /** Those whose handlers were running last: one of them may have ended the connection. */
  readonly running: readonly HeldMessage[]
  /** The one that exceeded its deadline, where it is known. */
  readonly slow: HeldMessage | undefined
  /** True if one of them has to run with nobody beside it. */
  readonly left: boolean
}

export class SharedCalls implements GroupCalls {
  readonly #run: Run
  readonly messages: readonly HeldMessage[]
  readonly lockTimeout = LOCK_TIMEOUT
  readonly begun: HeldMessage[] = []
  readonly left = false
  slow: HeldMessage | undefined

  constructor(run: Run, messages: readonly HeldMessage[]) {
    this.#run = run
    this.messages = messages
  }

  get running(): readonly HeldMessage[] {
    return this.begun.slice(-1)
  }

  async call(open: Opened, ours: readonly HeldMessage[]): Promise<readonly Done[]> {
    const { worker, held } = this.#run
    const done: Done[] = []
    const clock = worker.pace.clock(held.stretch)
    for (const message of ours) {
      // A slow one gets a transaction of its own: this one commits first. A box that stops starts nothing.
      if (done.length > 0 && (worker.stopping() || !clock.hasTime(message.type, ours.length - done.length))) break
      this.begun.push(message)
      try {
        const effects = new SharedEffects(this.#run, message)
        done.push({ message, result: await callHandler(this.#run, open, [message], { effects }) })
      } catch (error) {
        if (error instanceof OnceboxError && error.code === 'HANDLER_TIMEOUT') this.slow = message
        throw error
      }
      clock.ran(message.type)
    }
    return done
  }
}

/** In a shared transaction an effect writes and calls nothing: its message moves out of the group. */
export class SharedEffects implements Effects {
  readonly #run: Run
  readonly #message: HeldMessage
  /** Made when it is needed: an error for each message of every group would cost more than the rest of the call. */
  #leave: OnceboxError | undefined

  constructor(run: Run, message: HeldMessage) {
    this.#run = run
    this.#message = message
  }

  runIn() {
    return (): Promise<never> => {
      this.#leave ??= new OnceboxError(
        'GROUP_ABANDONED',
        'the handler calls an effect, so it runs again in its own transaction',
      )
      this.#run.worker.pace.alone.add(this.#message.type)
      return Promise.reject(this.#leave)
    }
  }

  /** A handler that catches everything must not keep the group going. */
  check(): void {
    if (this.#leave) throw this.#leave
  }
}
