/**
 * What becomes of messages where OpenTelemetry is absent, half set up or failing, and where headers are not what they should
 * be.
 */
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { traceIdOf, type Headers } from '../../src/telemetry/headers.js'
import { FAILED, inContext, KIND, registered, ROOT, spanIn, withSpan } from '../../src/telemetry/otel.js'
import { NO_TRACES, SpanTraces } from '../../src/telemetry/traces.js'
import { note, recorder, useServer } from '../inbox/fixture.js'
import { baggageOf, registerTracing, REMOTE, traceOf, type Registration } from './fixture.js'

const server = useServer('no_spans')
let otel: Registration | undefined
afterEach(async () => {
  await otel?.remove()
  otel = undefined
  trace.disable()
  context.disable()
  propagation.disable()
})

interface Seen {
  active?: string | undefined
  baggage?: Record<string, string>
  sent?: Headers
}

/** A box whose handler sends another message, and notes what it sees. There is one with telemetry and one without. */
async function openBox(telemetry: false | undefined) {
  const logger = recorder()
  const box = await server.open({ logger, ...(telemetry === false && { telemetry }) })
  const seen = new Map<string, Seen>()
  box.consumer('a', {
    async note({ id }, { send, log }) {
      seen.set(id, { active: trace.getActiveSpan()?.spanContext().traceId, baggage: baggageOf() })
      log.info({}, 'hello')
      await send('next', {}, { key: id })
    },
  })
  box.to({
    name: 'events',
    async publish(batch) {
      for (const { key, headers } of batch) seen.get(key!)!.sent = headers
      return batch.map(() => undefined)
    },
    close: async () => undefined,
  })
  await box.migrate()
  const logged = (id: string): string | undefined => {
    const line = logger.lines.find(({ about, text }) => text === 'hello' && (about as { id: string }).id === id)
    return (line?.about as { traceId?: string }).traceId
  }
  return { box, seen, logged }
}

const opened = new Map<unknown, ReturnType<typeof openBox>>()
afterAll(async () => {
  for (const { box } of await Promise.all(opened.values())) await box[Symbol.asyncDispose]()
})
let ids = 0

/** Receives a message, and answers with what its handler saw and sent. */
async function passThrough(options: { telemetry?: false; headers?: Record<string, string>; before?: () => void } = {}) {
  const { telemetry, headers = REMOTE.headers, before } = options
  if (!opened.has(telemetry)) opened.set(telemetry, openBox(telemetry))
  const { box, seen, logged } = await opened.get(telemetry)!
  before?.()
  const id = `n${++ids}`
  await box.receive(note(id, { headers }))
  await box.drain()
  const { state } = await box.fate(id)
  return { sent: {}, ...seen.get(id), logged: logged(id), state }
}

describe('the API package', () => {
  test('keeps what is registered, and spans in contexts, where this library looks for them', () => {
    expect(registered().trace).toBeUndefined()
    otel = registerTracing()
    expect(registered().trace).toBe(trace.getTracerProvider())
    expect(registered().context?.active()).toBe(context.active())
    const span = trace.getTracer('test').startSpan('one')
    expect(spanIn(trace.setSpan(ROOT_CONTEXT, span))).toEqual(span.spanContext())
    expect(trace.getSpan(withSpan(ROOT_CONTEXT, span) as never)).toBe(span)
    span.end()
    const { INTERNAL, CLIENT, PRODUCER, CONSUMER } = SpanKind
    expect(KIND).toEqual({ internal: INTERNAL, client: CLIENT, producer: PRODUCER, consumer: CONSUMER })
    expect(FAILED).toBe(SpanStatusCode.ERROR)
  })
})

describe('nobody wants spans', () => {
  const work = async (): Promise<undefined> => undefined

  test.each([
    ['no provider is registered', new SpanTraces()],
    ['telemetry is false', NO_TRACES],
  ])('%s: what runs is what was handed in', (_, traces) => {
    if (traces === NO_TRACES) otel = registerTracing()
    expect(traces.process('a', [])).toBeUndefined()
    expect(traces.send('a', work as never)).toBe(work)
    expect(traces.once('a', {}, work)).toBe(work)
    expect(traces.pass('a', [])).toBe(traces.pass('b', []))
    expect([traces.context, traces.headers]).toEqual([undefined, undefined])
  })

  test('no provider: trace context is handed on as it came, and the log names the trace', async () => {
    const seen = await passThrough()
    expect(seen).toMatchObject({ active: undefined, state: 'handled', logged: REMOTE.traceId })
    expect(seen.sent).toMatchObject(REMOTE.headers)
  })

  test('telemetry: false: no span, whatever is registered', async () => {
    otel = registerTracing()
    const seen = await passThrough({ telemetry: false })
    expect(seen).toMatchObject({ active: undefined, state: 'handled', logged: REMOTE.traceId })
    expect(seen.sent).toMatchObject(REMOTE.headers)
    expect(otel.tell()).toEqual([])
  })

  test('telemetry takes nothing but false', () => {
    const make = (): unknown => createBox({ db: fromPg(server.pool), telemetry: true as never })
    expect(make).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })
})

