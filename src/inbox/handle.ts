/**
 * Handle: runs messages on arrival. Dedup mark, handlers' writes and results commit in one transaction per group.
 *
 * The shared pass is optimistic; if anything in it fails, its messages run one transaction each. A copy that is being
 * handled elsewhere holds a lock on its mark: after a bounded wait the answer is `busy`, never a second run.
 */
import { randomUUID } from 'node:crypto'
import { EffectJournal } from '../effects/journal.js'
import { OnceboxError } from '../errors.js'
import { toFailure } from '../failure.js'
import { batchRun, type Context } from '../handler.js'
import type { Failure, Message, MessageMap } from '../message.js'
import { writeOutgoing, type Outgoing } from '../outbox/send.js'
import { ADOPT } from '../postgres/sql/effects.js'
import { FAIL_INLINE, IS_FRESH, MARK, SETTLE_INLINE } from '../postgres/sql/inline.js'
import { STORE_RESULTS } from '../postgres/sql/settle.js'
import { callHook } from '../runtime.js'
import { Abort } from '../worker/abort.js'
import { backoffMs, sleep } from '../worker/backoff.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import { validate } from '../validate.js'
import { callHandler, noEffects, type EffectRunner } from './call.js'
import { looseClaim, type Claim, type Verdict } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { runClaim, type Worker } from './group.js'
import type { Ackable } from './outcome.js'
import { toMessage, type Prepared } from './prepare.js'
import { quarantine, refuse } from './quarantine.js'
import { classify, identityOf, knownOutcome, quarantined, tooOld, type Known } from './receive.js'
import { fromResult, toResult } from './result.js'
import { CommitUnknown, isAway, isConflict, openTransaction, resolveUnknown, SHARED_LOCK_TIMEOUT } from './transaction.js'
import { verdictOf } from './verdict.js'

export type InlineWorker = Worker

/** How long the copy of a message in flight waits for the other one before it is told `busy`. */
const BUSY_WAIT_MS = 500
/** How long one look at a contended mark waits for its lock. */
const MARK_LOCK_TIMEOUT = '5ms'

interface Item {
  readonly prepared: Prepared
  readonly source: string
  readonly id: string
}

/** Runs messages for one consumer. Answers one outcome per message, in order. */
export async function handleFor(worker: InlineWorker, messages: readonly Prepared[]): Promise<Ackable[]> {
  const { consumer } = worker
  const outcomes = new Map<Item, Ackable>()
  const first = new Map<string, Item>()
  const items = messages.map((prepared): Item => {
    const [, source, id] = identityOf(prepared, consumer.name)
    return { prepared, source, id }
  })
  // Copies within the call wait for the first one, and then are duplicates of it.
  const copies: Item[] = []
  const originals: Item[] = []
  for (const item of items) {
    const key = JSON.stringify([item.source, item.id])
    if (first.has(key)) copies.push(item)
    else {
      first.set(key, item)
      originals.push(item)
    }
  }
  let rest = originals
  while (rest.length > 0) {
    const group = rest.slice(0, worker.pace.limit)
    const decided = await runGroup(worker, group)
    for (const [item, outcome] of decided) outcomes.set(item, outcome)
    rest = rest.filter((item) => !outcomes.has(item))
  }
  for (const item of copies) outcomes.set(item, await runOne(worker, item))
  return items.map((item) => outcomes.get(item)!)
}

