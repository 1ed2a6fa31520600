/** One span: how it is begun, how it is told what became of it, and that nothing of it can fail what it is about. */
import { causes, plainWords } from '../failure.js'
import {
  FAILED,
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

export interface Beginning {
  readonly operation: Operation | 'effect'
  /** What it is done to: the rest of the span's name. */
  readonly to: string
  readonly kind: number
  readonly parent: OtelContext
  readonly links?: readonly Link[]
  /** Asked only if the span is recorded. */
  readonly about: () => Attributes
}

export class OpenSpan {
  readonly #span: Span
  /** What is active while it is open. */
  readonly context: OtelContext
  #workedUntil: number | undefined
  #isOver = false

  constructor(span: Span, parent: OtelContext) {
    this.#span = span
    this.context = withSpan(parent, span)
  }

  /** The work is done; what became of it is known later. */
  workedUntilNow(): void {
    this.#workedUntil = performance.now()
  }

  end(about?: Attributes): void {
    this.#end(() => {
      if (about && this.#span.isRecording()) this.#span.setAttributes(about)
    })
  }

  /** The error is told by its words without values of rows, as the log tells it. */
  fail(error: unknown, about?: Attributes): void {
    this.#end(() => {
      if (!this.#span.isRecording()) return
      this.#span.setAttributes({ ...about, 'error.type': typeOf(error) })
      this.#span.setStatus({ code: FAILED, message: wordsOf(error) })
    })
  }

  #end(tell: () => void): void {
    if (this.#isOver) return
    this.#isOver = true
    try {
      tell()
      this.#span.end(this.#workedUntil)
    } catch {
      // What collects spans is the application's; the message has nothing to do with it.
    }
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

  /** Undefined if no provider is registered, or the one that is threw. */
  begin({ operation, to, kind, parent, links, about }: Beginning): OpenSpan | undefined {
    try {
      const span = this.#current?.startSpan(`${operation} ${to}`, links ? { kind, links } : { kind }, parent)
      if (!span) return undefined
      if (span.isRecording()) span.setAttributes(about())
      return new OpenSpan(span, parent)
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

const NOWHERE: Origin = { parent: ROOT, links: [] }

export function originOf<T>(list: readonly T[], contextOf: (one: T) => OtelContext): Origin {
  if (list.length === 0) return NOWHERE
  const first = contextOf(list[0]!)
  const span = spanIn(first)
  if (list.length === 1) return span ? { parent: first, links: [{ context: span }] } : NOWHERE
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
  const { id } = messages[0]!
  return { 'messaging.message.id': typeof id === 'string' ? id : undefined }
}

const MAX_WORDS = 500

function wordsOf(error: unknown): string {
  try {
    const words = error instanceof Error ? plainWords(error) : 'something was thrown that is no error'
    return words.length > MAX_WORDS ? `${words.slice(0, MAX_WORDS)}…` : words
  } catch {
    return 'something was thrown that could not be read'
  }
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
