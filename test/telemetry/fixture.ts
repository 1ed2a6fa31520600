/** OpenTelemetry as an application sets it up, with an exporter that keeps spans in memory. */
import { context, propagation, trace, SpanStatusCode, type Context } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
  type Sampler,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { waitUntil } from '../support/wait.js'

export interface Registration {
  /** Spans that have ended, in the order in which they began. */
  readonly spans: readonly ReadableSpan[]
  /** Those whose names begin with this. */
  named(name: string): ReadableSpan[]
  /** The only one of this name. */
  the(name: string): ReadableSpan
  /** Runs work in a span of the application's. */
  inSpan<T>(name: string, work: () => Promise<T>): Promise<T>
  /** The spans, told by a line each. For assertions that say what is wrong. */
  tell(): string[]
  reset(): void
  remove(): Promise<void>
}

export function registerTracing(options: { readonly sampler?: Sampler } = {}): Registration {
  const exporter = new InMemorySpanExporter()
  // The clock of spans has milliseconds, in which much may happen.
  const begun: string[] = []
  const order: SpanProcessor = {
    onStart: (span) => void begun.push(idOf(span)),
    onEnd: () => undefined,
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  }
  const spanProcessors = [order, new SimpleSpanProcessor(exporter)]
  const provider = new NodeTracerProvider({ ...options, spanProcessors })
  provider.register()
  const sorted = (): ReadableSpan[] =>
    exporter.getFinishedSpans().toSorted((a, b) => begun.indexOf(idOf(a)) - begun.indexOf(idOf(b)))
  const named = (name: string): ReadableSpan[] => sorted().filter((span) => span.name.startsWith(name))
  const tell = (): string[] =>
    sorted().map(
      (span) =>
        `${span.name} ${idOf(span)} in ${parentOf(span) ?? 'none'} ${String(span.attributes['oncebox.outcome'] ?? '')}`,
    )
  return {
    get spans() {
      return sorted()
    },
    named,
    the(name) {
      const found = named(name)
      if (found.length !== 1) throw new Error(`${found.length} spans ${name} among:\n${tell().join('\n')}`)
      return found[0]!
    },
    inSpan: (name, work) =>
      trace.getTracer('the application').startActiveSpan(name, async (span) => {
        try {
          return await work()
        } finally {
          span.end()
        }
      }),
    tell,
    reset: () => exporter.reset(),
    async remove() {
      trace.disable()
      context.disable()
      propagation.disable()
      await provider.shutdown()
    },
  }
}

export function idOf(span: Pick<ReadableSpan, 'spanContext'>): string {
  return span.spanContext().spanId
}

export function traceOf(span: ReadableSpan): string {
  return span.spanContext().traceId
}

export function parentOf(span: ReadableSpan): string | undefined {
  return span.parentSpanContext?.spanId
}

/** The ids of the spans that it is linked to. */
export function linksOf(span: ReadableSpan): string[] {
  return span.links.map(({ context }) => context.spanId)
}

export function outcomesOf(spans: readonly ReadableSpan[]): unknown[] {
  return spans.map(({ attributes }) => attributes['oncebox.outcome'])
}

export function hasFailed({ status }: ReadableSpan): boolean {
  return status.code === SpanStatusCode.ERROR
}

/** A span of another process, as its headers tell it. */
export const REMOTE = {
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  headers: {
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    tracestate: 'rojo=1',
    baggage: 'tenant=acme',
  },
} as const

export function baggageOf(active: Context = context.active()): Record<string, string> {
  const entries = propagation.getBaggage(active)?.getAllEntries() ?? []
  return Object.fromEntries(entries.map(([name, { value }]) => [name, value]))
}

/** Waits until this many spans of the name have ended. */
export async function untilEnded(registration: Registration, name: string, count: number): Promise<ReadableSpan[]> {
  await waitUntil(() => registration.named(name).length >= count, { what: `${count} spans ${name}` })
  return registration.named(name)
}
