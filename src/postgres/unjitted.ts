/** Runs statements whose cost the planner cannot guess. */
import type { Database, Row } from './database.js'

/**
 * Runs one statement in a transaction of its own, where drivers turn `jit` off. A limit that comes as a parameter makes
 * a statement look a hundred times dearer than it is, and compiling it takes seconds where running it takes none.
 */
export function runUnjitted(db: Database, statement: string, param: unknown): Promise<readonly Row[]> {
  return db.transaction((tx) => db.run(statement, param, tx))
}
