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
import { beginProcess, type Processed } from './process.js'
import {
  aboutAll,
  attributes,
  consumedBy,
  originIn,
  originOf,
  Spans,
  within,
  type OpenSpan,
  type Origin,
} from './span.js'

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
  /**
   * `process`: one call of a handler, which is to run in it; undefined if nobody wants spans. Its end waits for the transaction
   * that it ran in, unless it throws.
   */
  process(consumer: string, held: readonly Processed[]): OpenSpan | undefined
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
  process: () => undefined,
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
      const span = this.#spans.begin('send', destination, KIND.producer, within(activeContext()))
      span?.tell(attributes('send', destination))
      return during(span, work, (sent) => aboutAll('id' in sent ? [sent] : sent))
    }
  }

  get headers(): Headers | undefined {
    return activeHeaders()
  }

  publish<A>(sink: string, batch: readonly Message[], work: () => Promise<A>): Promise<A> {
    if (!this.#spans.areWanted) return work()
    const span = this.#spans.begin('publish', sink, KIND.client, originOf(batch, contextIn))
    span?.tell({ ...attributes('publish', sink), ...aboutAll(batch) })
    return during(span, work, refusedOf)
  }

  receive<O extends Outcome>(
    source: string | undefined,
    incoming: readonly Received[],
    work: () => Promise<O[]>,
  ): Promise<O[]> {
    if (!this.#spans.areWanted) return work()
    const destination = source ?? 'inbox'
    const origin = inActive(originOf(incoming, contextIn))
    const span = this.#spans.begin('receive', destination, KIND.client, origin)
    span?.tell({ ...attributes('receive', destination), ...aboutAll(incoming) })
    return during(span, work, (outcomes) => ({ 'oncebox.outcome': commonOf(outcomes) }))
  }

  process(consumer: string, held: readonly Processed[]): OpenSpan | undefined {
    return this.#spans.areWanted ? beginProcess(this.#spans, consumer, held) : undefined
  }

  once<R>(consumer: string, message: Received, work: () => R | Promise<R>): () => R | Promise<R> {
    if (!this.#spans.areWanted) return work
    return () => {
      const destination = typeof message.type === 'string' ? message.type : consumer
      const span = this.#spans.begin('process', destination, KIND.consumer, inActive(originIn(contextIn(message))))
      span?.tell({ ...attributes('process', destination), ...consumedBy(consumer), ...aboutAll([message]) })
      return during(span, async () => work())
    }
  }

  pass(consumer: string, held: readonly Processed[]): PassTrace {
    return this.#spans.areWanted ? passOf(this.#spans, consumer, held) : NO_PASS
  }

  fail<T>(consumer: string, held: Processed, verdict: Judged, work: () => Promise<T>): Promise<T> {
    if (!this.#spans.areWanted) return work()
    const { message, span: call } = held
    const origin = originIn(call?.context ?? contextIn(message))
    const span = this.#spans.begin('settle', consumer, KIND.client, origin)
    span?.tell({
      ...attributes('settle', consumer),
      ...consumedBy(consumer),
      ...aboutAll([message]),
      'oncebox.attempt': message.attempt,
      'oncebox.outcome': verdict.parked ?? (verdict.asked === undefined ? 'retry' : 'put-off'),
      'oncebox.reason': verdict.reason,
    })
    return during(span, work)
  }

  get context(): OtelContext | undefined {
    return this.#spans.areWanted ? activeContext() : undefined
  }

  async effect<R>(consumer: string, { name, within: asked }: Effect, work: () => R | Promise<R>): Promise<R> {
    if (!asked) return work()
    const span = this.#spans.begin('effect', name, KIND.internal, within(asked))
    span?.tell({ ...consumedBy(consumer), 'oncebox.effect.name': name })
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
  return span.run(work).then(
    (result) => {
      span.end(span.isRecorded ? tell?.(result) : undefined)
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
