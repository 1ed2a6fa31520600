/** Shared: the handlers of a group, called one after the other in its transaction. */
import { OnceboxError } from '../errors.js'
import type { GroupClock } from '../worker/pace.js'
import { beginHandler, type Call, type EffectRunner, type Effects } from './call.js'
import type { Ends } from './call-within.js'
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

/** They tell it by callback when they end: promises would take as long as the rest of a call. */
export class SharedCalls implements GroupCalls {
  readonly #run: Run
  readonly #calls: SharedCall[] = []
  readonly messages: readonly HeldMessage[]
  readonly lockTimeout = LOCK_TIMEOUT
  readonly left = false
  slow: HeldMessage | undefined

  constructor(run: Run, messages: readonly HeldMessage[]) {
    this.#run = run
    this.messages = messages
  }

  get begun(): readonly HeldMessage[] {
    return this.#calls.map(({ message }) => message)
  }

  get running(): readonly HeldMessage[] {
    return this.begun.slice(-1)
  }

  async call(open: Opened, ours: readonly HeldMessage[]): Promise<readonly Done[]> {
    const { worker, held } = this.#run
    const clock = worker.pace.clock(held.stretch)
    let failure: { readonly error: unknown } | undefined
    await new Promise<void>((over) => {
      const next = (): void => {
        const left = ours.length - this.#calls.length
        if (left === 0 || !this.#mayStart(clock, ours.at(-left)!, left)) return over()
        const call = new SharedCall(this.#run, ours.at(-left)!, ends)
        this.#calls.push(call)
        beginHandler(this.#run, open, [call.message], call)
      }
      const ends: Ends<HeldMessage> = {
        returned({ type }) {
          clock.ran(type)
          next()
        },
        failed(error) {
          failure = { error }
          over()
        },
      }
      next()
    })
    if (!failure) return this.#calls
    if (failure.error instanceof OnceboxError && failure.error.code === 'HANDLER_TIMEOUT') [this.slow] = this.running
    throw failure.error
  }

  /** A slow one gets a transaction of its own: this one commits first. A box that stops starts nothing. */
  #mayStart(clock: GroupClock, { type }: HeldMessage, left: number): boolean {
    return this.#calls.length === 0 || (!this.#run.worker.stopping() && clock.hasTime(type, left))
  }
}

/** One call of a group. In a shared transaction an effect writes and calls nothing: its message moves out of the group. */
export abstract class GroupCall implements Call, Done, Effects {
  readonly run: Run
  readonly message: HeldMessage
  result: string | undefined
  /** Made when it is needed: an error for each message of every group would cost more than the rest of the call. */
  #leave: OnceboxError | undefined

  constructor(run: Run, message: HeldMessage) {
    this.run = run
    this.message = message
  }

  abstract returned(result: string | undefined): void
  abstract failed(error: unknown): void

  get effects(): Effects {
    return this
  }

  runIn(): EffectRunner {
    return () => {
      this.#leave ??= new OnceboxError(
        'GROUP_ABANDONED',
        'the handler calls an effect, so it runs again in its own transaction',
      )
      this.run.worker.pace.alone.add(this.message.type)
      return Promise.reject(this.#leave)
    }
  }

  /** A handler that catches everything must not keep the group going. */
  check(): void {
    if (this.#leave) throw this.#leave
  }
}

class SharedCall extends GroupCall {
  readonly #group: Ends<HeldMessage>

  constructor(run: Run, message: HeldMessage, group: Ends<HeldMessage>) {
    super(run, message)
    this.#group = group
  }

  returned(result: string | undefined): void {
    this.result = result
    this.#group.returned(this.message)
  }

  failed(error: unknown): void {
    this.#group.failed(error)
  }
}
