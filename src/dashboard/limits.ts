/** Limits: how much of the database the dashboard may have at a time. Its readers must not slow down what it shows. */
import type { Database } from '../postgres/database.js'
import { BOUND_READS } from '../postgres/sql/session.js'
import { Problem } from './problem.js'

const AT_A_TIME = 4
/** One reader has no more of them, so that there is always one for another. */
const OF_ONE_READER = 3
/** So many wait of one reader, and of all. */
const MOST_WAITING = 64
const MOST_WAITING_IN_ALL = 640
const MOST_WAIT_MS = 10_000
const STATEMENT_MS = 5_000

export interface Gate {
  /** For a reader, by whatever tells them from others. */
  run<T>(reader: string, work: () => Promise<T>): Promise<T>
}

/** What a reader has of the gate. */
interface Share {
  inside: number
  readonly waiting: (() => void)[]
}

/** Lets four in at a time, readers by turns. Who waits for too long, or behind too many of their own, is told to come again. */
export function createGate(): Gate {
  const shares = new Map<string, Share>()
  let inside = 0
  let waiting = 0
  const admit = (): void => {
    // Who was let in goes behind the others, and is met again here.
    for (const [reader, share] of shares) {
      if (inside >= AT_A_TIME) return
      if (share.inside >= OF_ONE_READER) continue
      const go = share.waiting.shift()
      if (!go) continue
      shares.delete(reader)
      shares.set(reader, share)
      inside += 1
      share.inside += 1
      waiting -= 1
      go()
    }
  }
  const enter = async (reader: string, share: Share): Promise<void> => {
    if (share.waiting.length >= MOST_WAITING || waiting >= MOST_WAITING_IN_ALL) throw busy()
    shares.set(reader, share)
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        share.waiting.splice(share.waiting.indexOf(go), 1)
        waiting -= 1
        forget(reader, share)
        reject(busy())
      }, MOST_WAIT_MS)
      const go = (): void => {
        clearTimeout(timer)
        resolve()
      }
      share.waiting.push(go)
      waiting += 1
      admit()
    })
  }
  const leave = (reader: string, share: Share): void => {
    inside -= 1
    share.inside -= 1
    forget(reader, share)
    admit()
  }
  const forget = (reader: string, share: Share): void => {
    if (share.inside === 0 && share.waiting.length === 0) shares.delete(reader)
  }
  return {
    async run(reader, work) {
      const share = shares.get(reader) ?? { inside: 0, waiting: [] }
      await enter(reader, share)
      try {
        return await work()
      } finally {
        leave(reader, share)
      }
    },
  }
}

function busy(): Problem {
  return new Problem('BUSY', 'too much is looked at at once; try again in a moment')
}

/** The same database, for a reader: through the gate, and no statement longer than five seconds. */
export function boundReads(db: Database, gate: Gate, reader: string): Database {
  const transaction: Database['transaction'] = (work, isolation) =>
    gate.run(reader, () =>
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
