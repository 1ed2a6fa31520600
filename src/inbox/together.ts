/**
 * Together: the handlers of a group, called side by side in its transaction, so that their statements share trips. Messages of
 * one key run one after the other.
 *
 * Of the rules of a transaction, those of a handler stay its own: its deadline, what it awaits, what it sends. Those that
 * neighbours share are the group's: an SQL error, a lock, a lost connection, and time spent behind the statements of others. So
 * nobody is blamed here, not for a timeout either: whatever fails, the group is abandoned, and its messages run one by one.
 */
import { callHandler, type Neighbours } from './call.js'
import type { Done, HeldMessage } from './held.js'
import type { Run, Worker } from './run.js'
import { LOCK_TIMEOUT, SharedEffects, type GroupCalls } from './shared.js'
import type { Opened } from './transaction.js'

/** May these run side by side? Not with one that was seen to do what cannot be done beside others. */
export function mayRunTogether({ consumer, pace }: Worker, group: readonly HeldMessage[]): boolean {
  return consumer.options.group.together && !group.some(({ type }) => pace.apart.has(type))
}

/** One call, as far as it has come. */
interface Call {
  readonly message: HeldMessage
  readonly started: number
  ended?: number
  result?: string | undefined
  /** What it has sent. Written in the order of the messages, whoever ends first. */
  readonly outgoing: Opened['outgoing']
}

export class TogetherCalls implements GroupCalls {
  readonly #run: Run
  readonly #calls = new Map<HeldMessage, Call>()
  #failure: { readonly error: unknown } | undefined
  readonly messages: readonly HeldMessage[]
  readonly lockTimeout = LOCK_TIMEOUT
  /** Who waited for whom is not known; alone it is. */
  readonly slow = undefined
  left = false

  constructor(run: Run, messages: readonly HeldMessage[]) {
    this.#run = run
    this.messages = messages
  }

  get begun(): readonly HeldMessage[] {
    return this.messages.filter((message) => this.#calls.has(message))
  }

  get running(): readonly HeldMessage[] {
    const running = this.begun.filter((message) => this.#calls.get(message)!.ended === undefined)
    return running.length > 0 ? running : this.begun.slice(-1)
  }

  /** Waits for all that were begun, even if one fails: none may still run when its message is run again. */
  async call(open: Opened, ours: readonly HeldMessage[]): Promise<readonly Done[]> {
    const clock = this.#run.worker.pace.clock()
    const mayGoOn = (): boolean => !this.#failure && !this.#run.worker.stopping() && !clock.isOver
    await Promise.all(chains(clock.fitting(ours)).map((chain) => this.#runChain(open, chain, mayGoOn)))
    if (this.#failure) throw this.#failure.error
    const calls = ours.flatMap((message) => this.#calls.get(message) ?? [])
    for (const { outgoing } of calls) for (const sent of outgoing) open.outgoing.push(sent)
    clock.ranTogether(calls.map(({ message, started, ended }) => [message.type, ended! - started]))
    return calls.map(({ message, result }) => ({ message, result }))
  }

  /** Never rejects: what fails first is kept. */
  async #runChain(open: Opened, chain: readonly HeldMessage[], mayGoOn: () => boolean): Promise<void> {
    for (const [at, message] of chain.entries()) {
      if (at > 0 && !mayGoOn()) return
      try {
        await this.#callOne(open, message)
      } catch (error) {
        this.#failure ??= { error }
        return
      }
    }
  }

  async #callOne(open: Opened, message: HeldMessage): Promise<void> {
    const call: Call = { message, started: performance.now(), outgoing: [] }
    this.#calls.set(message, call)
    const company: Neighbours = {
      failed: () => this.#failure !== undefined,
      leave: () => {
        this.left = true
        this.#run.worker.pace.apart.add(message.type)
      },
    }
    const effects = new SharedEffects(this.#run, message)
    const own = { ...open, outgoing: call.outgoing }
    call.result = await callHandler(this.#run, own, [message], { effects, company })
    call.ended = performance.now()
  }
}

/** Messages of one key follow each other; every other one is a chain of its own. */
function chains(messages: readonly HeldMessage[]): HeldMessage[][] {
  const all: HeldMessage[][] = []
  const byKey = new Map<string, HeldMessage[]>()
  for (const message of messages) {
    const key = message.lane ?? message.message.key
    const chain = key === undefined ? undefined : byKey.get(key)
    if (chain) chain.push(message)
    else {
      const begun = [message]
      all.push(begun)
      if (key !== undefined) byKey.set(key, begun)
    }
  }
  return all
}
