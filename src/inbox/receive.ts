/**
 * Receive: the front door. Persists a batch for every subscribed consumer in one statement and answers after the
 * commit, in order. Whatever was not new is classified by a second statement with a fresh snapshot.
 */
import { backoffMs, sleep } from '../backoff.js'
import type { ConsumerOutcome, Outcome } from '../message.js'
import { isConflict, sqlState } from '../postgres/errors.js'
import { receiveParam, type MessageRow, type RareParts } from '../postgres/sql/receive-param.js'
import { RECEIVE, RECEIVE_ONE, UNPARK_FAILED, type ReceiveAnswer } from '../postgres/sql/receive.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import { failpoint } from '../worker/failpoints.js'
import { inParts } from '../carried.js'
import { asReceiverSeesIt, identityUnknown, type ConsumerDeclaration } from './consumer.js'
import { busy, quarantined, quarantinedOutcome, storedOutcome, sumUp, type Ackable } from './outcome.js'
import { sizeOf, type Prepared, type Refused } from './prepare.js'
import { identityOf } from './identity.js'
import { classify, confirmKnown, CONFLICT, knownOutcome, tooOld } from './known.js'
import { NO_CONSUMER, quarantine, refuse, type Quarantined } from './quarantine.js'

export interface ReceiveOptions {
  readonly consumers: readonly ConsumerDeclaration[]
  /** Only for these consumers; undefined for all. */
  readonly only?: readonly string[] | undefined
  /** Not for these consumers, of these types: they get them in another way. */
  readonly except?: readonly (readonly [consumer: string, type: string])[] | undefined
  readonly unrouted?: 'quarantine' | 'skip' | undefined
  /** Released by a person: the age was judged already. */
  readonly force?: boolean
  /** In a transaction of the caller, who rolls back and tries again: a conflict has ended it. */
  readonly atomic?: boolean
  /** The message was in a batch that waited too long for a lock. */
  readonly alone?: boolean
}

/** One call of `receive`, from its first statement to its last. */
interface Reception extends ReceiveOptions {
  /**
   * Lanes of which something could not be stored: what comes behind it in the same call is not stored either, or it would
   * come before it. Which consumers keep an order may be known to other processes alone, so it goes for all.
   */
  readonly heldBack: Set<string>
}

/** How long a batch waits for a copy of one of its messages that is being handled on arrival; then each by itself. */
const LOCK_WAIT = { batch: '1s', alone: '100ms' }

/** So often a deadlock or a serialization failure is tried again before the batch falls apart. */
const TRIES = 4

const MAX_BATCH = 5_000

export async function receive(
  runtime: Runtime,
  messages: readonly (Prepared | Refused)[],
  options: ReceiveOptions,
): Promise<Outcome[]> {
  return withoutRefused(runtime, messages, options.only, async (accepted) => {
    const reception = { ...options, heldBack: new Set<string>() }
    const outcomes: Outcome[] = []
    for (const part of inParts(accepted, sizeOf, MAX_BATCH)) {
      const free = part.filter((message) => !isHeldBack(message, reception))
      const answers = await receiveBatch(runtime, free, reception)
      let next = 0
      for (const message of part) {
        outcomes.push(message === free[next] ? answers[next++]! : busyForAll(message, reception))
      }
    }
    failpoint('received', runtime.db)
    return outcomes
  })
}

/** Quarantines what was refused before, and answers for all: for the others what `take` answers. */
export async function withoutRefused(
  runtime: Runtime,
  messages: readonly (Prepared | Refused)[],
  meant: readonly string[] | undefined,
  take: (accepted: readonly Prepared[]) => Promise<readonly Outcome[]>,
): Promise<Outcome[]> {
  const accepted: Prepared[] = []
  const refused: Quarantined[] = []
  for (const one of messages) {
    if ('reason' in one) refused.push({ consumer: NO_CONSUMER, refused: one, meant })
    else accepted.push(one)
  }
  await quarantine(runtime, refused)
  const outcomes = await take(accepted)
  if (refused.length === 0) return [...outcomes]
  let next = 0
  return messages.map((one) => ('reason' in one ? quarantinedOutcome(one.incoming.id, one) : outcomes[next++]!))
}

/** By message of a batch, what each consumer that gets it is told. */
type PerMessage = readonly Map<string, Ackable>[]

/** A message, by its place in the batch, and a consumer of it. */
interface Pair {
  readonly at: number
  readonly consumer: string
  readonly message: Prepared
}

