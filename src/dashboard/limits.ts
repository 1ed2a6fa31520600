/** Limits: how much of the database the dashboard may have at a time. Its readers must not slow down what it shows. */
import type { Database } from '../postgres/database.js'
import { BOUND_READS } from '../postgres/sql/dashboard.js'
import { Problem } from './problem.js'

const AT_A_TIME = 4
const MOST_WAITING = 64
const MOST_WAIT_MS = 10_000
export const STATEMENT_MS = 5_000

export interface Gate {
  run<T>(work: () => Promise<T>): Promise<T>
}

/** Lets four in at a time. Who waits for too long, or behind too many, is told to come again. */
export function createGate(atATime = AT_A_TIME): Gate {
  let inside = 0
  const waiting: (() => void)[] = []
  const enter = async (): Promise<void> => {
    if (inside < atATime) return void (inside += 1)
    if (waiting.length >= MOST_WAITING) throw busy()
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(go), 1)
        reject(busy())
      }, MOST_WAIT_MS)
      // The place of the one that leaves is handed over: nobody comes between.
      const go = (): void => {
        clearTimeout(timer)
        resolve()
      }
      waiting.push(go)
    })
  }
  const leave = (): void => {
    const next = waiting.shift()
    if (next) next()
    else inside -= 1
  }
  return {
    async run(work) {
      await enter()
      try {
        return await work()
      } finally {
        leave()
      }
    },
  }
}

function busy(): Problem {
  return new Problem('BUSY', 'too many people look at once; try again in a moment')
}

/** The same database, for readers: through the gate, and no statement longer than five seconds. */
export function boundReads(db: Database, gate: Gate): Database {
  const transaction: Database['transaction'] = (work, isolation) =>
    gate.run(() =>
      db.transaction(async (tx) => {
        await db.run(BOUND_READS, { ms: String(STATEMENT_MS) }, tx)
        return work(tx)
      }, isolation),
    )
  return {
    ...db,
    transaction,
    run: (statement, param, tx) =>
      tx === undefined ? transaction((own) => db.run(statement, param, own)) : db.run(statement, param, tx),
  }
}

/** So many searches at once, and then so many in a second. */
const BURST = 30
const PER_SECOND = 5
const MOST_SUBJECTS = 10_000

export interface Buckets {
  /** Throws TOO_FAST. */
  take(subject: string): void
}

export function createBuckets(now: () => number = () => performance.now()): Buckets {
  const buckets = new Map<string, { left: number; at: number }>()
  return {
    take(subject) {
      const at = now()
      const before = buckets.get(subject)
      const left = before ? Math.min(BURST, before.left + ((at - before.at) / 1_000) * PER_SECOND) : BURST
      // The one that was used last is the last one, so the first ones are full again, or nearly.
      buckets.delete(subject)
      buckets.set(subject, { left: Math.max(0, left - 1), at })
      if (buckets.size > MOST_SUBJECTS) buckets.delete(buckets.keys().next().value!)
      if (left >= 1) return
      throw new Problem('TOO_FAST', `these are many searches; at most ${PER_SECOND} in a second, please`)
    },
  }
}
