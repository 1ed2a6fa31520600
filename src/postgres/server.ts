/** Check: what `start()` asks of its server before anything runs on it. */
import { OnceboxError } from '../errors.js'
import type { Database } from './database.js'
import { sqlState } from './errors.js'
import { checkRights } from './rights.js'
import { LOCK_SEQUENCES, MISSING_ABILITY, REPAIR_SEQUENCES, SEQUENCES_BEHIND, type BehindRow } from './sql/server.js'

/** Refuses a server that cannot do what oncebox builds on, and sets sequences that are behind their tables. */
export async function checkServer(db: Database): Promise<void> {
  await checkRights(db)
  await checkAbilities(db)
  await repairSequences(db)
}

async function checkAbilities(db: Database): Promise<void> {
  const [row] = await db.run(MISSING_ABILITY, null).catch((told: unknown): never => {
    // What the engine lacks is in the same words as tables that are old.
    const error = told instanceof OnceboxError && told.code === 'SCHEMA_OUTDATED' ? told.cause : told
    // Not supported, not known, or an error inside: the engine. Anything else may pass.
    const inability = /^(0A|42|XX)/.test(sqlState(error) ?? '') && sqlState(error) !== '42501'
    throw inability ? unsupported(error instanceof Error ? error.message : String(error), error) : error
  })
  if (row!.missing !== null) throw unsupported(row!.missing)
}

function unsupported(why: string, cause?: unknown): OnceboxError {
  return new OnceboxError(
    'ENGINE_UNSUPPORTED',
    `oncebox cannot run on this server: ${why}; use PostgreSQL, with the tables of the box as plain tables of one node`,
    { cause },
  )
}

/** After a switch-over by logical replication, which does not copy sequences. */
async function repairSequences(db: Database): Promise<void> {
  const behind = await db.run(SEQUENCES_BEHIND, null)
  if (behind.length === 0) return
  try {
    await db.transaction(async (tx) => {
      await db.run(LOCK_SEQUENCES, null, tx)
      await db.run(REPAIR_SEQUENCES, null, tx)
    })
  } catch (error) {
    if (sqlState(error) !== '42501') throw error
    const repair = sequenceRepairs(behind)
    const what = repair.map(({ sequence }) => sequence).join(', ')
    const run = repair.map(({ statement }) => statement).join('; ')
    throw new OnceboxError(
      'SEQUENCE_BEHIND',
      `sequences are behind their tables, as after a switch-over by logical replication: ${what}. Run, as their owner: ${run}`,
      { cause: error },
    )
  }
}

export interface SequenceRepair {
  readonly sequence: string
  /** The columns that have its numbers, for people. */
  readonly columns: string
  readonly statement: string
}

/** What mends each sequence, in one statement: of several the last would decide. */
export function sequenceRepairs(behind: readonly BehindRow[]): SequenceRepair[] {
  const sequences = [...new Set(behind.map(({ sequence }) => sequence))]
  return sequences.map((sequence) => {
    const own = behind.filter((row) => row.sequence === sequence)
    const newest = own.map(({ numbered, col }) => `(select max(${col}) from ${numbered})`)
    return {
      sequence,
      columns: own.map(({ numbered, col }) => `${numbered}.${col}`).join(', '),
      statement: `select setval('${sequence}', ${newest.length > 1 ? `greatest(${newest.join(', ')})` : newest[0]!})`,
    }
  })
}