/** Runs some of the group, at least one, and answers what became of them. */
async function runGroup(worker: InlineWorker, group: readonly Item[]): Promise<Map<Item, Ackable>> {
  const { consumer, pace } = worker
  const decided = new Map<Item, Ackable>()
  const handler = consumer.handlerOf(group[0]!.prepared.type)
  if (batchRun(handler)) {
    const same = group.filter(({ prepared }) => consumer.handlerOf(prepared.type) === handler && isPlain(prepared))
    if (same.length > 1) {
      await runBatch(worker, same, decided)
      return decided
    }
  }
  const shareable = leading(group, ({ prepared }) => {
    const own = consumer.handlerOf(prepared.type)
    return own !== undefined && !batchRun(own) && !pace.alone.has(prepared.type) && isPlain(prepared)
  })
  if (shareable.length > 1) {
    const endTurn = await pace.turn()
    try {
      const begun = await sharedPass(worker, shareable, decided)
      if (begun === undefined) {
        pace.succeeded()
        return decided
      }
      decided.clear()
      endTurn()
      for (const item of begun) decided.set(item, await runOne(worker, item))
      return decided
    } finally {
      endTurn()
    }
  }
  decided.set(group[0]!, await runOne(worker, group[0]!))
  return decided
}

/** A redelivery after a crash is suspected of having caused it, so it runs alone. */
function isPlain(prepared: Prepared): boolean {
  return prepared.incoming.redelivered !== true
}

function leading<T>(list: readonly T[], fits: (one: T) => boolean): T[] {
  const end = list.findIndex((one) => !fits(one))
  return end < 0 ? [...list] : list.slice(0, end)
}

/** One transaction for many. Answers undefined if it committed, else the messages that it had begun. */
async function sharedPass(
  worker: InlineWorker,
  group: readonly Item[],
  decided: Map<Item, Ackable>,
): Promise<Item[] | undefined> {
  const { runtime, consumer, pace } = worker
  const begun: Item[] = []
  const ran: Item[] = []
  let asked = false
  try {
    await openTransaction(runtime, consumer, SHARED_LOCK_TIMEOUT, async (tx, open) => {
      const marks = await mark(worker, group, false, tx)
      const outgoing: Outgoing[] = []
      const results: [string, string, string][] = []
      const started = performance.now()
      let now = started
      for (const item of group) {
        const attempts = marks.get(item)
        if (attempts === undefined) {
          begun.push(item)
          continue
        }
        if (ran.length > 0 && now - started + pace.expectedMs(item.prepared.type) > consumer.options.group.ms) break
        begun.push(item)
        ran.push(item)
        const effect: EffectRunner = () => {
          asked = true
          pace.alone.add(item.prepared.type)
          return Promise.reject(new OnceboxError('GROUP_ABANDONED', 'effects run in a transaction of their own'))
        }
        const text = await call(worker, item, attempts, tx, outgoing, effect)
        if (asked) throw new OnceboxError('GROUP_ABANDONED', 'effects run in a transaction of their own')
        if (text !== undefined) results.push([item.source, item.id, text])
        decided.set(item, handled(consumer.name, text))
        const ended = performance.now()
        pace.took(item.prepared.type, ended - now)
        now = ended
      }
      const drop = group.filter((item) => marks.has(item) && !ran.includes(item))
      return settle(worker, { outgoing, results, drop, open, tx, restore: marks })
    })
    failpoint('committed')
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    if (error instanceof CommitUnknown) {
      if (!(await committed(worker, error, ran))) return begun
    } else {
      if (isAway(error)) throw error
      if (isConflict(error)) pace.collided()
      return begun.length > 0 ? begun : [...group]
    }
  }
  // What was known already is judged outside, with a fresh view.
  for (const item of begun) if (!ran.includes(item)) decided.set(item, await runOne(worker, item))
  return undefined
}

async function call(
  worker: InlineWorker,
  item: Item,
  attempts: number,
  tx: unknown,
  outgoing: Outgoing[],
  effect: EffectRunner,
): Promise<string | undefined> {
  const { runtime, consumer, stop: abort } = worker
  const message = await messageOf(worker, item, attempts)
  const handler = consumer.handlerOf(item.prepared.type)
  const many = batchRun(handler)
  const run = (ctx: Context<MessageMap, unknown>): unknown =>
    many ? many([message], ctx) : (handler as (m: Message, c: typeof ctx) => unknown)(message, ctx)
  const result = await callHandler(runtime, consumer, { tx, subject: [message], outgoing, abort, effect, run })
  return many ? undefined : toResult(result)
}

