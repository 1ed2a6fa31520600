/** Health: what the database says of the messages that wait, and of itself. */
import { HEALTH, type Waiting, type WaitingEvents } from '../postgres/sql/registry.js'
import { readJson } from '../postgres/statement.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { Runtime } from '../runtime.js'
import { sleep } from '../backoff.js'

export interface DatabaseHealth {
  readonly lagMs: number
  /** It takes writes: a standby and a read-only server do not. */
  readonly writable: boolean
  /** The role of the session may write. */
  readonly allowed: boolean
  readonly consumers: readonly Waiting[]
  readonly sinks: readonly WaitingEvents[]
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
    const asked = runUnjitted(db, HEALTH, { consumers, sinks: outbox.sinks.map(({ name }) => name) }).then(([row]) => {
      const { lag, writable, allowed, waiting, sinks } = row!
      found = {
        lagMs: Number(lag),
        writable: writable === 'true',
        allowed: allowed === 'true',
        consumers: readJson(waiting),
        sinks: readJson(sinks),
      }
    })
    await sleep(TIMEOUT_MS, asked)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
  return found ?? new Error(`it has not answered in ${TIMEOUT_MS} ms`)
}
