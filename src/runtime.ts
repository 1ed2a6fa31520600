/** What every step of the flow is given: the database, the vocabulary, and where to report. */
import type { Logger } from './handler.js'
import type { MessageMap } from './message.js'
import type { Database } from './postgres/database.js'
import type { Hooks } from './hooks.js'
import type { StandardSchemaV1 } from './standard-schema.js'

export interface Runtime {
  readonly db: Database
  /** The schema of a type; undefined if the box does not know the type. */
  schemaOf(type: string): StandardSchemaV1 | undefined
  /** The types it knows; none if it was created without messages. */
  readonly types: readonly string[]
  /** The producer's name, stamped on what is sent. */
  readonly source: string
  readonly maxBytes: number
  readonly log: Logger
  readonly hooks: Hooks<MessageMap>
  readonly outbox: LocalOutbox
}

/** What sending has to know of the relays in this process. They fill it in. */
export interface LocalOutbox {
  /** The attached sinks; other processes may have more. `types` null means all. */
  sinks: readonly { readonly name: string; readonly types: readonly string[] | null }[]
  /** Called when events were written, before their transaction commits. */
  sent(): void
}

/** A hook that fails must not fail the flow: what it was told has been committed already. */
export function callHook(runtime: Runtime, name: string, call: () => unknown): void {
  const failed = (error: unknown): void => {
    runtime.log.error({ hook: name, error: error instanceof Error ? error.message : String(error) }, 'a hook failed')
  }
  try {
    Promise.resolve(call()).catch(failed)
  } catch (error) {
    failed(error)
  }
}
