/**
 * A client as the tests of all clients see it. Each is a module of its own in subjects/, in plain JavaScript: the processes
 * of the crash tests import it too.
 */
import type { Driver } from 'oncebox'
import type { DriverCapabilities } from '../../src/testing/driver-conformance/index.js'
import type { Place } from '../drivers/subjects.js'

/** A row of the table `effect`, which the crash tests' arena has made: see ../crash/arena.ts. */
export interface EffectRow {
  readonly consumer: string
  readonly key: string | null
  readonly id: string
  readonly seq: number | null
  readonly attempt: number
  readonly pid: number
}

export interface Opened {
  readonly driver: Driver<object>
  /** The handle that is no transaction. */
  readonly root: unknown
  /** Runs a statement without values, in the client's own way. */
  native(tx: object, text: string): Promise<unknown>
  /** Inserts the row as users of this client do: by its model, its builder. */
  insert(tx: object, row: EffectRow): Promise<unknown>
  /** A transaction that the user begins. */
  own<R>(work: (tx: object) => Promise<R>): Promise<R>
  /** A transaction within the transaction, as the client makes one: by a savepoint. Rejects if `work` does. */
  nested(tx: object, work: (tx: object) => Promise<unknown>): Promise<unknown>
  close(): Promise<void>
}

export interface OpenOptions extends Place {
  /** Connections. */
  readonly max: number
  /** application_name. */
  readonly name: string
}

export interface Subject {
  /** `from`: where its packages are; see versions.ts. */
  open(options: OpenOptions, from?: string): Promise<Opened>
  readonly capabilities?: DriverCapabilities
}

export async function subject(name: string): Promise<Subject> {
  return (await import(`./subjects/${name}.mjs`)) as Subject
}
