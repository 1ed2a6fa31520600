/**
 * Deliver: what the front doors do with a message, consumer by consumer.
 *
 * `receive` stores for everybody. `handle` runs now whatever can run now. A source follows each consumer's mode. In all
 * three, consumers of other processes get theirs stored, so that an acknowledgement never takes a message from them.
 */
import type { Incoming, Outcome } from '../message.js'
import { OTHER_CONSUMERS } from '../postgres/sql/receive.js'
import type { Origin, Runtime } from '../runtime.js'
import type { Choose } from './compare.js'
import { identityUnknown, type ConsumerDeclaration } from './consumer.js'
import { runDirect } from './direct.js'
import type { Doorway, Gathering } from './gather.js'
import { handleFor } from './inline/handle.js'
import { OthersMet, type Elsewhere, type OthersQuestion } from './others.js'
import { quarantined, type Ackable } from './outcome.js'
import { prepare, type Prepared, type PrepareOptions, type Refused } from './prepare.js'
import { quarantine, refuse } from './quarantine.js'
import { isMeant, receive, sumUpAll, withoutRefused } from './receive.js'
import { reroute } from './reroute.js'
import type { Worker } from './run.js'

export interface DeliverOptions {
  /** The local consumers, with what it takes to run them now. */
  readonly consumers: readonly Worker[]
  /** How a consumer gets its messages. */
  readonly how: (consumer: ConsumerDeclaration) => 'store' | 'run' | 'direct'
  /** Only for these consumers. */
  readonly only?: readonly string[] | undefined
  readonly unrouted?: 'quarantine' | 'skip' | undefined
  readonly fingerprint?: Choose | undefined
  /** From a source: it would deliver again, for ever, what made the whole batch fail. */
  readonly bySource?: boolean
  /** The source that brings them. */
  readonly origin?: Origin | undefined
  /** What is remembered of consumers of other processes. */
  readonly elsewhere: Elsewhere
  /** Where calls with one message each meet. */
  readonly gathering: Gathering
}

export function deliver(runtime: Runtime, incoming: readonly Incoming[], options: DeliverOptions): Promise<Outcome[]> {
  return runtime.traces.receive(options.origin?.name, incoming, () => take(runtime, incoming, options))
}

async function take(runtime: Runtime, incoming: readonly Incoming[], options: DeliverOptions): Promise<Outcome[]> {
  const declared = options.consumers.map(({ consumer }) => consumer)
  const messages: (Prepared | Refused)[] = []
  const { fingerprint, bySource = false, origin } = options
  const how = { consumers: declared, fingerprint, bySource, origin, trace: runtime.traces.headers }
  for (const one of incoming) {
    const prepared = how.bySource ? prepareAny(runtime, one, how) : prepare(runtime, one, how)
    messages.push(prepared instanceof Promise ? await prepared : prepared)
  }
  const { only, unrouted } = options
  const now = options.consumers.filter(
    ({ consumer }) => options.how(consumer) !== 'store' && isMeant(consumer.name, only),
  )
  const outcomes =
    now.length === 0
      ? await store(runtime, messages, options.gathering, { consumers: declared, only, unrouted })
      : await withoutRefused(runtime, messages, only, (accepted) => deliverNow(runtime, accepted, options, now))
  return reroute(runtime, messages, outcomes, { consumers: declared, only })
}

/** What comes in a call of its own may be stored together with others. */
async function store(
  runtime: Runtime,
  messages: readonly (Prepared | Refused)[],
  gathering: Gathering,
  how: Doorway,
): Promise<Outcome[]> {
  const [first] = messages
  if (messages.length !== 1 || 'reason' in first!) return receive(runtime, messages, how)
  return [await gathering.receive(first!, how)]
}

/** A source of the user's may hand over anything: what cannot even be looked at is refused, and its neighbours are not. */
function prepareAny(runtime: Runtime, incoming: Incoming, options: PrepareOptions): ReturnType<typeof prepare> {
  try {
    return prepare(runtime, incoming, options)
  } catch {
    return prepare(runtime, { id: undefined, type: '', body: 'a message that cannot be read' }, options)
  }
}

async function deliverNow(
  runtime: Runtime,
  accepted: readonly Prepared[],
  options: DeliverOptions,
  now: readonly Worker[],
): Promise<Outcome[]> {
  const perMessage = new Map<Prepared, Ackable[]>(accepted.map((message) => [message, []]))
  const types = [...new Set(accepted.map(({ type }) => type))]
  const call: Call = { ...options, accepted, perMessage, now, types, ordered: new Set() }
  const question = askForOthers(call)
  if (accepted.length === 0 || !mayRideAlong(call)) await storeForOthers(runtime, call, question)
  for (const worker of now) {
    const { name } = worker.consumer
    if (call.ordered.has(name)) continue
    const wanted = accepted.filter(({ type }) => worker.consumer.handlerOf(type) !== undefined)
    const own = await withoutUnfit(runtime, name, wanted, perMessage)
    if (own.length === 0) continue
    const run = (): Promise<Ackable[]> =>
      options.how(worker.consumer) === 'direct' ? runDirect(worker, own) : handleFor(worker, own, question)
    const outcomes = await run().catch(async (error: unknown) => {
      if (!(error instanceof OthersMet)) throw error
      await storeForOthers(runtime, call, question)
      return call.ordered.has(name) ? undefined : run()
    })
    if (outcomes) own.forEach((message, at) => perMessage.get(message)!.push(outcomes[at]!))
  }
  // Nothing was marked.
  if (!question.answered) await storeForOthers(runtime, call, question)
  return sumUpAll(runtime, accepted, [...perMessage.values()], options)
}

/** A consumer and a type that it runs now. */
type Pair = readonly [consumer: string, type: string]

