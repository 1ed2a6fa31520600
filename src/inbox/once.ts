/** Once: runs work in the caller's own transaction, if this consumer has not handled the message yet. */
import { isConflict } from '../postgres/errors.js'
import { randomUUID } from 'node:crypto'
import { isPromise } from '../promises.js'
import { checkKnown, nameProblem, requireFunction } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { DEFAULT_RETAIN_MS } from '../figures.js'
import type { OnceOutcome } from '../message.js'
import { sqlState } from '../postgres/errors.js'
import type { Horizon } from '../postgres/sql/inline.js'
import { ONCE_BEGIN, ONCE_CHECK, ONCE_OPTIONS, ONCE_TRANSACTION } from '../postgres/sql/once.js'
import { asMarked } from '../postgres/sql/rules.js'
import { STORE_RESULTS } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { identityUnknown, type ConsumerDeclaration } from './consumer.js'
import { horizonOf, judgeKnown } from './known.js'
import { mark, type Keyed, type Mark } from './inline/mark.js'
import { fromResult, refuseUndone, toResult, type Ackable } from './outcome.js'
import { PROPERTIES_TAKEN } from './envelope.js'
import { prepare, type Prepared, type Refused } from './prepare.js'
import { quarantine, refuse } from './quarantine.js'
import { identityOf } from './identity.js'
import { inItsTurn } from './once-turns.js'

export interface OnceMessage {
  readonly id: string
  readonly source?: string
  readonly type?: string
  readonly data?: unknown
  /** When it was sent, by which the dedup horizon judges it. */
  readonly time?: Date | string
}

/** Where work is to run once: in the caller's transaction, for a consumer by its name, which may not be declared here. */
export interface OnceIn {
  readonly runtime: Runtime
  readonly tx: unknown
  readonly name: string
  readonly declared: ConsumerDeclaration | undefined
  /** Whose the transaction is. One of the box is rolled back as a whole if this rejects: nothing of it has to be undone. */
  readonly owner: 'caller' | 'box'
  /** Of the box: how long the session may idle in it, for its process may freeze. */
  readonly idleMs?: number
}

export async function once<R>(
  where: OnceIn,
  message: OnceMessage,
  work: () => R | Promise<R>,
): Promise<OnceOutcome<unknown>> {
  const prepared = await prepareOnce(where, message, work)
  const run = (): Promise<OnceOutcome<unknown>> => runPrepared(where, message, prepared, work)
  const { tx, owner } = where
  // One of the box is its endpoint's alone, and has no savepoint. What is no object is refused by the driver.
  if (owner === 'box' || Object(tx) !== tx) return run()
  return inItsTurn(tx as object, () => transactionOf(where), run)
}

async function transactionOf({ runtime: { db }, tx }: OnceIn): Promise<string> {
  const [row] = await db.run(ONCE_TRANSACTION, null, tx)
  return row!.xid
}

async function runPrepared<R>(
  where: OnceIn,
  message: OnceMessage,
  prepared: Prepared | Refused,
  work: () => R | Promise<R>,
): Promise<OnceOutcome<unknown>> {
  const { runtime, tx, name } = where
  const refused = 'reason' in prepared ? prepared : unfitFor(name, prepared)
  if (refused) {
    await quarantine(runtime, [{ consumer: name, refused }], tx)
    return { status: 'quarantined', reason: refused.reason }
  }
  const accepted = prepared as Prepared
  const { release, undo } = await (where.owner === 'caller' ? setSavepoint(where) : NO_SAVEPOINT)
  const untyped = (message.type ?? '') === ''
  const tryToBegin = (): Promise<Begun> =>
    begin(where, accepted, untyped).catch(async (error: unknown) => {
      await undo()
      throw isConflict(error) ? busy(name, message.id, error) : error
    })
  let begun = await tryToBegin()
  if (!begun.ours) {
    const [answer] = await judgeKnown(runtime, [accepted], { horizon: begun.horizon, tx, untyped })
    // It was left alone for its text, which does not matter, as is known now.
    if (!answer && accepted.reworded) begun = await tryToBegin()
    if (!begun.ours) {
      await release()
      if (!answer) throw busy(name, message.id)
      return known(answer)
    }
  }
  let text: string | undefined
  try {
    const result = await (where.owner === 'caller' ? runtime.traces.once(name, message, work) : work)()
    refuseUndone(result)
    text = toResult(result)
  } catch (error) {
    await undo().catch(() => undefined)
    throw error
  }
  await settle(where, begun, text)
  await release()
  runtime.metrics.consumer(name).handledOnce(accepted.type)
  if (where.owner === 'caller') runtime.metrics.took(name)
  return { status: 'handled', result: fromResult(text) }
}

interface Savepoint {
  release(): Promise<unknown>
  undo(): Promise<unknown>
}

