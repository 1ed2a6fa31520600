/** What every step of the flow is given: the database, the vocabulary, and where to report. */
import { plainWords, withoutValues } from './failure.js'
import type { Logger } from './handler.js'
import type { MessageMap } from './message.js'
import type { Metrics } from './metrics/metrics.js'
import type { Database } from './postgres/database.js'
import type { Hooks, Place } from './hooks.js'
import type { StandardSchemaV1 } from './standard-schema.js'
import type { Traces } from './telemetry/traces.js'
import { createTrouble, type Trouble } from './worker/trouble.js'

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
  /** Warns, unless it has warned of the same before. */
  warnOnce(key: string, about: object, text: string): void
  readonly hooks: Hooks<MessageMap>
  readonly metrics: Metrics
  /** False if OpenTelemetry is to be told nothing. */
  readonly telemetry: boolean
  /** False if nothing is written down for charts. */
  readonly history: boolean
  readonly outbox: LocalOutbox
  /** The sources that are attached, in their order. */
  readonly origins: Origin[]
  /** The spans of the box. */
  readonly traces: Traces
  /** The drains that are under way, by when they began. */
  readonly drains: Set<{ readonly since: number }>
}

/** A source, as it was attached. */
export interface Origin {
  /** What people call it. */
  readonly name: string
  /** The account that its part of the quarantine is on; undefined if nothing is counted. */
  readonly account: string | undefined
  /** The types that it may send; undefined for any. */
  readonly types: ReadonlySet<string> | undefined
  readonly keys: 'source' | 'shared'
  readonly consumers: readonly string[] | undefined
  readonly unrouted: 'quarantine' | 'skip' | undefined
  /** Undefined for no limit. */
  readonly quota: Quota | undefined
  /** How long what was captured on its way can be sent again; undefined if its source does not say. */
  readonly replayMs: number | undefined
  /** Something did not fit into its part of the quarantine, and nobody has made room since. */
  full: boolean
}

export interface Quota {
  readonly maxRows: number
  readonly maxBytes: number
  /** Undefined for ever. */
  readonly retainMs: number | undefined
  /** Of what it may not send. */
  readonly notAllowedMs: number
}

/** What sending has to know of the relays in this process. They fill it in. */
export interface LocalOutbox {
  /** The attached sinks; other processes may have more. `types` null means all. */
  sinks: readonly { readonly name: string; readonly types: readonly string[] | null }[]
  /** Called when events were written, before their transaction commits. */
  sent(): void
}

/** What hooks are told. `archive` is asked: retention waits for its answer. */
type Told = Required<Omit<Hooks<MessageMap>, 'archive'>>

/**
 * The one way to tell a hook: as a method of the object that it came with. A hook that fails must not fail the flow: what
 * it was told has been committed already.
 */
export function tell<K extends keyof Told>({ hooks, log }: Runtime, name: K, ...what: Parameters<Told[K]>): void {
  if (!hooks[name]) return
  const failed = (error: unknown): void => {
    log.error({ hook: name, error: plainWords(error) }, 'a hook failed')
  }
  try {
    const hook = hooks[name] as (...what: unknown[]) => unknown
    Promise.resolve(hook.apply(hooks, what)).catch(failed)
  } catch (error) {
    failed(error)
  }
}

export interface Watched {
  /** What people call it. */
  readonly name: string
  readonly where: Place
  /** What it would be cut off from. */
  readonly of: 'the database' | 'its broker'
  readonly calmMs?: number
}

/** Tells the log and the hooks when something begins to fail, and when it works again. */
export function watch(runtime: Runtime, { name, where, of, calmMs = 0 }: Watched): Trouble {
  const kind = where.source ? 'source' : where.sink ? 'sink' : where.consumer === undefined ? 'part' : 'consumer'
  const what = kind === 'part' ? name : `${kind} ${name}`
  return createTrouble(
    {
      failed(error) {
        runtime.log.warn({ [kind]: name, error: plainWords(error) }, `${what} fails, and is tried again`)
        tell(runtime, 'error', withoutValues(error), where)
      },
      // At the level of the failure: people who saw the failure look for its end.
      recovered(away) {
        const back = away && of === 'the database' ? 'the database is back: ' : ''
        runtime.log.warn({ [kind]: name }, `${back}${what} works again`)
        tell(runtime, 'recovered', where)
      },
    },
    calmMs,
  )
}
