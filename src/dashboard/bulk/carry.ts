/**
 * Carry: a process goes on with a change until it ends, at a rate that may change meanwhile, and looks what becomes of its
 * messages. Everything that has to survive it is in the row; here is nothing but the pace, and which keys are held back.
 */
import { backoffMs, sleep } from '../../backoff.js'
import { writeAudit } from '../../inbox/audit.js'
import type { OwnTurn } from '../../lifecycle.js'
import { OnceboxError } from '../../errors.js'
import { isConflict, isUnavailable, sqlState } from '../../postgres/errors.js'
import type { WalkEnd } from '../../postgres/sql/bulk.js'
import { END_BULK, FOLLOW_BULK, LEAVE_BULK, type BulkRow } from '../../postgres/sql/bulk-work.js'
import { someCause } from '../../failure.js'
import { fingerprintsFor } from '../fingerprints.js'
import type { Inside } from '../options.js'
import { toProblem } from '../problem.js'
import { parseQuery, type Glasses } from '../query.js'
import { changeBatch, changeOf, LEASE_MS, type Carried } from './batch.js'
import { beginPlan, lookFurther, wantedOf, type Plan, type Wanted } from './plan.js'

const MOST_AT_ONCE = 500
const FOLLOWED_AT_ONCE = 500
const LOOK_MS = 1_000
/** What was retried last gets so long to show what becomes of it. */
const AFTERWARDS_MS = 60_000
const AFTERWARDS_LOOK_MS = 500
/** Of the last so many that have run, more than half failed: the cause is still there. */
const WINDOW = 50
const PATIENCE_MS = 2_000

export interface CarryParts extends Omit<Glasses, 'fingerprints'> {
  secret(): Promise<string>
  readonly inside: Inside
  readonly token: string
  /** Ends when the process lets go of it. */
  readonly turn: OwnTurn
  /** Resolves when somebody here has changed the rate, or cancelled. */
  changed(): Promise<unknown>
}

type Ending = 'done' | 'cancelled' | 'stopped'

/** Never rejects. Who finds that another process carries it lets it be. */
export async function carry(parts: CarryParts, taken: BulkRow): Promise<void> {
  const { turn, report } = parts
  const hold = new Hold(parts, taken)
  let { plan } = taken
  for (let tries = 0; turn.goesOn(); tries++) {
    try {
      // After a failure what is in the row counts: what this process remembers may be older.
      if (tries > 0 && !(await hold.look())) return
      if (hold.row.state === 'running') {
        // Before the walk, which may meet an obstacle again and again.
        const ending = hold.row.cancelled === 'true' ? 'cancelled' : await run(parts, hold)
        if (ending === undefined) return
        if (ending === 'left') break
        await end(parts, hold, { state: ending })
      }
      await hold.followOn()
      return
    } catch (error) {
      if (!isPassing(error)) return fail(parts, hold, error)
      // It came further since: this is another obstacle than the last.
      if (hold.row.plan !== plan) tries = 0
      plan = hold.row.plan
      if (tries === 0) report(error)
      await sleep(backoffMs(tries, 200, 5_000), turn.over)
    }
  }
  const left = hold.leave({ seen: false }).catch(() => undefined)
  await sleep(PATIENCE_MS, left)
}

/**
 * A cancelled statement, a limit of time, a transaction that the server has ended, as it does with that of a process that was frozen, an
 * operator's intervention, system and internal errors: of the server's state, and not of the change. Data that is damaged stays so.
 */
const OF_THE_SERVER = /^(08...|25P0[1-4]|40...|53...|55006|57...|58...|XX000)$/

/** It says nothing about the change: later it may go on. */
function isPassing(error: unknown): boolean {
  if (isConflict(error)) return true
  return someCause(error, (cause) => {
    if (cause instanceof OnceboxError) return cause.code === 'COMMIT_UNCERTAIN' || cause.code === 'SCHEMA_OUTDATED'
    return isUnavailable(cause) || OF_THE_SERVER.test(sqlState(cause) ?? '')
  })
}

async function fail(parts: CarryParts, hold: Hold, error: unknown): Promise<void> {
  parts.report(error)
  await end(parts, hold, { state: 'failed', problem: toProblem(error).message }).catch(parts.report)
}

/** What a process has of a change while it carries it. */
class Hold {
  row: BulkRow
  readonly heldBack = new Set<string>()
  readonly #parts: CarryParts
  #after = '0'
  #lookedAt = -Infinity

  constructor(parts: CarryParts, row: BulkRow) {
    this.#parts = parts
    this.row = row
  }