describe('half set up', () => {
  test('a provider that is registered after the box was made counts', async () => {
    const seen = await passThrough({ before: () => (otel = registerTracing()) })
    expect(seen).toMatchObject({ active: REMOTE.traceId, state: 'handled', baggage: { tenant: 'acme' } })
    expect(otel!.named('process')).toHaveLength(1)
  })

  test('without a context manager spans are made, and what is sent goes on in the trace of its message', async () => {
    otel = registerTracing()
    context.disable()
    const seen = await passThrough()
    expect(seen).toMatchObject({ active: undefined, state: 'handled', logged: REMOTE.traceId })
    expect(seen.sent).toMatchObject(REMOTE.headers)
    expect(traceOf(otel.the('process'))).toBe(REMOTE.traceId)
  })

  test('without a propagator a trace ends with its process', async () => {
    otel = registerTracing()
    propagation.disable()
    const seen = await passThrough()
    expect(seen.state).toBe('handled')
    expect(seen.sent).toMatchObject(REMOTE.headers)
    expect(traceOf(otel.the('process'))).not.toBe(REMOTE.traceId)
  })

  test('a provider or a propagator that throws takes no message with it', async () => {
    const fail = (): never => {
      throw new Error('telemetry is broken')
    }
    trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: fail, startActiveSpan: fail }) })
    propagation.setGlobalPropagator({ inject: fail, extract: fail, fields: () => [] })
    expect(await passThrough()).toMatchObject({ state: 'handled', sent: REMOTE.headers })
  })

  test('neither does a span that throws when it ends', async () => {
    otel = registerTracing()
    const tracer = trace.getTracer('another')
    const provider = {
      getTracer: () => ({
        startSpan: (...given: Parameters<typeof tracer.startSpan>) =>
          Object.assign(tracer.startSpan(...given), {
            end() {
              throw new Error('telemetry is broken')
            },
          }),
      }),
    }
    trace.disable()
    trace.setGlobalTracerProvider(provider as never)
    expect(await passThrough()).toMatchObject({ state: 'handled', active: REMOTE.traceId })
  })
})

const broken = (): never => {
  throw new Error('telemetry is broken')
}

/** Replaces a method of the context manager that is registered. */
function spoil(method: 'with' | 'active', by: (...given: never[]) => unknown): void {
  Object.assign(registered().context as object, { [method]: by })
}

type Work = () => unknown
const MANAGERS: readonly (readonly [what: string, spoil: () => void])[] = [
  ['throws before it calls', () => spoil('with', broken)],
  ['throws after it has called', () => spoil('with', (_: unknown, work: Work) => [work(), broken()])],
  ['calls twice', () => spoil('with', (_: unknown, work: Work) => [work(), work()])],
  ['calls, and answers something else', () => spoil('with', (_: unknown, work: Work) => void work())],
  ['never calls', () => spoil('with', () => undefined)],
  ['throws when it is asked what is active', () => spoil('active', broken)],
  ['says that nothing is active', () => spoil('active', () => undefined)],
  ['says that something else is active', () => spoil('active', () => 'another')],
]

/** A provider whose spans are spoilt. */
function registerSpans(spoilt: object): void {
  const tracer = trace.getTracer('another')
  const startSpan = (...given: Parameters<typeof tracer.startSpan>): unknown =>
    Object.assign(tracer.startSpan(...given), spoilt)
  trace.disable()
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) } as never)
}