async function receiveBatch(runtime: Runtime, batch: readonly Prepared[], options: Reception): Promise<Outcome[]> {
  if (batch.length === 0) return []
  let answer: ReceiveAnswer
  try {
    answer = await storeCalmly(runtime, batch, options)
  } catch (error) {
    if (!isConflict(error) || options.atomic) throw error
    return oneByOne(runtime, batch, options)
  }
  return answerAll(runtime, batch, answer, options)
}

/** What is left to do when a statement has stored what is new. */
export async function answerAll(
  runtime: Runtime,
  batch: readonly Prepared[],
  answer: ReceiveAnswer,
  options: Reception,
): Promise<Outcome[]> {
  const targets = new Map(Object.entries(answer.targets))
  if (answer.rest.length === 0 && batch.every(({ type, unfit }) => targets.has(type) && !unfit)) {
    return batch.map(({ id, type }) => storedOutcome(id, targets.get(type)!))
  }
  const perMessage: PerMessage = batch.map(
    ({ type }) => new Map(targets.get(type)?.map((consumer) => [consumer, stored(consumer)])),
  )
  await refuseUnfit(runtime, batch, perMessage)
  for (const { at, consumer, message } of await classifyRest(runtime, batch, answer, perMessage)) {
    const [outcome] = await receiveBatch(runtime, [message], { ...options, only: [consumer] })
    perMessage[at]!.set(consumer, { outcome: outcome!.consumers[0] ?? stored(consumer).outcome, ack: outcome!.ack })
  }
  const answers = perMessage.map((consumers) => [...consumers.values()])
  return sumUpAll(runtime, batch, answers, options)
}

/** One of them is held elsewhere: the others must not wait for it, unless they come behind it. */
async function oneByOne(runtime: Runtime, batch: readonly Prepared[], options: Reception): Promise<Outcome[]> {
  if (batch.length === 1 && options.alone) {
    const [message] = batch as [Prepared]
    const lane = message.lane ?? message.key
    if (lane !== undefined) options.heldBack.add(lane)
    return [busyForAll(message, options)]
  }
  const outcomes: Outcome[] = []
  for (const message of batch) {
    if (isHeldBack(message, options)) outcomes.push(busyForAll(message, options))
    else outcomes.push(...(await receiveBatch(runtime, [message], { ...options, alone: true })))
  }
  return outcomes
}

/** Is it for this consumer, where only some are meant? */
export function isMeant(consumer: string, only: readonly string[] | undefined): boolean {
  return only === undefined || only.includes(consumer)
}

function isHeldBack({ key, lane = key }: Prepared, { heldBack }: Reception): boolean {
  return lane !== undefined && heldBack.has(lane)
}

function busyForAll({ id, type }: Prepared, { consumers, only }: ReceiveOptions): Outcome {
  const names = consumers.filter((one) => one.handlerOf(type) !== undefined).map(({ name }) => name)
  const meant = names.filter((name) => isMeant(name, only))
  // Where the consumer runs in other processes alone, its name is not known here.
  const outcomes = (meant.length > 0 ? meant : (only ?? [NO_CONSUMER])).map((consumer): ConsumerOutcome => ({
    consumer,
    status: 'busy',
  }))
  return { id, ack: false, status: 'busy', consumers: outcomes }
}

/** A consumer that cannot tell which message it is gets it in quarantine; the others get theirs. */
async function refuseUnfit(runtime: Runtime, batch: readonly Prepared[], perMessage: PerMessage): Promise<void> {
  const refused: Quarantined[] = []
  batch.forEach((message, at) => {
    for (const [consumer, detail] of message.unfit ?? []) {
      if (!perMessage[at]!.has(consumer)) continue
      refused.push({ consumer, refused: refuse(message, 'no-id', detail) })
      perMessage[at]!.set(consumer, quarantined(consumer, 'no-id', detail))
    }
  })
  await quarantine(runtime, refused)
}

async function storeCalmly(runtime: Runtime, batch: readonly Prepared[], options: Reception): Promise<ReceiveAnswer> {
  for (let tries = 1; ; tries++) {
    try {
      return await store(runtime, batch, options)
    } catch (error) {
      // To wait for a lock once more would take as long again.
      if (!isConflict(error) || sqlState(error) === '55P03' || tries === TRIES || options.atomic) throw error
      await sleep(backoffMs(tries, 2, 50))
    }
  }
}

