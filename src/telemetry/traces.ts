/**
 * The spans of a box, by OpenTelemetry's conventions for messaging:
 *
 *     send ──> publish ──> receive        process ──> settle
 *      └───────── in the headers ────────────^ └──> effect, send, and the spans of the handler's own clients
 *
 * Each step of the flow asks for its span in one line, and knows nothing else of telemetry. Where nobody wants spans, what
 * was handed in comes back as it is.
 */
import type { Message } from '../message.js'
import { activeHeaders, contextIn, traceIdOf, type Headers } from './headers.js'
import { activeContext, inContext, KIND, ROOT, spanIn, UNTRACED, type Attributes, type OtelContext } from './otel.js'
import { NO_PASS, passOf, type PassTrace } from './pass.js'
import { endThrown, type Processed } from './process.js'
import { aboutAll, attributes, consumedBy, originOf, Spans, type OpenSpan, type Origin } from './span.js'

export interface Traces {
  /** `send`: what work sends carries its context. Answers work itself if nobody wants spans. */
  send<T extends Sent>(destination: string, work: () => Promise<T>): () => Promise<T>
  /** The headers that take the active trace along; undefined if there is none. */
  readonly headers: Headers | undefined
  /** `publish`: one call of a sink. */
  publish<A>(sink: string, batch: readonly Message[], work: () => Promise<A>): Promise<A>
  /** `receive`: what came in together. */
  receive<O extends Outcome>(
    source: string | undefined,
    incoming: readonly Received[],
    work: () => Promise<O[]>,
  ): Promise<O[]>
  /** `process`: one call of a handler, active while it runs. Its end waits for the transaction that it ran in. */
  process<R>(consumer: string, held: readonly Processed[], work: () => Promise<R>): () => Promise<R>
  /** The same for `once`, which runs in the caller's trace. */
  once<R>(consumer: string, message: Received, work: () => R | Promise<R>): () => R | Promise<R>
  /** `settle`, for one transaction and the messages that are to run in it. */
  pass(consumer: string, held: readonly Processed[]): PassTrace
  /** `settle`, for a message that has failed. */
  fail<T>(consumer: string, held: Processed, verdict: Judged, work: () => Promise<T>): Promise<T>
  /** The context that an effect is asked for in; undefined if nobody wants spans. */
  readonly context: OtelContext | undefined
  /** `effect`: one call outside the database. */
  effect<R>(consumer: string, effect: Effect, work: () => R | Promise<R>): Promise<R>
  /** The id of the trace that a log line belongs to. */
  traceId(headers: Headers): string | undefined
  /** Starts what runs for ever: it belongs to no trace, and its looking for work is no trace either. */
  background<T>(start: () => T): T
  /** Starts what brings messages: it belongs to no trace, but what it brings may. */
  detached<T>(start: () => T): T
}

/** What was sent: one message or many. */
type Sent = { readonly id: string } | readonly { readonly id: string }[]

/** As it was handed in: nobody has looked at it yet. */
interface Received {
  readonly id?: unknown
  readonly type?: unknown
  readonly headers?: unknown
}

interface Outcome {
  readonly status: string
}

interface Judged {
  readonly parked?: 'dead' | 'quarantined'
  readonly asked?: unknown
  readonly reason?: string
}

interface Effect {
  readonly name: string
  readonly within: OtelContext | undefined
}

/** `telemetry: false`. */
export const NO_TRACES: Traces = {
  send: (_, work) => work,
  headers: undefined,
  publish: (_, __, work) => work(),
  receive: (_, __, work) => work(),
  process: (_, __, work) => work,
  once: (_, __, work) => work,
  pass: () => NO_PASS,
  fail: (_, __, ___, work) => work(),
  context: undefined,
  effect: async (_, __, work) => work(),
  traceId: traceIdOf,
  background: (start) => start(),
  detached: (start) => start(),
}

export class SpanTraces implements Traces {
  readonly #spans = new Spans()