describe('what is registered is broken', () => {
  /** Everything that asks telemetry for something: start, receive, send, drain, stop. */
  async function live(before: () => void) {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', {
      async note(message, { tx, send }) {
        runs++
        await box.write(tx, 'a', message)
        await send('next', {})
      },
    })
    box.to({ name: 'events', publish: async (batch) => batch.map(() => undefined), close: async () => undefined })
    before()
    await box.start()
    expect(await box.receive([note('1', { headers: REMOTE.headers }), note('2')])).toMatchObject([
      { status: 'stored' },
      { status: 'stored' },
    ])
    const tx = await server.pool.connect()
    try {
      await tx.query('begin')
      await box.send(tx, 'event', {})
      await tx.query('commit')
    } finally {
      tx.release()
    }
    await box.drain()
    await box.waitUntilHandled('1', '2')
    await box.stop()
    expect((await box.ids()).sort()).toEqual(['1', '2'])
    expect(runs).toBe(2)
  }

  test.each(MANAGERS)('a context manager that %s: everything runs, and nothing twice', async (_, spoilIt) => {
    otel = registerTracing()
    await live(spoilIt)
  })

  test.each([undefined, null, 'text', {}])('a propagator that extracts %s is passed over', async (extracted) => {
    otel = registerTracing()
    propagation.disable()
    propagation.setGlobalPropagator({ inject: () => undefined, extract: () => extracted as never, fields: () => [] })
    await live(() => undefined)
  })

  test.each([
    ['whose context throws', { spanContext: broken }],
    ['without a context', { spanContext: () => undefined }],
    [
      'that throws whatever it is asked',
      { spanContext: broken, isRecording: broken, setAttributes: broken, end: broken },
    ],
  ])('a span %s: everything runs, and nothing twice', async (_, spoilt) => {
    otel = registerTracing()
    registerSpans(spoilt)
    await live(() => undefined)
  })

  test('what work throws is thrown, by whichever manager it runs', () => {
    otel = registerTracing()
    spoil('with', (_: unknown, work: Work) => {
      try {
        work()
      } catch {
        throw new Error('another')
      }
    })
    expect(() => inContext(ROOT, () => broken())).toThrow('telemetry is broken')
  })
})

const HUGE = `tenant=${'x'.repeat(20_000)}`
const BAD: readonly (readonly [what: string, headers: Record<string, string>])[] = [
  ['no trace', { traceparent: 'garbage' }],
  ['a trace of zeros', { traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01` }],
  ['a version that is none', { traceparent: REMOTE.headers.traceparent.replace('00-', 'ff-') }],
  ['a megabyte', { traceparent: REMOTE.headers.traceparent.padEnd(1_000_000, '0') }],
  ['a prototype', JSON.parse('{"__proto__":"x","constructor":"y","traceparent":""}') as Record<string, string>],
  ['odd text', { traceparent: '\u202e', tracestate: '🎈=,,==', baggage: '=;=,%zz%,🎈' }],
]

describe('headers of a stranger', () => {
  test.each(BAD)('%s: the message is handled, in a trace of its own', async (_, headers) => {
    otel = registerTracing()
    const seen = await passThrough({ headers })
    expect(seen.state).toBe('handled')
    const process = otel.the('process')
    expect([process.parentSpanContext, process.links]).toEqual([undefined, []])
    expect(seen.logged).toBe(traceOf(process))
    expect(traceIdOf(seen.sent)).toBe(traceOf(process))
    expect(traceIdOf(headers)).toBeUndefined()
  })

  test.each(['on', 'off'])(
    'huge baggage is kept with its message, and goes no further: telemetry %s',
    async (state) => {
      otel = registerTracing()
      const headers = { ...REMOTE.headers, baggage: HUGE }
      const seen = await passThrough({ headers, ...(state === 'off' && { telemetry: false }) })
      expect(seen).toMatchObject({ state: 'handled', baggage: {} })
      expect(seen.sent).not.toHaveProperty('baggage')
      expect(traceIdOf(seen.sent)).toBe(REMOTE.traceId)
    },
  )

  const { traceparent } = REMOTE.headers
  test.each<[what: string, headers: Record<string, string>, kept: Record<string, string>]>([
    ['a header in a header', { traceparent: 'x\r\nx-evil: 1' }, {}],
    ['a trace with a line end', { traceparent: `${traceparent}\n` }, {}],
    ['control characters', { traceparent, tracestate: '\x1b[2J', baggage: 'a=b\nset-cookie: c' }, { traceparent }],
    ['what is not ASCII', { traceparent, tracestate: '🎈=1', baggage: 'a=\u202e' }, { traceparent }],
    ['baggage alone', { baggage: 'tenant=acme' }, { baggage: 'tenant=acme' }],
  ])('of %s only printable ASCII is handed on where nobody makes spans', async (_, headers, kept) => {
    for (const options of [{ headers }, { headers, telemetry: false }] as const) {
      const { sent, state } = await passThrough(options)
      const { correlationid, causationid, ...rest } = sent as Record<string, string>
      expect([state, rest, typeof correlationid, typeof causationid]).toEqual(['handled', kept, 'string', 'string'])
    }
  })
})