  get self(): { readonly id: string; readonly token: string } {
    return { id: this.row.id, token: this.#parts.token }
  }

  /** Holds the lease, and sees what has become of messages. Undefined: another process carries it. */
  async look(): Promise<BulkRow | undefined> {
    const { db } = this.#parts.inside.stage.runtime
    this.#lookedAt = performance.now()
    const given = { ...this.self, after: this.#after, limit: FOLLOWED_AT_ONCE, leaseMs: LEASE_MS }
    const [row] = await db.run(FOLLOW_BULK, given)
    if (row) this.row = row
    // From the first again: what has not run yet may have by now.
    this.#after = row?.last ?? '0'
    return row
  }

  /** The same, if it is time. */
  lookNowAndThen(): Promise<BulkRow | undefined> | BulkRow {
    return performance.now() - this.#lookedAt > LOOK_MS ? this.look() : this.row
  }

  get isHopeless(): boolean {
    const { recent } = this.row
    return recent.length >= WINDOW && recent.replaceAll('0', '').length > WINDOW / 2
  }

  /** After its end, for the eye alone. */
  async followOn(): Promise<void> {
    const { turn } = this.#parts
    for (const deadline = performance.now() + AFTERWARDS_MS; turn.goesOn();) {
      const row = await this.look()
      if (!row) return
      if (row.following === '0' || performance.now() > deadline) return void (await this.leave({ seen: true }))
      await sleep(AFTERWARDS_LOOK_MS, turn.over)
    }
    await this.leave({ seen: false })
  }

  async leave({ seen }: { readonly seen: boolean }): Promise<void> {
    await this.#parts.inside.stage.runtime.db.run(LEAVE_BULK, { ...this.self, seen })
  }
}

/** Answers why it ended; undefined: another process carries it. What was changed stays changed, whatever the reason. */
async function run(parts: CarryParts, hold: Hold): Promise<Ending | 'left' | undefined> {
  const { inside, turn } = parts
  const { runtime } = inside.stage
  const carried = carriedOf(parts, hold)
  const wanted = await orderedBy(parts, carried, hold.row)
  let plan = hold.row.plan === null ? await beginPlan(runtime, wanted) : (JSON.parse(hold.row.plan) as Plan)
  let done = Number(hold.row.done)
  const most = Number(hold.row.most)
  let next = performance.now()
  for (;;) {
    const found = await lookFurther(runtime, wanted, plan)
    if (!found) return 'done'
    for (let at = 0; at === 0 || at < found.rows.length;) {
      if (done >= most) return 'done'
      next = await pause(parts, hold, next)
      if (!turn.goesOn()) return 'left'
      if (!(await hold.lookNowAndThen())) return undefined
      if (hold.row.cancelled === 'true') return 'cancelled'
      if (hold.isHopeless) return 'stopped'
      const rows = found.rows.slice(at, at + Math.min(sizeOf(hold.row), most - done))
      const behind = found.after(at + rows.length)
      const answer = await changeBatch(carried, wanted, { place: found.place, rows, plan: behind })
      if (!answer) return undefined
      // As somebody may have left it since.
      hold.row = { ...answer.row, recent: hold.row.recent }
      if (hold.row.cancelled === 'true') return 'cancelled'
      done += answer.changed
      at += rows.length
      plan = behind
      if (rows.length === 0) break
      inside.stage.wake()
      next = Math.max(next, performance.now() - LOOK_MS) + msFor(hold.row, rows.length)
    }
  }
}

function carriedOf({ inside, token }: CarryParts, { row: { id, verb, reason }, heldBack }: Hold): Carried {
  return { inside, id, token, verb, reason: reason ?? undefined, heldBack }
}

/** Whoever asked for it may have written it with aliases, or with what is behind them. */
async function orderedBy(
  { redact, report, secret }: CarryParts,
  carried: Carried,
  { query, read, zone, counted }: BulkRow,
): Promise<Wanted> {
  const glasses: Glasses = { redact, report, fingerprints: fingerprintsFor(await secret(), true) }
  const { filter } = parseQuery(query, { nowMs: Number(read), zone: Number(zone) }, glasses)
  return wantedOf(filter, changeOf(carried), JSON.parse(counted) as WalkEnd)
}

/** A tenth of a second's worth, so that a change of the rate is felt at once. */
function sizeOf({ pace }: BulkRow): number {
  return pace === null ? MOST_AT_ONCE : Math.max(1, Math.min(MOST_AT_ONCE, Math.floor(Number(pace) / 10)))
}

function msFor({ pace }: BulkRow, messages: number): number {
  return pace === null ? 0 : (messages * 1_000) / Number(pace)
}

/** Until it is time for the next batch, which is answered, or it was cancelled. Another rate counts from now on. */
async function pause(parts: CarryParts, hold: Hold, next: number): Promise<number> {
  const { pace } = hold.row
  for (let left = next - performance.now(); left > 0 && parts.turn.goesOn(); left = next - performance.now()) {
    let told = false
    const changed = parts.changed().then(() => (told = true))
    await sleep(Math.min(left, LOOK_MS), changed, parts.turn.over)
    const row = told ? await hold.look() : await hold.lookNowAndThen()
    if (!row || row.cancelled === 'true' || row.pace !== pace) return performance.now()
  }
  return next
}

/** With its row in the audit: people who see that it has ended find it there. */
async function end(
  { inside }: CarryParts,
  hold: Hold,
  { state, problem }: { readonly state: Ending | 'failed'; readonly problem?: string },
): Promise<void> {
  const { db } = inside.stage.runtime
  const ended = await db.transaction(async (tx) => {
    const [row] = await db.run(END_BULK, { ...hold.self, state, problem, followMs: AFTERWARDS_MS }, tx)
    if (row) await noteDeed(inside, row, tx)
    return row
  }, 'read committed')
  if (ended) hold.row = ended
}

/** Who, what, how many, and why. */
export async function noteDeed({ stage }: Inside, row: BulkRow, tx: unknown): Promise<void> {
  const { id, verb, state, query, actor, reason, pace } = row
  const [total, most] = [Number(row.total), Number(row.most)]
  const detail = {
    filter: query,
    count: Number(row.done),
    of: total,
    reason: reason ?? undefined,
    ...(most < total && { limit: most }),
    perSecond: pace === null ? undefined : Number(pace),
    state,
    job: id,
  }
  const action = state === 'running' ? `${verb}-started` : verb
  await writeAudit(stage.runtime, { action, detail, by: actor ?? undefined }, tx)
}