async function messageOf({ runtime }: InlineWorker, { prepared }: Item, attempts: number): Promise<Message> {
  const parsed = validate(runtime.schemaOf(prepared.type), prepared.data)
  const checked = parsed instanceof Promise ? await parsed : parsed
  if ('problem' in checked) throw new OnceboxError('MESSAGE_INVALID', checked.problem)
  return toMessage({ ...prepared, receivedMs: Date.now(), attempts }, checked.value)
}

/** Marks what is ours to run, with the attempts before this one. The rest is known already, or held elsewhere. */
async function mark(
  { runtime, consumer }: InlineWorker,
  items: readonly Item[],
  restore: boolean,
  tx: unknown,
): Promise<Map<Item, number>> {
  const { retainMs: r, untimed: u } = consumer.options
  const rows = await runtime.db.run(MARK, { c: consumer.name, m: items.map(markRow), restore, r, u }, tx)
  const byKey = new Map(rows.map((row) => [JSON.stringify([row['source'], row['id']]), Number(row['attempts'] ?? 0)]))
  const marks = new Map<Item, number>()
  for (const item of items) {
    const attempts = byKey.get(JSON.stringify([item.source, item.id]))
    if (attempts !== undefined) marks.set(item, attempts)
  }
  return marks
}

function markRow({ prepared, source, id }: Item): Record<string, unknown> {
  const renamed = id !== prepared.id || source !== prepared.source
  return {
    s: source,
    i: id,
    t: prepared.type,
    k: prepared.key,
    b: prepared.body,
    h: prepared.hash,
    e: prepared.envelope,
    at: prepared.time,
    os: renamed ? prepared.source : undefined,
    oi: renamed ? prepared.id : undefined,
  }
}

async function settle(
  { runtime, consumer }: InlineWorker,
  done: {
    readonly outgoing: readonly Outgoing[]
    readonly results: readonly [string, string, string][]
    readonly drop: readonly Item[]
    readonly restore: ReadonlyMap<Item, number>
    readonly open: { readonly xid: string; readonly group: string }
    readonly tx: unknown
  },
): Promise<{ result: void; settlement: Promise<unknown> }> {
  const { open, tx } = done
  failpoint('handled')
  // A known message that was marked and did not run keeps its failures: rolling back is simpler than restoring them.
  if (done.drop.some((item) => done.restore.get(item)! > 0)) throw new OnceboxError('GROUP_ABANDONED', 'run alone')
  await writeOutgoing(runtime, done.outgoing, tx)
  if (done.results.length > 0) await runtime.db.run(STORE_RESULTS, { c: consumer.name, r: done.results }, tx)
  const drop = done.drop.map(({ source, id }) => [source, id])
  const settlement = runtime.db.run(SETTLE_INLINE, { c: consumer.name, x: open.xid, g: open.group, drop }, tx)
  return { result: undefined, settlement }
}

function handled(consumer: string, text: string | undefined): Ackable {
  return { outcome: { consumer, status: 'handled', result: fromResult(text) } }
}

/** After a COMMIT without an answer: the dedup rows are the only truth. */
async function committed(worker: InlineWorker, unknown: CommitUnknown, ran: readonly Item[]): Promise<boolean> {
  const { runtime, consumer, stop } = worker
  const pairs = ran.map(({ prepared }) => ({ consumer: consumer.name, message: prepared }))
  const read = async (): Promise<boolean> => {
    const known = await classify(runtime, pairs)
    return known.every((one) => one?.state === 'handled')
  }
  return resolveUnknown(runtime, unknown, read, deadline(stop))
}

/** A sender waits for the answer: give up in time for it to deliver again. */
function deadline(stop: Abort, ms = 10_000): { readonly aborted: Error | undefined } {
  const end = performance.now() + ms
  return {
    get aborted() {
      return stop.aborted ?? (performance.now() > end ? new Error('gave up') : undefined)
    },
  }
}