/** Nothing that fails may leave a mark in the caller's transaction, even if the caller commits it. */
async function setSavepoint({ runtime: { db }, tx }: OnceIn): Promise<Savepoint> {
  const savepoint = `oncebox_${randomUUID().replaceAll('-', '')}`
  await db.driver.query(`savepoint ${savepoint}`, [], tx)
  return {
    release: () => db.driver.query(`release savepoint ${savepoint}`, [], tx),
    undo: () => db.driver.query(`rollback to savepoint ${savepoint}; release savepoint ${savepoint}`, [], tx),
  }
}

/** To undo would wait behind a statement that hangs, past every deadline. */
const NO_SAVEPOINT: Savepoint = { release: async () => undefined, undo: async () => undefined }

async function prepareOnce(
  { runtime, name, declared }: OnceIn,
  message: OnceMessage,
  work: unknown,
): Promise<Prepared | Refused> {
  const problem = nameProblem(name, 200)
  if (problem) throw new OnceboxError('OPTION_INVALID', `a consumer's name ${problem}`)
  requireFunction(`once for ${name}: its last argument, the work,`, work)
  if (typeof message !== 'object' || message === null || isPromise(message)) {
    const advice = isPromise(message) ? '; this one is a promise: await it' : ''
    throw new OnceboxError('MESSAGE_INVALID', `once for ${name}: a message must be an object { id }${advice}`)
  }
  // A misspelt source would make it another message.
  checkKnown(`once for ${name}: its message`, message, PROPERTIES_TAKEN)
  const { id, source, type = '', data } = message
  const incoming = { ...message, id, type: type || 'once', data: data ?? null, ...(source !== undefined && { source }) }
  const prepared = await prepare(runtime, incoming, {
    consumers: declared ? [declared] : [],
    // Without data there is nothing to compare.
    fingerprint: data === undefined ? () => false : undefined,
    unchecked: data === undefined,
  })
  if ('reason' in prepared && prepared.reason === 'no-id') {
    throw new OnceboxError('MESSAGE_INVALID', `once for ${name}: ${prepared.detail}`)
  }
  return prepared
}

function unfitFor(name: string, prepared: Prepared): Refused | undefined {
  const unfit = prepared.unfit?.get(name)
  return unfit === undefined ? undefined : refuse(prepared, 'no-id', unfit)
}

interface Begun {
  readonly xid: string
  readonly horizon: Horizon
  readonly message: Keyed
  /** Undefined if it is known already. */
  readonly ours: Mark | undefined
}

async function begin(where: OnceIn, prepared: Prepared, untyped: boolean): Promise<Begun> {
  const { runtime, tx, name, declared, idleMs = null } = where
  const horizon = await horizonFor(where)
  const [begun] = await runtime.db.run(ONCE_BEGIN, { consumer: name, idleMs }, tx)
  if (begun!.keyed === 'true' && !declared?.options.identity) throw identityUnknown(name)
  const [, source, id] = identityOf(prepared, name)
  const message = { prepared, source, id }
  // Nothing to compare, so it came without data: a handler that knows the type would get null in a replay.
  const written = prepared.hash === null ? { ...prepared, envelope: asMarked(prepared.envelope) } : prepared
  const [ours] = await mark(runtime, { ...horizon, restore: true, untyped }, [{ ...message, prepared: written }], tx)
  return { xid: begun!.xid, horizon, message, ours }
}

/** What is neither open nor in quarantine has been decided: it is not handled again. */
function known({ outcome }: Ackable): OnceOutcome<unknown> {
  if (outcome.status === 'quarantined') return { status: 'quarantined', reason: outcome.reason }
  return { status: 'duplicate', result: outcome.status === 'duplicate' ? outcome.result : undefined }
}

async function settle({ runtime: { db }, tx, name }: OnceIn, begun: Begun, result: string | undefined): Promise<void> {
  const { source, id } = begun.message
  try {
    if (result !== undefined) await db.run(STORE_RESULTS, { consumer: name, results: [[source, id, result]] }, tx)
    await db.run(ONCE_CHECK, { xid: begun.xid, n: begun.ours!.n }, tx)
  } catch (error) {
    const outside = error instanceof OnceboxError && error.code === 'TRANSACTION_REQUIRED'
    if (!outside && sqlState(error) !== 'OB002') throw error
    const advice = 'the work ended the transaction it was given; leave that to its owner'
    throw new OnceboxError('HANDLER_COMMITTED', advice, { cause: error })
  }
}

/** By its declaration, here or in another process. */
async function horizonFor({ runtime, tx, name, declared }: OnceIn): Promise<Horizon> {
  if (declared) return horizonOf(declared)
  const [row] = await runtime.db.run(ONCE_OPTIONS, { consumer: name }, tx)
  return { consumer: name, retainMs: Number(row?.retain_ms ?? DEFAULT_RETAIN_MS), untimed: row?.untimed ?? 'accept' }
}

function busy(consumer: string, id: string, cause?: unknown): OnceboxError {
  return new OnceboxError(
    'BUSY',
    `message ${id} is being handled for ${consumer} by another transaction; roll back, do not ack, deliver it again`,
    { cause },
  )
}
