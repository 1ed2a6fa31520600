/**
 * Jobs: retries and discards that go on while nobody looks. Each is a row, which every process sees, cancels and paces. One
 * process carries it; when that one is gone, another that has a dashboard of the box goes on behind the last message that was changed.
 * Only those: what is to be changed is said in the language of the search bar, which a box alone does not speak.
 */
import { randomUUID } from 'node:crypto'
import { backoffMs, sleep } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import { beginTurn } from '../../lifecycle.js'
import { someCause } from '../../failure.js'
import { isConnectionLoss, sqlState } from '../../postgres/errors.js'
import type { WalkEnd } from '../../postgres/sql/bulk.js'
import {
  CHANGE_BULK, LIST_BULK, READ_BULK, START_BULK, TAKE_BULK, type BulkRow,
} from '../../postgres/sql/bulk-work.js' // prettier-ignore
import type { Runtime } from '../../runtime.js'
import type { Job } from '../answers/index.js'
import type { Glasses } from '../query.js'
import type { Inside } from '../options.js'
import { notFound, Problem } from '../problem.js'
import { LEASE_MS } from './batch.js'
import { carry, noteDeed } from './carry.js'

export interface Order {
  /** Of the confirmation: one begins one job. */
  readonly id: string
  readonly verb: 'retry' | 'discard'
  /** The filter in words, the zone and the time that its times are read by: any process reads the same from it. */
  readonly query: string
  readonly zone: number
  readonly readAt: number
  /** How far messages had come when they were counted: the process that carries it takes nothing else. */
  readonly counted: WalkEnd
  /** It may quote a payload. */
  readonly secret: boolean
  readonly total: number
  readonly limit: number
  readonly perSecond: number | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
}

export type ListedJob = Job & { readonly secret: boolean }

export interface Jobs {
  /** Resolves once it is on record, and the audit says so. One that has begun before is answered as it is. */
  start(order: Order): Promise<ListedJob>
  /** The one that was begun with this id. */
  find(id: string): Promise<ListedJob | undefined>
  /** Those that run, then those that ended lately, in whichever process. */
  list(): Promise<readonly ListedJob[]>
  /** Lets go of what runs here, for others to carry on. Resolves when nothing does any more. */
  close(): Promise<void>
  /** Throws NOT_FOUND for one that is not of this verb. */
  change(
    job: { readonly verb: Order['verb']; readonly id: string },
    to: { cancel?: true; perSecond?: number },
  ): Promise<ListedJob>
}

export interface JobsDeps extends Omit<Glasses, 'fingerprints'> {
  /** By which aliases of fingerprints are read. */
  secret(): Promise<string>
  readonly inside: Inside
  readonly reads: Runtime
  /** It changes nothing, not for others either. */
  readonly readOnly: boolean
}

const MOST_RUNNING = 4
const MOST_LISTED = 50
const KEPT_MS = 3_600_000
/**
 * So often it is looked whether something was left behind, also where nobody looks. Above the time after which pools close
 * connections.
 */
const LOOK_MS = 15_000

/** So often it is looked for what may have begun. */
const LOOKS = 5

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** A change that this process carries. */
interface Own {
  readonly work: Promise<void>
  wake(): void
}

