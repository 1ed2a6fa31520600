/**
 * Gather: messages that come in calls of their own, as webhooks do, are stored together while others are on their way to the database.
 *
 * A call that comes alone waits for nobody. While `FLIGHTS` statements are under way, calls wait for the first of them to come
 * back, though not for long, and are stored by one statement then: a commit takes as long for a hundred messages as for one. A
 * caller sees nothing of its neighbours: if what they share fails, each message is received by itself.
 */
import { carried } from '../carried.js'
import type { Outcome } from '../message.js'
import type { Runtime } from '../runtime.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { Prepared, Refused } from './prepare.js'
import { receive, sizeOf, type ReceiveOptions } from './receive.js'

/** So many statements are under way before calls wait: one is planned and run while the other waits for the disk. */
const FLIGHTS = 2
/** One that takes longer, on a connection that is dead perhaps, is not waited for: the next begins. */
const SLOW_MS = 100
const MOST_MESSAGES = 1_000
/** A statement that took longer has used up the time of its callers: they are told of its failure. */
const PATIENCE_MS = 2_000

type Doorway = Pick<ReceiveOptions, 'consumers' | 'only' | 'unrouted'>

/** A call that waits for its turn. */
interface Waiting {
  readonly message: Prepared
  readonly how: Doorway
  stored(outcome: Outcome): void
  failed(error: unknown): void
}

export class Gathering {
  readonly #runtime: Runtime
  #flights = 0
  #waiting: Waiting[] = []

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  /** Receives the messages of one call. */
  async receive(messages: readonly (Prepared | Refused)[], how: Doorway): Promise<Outcome[]> {
    const [message] = messages
    if (message === undefined || messages.length > 1 || 'reason' in message) {
      return receive(this.#runtime, messages, how)
    }
    if (this.#flights < FLIGHTS) return [await this.#fly(() => this.#alone({ message, how }))]
    return [
      await new Promise<Outcome>((stored, failed) => {
        this.#waiting.push({ message, how, stored, failed })
      }),
    ]
  }

  async #fly<R>(work: () => Promise<R>): Promise<R> {
    this.#flights++
    let isWaitedFor = true
    const makeRoom = (): void => {
      if (!isWaitedFor) return
      isWaitedFor = false
      this.#flights--
      if (this.#waiting.length > 0) void this.#fly(() => this.#together(this.#next()))
    }
    const slow = setTimeout(makeRoom, SLOW_MS)
    try {
      return await work()
    } finally {
      clearTimeout(slow)
      makeRoom()
    }
  }

  /** The first of those that wait, and all behind it that take the same way and fit into its statement. */
  #next(): readonly Waiting[] {
    const { how } = this.#waiting[0]!
    const same = this.#waiting.filter((one) => isSameWay(one.how, how))
    const next = same.slice(
      0,
      carried(same, ({ message }) => sizeOf(message), MOST_MESSAGES),
    )
    const taken = new Set(next)
    this.#waiting = this.#waiting.filter((one) => !taken.has(one))
    return next
  }

  async #alone({ message, how }: Pick<Waiting, 'message' | 'how'>): Promise<Outcome> {
    const [outcome] = await receive(this.#runtime, [message], how)
    return outcome!
  }

  async #together(calls: readonly Waiting[]): Promise<void> {
    const started = performance.now()
    try {
      const outcomes = await this.#shared(calls)
      calls.forEach(({ stored }, at) => stored(outcomes[at]!))
    } catch (error) {
      if (performance.now() - started > PATIENCE_MS) return calls.forEach(({ failed }) => failed(error))
      await Promise.all(calls.map((call) => this.#alone(call).then(call.stored, call.failed)))
    }
  }

  /** In no caller's trace. */
  #shared(calls: readonly Waiting[]): Promise<Outcome[]> {
    const messages = calls.map(({ message }) => message)
    // One that waits for a lock must not keep the others: whatever is in its way ends what they share.
    const how = { ...calls[0]!.how, alone: true, atomic: true }
    return this.#runtime.traces.detached(() => receive(this.#runtime, messages, how))
  }
}

function isSameWay(one: Doorway, other: Doorway): boolean {
  return one.only === other.only && one.unrouted === other.unrouted && isSameList(one.consumers, other.consumers)
}

/** A consumer that was declared in between may have business keys, which the messages before it lack. */
function isSameList(one: readonly ConsumerDeclaration[], other: readonly ConsumerDeclaration[]): boolean {
  return one.length === other.length && one.every((consumer, at) => consumer === other[at])
}
