/** Once: runs work in the caller's own transaction, if this consumer has not handled the message yet. */
import { randomUUID } from 'node:crypto'
import { checkKnown, nameProblem, requireFunction } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import type { OnceOutcome } from '../message.js'
import type { Row } from '../postgres/database.js'
import { sqlState } from '../postgres/driver.js'
import { IS_FRESH, MARK } from '../postgres/sql/inline.js'
import { ONCE_BEGIN, ONCE_CHECK, ONCE_OPTIONS } from '../postgres/sql/once.js'
import { STORE_RESULTS } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { identityUnknown, type ConsumerDeclaration } from './consumer.js'
import { isOpen } from './inline/known.js'
import { prepare, PROPERTIES_TAKEN } from './prepare.js'
import { quarantine, refuse } from './quarantine.js'
import { classify, CONFLICT, identityOf, tooOld } from './receive.js'
import { fromResult, refuseError, toResult } from './result.js'
import { isConflict } from './transaction.js'

export interface OnceMessage {
  readonly id: string
  readonly source?: string
  readonly type?: string
  readonly data?: unknown
  /** When it was sent, by which the dedup horizon judges it. */
  readonly time?: Date | string
}

const DEFAULT_RETAIN_MS = 30 * 86_400_000

export async function once<R>(
  runtime: Runtime,
  tx: unknown,
  name: string,
  declared: ConsumerDeclaration | undefined,
  message: OnceMessage,
  work: () => R | Promise<R>,
): Promise<OnceOutcome<unknown>> {
  const problem = nameProblem(name, 200)
  if (problem) throw new OnceboxError('OPTION_INVALID', `a consumer's name ${problem}`)
  requireFunction(`once for ${name}: its last argument, the work,`, work)
  if (typeof message !== 'object' || message === null) {
    throw new OnceboxError('MESSAGE_INVALID', `once for ${name}: a message must be an object { id }`)
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
  if ('reason' in prepared) {
    if (prepared.reason === 'no-id') throw new OnceboxError('MESSAGE_INVALID', `once for ${name}: ${prepared.detail}`)
    await quarantine(runtime, [{ consumer: name, refused: prepared }], tx)
    return { status: 'quarantined', reason: prepared.reason }
  }
  const unfit = prepared.unfit?.get(name)
  if (unfit !== undefined) {
    await quarantine(runtime, [{ consumer: name, refused: refuse(prepared, 'no-id', unfit) }], tx)
    return { status: 'quarantined', reason: 'no-id' }
  }
  const accepted = prepared
  const savepoint = `oncebox_${randomUUID().replaceAll('-', '')}`
  const { db } = runtime
  // Nothing that fails in here may leave a mark in the caller's transaction, even if the caller commits it.
  await db.driver.query(`savepoint ${savepoint}`, [], tx)
  const undo = (): Promise<unknown> =>
    db.driver.query(`rollback to savepoint ${savepoint}; release savepoint ${savepoint}`, [], tx)
  const [, markSource, markId] = identityOf(prepared, name)
  let xid: string
  let ours: Row | undefined
  let horizon: Horizon
  try {
    horizon = await horizonOf(runtime, name, declared, tx)
    const [begun] = await db.run(ONCE_BEGIN, [name], tx)
    if (begun!['keyed'] === 'true' && !declared?.options.identity) throw identityUnknown(name)
    xid = begun!['xid'] as string
    const renamed = markId !== prepared.id || markSource !== prepared.source
    const row = {
      s: markSource,
      i: markId,
      t: prepared.type,
      b: prepared.body,
      h: prepared.hash,
      e: prepared.envelope,
      at: prepared.time,
      os: renamed ? prepared.source : undefined,
      oi: renamed ? prepared.id : undefined,
    }
    const marked = await db.run(MARK, { ...horizon, restore: true, untyped: type === '', m: [row] }, tx)
    ours = marked.find((one) => one['id'] === markId)
  } catch (error) {
    await undo()
    if (!isConflict(error)) throw error
    throw busy(name, id, error)
  }
  if (!ours) return known()
  let text: string | undefined
  try {
    const result = await work()
    refuseError(result)
    text = toResult(result)
  } catch (error) {
    await undo().catch(() => undefined)
    throw error
  }
  await settle([xid, ours['n'] as string | null], text)
  await db.driver.query(`release savepoint ${savepoint}`, [], tx)
  return { status: 'handled', result: fromResult(text) }

  async function known(): Promise<OnceOutcome<unknown>> {
    const asked = { ...accepted, type: type === '' ? undefined : type }
    const [found] = await classify(runtime, [{ consumer: name, message: asked }], tx)
    await db.driver.query(`release savepoint ${savepoint}`, [], tx)
    if (found === undefined) {
      // Not marked and not known either: too old, or retention has just taken it and it is tried again.
      const [age] = await db.run(IS_FRESH, { ...horizon, at: accepted.time }, tx)
      if (age!['fresh'] === 'true') throw busy(name, id)
      const refused = refuse(accepted, 'too-old', tooOld(accepted))
      await quarantine(runtime, [{ consumer: name, refused }], tx)
      return { status: 'quarantined', reason: 'too-old' }
    }
    if (!found.same) {
      const refused = refuse(accepted, 'conflict', CONFLICT)
      await quarantine(runtime, [{ consumer: name, refused }], tx)
      return { status: 'quarantined', reason: 'conflict' }
    }
    if (isOpen(found)) throw busy(name, id)
    if (found.state === 'quarantined') return { status: 'quarantined', reason: found.reason ?? 'invalid' }
    return { status: 'duplicate', result: fromResult(found.result ?? undefined) }
  }

  async function settle(started: [xid: string, n: string | null], result: string | undefined): Promise<void> {
    try {
      if (result !== undefined) await db.run(STORE_RESULTS, { c: name, r: [[markSource, markId, result]] }, tx)
      await db.run(ONCE_CHECK, started, tx)
    } catch (error) {
      const outside = error instanceof OnceboxError && error.code === 'TRANSACTION_REQUIRED'
      if (!outside && sqlState(error) !== 'OB002') throw error
      const advice = 'the work ended the transaction it was given; leave that to its owner'
      throw new OnceboxError('HANDLER_COMMITTED', advice, { cause: error })
    }
  }
}

/** The consumer and its dedup horizon, in the form that the statements take. */
interface Horizon {
  readonly c: string
  readonly r: number
  readonly u: string
}

/** By its declaration, here or in another process. */
async function horizonOf(
  { db }: Runtime,
  name: string,
  declared: ConsumerDeclaration | undefined,
  tx: unknown,
): Promise<Horizon> {
  if (declared) return { c: name, r: declared.options.retainMs, u: declared.options.untimed }
  const [row] = await db.run(ONCE_OPTIONS, [name], tx)
  return { c: name, r: Number(row?.['retainMs'] ?? DEFAULT_RETAIN_MS), u: (row?.['untimed'] ?? 'accept') as string }
}

function busy(consumer: string, id: string, cause?: unknown): OnceboxError {
  return new OnceboxError(
    'BUSY',
    `message ${id} is being handled for ${consumer} by another transaction; roll back, do not ack, deliver it again`,
    { cause },
  )
}
