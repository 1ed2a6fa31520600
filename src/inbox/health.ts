/** Health: what the database says of the messages that wait, and of itself. */
import { HEALTH } from '../postgres/sql/registry.js'
import type { Runtime } from '../runtime.js'
import { sleep } from '../backoff.js'

export interface Waiting {
  readonly consumer: string
  /** The age of the oldest message that is due and that nobody holds; null if there is none. */
  readonly dueMs: number | null
  /** Some worker, anywhere, holds messages of it. */
  readonly held: boolean
}

export interface DatabaseHealth {
  readonly lagMs: number
  /** It takes writes: a standby and a read-only server do not. */
  readonly writable: boolean
  readonly consumers: readonly Waiting[]
}

/** A database that takes longer to answer is not there. */
const TIMEOUT_MS = 5_000

/** Answers why not, if the database does not. `consumers`: those declared here, which may not be registered yet. */
export async function readHealth({ db }: Runtime, consumers: readonly string[]): Promise<DatabaseHealth | Error> {
  let found: DatabaseHealth | undefined
  try {
    const asked = db.run(HEALTH, consumers).then(([row]) => {
      const { lag, writable, waiting } = row as Record<'lag' | 'writable' | 'waiting', string>
      found = {
        lagMs: Number(lag),
        writable: writable === 'true',
        consumers: JSON.parse(waiting) as Waiting[],
      }
    })
    await sleep(TIMEOUT_MS, asked)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
  return found ?? new Error(`it has not answered in ${TIMEOUT_MS} ms`)
}