export function createJobs({ inside, reads, readOnly, redact, report, secret }: JobsDeps): Jobs {
  const { db } = inside.stage.runtime
  const carried = new Map<string, Own>()
  const turn = beginTurn()
  let mayTake = !readOnly
  let taking: Promise<void> | undefined

  const begin = (row: BulkRow, token: string): void => {
    let wake = (): void => undefined
    const changed = (): Promise<void> => new Promise((resolve) => (wake = resolve))
    const work = carry({ inside, token, turn, changed, redact, report, secret }, row).finally(() =>
      carried.delete(row.id),
    )
    carried.set(row.id, { work, wake: () => wake() })
  }
  /** Carries on what nobody does any more. */
  const take = async (): Promise<void> => {
    try {
      while (turn.goesOn() && carried.size < MOST_RUNNING) {
        const token = randomUUID()
        const [row] = await db.run(TAKE_BULK, { token, leaseMs: LEASE_MS })
        if (!row) return
        begin(row, token)
      }
    } catch (error) {
      // Under this role nothing can be changed: then others have to.
      if (someCause(error, (cause) => sqlState(cause) === '42501')) mayTake = false
    }
  }
  const takeIf = (rows: readonly BulkRow[]): void => {
    if (!mayTake || !turn.goesOn() || !rows.some(({ free }) => free === 'true')) return
    taking ??= take().finally(() => (taking = undefined))
  }
  const listed = { keptMs: KEPT_MS, limit: MOST_LISTED }
  const timer = setInterval(() => {
    // A database that does not answer is told by all else that needs it.
    db.run(LIST_BULK, listed).then(takeIf, () => undefined)
  }, LOOK_MS).unref()

  const find: Jobs['find'] = async (id) => {
    const [row] = await db.run(READ_BULK, { id })
    return row && show(inside.name, row)
  }

  return {
    find,
    async start({ limit, perSecond, by, counted, ...order }) {
      const token = randomUUID()
      let committing = false
      const written = db.transaction(async (tx) => {
        const given = { ...order, token, counted: JSON.stringify(counted), most: limit, pace: perSecond, actor: by }
        const [started] = await db.run(START_BULK, { ...given, leaseMs: LEASE_MS, mostRunning: MOST_RUNNING }, tx)
        if (started) await noteDeed(inside, started, tx)
        committing = started !== undefined
        return started
      }, 'read committed')
      const row = await written.catch((error: unknown) => {
        if (!committing || !someCause(error, isWithoutAnswer)) throw error
        return lookUp(inside.stage.runtime, order.id)
      })
      if (!row) {
        const before = await find(order.id)
        if (before) return before
        throw new Problem('BUSY', `${MOST_RUNNING} changes run already; wait for one to end, or cancel one`)
      }
      begin(row, token)
      return show(inside.name, row)
    },
    async list() {
      const rows = await reads.db.run(LIST_BULK, listed)
      takeIf(rows)
      return rows.map((row) => show(inside.name, row))
    },
    async close() {
      clearInterval(timer)
      turn.end()
      await taking
      await Promise.all([...carried.values()].map(({ work }) => work))
    },
    async change({ verb, id }, { cancel = false, perSecond }) {
      const gone = (): Problem => notFound('there is no such job; it may have ended long ago')
      if (!UUID.test(id)) throw gone()
      const [row] = await db.run(CHANGE_BULK, { id, verb, cancel, pace: perSecond })
      if (!row) {
        const [other] = await reads.db.run(READ_BULK, { id })
        throw other?.verb === verb ? new Problem('CONFLICT', 'it has ended already') : gone()
      }
      carried.get(id)?.wake()
      takeIf([row])
      return show(inside.name, row)
    },
  }
}

function isWithoutAnswer(error: unknown): boolean {
  return isConnectionLoss(error) || (error instanceof OnceboxError && error.code === 'COMMIT_UNCERTAIN')
}

/** What became of a change whose COMMIT had no answer. That it is not there yet does not say that it will not be. */
async function lookUp({ db }: Runtime, id: string): Promise<BulkRow> {
  for (let tries = 0; tries < LOOKS; tries++) {
    if (tries > 0) await sleep(backoffMs(tries, 100, 1_000))
    const [row] = await db.run(READ_BULK, { id }).catch(() => [])
    if (row) return row
  }
  const what = `the database did not say whether the change has begun; look for job ${id} before you try again`
  throw new Problem('COMMIT_UNCERTAIN', what)
}

function show(box: string, row: BulkRow): ListedJob {
  const { id, verb, state, query, actor, reason, pace, started, ended, problem } = row
  const time = (ms: string): string => new Date(Number(ms)).toISOString()
  return {
    id,
    box,
    verb,
    state,
    query,
    secret: row.secret === 'true',
    ...(actor !== null && { by: actor }),
    ...(reason !== null && { reason }),
    total: Math.min(Number(row.total), Number(row.most)),
    done: Number(row.done),
    skipped: Number(row.skipped),
    handled: Number(row.handled),
    failedAgain: Number(row.failed),
    ...(pace !== null && { perSecond: Number(pace) }),
    startedAt: time(started),
    ...(ended !== null && { endedAt: time(ended) }),
    ...(problem !== null && { problem }),
    ...(row.resumed === 'true' && { resumed: true as const }),
  }
}
