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
  readonly sinks: readonly WaitingEvents[]
}

export interface WaitingEvents {
  readonly sink: string
  /** The age of the oldest event that is due; null if there is none. */
  readonly dueMs: number | null
  /** Some relay, anywhere, publishes to it right now. */
  readonly held: boolean
}

/** A database that takes longer to answer is not there. */
const TIMEOUT_MS = 5_000

/** Answers why not, if the database does not. `consumers`: those declared here, which may not be registered yet. */
export async function readHealth(
  { db, outbox }: Runtime,
  consumers: readonly string[],
): Promise<DatabaseHealth | Error> {
  let found: DatabaseHealth | undefined
  try {
    const asked = db.run(HEALTH, { consumers, sinks: outbox.sinks.map(({ name }) => name) }).then(([row]) => {
      const { lag, writable, waiting, sinks } = row as Record<'lag' | 'writable' | 'waiting' | 'sinks', string>
      found = {
        lagMs: Number(lag),
        writable: writable === 'true',
        consumers: JSON.parse(waiting) as Waiting[],
        sinks: JSON.parse(sinks) as WaitingEvents[],
      }
    })
    await sleep(TIMEOUT_MS, asked)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
  return found ?? new Error(`it has not answered in ${TIMEOUT_MS} ms`)
}