export async function store(runtime: Runtime, batch: readonly Prepared[], options: Reception): Promise<ReceiveAnswer> {
  const rows = batch.map((message) => rowOf(message, options))
  const param = receiveParam(rows, {
    consumers: options.consumers.map(asReceiverSeesIt),
    only: options.only ?? null,
    not: options.except ?? [],
    wait: options.alone ? LOCK_WAIT.alone : LOCK_WAIT.batch,
  })
  // The function takes the locks of its tables under its own limit: what has met one waits for it, in the statement.
  const isPlain = rows.length === 1 && rows[0]!.rare === undefined && !options.alone
  const statement = isPlain ? RECEIVE_ONE : RECEIVE
  const [stored] = await runtime.db.run(statement, param).catch((error: unknown) => {
    throw sqlState(error) === 'OB003' ? identityUnknown((error as Error).message) : error
  })
  return readJson(stored!.answer)
}

function rowOf(message: Prepared, options: Reception): MessageRow {
  const { id, source, type, key, body, hash, envelope, time: at } = message
  return { id, source, type, key, body, hash, envelope, at, rare: rareOf(message, options) }
}

function rareOf({ ids, unfit, lane, heldSince }: Prepared, { force }: ReceiveOptions): RareParts | undefined {
  if (!ids && !unfit && lane === undefined && heldSince === undefined && !force) return undefined
  return { ids, unfit: unfit && [...unfit.keys()], lane, force: force ? 'person' : heldSince }
}

/** Judges what was not new. Answers what is to be received again: it was known a moment ago, and retention took it. */
async function classifyRest(
  runtime: Runtime,
  batch: readonly Prepared[],
  answer: ReceiveAnswer,
  perMessage: PerMessage,
): Promise<Pair[]> {
  if (answer.rest.length === 0) return []
  const old = new Set(answer.old.map(String))
  const ahead = new Set(answer.ahead.map(String))
  const pairs: Pair[] = answer.rest.map(([ord, consumer]) => ({ at: ord - 1, consumer, message: batch[ord - 1]! }))
  const known = await classify(
    runtime,
    pairs.map(({ consumer, message }) => ({ consumer, message })),
  )
  await confirmKnown(runtime, known)
  const refused: Quarantined[] = []
  const again: Pair[] = []
  const parked: Pair[] = []
  pairs.forEach((pair, index) => {
    const { at, consumer, message } = pair
    const found = known[index]
    if (found === undefined) {
      const place = String([at + 1, consumer])
      if (!old.has(place)) return void again.push(pair)
      const detail = tooOld(message, ahead.has(place))
      refused.push({ consumer, refused: refuse(message, 'too-old', detail) })
      perMessage[at]!.set(consumer, quarantined(consumer, 'too-old', detail))
    } else if (!found.same) {
      refused.push({ consumer, refused: refuse(message, 'conflict', CONFLICT) })
      perMessage[at]!.set(consumer, quarantined(consumer, 'conflict', CONFLICT))
    } else if (found.state === 'failed') parked.push(pair)
    // Nobody may acknowledge a copy of what only its source would deliver again.
    else if (found.state === 'arriving') perMessage[at]!.set(consumer, busy(consumer))
    else perMessage[at]!.set(consumer, knownOutcome(runtime, consumer, found))
  })
  await quarantine(runtime, refused)
  if (parked.length > 0) {
    const keys = parked.map(({ consumer, message }) => identityOf(message, consumer))
    const rows = await runtime.db.run(UNPARK_FAILED, keys)
    const ours = new Set(rows.map(({ consumer, source, id }) => JSON.stringify([consumer, source, id])))
    // What is not waiting any more is being run on arrival, or was: it is asked about again.
    parked.forEach(({ at, consumer }, index) => {
      if (!ours.has(JSON.stringify(keys[index]))) perMessage[at]!.set(consumer, busy(consumer))
    })
  }
  return again
}

/** Sums up what each message has come to, and quarantines what nobody wanted. */
export async function sumUpAll(
  runtime: Runtime,
  batch: readonly Prepared[],
  answers: readonly (readonly Ackable[])[],
  options: Pick<ReceiveOptions, 'only' | 'unrouted'>,
): Promise<Outcome[]> {
  const unrouted: Quarantined[] = []
  const outcomes = batch.map((message, at): Outcome => {
    if (answers[at]!.length > 0 || options.unrouted === 'skip') return sumUp(message.id, answers[at]!)
    const detail = `no consumer takes messages of type ${message.type}`
    unrouted.push({ consumer: NO_CONSUMER, refused: refuse(message, 'unrouted', detail), meant: options.only })
    return quarantinedOutcome(message.id, { reason: 'unrouted', detail })
  })
  await quarantine(runtime, unrouted)
  return outcomes
}

function stored(consumer: string): Ackable {
  return { outcome: { consumer, status: 'stored' } satisfies ConsumerOutcome }
}