/** Messages that run now. */
interface Call extends DeliverOptions {
  readonly accepted: readonly Prepared[]
  readonly types: readonly string[]
  readonly now: readonly Worker[]
  /** What each consumer was told. */
  readonly perMessage: ReadonlyMap<Prepared, Ackable[]>
  /** Those of `now` that keep the order of keys by the word of another process: theirs are stored after all. */
  readonly ordered: Set<string>
}

function askForOthers(call: Call): OthersQuestion {
  const { types, only } = call
  const { not, keyless, unordered } = runningNow(call)
  const covered = not.map(([consumer, type]) => ({ consumer, type }))
  for (const { consumer } of call.now) {
    if (types.every((type) => consumer.handlerOf(type) !== undefined))
      covered.push({ consumer: consumer.name, type: '*' })
  }
  return { takers: { types: [...types, '*'], covered, only, keyless, unordered }, answered: false }
}

/** Can the first mark ask for others, and will there be none, as far as is known? */
function mayRideAlong(call: Call): boolean {
  const { accepted, types, now, only, how, elsewhere } = call
  return (
    now.every(({ consumer }) => how(consumer) === 'run') &&
    // Whose last worker may have died runs under a lease, without a mark.
    accepted.every(({ incoming }) => incoming.redelivered !== true) &&
    !isStoredHere(call) &&
    !types.some((type) => elsewhere.has(type, only))
  )
}

/** Asks for others at once, and stores for them what they take. */
async function storeForOthers(runtime: Runtime, call: Call, question: OthersQuestion): Promise<void> {
  const { accepted, perMessage, types, only, elsewhere } = call
  const taken = new Set<string>()
  if (accepted.length > 0 && (await isStoredForAny(runtime, call))) {
    const consumers = call.consumers.map(({ consumer }) => consumer)
    const outcomes = await receive(runtime, accepted, { consumers, only, except: pairsOf(call), unrouted: 'skip' })
    accepted.forEach((message, at) => {
      const { consumers, ack } = outcomes[at]!
      if (consumers.length > 0) taken.add(message.type)
      for (const outcome of consumers) perMessage.get(message)!.push({ outcome, ack })
    })
  }
  for (const type of types) elsewhere.note(type, only, taken.has(type))
  question.answered = true
}

/** A consumer that cannot tell which message it is gets it in quarantine. Answers the others. */
async function withoutUnfit(
  runtime: Runtime,
  consumer: string,
  messages: readonly Prepared[],
  perMessage: ReadonlyMap<Prepared, Ackable[]>,
): Promise<readonly Prepared[]> {
  const unfit = messages.filter((message) => message.unfit?.has(consumer))
  if (unfit.length === 0) return messages
  const detailOf = (message: Prepared): string => message.unfit!.get(consumer)!
  await quarantine(
    runtime,
    unfit.map((message) => ({ consumer, refused: refuse(message, 'no-id', detailOf(message)) })),
  )
  for (const message of unfit) perMessage.get(message)!.push(quarantined(consumer, 'no-id', detailOf(message)))
  return messages.filter((message) => !unfit.includes(message))
}

/** Which consumers run which types now. A type that only a newer version of a consumer takes is none of them. */
function pairsOf({ types, now, ordered }: Call): Pair[] {
  const running = now.filter(({ consumer }) => !ordered.has(consumer.name))
  return running.flatMap(({ consumer }) =>
    types.filter((type) => consumer.handlerOf(type) !== undefined).map((type): Pair => [consumer.name, type]),
  )
}

/** Is there a consumer here for whom these messages have to be stored? */
function isStoredHere({ types, consumers, how, only }: Call): boolean {
  return consumers.some(
    ({ consumer }) =>
      how(consumer) === 'store' &&
      isMeant(consumer.name, only) &&
      types.some((type) => consumer.handlerOf(type) !== undefined),
  )
}

/**
 * Is there anybody, here or in another process, for whom these messages have to be stored? Notes who is `ordered`. Throws if one that would run
 * now has a business key that only others can compute: it would run two messages about one fact.
 */
async function isStoredForAny(runtime: Runtime, call: Call): Promise<boolean> {
  const { types, only } = call
  const storedHere = isStoredHere(call)
  const { not, keyless, unordered } = runningNow(call)
  if (storedHere && keyless.length === 0 && unordered.length === 0) return true
  const others = await runtime.db.run(OTHER_CONSUMERS, { types, not, keyless, unordered })
  const guessed = others.find((row) => row.guessed === 'true')
  if (guessed) throw identityUnknown(guessed.consumer)
  for (const { consumer, ordered } of others) if (ordered === 'true') call.ordered.add(consumer)
  return storedHere || others.some(({ consumer }) => isMeant(consumer, only))
}

/** What the database is told of those that run now, when it is asked for others. */
interface RunningNow {
  /** They are no others. */
  readonly not: readonly Pair[]
  /** They are marked, and have no business key here. */
  readonly keyless: readonly string[]
  /** They are marked and keep no order, and there is a key to keep one of. */
  readonly unordered: readonly string[]
}

function runningNow(call: Call): RunningNow {
  const not = pairsOf(call)
  const names = new Set(not.map(([consumer]) => consumer))
  const marked = call.now
    .map(({ consumer }) => consumer)
    .filter((consumer) => names.has(consumer.name) && call.how(consumer) === 'run')
  const keyless = marked.filter(({ options }) => !options.identity)
  const hasKeys = call.accepted.some(({ key, lane }) => key !== undefined || lane !== undefined)
  return { not, keyless: keyless.map(nameOf), unordered: hasKeys ? marked.map(nameOf) : [] }
}

function nameOf({ name }: ConsumerDeclaration): string {
  return name
}
