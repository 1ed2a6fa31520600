/** Check: the role of the session may do what a started box does. Told at the start, in words, rather than by a worker. */
import { OnceboxError } from '../errors.js'
import type { Database } from './database.js'
import { isDenied, sqlState } from './errors.js'
import { FUNCTIONS, GRANTS } from './roles.js'
import { MISSING_RIGHTS, type RightsRow } from './sql/server.js'

export async function checkRights(db: Database): Promise<void> {
  const { role, missing } = await missingRights(db)
  if (missing !== null) throw rightsMissing(db.schema, `role ${role} lacks ${missing}`)
}

/** What the role of the session lacks of a worker's rights, as a list for people; null if nothing. */
export async function missingRights(db: Database): Promise<RightsRow> {
  const tables: Record<string, string[]> = {}
  for (const [table, rights] of Object.entries(GRANTS.worker)) {
    // A right on some columns alone is the audit's, and only a change by a person needs it.
    if (!rights.includes('(')) tables[table] = rights.split(', ')
  }
  const [row] = await db.run(MISSING_RIGHTS, { tables, functions: FUNCTIONS })
  return row!
}

/** Rejects with an error of the box, in words if it is one of rights. */
export async function lacksRights(db: Database, error: unknown): Promise<never> {
  if (!isDenied(error)) throw error
  const { role, missing } = await missingRights(db).catch(() => ({ role: '', missing: null }))
  const what = missing === null ? (error as Error).message : `role ${role} lacks ${missing}`
  throw rightsMissing(db.schema, what, error)
}

export function rightsMissing(schema: string, what: string, cause?: unknown): OnceboxError {
  const advice = `grant it the worker's role of rolesSql({ schema: '${schema}' }), or start the box under another role`
  return new OnceboxError('RIGHTS_MISSING', `the role may not run a box on schema ${schema}: ${what}; ${advice}`, {
    cause,
  })
}

/** An error of `migrate()`, in words if it is one of rights. */
export function mayNotMigrate(schema: string, error: unknown): unknown {
  if (sqlState(error) !== '42501') return error
  const needs =
    'to create a schema it needs CREATE on the database, to fill one CREATE on it, and to upgrade one it must own its tables'
  const advice = `connect as their owner, or as one that belongs to it, with options: '-c role=<owner>'`
  const what = error instanceof Error ? error.message : String(error)
  return new OnceboxError('RIGHTS_MISSING', `the role may not migrate schema ${schema}: ${what}; ${needs}; ${advice}`, {
    cause: error,
  })
}