/** One message, one transaction; waits a little for a copy in flight. */
async function runOne(worker: InlineWorker, item: Item): Promise<Ackable> {
  const { consumer } = worker
  if (consumer.handlerOf(item.prepared.type) === undefined) {
    return recordFailure(worker, item, missingHandler(worker, item), 0, false)
  }
  const counted = item.prepared.incoming.redelivered === true ? await countSuspect(worker, item) : false
  if (typeof counted === 'object') return counted
  const end = performance.now() + BUSY_WAIT_MS
  for (let attempt = 0; ; attempt++) {
    const outcome = await tryOne(worker, item, counted)
    if (outcome) return outcome
    if (performance.now() > end) return { outcome: { consumer: consumer.name, status: 'busy' }, ack: false }
    await sleep(backoffMs(attempt, 5, 100))
  }
}

/** Answers undefined if a copy of the message is in flight elsewhere. */
async function tryOne(worker: InlineWorker, item: Item, counted: boolean): Promise<Ackable | undefined> {
  const { runtime, consumer, pace } = worker
  let attempts = 0
  let text: string | undefined
  const journal = new EffectJournal(runtime, { consumer: consumer.name, source: item.source, id: item.id })
  const started = performance.now()
  try {
    const outcome = await openTransaction(runtime, consumer, MARK_LOCK_TIMEOUT, async (tx, open) => {
      const own = await markOne(worker, item, tx)
      const none = { outgoing: [], results: [], drop: [], restore: new Map(), open, tx }
      if (own === undefined) return { ...(await settle(worker, none)), result: undefined }
      attempts = own
      const outgoing: Outgoing[] = []
      text = await call(worker, item, counted ? attempts - 1 : attempts, tx, outgoing, journal.runIn(tx))
      journal.check()
      const results: [string, string, string][] = text === undefined ? [] : [[item.source, item.id, text]]
      return { ...(await settle(worker, { ...none, outgoing, results })), result: handled(consumer.name, text) }
    })
    failpoint('committed')
    if (outcome) {
      pace.took(item.prepared.type, performance.now() - started)
      return outcome
    }
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    if (error instanceof Contended) return undefined
    if (journal.takeWanted()) return runAdopted(worker, item, counted)
    if (error instanceof CommitUnknown) {
      return (await committed(worker, error, [item])) ? handled(consumer.name, text) : undefined
    }
    if (isAway(error) || worker.stop.aborted) throw error
    if (isConflict(error)) return undefined
    return recordFailure(worker, item, error, attempts, counted)
  }
  return judgeKnown(worker, item)
}

/** The mark is locked by a copy in flight. Told apart from a lock conflict inside the handler. */
class Contended extends Error {}

async function markOne(worker: InlineWorker, item: Item, tx: unknown): Promise<number | undefined> {
  try {
    return (await mark(worker, [item], true, tx)).get(item)
  } catch (error) {
    if (isConflict(error)) throw new Contended('a copy of the message is in flight', { cause: error })
    throw error
  }
}

/** The outcome of a message that is known already; undefined if its fate is still open. */
async function judgeKnown(worker: InlineWorker, item: Item): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const [known] = await classify(runtime, [{ consumer: consumer.name, message: item.prepared }])
  if (known === undefined) return judgeAge(worker, item)
  if (!known.same) {
    const refused = refuse(item.prepared, 'conflict', 'the id is known with another body')
    await quarantine(runtime, [{ consumer: consumer.name, refused }])
    return quarantined(consumer.name, 'conflict')
  }
  return openFate(known) ? undefined : knownOutcome(consumer.name, known)
}

