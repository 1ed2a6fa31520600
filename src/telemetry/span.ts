/** One span: how it is begun, how it is told what became of it, and that nothing of it can fail what it is about. */
import { causes, toFailure, wordsOf } from '../failure.js'
import {
  FAILED,
  inContext,
  registered,
  ROOT,
  spanIn,
  withSpan,
  type Attributes,
  type Link,
  type OtelContext,
  type Span,
  type Tracer,
  type TracerProvider,
} from './otel.js'

/** The operations of the messaging conventions, under our names for them. */
export type Operation = 'send' | 'publish' | 'receive' | 'process' | 'settle'

export class OpenSpan {
  readonly #span: Span
  /** What is active while it is open. */
  readonly context: OtelContext
  /** Else nothing that is told of it would be kept. */
  readonly isRecorded: boolean
  /** Told at its end, for many spans in one go. */
  about: (() => Attributes) | undefined
  #workedUntil: number | undefined
  #isOver = false

  constructor(span: Span, parent: OtelContext) {
    this.#span = span
    this.context = withSpan(parent, span)
    this.isRecorded = span.isRecording()
  }

  /** Runs work with the span active. */
  run<T>(work: () => T): T {
    return inContext(this.context, work)
  }

  tell(attributes: Attributes): void {
    if (this.isRecorded) harmless(() => this.#span.setAttributes(attributes))
  }

  /** The work is done; what became of it is known later. */
  workedUntilNow(): void {
    this.#workedUntil = performance.now()
  }

  end(attributes?: Attributes): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.about) this.tell(this.about())
    if (attributes) this.tell(attributes)
    harmless(() => this.#span.end(this.#workedUntil))
  }

  /** The error is told by its words without values of rows, as the log tells it. */
  fail(error: unknown, attributes?: Attributes): void {
    if (this.#isOver) return
    if (!this.isRecorded) return this.end()
    harmless(() => this.#span.setStatus({ code: FAILED, message: shortWords(error) }))
    this.end({ ...attributes, 'error.type': typeOf(error) })
  }
}

/** What collects spans is the application's, and may throw; the message has nothing to do with it. */
function harmless(tell: () => unknown): void {
  try {
    tell()
  } catch {
    // Nobody is left to tell.
  }
}

/** Begins spans with the tracer of the provider that is registered at the time. */
export class Spans {
  #provider: TracerProvider | undefined
  #tracer: Tracer | undefined

  /** Is there anybody to begin a span with? */
  get areWanted(): boolean {
    return registered().trace !== undefined
  }

  /** Undefined if no provider is registered, or the one that is threw. `to` is what it is done to. */
  begin(operation: Operation | 'effect', to: string, kind: number, { parent, links }: Origin): OpenSpan | undefined {
    try {
      const span = this.#current?.startSpan(`${operation} ${to}`, { kind, links }, parent)
      return span && new OpenSpan(span, parent)
    } catch {
      return undefined
    }
  }

  get #current(): Tracer | undefined {
    const { trace } = registered()
    if (trace !== this.#provider) {
      this.#provider = trace
      this.#tracer = trace?.getTracer('oncebox')
    }
    return this.#tracer
  }
}

/** SDKs keep no more of them. */
const MAX_LINKS = 128

/** Where messages that are worked on together come from. */
export interface Origin {
  /** What all of them come from; the root if that is not one span. */
  readonly parent: OtelContext
  /** To what each of them comes from. */
  readonly links: readonly Link[]
}

const NO_LINKS: readonly Link[] = []
const NOWHERE: Origin = { parent: ROOT, links: NO_LINKS }

/** In this context, and from nowhere else. */
export function within(parent: OtelContext): Origin {
  return { parent, links: NO_LINKS }
}

/** Of one message; there are many of them. */
export function originIn(context: OtelContext): Origin {
  const span = spanIn(context)
  return span ? { parent: context, links: [{ context: span }] } : NOWHERE
}

export function originOf<T>(list: readonly T[], contextOf: (one: T) => OtelContext): Origin {
  if (list.length === 0) return NOWHERE
  const first = contextOf(list[0]!)
  if (list.length === 1) return originIn(first)
  const span = spanIn(first)
  const links: Link[] = span ? [{ context: span }] : []
  let isCommon = span !== undefined && list.length <= MAX_LINKS
  for (const one of list.slice(1, MAX_LINKS)) {
    const context = spanIn(contextOf(one))
    if (context) links.push({ context })
    if (context?.spanId !== span?.spanId) isCommon = false
  }
  return { parent: isCommon ? first : ROOT, links }
}

/** What every span of messaging says. */
export function attributes(operation: Operation, destination: string): Attributes {
  return {
    'messaging.system': 'oncebox',
    'messaging.destination.name': destination,
    'messaging.operation.name': operation,
    'messaging.operation.type': operation === 'publish' ? 'send' : operation,
  }
}

export function consumedBy(consumer: string): Attributes {
  return { 'messaging.consumer.group.name': consumer }
}

/** The id of one message, the number of many. */
export function aboutAll(messages: readonly { readonly id?: unknown }[]): Attributes {
  if (messages.length !== 1) return { 'messaging.batch.message_count': messages.length }
  return { 'messaging.message.id': idIn(messages[0]!) }
}

/** A source of the user's may hand over anything, also what throws when it is looked at. */
function idIn(message: { readonly id?: unknown }): string | undefined {
  try {
    const { id } = message
    return typeof id === 'string' ? id : undefined
  } catch {
    return undefined
  }
}

const MAX_WORDS = 500

function shortWords(error: unknown): string {
  const failure = toFailure(error)
  const words = failure.name === 'NonError' ? 'something was thrown that is no error' : wordsOf(failure)
  return words.length > MAX_WORDS ? `${words.slice(0, MAX_WORDS)}…` : words
}

/** The code of the error or of what caused it, else its name: few values, and none of them of a message. */
function typeOf(error: unknown): string {
  try {
    for (const cause of causes(error)) {
      const { code } = cause as { code?: unknown }
      if (typeof code === 'string' && code !== '') return code.slice(0, 100)
    }
    return error instanceof Error ? String(error.name || 'Error').slice(0, 100) : 'NonError'
  } catch {
    return 'NonError'
  }
}
