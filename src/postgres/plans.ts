/**
 * Plans: keeps the server's picture of our tables fresh. Each connection plans a statement once, mostly while the tables
 * are empty, and such a plan reads the whole backlog: with 20 000 messages a settlement takes 50 ms in place of one. A
 * fresh picture makes every connection plan anew. Autovacuum takes a minute or more to draw one; a busy worker looks
 * five times a second: in one second a burst has grown to tens of thousands.
 */
import { OUTGROWN } from './sql/plans.js'
import type { Database } from './database.js'

const TABLES = ['message', 'work', 'lane'] as const
const LOOK_MS = 200

/** Answers with a function to be called when there is work. It waits for nothing and never throws. */
export function createPlans(db: Database, tables: readonly string[] = TABLES): () => void {
  let lastLook = -Infinity
  let looking = false
  const look = async (): Promise<void> => {
    const outgrown = await db.run(
      OUTGROWN,
      tables.map((table) => [table, db.bind(`ob.${table}`)] as const),
    )
    for (const { name } of outgrown) await db.driver.query(db.bind(`analyze ob.${name}`), [])
  }
  return () => {
    if (looking || performance.now() - lastLook < LOOK_MS) return
    looking = true
    lastLook = performance.now()
    // Without fresh statistics everything works, if slowly; and other databases may not have them at all.
    const done = (): void => void (looking = false)
    look().then(done, done)
  }
}