/** Unknown, and not marked either: too old, or retention has just taken it and it is tried again. */
async function judgeAge(worker: InlineWorker, { prepared }: Item): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const { retainMs, untimed } = consumer.options
  const [row] = await runtime.db.run(IS_FRESH, { at: prepared.time, r: retainMs, u: untimed })
  if (row!['fresh'] === 'true') return undefined
  await quarantine(runtime, [{ consumer: consumer.name, refused: refuse(prepared, 'too-old', tooOld(prepared)) }])
  return quarantined(consumer.name, 'too-old')
}

function openFate({ state }: Known): boolean {
  return state === 'failed' || state === 'pending' || state === 'processing'
}

/** Delivered before and never acknowledged: its worker may have died of it, so its attempt is counted first. */
async function countSuspect(worker: InlineWorker, item: Item): Promise<boolean | Ackable> {
  const { runtime, consumer } = worker
  const [known] = await classify(runtime, [{ consumer: consumer.name, message: item.prepared }])
  if (known && known.state !== 'failed') return false
  const error = new OnceboxError(
    'WORKER_DIED',
    'the worker died while it ran this message; look for a crash, process.exit or an out-of-memory kill',
  )
  const rows = await runtime.db.run(FAIL_INLINE, { ...failRow(consumer, item), n: 1, p: 'failed', hist: false })
  const attempts = Number(rows[0]?.['attempts'] ?? 0)
  if (rows.length === 0) return false
  const verdict = verdictOf(error, attempts - 1, consumer.options.retry, true)
  if (attempts <= 1 || !verdict.parked) return true
  return recordFailure(worker, item, error, attempts - 1, true)
}

function failRow(consumer: ConsumerDeclaration, item: Item): Record<string, unknown> {
  return { c: consumer.name, ...markRow(item) }
}

function missingHandler({ consumer }: InlineWorker, { prepared }: Item): OnceboxError {
  return new OnceboxError('HANDLER_MISSING', `consumer ${consumer.name} has no handler for ${prepared.type}`)
}

/** Records what a failed run means: the source delivers again, the box runs it again, or it is dead. */
async function recordFailure(
  worker: InlineWorker,
  item: Item,
  error: unknown,
  attempts: number,
  counted: boolean,
): Promise<Ackable> {
  const { runtime, consumer } = worker
  const { retry, retryBy } = consumer.options
  const verdict = verdictOf(error, counted ? attempts : attempts + 1, retry, counted)
  const bySource = retryBy === 'source' && verdict.parked === undefined
  const failure: Failure = verdict.failure ?? toFailure(error)
  const row = {
    ...failRow(consumer, item),
    n: verdict.attempts,
    ms: verdict.at ? Math.max(0, verdict.at.getTime() - Date.now()) : (verdict.delayMs ?? 0),
    p: verdict.parked ?? (bySource ? 'failed' : undefined),
    err: JSON.stringify(failure),
    hist: verdict.failure !== undefined,
  }
  const rows = await runtime.db.run(FAIL_INLINE, row)
  // Nothing recorded: another copy has handled it, or holds it now.
  if (rows.length === 0) {
    const known = await judgeKnown(worker, item)
    return known ?? { outcome: { consumer: consumer.name, status: 'busy' }, ack: false }
  }
  if (verdict.parked) {
    tellDead(worker, item, Number(rows[0]!['attempts']), failure)
    return { outcome: { consumer: consumer.name, status: 'dead', error: failure } }
  }
  const retryAt = bySource ? undefined : new Date(Date.now() + row.ms)
  const outcome = { consumer: consumer.name, status: 'failed' as const, error: failure, ...(retryAt && { retryAt }) }
  return { outcome, ack: !bySource }
}

function tellDead({ runtime, consumer }: InlineWorker, { prepared }: Item, attempts: number, error: Failure): void {
  const message = toMessage({ ...prepared, receivedMs: Date.now(), attempts: attempts - 1 }, prepared.data)
  runtime.log.error({ id: prepared.id, type: prepared.type, consumer: consumer.name, error: error.message }, 'message is dead')
  const hook = runtime.hooks.dead
  if (hook) callHook(runtime, 'dead', () => hook({ message, consumer: consumer.name, state: 'dead', error }))
}

