/**
 * OpenTelemetry as the application has set it up: its providers, its context manager, its propagator.
 *
 * `@opentelemetry/api` keeps what was registered under a symbol of the process, where every copy of it finds the same. We
 * look there too, and load no package: nothing to resolve or to bundle, the same in ES modules and CommonJS, no second
 * copy that is too new to see what an older one has registered, and what is registered after the box was made counts. The
 * symbols and shapes are those by which copies of version 1 know each other; a test holds them against the package.
 */

export interface OtelContext {
  getValue(key: symbol): unknown
  setValue(key: symbol, value: unknown): OtelContext
  deleteValue(key: symbol): OtelContext
}

export interface SpanContext {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
}

export interface Link {
  readonly context: SpanContext
}

export type Attributes = Record<string, string | number | undefined>

export interface Span {
  spanContext(): SpanContext
  setAttributes(attributes: Attributes): unknown
  setStatus(status: { code: number; message?: string }): unknown
  isRecording(): boolean
  /** By the clock of `performance.now()`. */
  end(at?: number): void
}

export interface SpanStart {
  readonly kind: number
  readonly links: readonly Link[]
}

export interface Tracer {
  startSpan(name: string, start: SpanStart, context: OtelContext): Span
}

export interface TracerProvider {
  getTracer(name: string): Tracer
}

interface ContextManager {
  active(): OtelContext
  with<T>(context: OtelContext, work: () => T): T
}

interface Propagator {
  inject<C>(context: OtelContext, carrier: C, setter: { set(carrier: C, name: string, value: string): void }): void
  extract<C>(context: OtelContext, carrier: C, getter: Getter<C>): OtelContext
}

interface Getter<C> {
  get(carrier: C, name: string): string | undefined
  keys(carrier: C): string[]
}

/** What has been registered, and nothing of what has not. */
export interface Registered {
  readonly trace?: TracerProvider
  readonly metrics?: { getMeter(name: string): object }
  readonly context?: ContextManager
  readonly propagation?: Propagator
}

const API = Symbol.for('opentelemetry.js.api.1')
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN')
const SUPPRESSED = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
const NOTHING: Registered = {}

export const KIND = { internal: 0, client: 2, producer: 3, consumer: 4 } as const
export const FAILED = 2

export function registered(): Registered {
  return (globalThis as { [API]?: Registered })[API] ?? NOTHING
}

/** A context is a list of values that is never changed; to add one costs no copy. */
class Values implements OtelContext {
  constructor(
    readonly rest?: Values,
    readonly key?: symbol,
    readonly value?: unknown,
  ) {}

  getValue(key: symbol): unknown {
    return this.key === key ? this.value : this.rest?.getValue(key)
  }

  setValue(key: symbol, value: unknown): OtelContext {
    return new Values(this, key, value)
  }

  deleteValue(key: symbol): OtelContext {
    return new Values(this, key, undefined)
  }
}

/** Nobody's context. */
export const ROOT: OtelContext = new Values()
/** In which instrumentations make no spans. */
export const UNTRACED: OtelContext = ROOT.setValue(SUPPRESSED, true)

/**
 * What is registered is the application's, and may throw or answer anything: no message has anything to do with it. So what is
 * asked of it is asked in the functions below alone.
 */
export function activeContext(): OtelContext {
  try {
    return checkContext(registered().context?.active())
  } catch {
    return ROOT
  }
}

/** The context that these headers tell of, as the application's propagator reads them. */
export function extractFrom<C>(carrier: C, getter: Getter<C>): OtelContext {
  try {
    return checkContext(registered().propagation?.extract(ROOT, carrier, getter))
  } catch {
    return ROOT
  }
}

function checkContext(given: unknown): OtelContext {
  const { getValue, setValue } = (given ?? {}) as Partial<OtelContext>
  return typeof getValue === 'function' && typeof setValue === 'function' ? (given as OtelContext) : ROOT
}

/** Runs work with this context active, as far as what it starts goes; without it, if the manager does not run work. Never twice. */
export function inContext<T>(context: OtelContext, work: () => T): T {
  const manager = registered().context
  if (!manager) return work()
  let hasRun = false
  let value: T | undefined
  let thrown: { readonly error: unknown } | undefined
  const run = (): T => {
    if (!hasRun) {
      hasRun = true
      try {
        value = work()
      } catch (error) {
        thrown = { error }
      }
    }
    // The manager need not know that work threw.
    return value as T
  }
  try {
    manager.with(context, run)
  } catch {
    // It is the manager that threw.
  }
  run()
  if (thrown) throw thrown.error
  return value as T
}

export function withSpan(context: OtelContext, span: Span): OtelContext {
  return context.setValue(SPAN, span)
}

/** The span that a context is in, here or in another process; undefined if it is in none. */
export function spanIn(context: OtelContext): SpanContext | undefined {
  try {
    const found = (context.getValue(SPAN) as Span | undefined)?.spanContext()
    return found && names(found.traceId, NO_TRACE) && names(found.spanId, NO_SPAN) ? found : undefined
  } catch {
    return undefined
  }
}

function names(id: unknown, none: string): boolean {
  return typeof id === 'string' && id !== none
}

const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)
