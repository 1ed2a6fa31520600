/**
 * Gather: messages that come in calls of their own, as webhooks do, are stored together while others are on their way to the database.
 *
 * A call that comes alone waits for nobody. While `FLIGHTS` statements are under way, calls wait for the first of them to come
 * back, though not for long, and are stored by one statement then: a commit takes as long for a hundred messages as for one. A
 * caller sees nothing of its neighbours: they share that statement and nothing else. What is left to do, for a message that is known
 * or that nobody takes, each does by itself, in its own context; and all of it if what they share fails.
 */
import { carried } from '../carried.js'
import type { Outcome } from '../message.js'
import type { Runtime } from '../runtime.js'
import { isConnectionLoss } from '../postgres/errors.js'
import type { ReceiveAnswer } from '../postgres/sql/receive.js'
import { failpoint } from '../worker/failpoints.js'
import type { ConsumerDeclaration } from './consumer.js'
import { sizeOf, type Prepared } from './prepare.js'
import { answerAll, receive, store, type ReceiveOptions } from './receive.js'

/** So many statements are under way before calls wait: one is planned and run while the other waits for the disk. */
const FLIGHTS = 2
/** One that takes longer, on a connection that is dead perhaps, is not waited for: the next begins. */
const SLOW_MS = 100
const MOST_MESSAGES = 1_000
/** A statement that took longer has used up the time of its callers: they are told of its failure. */
const PATIENCE_MS = 2_000

export type Doorway = Pick<ReceiveOptions, 'consumers' | 'only' | 'unrouted'>

/** A call that waits for its turn. */
interface Waiting {
  readonly message: Prepared
  readonly how: Doorway
  /** Its turn is over: the rest is its own. */
  goOn(rest: () => Promise<Outcome>): void
  failed(error: unknown): void
}

export class Gathering {
  readonly #runtime: Runtime
  #flights = 0
  #waiting: Waiting[] = []

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  /** Receives the message of one call. */
  async receive(message: Prepared, how: Doorway): Promise<Outcome> {
    if (this.#flights < FLIGHTS) return this.#fly(() => this.#alone({ message, how }))
    const rest = await new Promise<() => Promise<Outcome>>((goOn, failed) => {
      this.#waiting.push({ message, how, goOn, failed })
    })
    return rest()
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
      const rest = await this.#shared(calls)
      calls.forEach(({ goOn }, at) => goOn(rest[at]!))
    } catch (error) {
      // What the server refuses is some neighbour's, however long it took.
      if (isConnectionLoss(error) && performance.now() - started > PATIENCE_MS) {
        return calls.forEach(({ failed }) => failed(error))
      }
      const over = (call: Waiting): Promise<void> =>
        new Promise((done) => call.goOn(() => this.#alone(call).finally(done)))
      await Promise.all(calls.map(over))
    }
  }

  /** Stores them by one statement, in no caller's trace. Answers what is left to do for each: it may fail, or wait for a lock. */
  async #shared(calls: readonly Waiting[]): Promise<(() => Promise<Outcome>)[]> {
    const { how } = calls[0]!
    const messages = calls.map(({ message }) => message)
    // One that waits for a lock must not keep the others: whatever is in its way ends what they share.
    const shared = { ...how, alone: true, heldBack: new Set<string>() }
    const answer = await this.#runtime.traces.detached(() => store(this.#runtime, messages, shared))
    const answers = byMessage(answer, messages.length)
    return messages.map((message, at) => async () => {
      const [outcome] = await answerAll(this.#runtime, [message], answers[at]!, { ...how, heldBack: new Set() })
      failpoint('received', this.#runtime.db)
      return outcome!
    })
  }
}

/** The answer as each message would have got it alone. */
function byMessage({ targets, ...lists }: ReceiveAnswer, count: number): ReceiveAnswer[] {
  type Pairs = [position: number, consumer: string][]
  const answers = Array.from({ length: count }, () => ({
    targets,
    rest: [] as Pairs,
    old: [] as Pairs,
    ahead: [] as Pairs,
  }))
  for (const name of ['rest', 'old', 'ahead'] as const) {
    for (const [position, consumer] of lists[name]) answers[position - 1]![name].push([1, consumer])
  }
  return answers
}

function isSameWay(one: Doorway, other: Doorway): boolean {
  return one.only === other.only && one.unrouted === other.unrouted && isSameList(one.consumers, other.consumers)
}

/** A consumer that was declared in between may have business keys, which the messages before it lack. */
function isSameList(one: readonly ConsumerDeclaration[], other: readonly ConsumerDeclaration[]): boolean {
  return one.length === other.length && one.every((consumer, at) => consumer === other[at])
}
