/**
 * Removes a consumer that no process runs any more: first from the registry, so that nothing is stored for it, then what is
 * left of it, in small batches. A removal that dies halfway is finished by the next one.
 */
import { backoffMs, sleep } from '../backoff.js'
import { OnceboxError } from '../errors.js'
import { writeAudit } from '../inbox/audit.js'
import { GONE_MS } from '../figures.js'
import { boolean, resolve } from '../options.js'
import { sqlState } from '../postgres/errors.js'
import { DISCARD } from '../postgres/sql/bulk.js'
import {
  IS_REGISTERED, REMOVE_CONSUMER, REMOVE_DISCARDED, REMOVE_HANDLED, REMOVE_HORIZON, REMOVE_LANES, REMOVE_QUARANTINE,
  UNSETTLED, type RemovalAnswer,
} from '../postgres/sql/consumers.js' // prettier-ignore
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import { SIGNED } from './signed.js'
import type { Removal } from './types.js'
import { unknownConsumer } from './unknown.js'

const AT_ONCE = 1_000
/** Receivers wait behind who waits for their table: not for long, and again later. */
const WAIT = '100ms'
const ATTEMPTS = 40
/** For so long somebody else may have a row locked. */
const LOCKED_MS = 30_000

const OPTIONS = { ...SIGNED, discard: boolean(false), forget: boolean(false) }

export async function removeConsumer(
  runtime: Runtime,
  local: readonly string[],
  name: string,
  options: Removal = {},
): Promise<number> {
  const { by, reason, discard, forget } = resolve('removeConsumer', options, OPTIONS)
  const answer = await unregister(runtime, name, discard)
  if (!answer?.known) throw await unknownConsumer(runtime, local, name)
  if (!answer.removed) throw refusal(name, answer)
  const done = { count: 0 }
  try {
    await removeUnhandled(runtime, name, answer, done)
    if (forget) await removeHandled(runtime, name, answer, done)
  } finally {
    const detail = { consumer: name, count: done.count, discard, forget, reason }
    await writeAudit(runtime, { action: 'remove-consumer', detail, by })
  }
  return done.count
}

/** Takes it out of the registry, if it may go. */
async function unregister({ db }: Runtime, name: unknown, discard: boolean): Promise<RemovalAnswer | undefined> {
  if (typeof name !== 'string' || name === '' || name.includes('\0') || !name.isWellFormed()) return undefined
  for (let attempt = 0; ; attempt++) {
    try {
      const [row] = await db.run(REMOVE_CONSUMER, { consumer: name, discard, goneMs: GONE_MS, wait: WAIT })
      return readJson(row!.answer)
    } catch (error) {
      if (sqlState(error) !== '55P03') throw error
      if (attempt >= ATTEMPTS) throw locked(name, error)
      await sleep(backoffMs(attempt, 50, 1_000))
    }
  }
}

/** What waits, is dead or in quarantine. It is discarded first: so nothing of it can be claimed any more, nor block a key. */
async function removeUnhandled(
  runtime: Runtime,
  consumer: string,
  { at: before, seq }: RemovalAnswer,
  done: { count: number },
): Promise<void> {
  const { db } = runtime
  const states = ['pending', 'dead', 'quarantined']
  await throughAll(runtime, consumer, async () => {
    let after: readonly [string, string] = ['', '']
    let left = false
    for (;;) {
      const rows = await db.run(UNSETTLED, { consumer, seq, after, limit: AT_ONCE })
      if (rows.length === 0) break
      const keys = rows.map(({ source, id }) => [consumer, source, id] as const)
      const discarded = await db.run(DISCARD, { keys, states })
      left ||= discarded.length < rows.length
      const last = rows.at(-1)!
      after = [last.source, last.id]
    }
    const limit = AT_ONCE
    await untilNone(() => db.run(REMOVE_DISCARDED, { consumer, seq, limit }), done)
    await untilNone(() => db.run(REMOVE_QUARANTINE, { consumer, before, limit }), done)
    await untilNone(() => db.run(REMOVE_LANES, { consumer, limit }))
    return left
  })
}

/** Counts batch by batch: what was removed before one that fails is in the audit, too. */
async function untilNone(
  remove: () => Promise<readonly { gone: string }[]>,
  done: { count: number } = { count: 0 },
): Promise<void> {
  for (;;) {
    const [row] = await remove()
    if (Number(row!.gone) === 0) return
    done.count += Number(row!.gone)
  }
}

async function removeHandled(
  { db }: Runtime,
  consumer: string,
  { at: before }: RemovalAnswer,
  done: { count: number },
): Promise<void> {
  let low: string | undefined
  for (;;) {
    const [row] = await db.run(REMOVE_HANDLED, { consumer, before, low, limit: AT_ONCE })
    done.count += Number(row!.gone)
    if (row!.last === null && low === undefined) break
    // Once more from the beginning, for what somebody had locked.
    low = row!.last ?? undefined
  }
  await db.run(REMOVE_HORIZON, { consumer })
  await refuseIfBack({ db }, consumer)
}

/** Again while `left` says that something is left: somebody has it locked, or holds it, because the consumer is back. */
async function throughAll(runtime: Runtime, consumer: string, pass: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LOCKED_MS
  for (let attempt = 0; ; attempt++) {
    const left = await pass()
    await refuseIfBack(runtime, consumer)
    if (!left) return
    if (performance.now() > deadline) throw inUse(consumer, 'a worker holds messages of it')
    await sleep(backoffMs(attempt, 20, 1_000))
  }
}

async function refuseIfBack({ db }: Pick<Runtime, 'db'>, consumer: string): Promise<void> {
  const back = await db.run(IS_REGISTERED, { consumer })
  if (back.length > 0) throw inUse(consumer, 'a process has declared it again meanwhile')
}

function refusal(name: string, { users, held, pending, dead, quarantined }: RemovalAnswer): OnceboxError {
  if (users.length > 0) return inUse(name, `processes run it: ${users.join(', ')}`)
  if (held) return inUse(name, 'a worker holds messages of it')
  const counted = [
    [pending, 'waiting'],
    [dead, 'dead'],
    [quarantined, 'in quarantine'],
  ] as const
  const facts = counted.filter(([count]) => count > 0).map(([count, what]) => `${atLeast(count)} ${what}`)
  return new OnceboxError(
    'CONSUMER_HAS_MESSAGES',
    `consumer ${name} has messages that it has not handled: ${facts.join(', ')}. Handle, retry or discard them first; or give them all up with removeConsumer(${JSON.stringify(name)}, { discard: true })`,
  )
}

/** No further than this is counted. */
function atLeast(count: number): string {
  return count >= 10_000 ? '10000 or more' : String(count)
}

function inUse(name: string, who: string): OnceboxError {
  const advice = `stop them, or deploy them without it, and remove it then; one that was killed counts for another ${GONE_MS / 1_000} s`
  return new OnceboxError('CONSUMER_IN_USE', `consumer ${name} cannot be removed, ${who}; ${advice}`)
}

function locked(name: string, cause: unknown): OnceboxError {
  return new OnceboxError(
    'CONSUMER_IN_USE',
    `consumer ${name} cannot be removed now: a session has had the table subscription in use all the time, a backup perhaps; nothing was changed. Try again when it is over`,
    { cause },
  )
}
