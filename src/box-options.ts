/** The options of a box, and what they become: the runtime that every step is given. */
import { checkMessages, requireFunction } from './check-options.js'
import { CONSOLE } from './console.js'
import { DAY_MS, MIB } from './figures.js'
import type { Logger } from './handler.js'
import type { Hooks } from './hooks.js'
import type { MessageMap } from './message.js'
import { Metrics } from './metrics/metrics.js'
import {
  boolean,
  callback,
  checked,
  integer,
  invalid,
  name,
  nested,
  number,
  optional,
  orInfinity,
  resolve,
} from './options.js'
import { bindDatabase } from './postgres/database.js'
import type { Driver } from './postgres/driver.js'
import { clientIn } from './postgres/drivers/wrong-client.js'
import { SCHEMA } from './postgres/schema.js'
import { callSafely } from './promises.js'
import type { Runtime } from './runtime.js'
import { NO_TRACES, SpanTraces } from './telemetry/traces.js'

export interface BoxOptions<M extends MessageMap, Tx, TxIn> {
  /** Your database client: `fromPg(pool)`, `fromPostgres(sql)`, `fromPglite(db)`. */
  db: Driver<Tx, TxIn>
  /** The vocabulary. Without it any type is taken, unchecked. */
  messages?: M | undefined
  /** The PostgreSQL schema of this service's tables. Default: 'oncebox'. */
  schema?: string | undefined
  /** Who you are, as a producer: stamped on what you send. Default: the name of the schema. */
  source?: string | undefined
  /** Larger bodies are refused or quarantined. Default: 1 MiB. */
  maxBytes?: number | undefined
  /** Default: warnings and errors on the console. */
  logger?: Logger | undefined
  /** `false` makes no spans, whatever is registered with OpenTelemetry. */
  telemetry?: false | undefined
  /** `false` writes no figures of each minute, which the charts of the dashboard are made of. Default: true, once it is started. */
  history?: boolean | undefined
  hooks?: Hooks<M> | undefined
}

const DRIVER = 'db must be a driver, such as fromPg(pool) of oncebox/pg'
const HOOK = optional(callback<(...told: never) => unknown>())
const HOOKS = {
  ...{ failed: HOOK, dead: HOOK, quarantined: HOOK, takenOver: HOOK },
  ...{ error: HOOK, recovered: HOOK, archive: HOOK },
}

/** A class may have more than its hooks, such as what they work with. */
function isOfClass(given: unknown): given is object {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false
  const prototype: unknown = Object.getPrototypeOf(given)
  return prototype !== Object.prototype && prototype !== null
}

function methodsOf(given: object): Hooks<MessageMap> {
  return Object.fromEntries(Object.keys(HOOKS).map((name) => [name, given[name as never]]))
}

export const BOX = {
  db: checked((_, given: Driver<unknown, unknown>) => {
    // Some clients have methods of the same names, and would seem to work.
    const client = clientIn(given)
    if (client !== undefined) throw invalid(`createBox: db must be a driver; got ${client}`)
    if (typeof given?.query === 'function' && typeof given.transaction === 'function') return given
    throw invalid(`createBox: ${DRIVER}`)
  }),
  messages: optional(
    checked((where, given: MessageMap) => {
      checkMessages(where, given)
      return given
    }),
    'any type, unchecked',
  ),
  schema: SCHEMA,
  source: optional(name(), 'the name of the schema'),
  maxBytes: integer({ least: 1, most: 256 * MIB, fallback: MIB }),
  logger: optional(
    checked((where, given: Logger) => {
      const levels = ['debug', 'info', 'warn', 'error'] as const
      for (const level of levels) requireFunction(`${where}.${level}`, (given as Partial<Logger> | null)?.[level])
      return given
    }),
    'warnings and errors on the console',
  ),
  telemetry: optional(
    checked((where, given: false) => {
      if (given === false) return given
      throw invalid(`${where} must be false, or left out: spans go where OpenTelemetry is set up to send them`)
    }),
    'on, once OpenTelemetry is set up',
  ),
  history: boolean(true),
  hooks: optional(
    checked((where, given: Hooks<MessageMap>) => {
      nested(HOOKS).read(where, isOfClass(given) ? methodsOf(given) : given)
      // They are methods of this object.
      return given
    }),
    'none',
  ),
}

export function createRuntime<M extends MessageMap, Tx, TxIn>(given: BoxOptions<M, Tx, TxIn>): Runtime {
  // A client in place of the options is told so, and nothing of its insides.
  if (typeof given !== 'object' || given === null || !('db' in given)) {
    throw invalid(`createBox takes { db }, and ${DRIVER}`)
  }
  const options = resolve('createBox', given as unknown as BoxOptions<MessageMap, unknown, unknown>, BOX)
  const { messages = {}, schema, source = schema, maxBytes, logger = CONSOLE, hooks = {} } = options
  const log = careful(logger)
  return {
    db: bindDatabase(options.db, schema),
    schemaOf: (type) => (Object.hasOwn(messages, type) ? messages[type] : undefined),
    types: Object.keys(messages),
    source,
    maxBytes,
    log,
    warnOnce: onceEach((about, text) => log.warn(about, text)),
    hooks,
    metrics: new Metrics(Object.keys(messages)),
    telemetry: options.telemetry !== false,
    history: options.history,
    outbox: { sinks: [], sent: () => undefined },
    origins: [],
    traces: options.telemetry === false ? NO_TRACES : new SpanTraces(),
    drains: new Set(),
  }
}

const STOP = { timeoutMs: orInfinity(number({ least: 0, fallback: 30_000 })) }

/** A text is not looked at: `process.on('SIGTERM', box.stop)` passes the name of the signal. */
export function stopTimeout(given: { timeoutMs?: number | undefined } | undefined): number {
  const { timeoutMs } = resolve('stop', typeof given === 'object' && given !== null ? given : {}, STOP)
  // A timer of more than 24 days, or of Infinity, would end at once.
  return Math.min(timeoutMs, DAY_MS)
}

/** What may be warned of is bounded; the memory of it is too. */
const MOST_WARNINGS = 1_000

function onceEach(warn: Logger['warn']): Runtime['warnOnce'] {
  const warned = new Set<string>()
  return (key, about, text) => {
    if (warned.has(key) || warned.size >= MOST_WARNINGS) return
    warned.add(key)
    warn(about, text)
  }
}

/** A logger that fails must not stop the work that it is told about. */
function careful(logger: Logger): Logger {
  const at =
    (level: keyof Logger): Logger['warn'] =>
    (about, text) =>
      callSafely(() => logger[level](about, text))
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