  send<T extends Sent>(destination: string, work: () => Promise<T>): () => Promise<T> {
    if (!this.#spans.areWanted) return work
    return () => {
      const about = (): Attributes => attributes('send', destination)
      const parent = activeContext()
      const span = this.#spans.begin({ operation: 'send', to: destination, kind: KIND.producer, parent, about })
      return during(span, work, (sent) => aboutAll('id' in sent ? [sent] : sent))
    }
  }

  get headers(): Headers | undefined {
    return activeHeaders()
  }

  publish<A>(sink: string, batch: readonly Message[], work: () => Promise<A>): Promise<A> {
    if (!this.#spans.areWanted) return work()
    const about = (): Attributes => ({ ...attributes('publish', sink), ...aboutAll(batch) })
    const origin = originOf(batch, contextIn)
    const span = this.#spans.begin({ ...origin, operation: 'publish', to: sink, kind: KIND.client, about })
    return during(span, work, refusedOf)
  }

  receive<O extends Outcome>(
    source: string | undefined,
    incoming: readonly Received[],
    work: () => Promise<O[]>,
  ): Promise<O[]> {
    if (!this.#spans.areWanted) return work()
    const destination = source ?? 'inbox'
    const about = (): Attributes => ({ ...attributes('receive', destination), ...aboutAll(incoming) })
    const origin = inActive(originOf(incoming, contextIn))
    const span = this.#spans.begin({ ...origin, operation: 'receive', to: destination, kind: KIND.client, about })
    return during(span, work, (outcomes) => ({ 'oncebox.outcome': commonOf(outcomes) }))
  }

  process<R>(consumer: string, held: readonly Processed[], work: () => Promise<R>): () => Promise<R> {
    if (!this.#spans.areWanted) return work
    return () => {
      const { type, attempt, correlationId } = held[0]!.message
      const about = (): Attributes => ({
        ...attributes('process', type),
        ...consumedBy(consumer),
        ...aboutAll(held.map(({ message }) => message)),
        'messaging.message.conversation_id': held.length === 1 ? correlationId : undefined,
        'oncebox.attempt': held.length === 1 ? attempt : undefined,
      })
      const origin = originOf(held, ({ message }) => contextIn(message))
      const span = this.#spans.begin({ ...origin, operation: 'process', to: type, kind: KIND.consumer, about })
      if (!span) return work()
      for (const one of held) one.span = span
      return inContext(span.context, work).then(
        (result) => {
          span.workedUntilNow()
          return result
        },
        (error: unknown) => {
          endThrown(span, error)
          throw error
        },
      )
    }
  }

  once<R>(consumer: string, message: Received, work: () => R | Promise<R>): () => R | Promise<R> {
    if (!this.#spans.areWanted) return work
    return () => {
      const destination = typeof message.type === 'string' ? message.type : consumer
      const about = (): Attributes => ({
        ...attributes('process', destination),
        ...consumedBy(consumer),
        ...aboutAll([message]),
      })
      const origin = inActive(originOf([message], contextIn))
      const span = this.#spans.begin({ ...origin, operation: 'process', to: destination, kind: KIND.consumer, about })
      return during(span, async () => work())
    }
  }

  pass(consumer: string, held: readonly Processed[]): PassTrace {
    return this.#spans.areWanted ? passOf(this.#spans, consumer, held) : NO_PASS
  }

  fail<T>(consumer: string, held: Processed, verdict: Judged, work: () => Promise<T>): Promise<T> {
    if (!this.#spans.areWanted) return work()
    const { message, span: call } = held
    const about = (): Attributes => ({
      ...attributes('settle', consumer),
      ...consumedBy(consumer),
      ...aboutAll([message]),
      'oncebox.attempt': message.attempt,
      'oncebox.outcome': verdict.parked ?? (verdict.asked === undefined ? 'retry' : 'put-off'),
      'oncebox.reason': verdict.reason,
    })
    const origin = originOf([message], (one) => call?.context ?? contextIn(one))
    return during(this.#spans.begin({ ...origin, operation: 'settle', to: consumer, kind: KIND.client, about }), work)
  }

  get context(): OtelContext | undefined {
    return this.#spans.areWanted ? activeContext() : undefined
  }

  async effect<R>(consumer: string, { name, within }: Effect, work: () => R | Promise<R>): Promise<R> {
    if (!within) return work()
    const about = (): Attributes => ({ ...consumedBy(consumer), 'oncebox.effect.name': name })
    const span = this.#spans.begin({ operation: 'effect', to: name, kind: KIND.internal, parent: within, about })
    return during(span, async () => work())
  }

  traceId(headers: Headers): string | undefined {
    return (this.#spans.areWanted ? spanIn(activeContext())?.traceId : undefined) ?? traceIdOf(headers)
  }

  background<T>(start: () => T): T {
    return inContext(UNTRACED, start)
  }

  detached<T>(start: () => T): T {
    return inContext(ROOT, start)
  }
}

/** Runs work in a span and ends it. `tell` says what came of it. */
function during<T>(span: OpenSpan | undefined, work: () => Promise<T>, tell?: (result: T) => Attributes): Promise<T> {
  if (!span) return work()
  return inContext(span.context, work).then(
    (result) => {
      span.end(tell?.(result))
      return result
    },
    (error: unknown) => {
      span.fail(error)
      throw error
    },
  )
}

/** In the caller's trace, if there is one. */
function inActive(origin: Origin): Origin {
  const active = activeContext()
  return spanIn(active) ? { ...origin, parent: active } : origin
}

/** How many a sink did not take. */
function refusedOf(answers: unknown): Attributes {
  const refused = Array.isArray(answers) ? answers.filter((answer) => answer !== undefined && answer !== null) : []
  return { 'oncebox.refused': refused.length || undefined }
}

function commonOf(outcomes: readonly Outcome[]): string | undefined {
  const [first] = outcomes
  return outcomes.every(({ status }) => status === first?.status) ? first?.status : 'mixed'
}
