/**
 * Together: the handlers of a group, called side by side in its transaction, so that their statements share trips. Messages of
 * one key run one after the other.
 *
 * Of the rules of a transaction, those of a handler stay its own: its deadline, what it awaits, what it sends. Those that
 * neighbours share are the group's: an SQL error, a lock, a lost connection, and time spent behind the statements of others. So
 * nobody is blamed here, not for a timeout either: whatever fails, the group is abandoned, and its messages run one by one.
 */
import type { GroupClock } from '../worker/pace.js'
import { beginHandler, type Neighbours } from './call.js'
import type { Done, HeldMessage } from './held.js'
import type { Run, Worker } from './run.js'
import { GroupCall, LOCK_TIMEOUT, type GroupCalls } from './shared.js'
import type { Opened } from './transaction.js'

/** May these run side by side? Not with one that was seen to do what cannot be done beside others. */
export function mayRunTogether({ consumer, pace }: Worker, group: readonly HeldMessage[]): boolean {
  return consumer.options.group.together && !group.some(({ type }) => pace.apart.has(type))
}

export class TogetherCalls implements GroupCalls {
  readonly #run: Run
  #group: Group | undefined
  readonly messages: readonly HeldMessage[]
  readonly lockTimeout = LOCK_TIMEOUT
  /** Who waited for whom is not known; alone it is. */
  readonly slow = undefined

  constructor(run: Run, messages: readonly HeldMessage[]) {
    this.#run = run
    this.messages = messages
  }

  get left(): boolean {
    return this.#group?.left ?? false
  }

  get begun(): readonly HeldMessage[] {
    return this.#begun.map(({ message }) => message)
  }

  get running(): readonly HeldMessage[] {
    const running = this.#begun.filter(({ ended }) => ended === undefined)
    return running.length > 0 ? running.map(({ message }) => message) : this.begun.slice(-1)
  }

  get #begun(): readonly TogetherCall[] {
    return this.#group?.begun ?? []
  }

  /** Waits for all that were begun, even if one fails: none may still run when its message is run again. */
  async call(open: Opened, ours: readonly HeldMessage[]): Promise<readonly Done[]> {
    const clock = this.#run.worker.pace.clock()
    this.#group = new Group(this.#run, open, clock)
    const calls = await this.#group.run(clock.fitting(ours))
    for (const { outgoing } of calls) for (const sent of outgoing) open.outgoing.push(sent)
    clock.ranTogether(calls.map(({ message, started, ended }) => [message.type, ended! - started!]))
    return calls
  }
}

/**
 * Calls that begin together. They tell it by callback when they end: a hundred promises, each of them with its own for what it
 * waits for, would take as long as the statements of the handlers.
 */
class Group {
  readonly of: Run
  readonly open: Opened
  readonly #clock: GroupClock
  #calls: readonly TogetherCall[] = []
  /** Calls under way. */
  #running = 0
  #failure: { readonly error: unknown } | undefined
  #over: () => void = () => undefined
  /** True if one of them has to run with nobody beside it. */
  left = false

  constructor(run: Run, open: Opened, clock: GroupClock) {
    this.of = run
    this.open = open
    this.#clock = clock
  }

  get begun(): readonly TogetherCall[] {
    return this.#calls.filter(({ started }) => started !== undefined)
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /** Answers the calls that ran, in the order of their messages. Rejects with what failed first. */
  async run(messages: readonly HeldMessage[]): Promise<readonly TogetherCall[]> {
    this.#calls = messages.map((message) => new TogetherCall(this, message))
    const first = chained(this.#calls)
    this.#running = first.length
    const over = new Promise<void>((resolve) => {
      this.#over = resolve
    })
    for (const call of first) call.begin()
    if (first.length > 0) await over
    if (this.#failure) throw this.#failure.error
    return this.begun
  }

  returned({ next }: TogetherCall): void {
    const { worker } = this.of
    if (next && !this.#failure && !worker.stopping() && !this.#clock.isOver) return next.begin()
    this.#ended()
  }

  failed(error: unknown): void {
    this.#failure ??= { error }
    this.#ended()
  }

  #ended(): void {
    this.#running -= 1
    if (this.#running === 0) this.#over()
  }
}

/** One call, as far as it has come. */
class TogetherCall extends GroupCall implements Neighbours {
  readonly #group: Group
  /** What it has sent. Written in the order of the messages, whoever ends first. */
  readonly outgoing: Opened['outgoing'] = []
  /** The next of its key. */
  next: TogetherCall | undefined
  started: number | undefined
  ended: number | undefined

  constructor(group: Group, message: HeldMessage) {
    super(group.of, message)
    this.#group = group
  }

  get company(): Neighbours {
    return this
  }

  begin(): void {
    this.started = performance.now()
    beginHandler(this.run, this.#group.open, [this.message], this)
  }

  returned(result: string | undefined): void {
    this.result = result
    this.ended = performance.now()
    this.#group.returned(this)
  }

  failed(error: unknown): void {
    this.#group.failed(error)
  }

  haveFailed(): boolean {
    return this.#group.hasFailed
  }

  readonly leave = (): void => {
    this.#group.left = true
    this.run.worker.pace.apart.add(this.message.type)
  }
}

/** Messages of one key follow each other; every other one is a chain of its own. Answers the first of each chain. */
function chained(calls: readonly TogetherCall[]): readonly TogetherCall[] {
  const first: TogetherCall[] = []
  const last = new Map<string, TogetherCall>()
  for (const call of calls) {
    const key = call.message.lane ?? call.message.message.key
    const before = key === undefined ? undefined : last.get(key)
    if (before) before.next = call
    else first.push(call)
    if (key !== undefined) last.set(key, call)
  }
  return first
}
