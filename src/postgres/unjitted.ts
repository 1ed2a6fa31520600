/** Runs statements whose cost the planner cannot guess. */
import type { Database } from './database.js'
import type { Statement } from './statement.js'

/**
 * Runs one statement in a transaction of its own, where drivers turn `jit` off. A limit that comes as a parameter makes
 * a statement look a hundred times dearer than it is, and compiling it takes seconds where running it takes none.
 */
export function runUnjitted<In, Out>(db: Database, statement: Statement<In, Out>, param: In): Promise<readonly Out[]> {
  return db.transaction((tx) => db.run(statement, param, tx))
}