/** One call for many messages; bisected if it throws. */
async function runBatch(worker: InlineWorker, items: readonly Item[], decided: Map<Item, Ackable>): Promise<void> {
  const { runtime, consumer, stop: abort } = worker
  const ran: Item[] = []
  try {
    await openTransaction(runtime, consumer, SHARED_LOCK_TIMEOUT, async (tx, open) => {
      const marks = await mark(worker, items, true, tx)
      const outgoing: Outgoing[] = []
      const none = { results: [], drop: [], restore: new Map(), outgoing, open, tx }
      ran.push(...items.filter((item) => marks.has(item)))
      if (ran.length === 0) return settle(worker, none)
      const messages: Message[] = []
      for (const item of ran) messages.push(await messageOf(worker, item, marks.get(item)!))
      const handler = batchRun(consumer.handlerOf(items[0]!.prepared.type))!
      const run = (ctx: Context<MessageMap, unknown>): unknown => handler(messages, ctx)
      await callHandler(runtime, consumer, { tx, subject: messages, outgoing, abort, effect: noEffects, run })
      return settle(worker, none)
    })
    failpoint('committed')
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    const known = error instanceof CommitUnknown && (await committed(worker, error, ran))
    if (!known) {
      if (isAway(error)) throw error
      if (items.length === 1) return void decided.set(items[0]!, await runOne(worker, items[0]!))
      const middle = items.length >> 1
      await runBatch(worker, items.slice(0, middle), decided)
      return runBatch(worker, items.slice(middle), decided)
    }
  }
  for (const item of ran) decided.set(item, handled(consumer.name, undefined))
  for (const item of items) if (!decided.has(item)) decided.set(item, await runOne(worker, item))
}

/**
 * A message whose handler calls effects cannot keep its transaction, and with it its mark, open during the call. It is
 * taken into the box, claimed by us, and runs like a stored one; copies of it are told `busy` meanwhile.
 */
async function runAdopted(worker: InlineWorker, item: Item, counted: boolean): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const token = randomUUID()
  const rows = await runtime.db.run(ADOPT, { ...failRow(consumer, item), token, lease: consumer.options.leaseMs })
  if (rows.length === 0) return judgeKnown(worker, item)
  const attempts = Number(rows[0]!['attempts'])
  const { type } = item.prepared
  const message = await messageOf(worker, item, counted ? attempts - 1 : attempts)
  const { source, id } = item
  const held = { source, id, type, lane: undefined, attempts, suspect: false, message, problem: undefined }
  const loose = looseClaim(runtime, consumer, token, [held], false)
  let verdict: Verdict | undefined
  const claim: Claim = {
    ...loose,
    fail(failed, given) {
      verdict = given.parked || consumer.options.retryBy === 'box' ? given : { ...given, parked: 'failed' }
      return loose.fail(failed, verdict)
    },
  }
  worker.pace.alone.add(type)
  await runClaim(worker, claim)
  if (verdict === undefined) return judgeKnown(worker, item).then(asHandled)
  if (verdict.parked === 'quarantined') return quarantined(consumer.name, verdict.reason ?? 'effect-unknown')
  const error: Failure = verdict.failure ?? { name: 'RetryLater', message: 'the handler asked to be run later' }
  if (verdict.parked === 'dead') return { outcome: { consumer: consumer.name, status: 'dead', error } }
  return { outcome: { consumer: consumer.name, status: 'failed', error }, ack: verdict.parked !== 'failed' }
}

/** We ran it ourselves, so what is a duplicate for others was handled for us. */
function asHandled(known: Ackable | undefined): Ackable | undefined {
  if (known?.outcome.status !== 'duplicate') return known
  return { outcome: { consumer: known.outcome.consumer, status: 'handled', result: known.outcome.result } }
}
