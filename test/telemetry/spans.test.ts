/** The spans of each way that a message can take, by OpenTelemetry's conventions for messaging. */
import type pg from 'pg'
import { context, SpanKind, trace } from '@opentelemetry/api'
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace-base'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { batch, Reject, RetryLater, type Incoming, type Source } from 'oncebox'
import type { Deliver } from '../../src/brokers/source.js'
import { note, notes, recorder, useServer } from '../inbox/fixture.js'
import { inTransaction } from '../support/transaction.js'
import {
  baggageOf,
  hasFailed,
  idOf,
  linksOf,
  outcomesOf,
  parentOf,
  registerTracing,
  REMOTE,
  traceOf,
  type Registration,
} from './fixture.js'

const server = useServer('spans')
let otel: Registration
beforeAll(() => {
  otel = registerTracing()
})
afterAll(() => otel.remove())
afterEach(() => otel.reset())

const transaction = <R>(work: (client: pg.PoolClient) => Promise<R>): Promise<R> => inTransaction(server.pool, work)

const QUICKLY = { retry: { attempts: 2, baseMs: 0 } } as const

describe('send', () => {
  test('is a producer in the trace that is active, and the event carries its context', async () => {
    await using box = await server.open()
    await otel.inSpan('request', () => transaction((tx) => box.send(tx, 'placed', { n: 1 }, { id: 'e1' })))
    const span = otel.the('send placed')
    expect(span.kind).toBe(SpanKind.PRODUCER)
    expect(parentOf(span)).toBe(idOf(otel.the('request')))
    expect(span.attributes).toEqual({
      'messaging.system': 'oncebox',
      'messaging.destination.name': 'placed',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.message.id': 'e1',
    })
    const [event] = await box.sent()
    expect(event!.headers['traceparent']).toBe(`00-${traceOf(span)}-${idOf(span)}-01`)
  })

  test('of many is one span, which all of them carry', async () => {
    await using box = await server.open()
    const list = [1, 2, 3].map((n) => ({ type: 'placed', data: { n } }))
    await transaction((tx) => box.sendMany(tx, list))
    const span = otel.the('send outbox')
    expect(span.attributes['messaging.batch.message_count']).toBe(3)
    for (const { headers } of await box.sent()) expect(headers['traceparent']).toContain(idOf(span))
  })

  test('that is refused has failed, and tells its code', async () => {
    await using box = await server.open()
    await expect(transaction((tx) => box.send(tx, 'placed', 1n))).rejects.toMatchObject({
      code: 'MESSAGE_INVALID',
    })
    expect(otel.the('send placed')).toSatisfy(hasFailed)
    expect(otel.the('send placed').attributes['error.type']).toBe('MESSAGE_INVALID')
  })

  test('with headers of a trace of its own keeps them', async () => {
    await using box = await server.open()
    await transaction((tx) => box.send(tx, 'placed', {}, { headers: REMOTE.headers }))
    expect((await box.sent())[0]!.headers).toMatchObject(REMOTE.headers)
  })
})

describe('a message that is stored', () => {
  test('is received, processed as a consumer linked to its producer, and settled, in one trace', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.receive(note('1', { headers: { ...REMOTE.headers, correlationid: 'c' } }))
    await box.drain()
    const [receive, process, settle] = [otel.the('receive inbox'), otel.the('process note'), otel.the('settle a')]
    for (const span of [receive, process, settle]) expect(traceOf(span)).toBe(REMOTE.traceId)
    expect([receive.kind, process.kind, settle.kind]).toEqual([SpanKind.CLIENT, SpanKind.CONSUMER, SpanKind.CLIENT])
    expect([receive, process].map(parentOf)).toEqual([REMOTE.spanId, REMOTE.spanId])
    expect([receive, process].map(linksOf)).toEqual([[REMOTE.spanId], [REMOTE.spanId]])
    expect([parentOf(settle), linksOf(settle)]).toEqual([idOf(process), [idOf(process)]])
    expect(process.attributes).toEqual({
      'messaging.system': 'oncebox',
      'messaging.destination.name': 'note',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.consumer.group.name': 'a',
      'messaging.message.id': '1',
      'messaging.message.conversation_id': 'c',
      'oncebox.attempt': 1,
      'oncebox.outcome': 'handled',
    })
    expect(outcomesOf([receive, settle])).toEqual(['stored', 'handled'])
  })

  test('without a trace context goes on in the trace that it was received in', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await otel.inSpan('request', () => box.receive(note('1')))
    await box.drain()
    const request = otel.the('request')
    expect(parentOf(otel.the('receive'))).toBe(idOf(request))
    expect(parentOf(otel.the('process'))).toBe(idOf(otel.the('receive')))
    expect(new Set(otel.spans.map(traceOf))).toEqual(new Set([traceOf(request)]))
  })

  test('that comes twice is told to be a duplicate, and is processed once', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.receive(note('1'))
    await box.receive(note('1'))
    await box.drain()
    expect(outcomesOf(otel.named('receive'))).toEqual(['stored', 'duplicate'])
    expect(otel.named('process')).toHaveLength(1)
  })

  test('without an id is kept in quarantine once, whichever trace brings it', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    for (const _ of [1, 2]) await box.receive({ ...note('1'), id: undefined })
    expect(await box.quarantine()).toHaveLength(1)
    expect(outcomesOf(otel.named('receive'))).toEqual(['quarantined', 'quarantined'])
  })

  test('that is none, or cannot be looked at, is kept in quarantine like any other', async () => {
    await using box = await server.open()
    let deliver: Deliver | undefined
    const source: Source = { push: true, start: async (given) => void (deliver = given), stop: async () => {} }
    box.from(source, { types: 'any' })
    const trapped = new Proxy(
      {},
      {
        get() {
          throw new Error('a trap')
        },
      },
    )
    const strange = [null, trapped, { id: '1', type: 'note', data: 1, headers: trapped }] as Incoming[]
    for (const one of strange) expect(await deliver!([one])).toMatchObject([{ status: 'quarantined', ack: true }])
    expect(await deliver!(strange)).toMatchObject(strange.map(() => ({ status: 'quarantined', ack: true })))
    await expect(box.receive(null as never)).rejects.toMatchObject({ code: 'MESSAGE_INVALID' })
  })

  test('is in the trace and the baggage of its producer while its handler runs, and after', async () => {
    await using box = await server.open()
    const seen: unknown[] = []
    box.consumer('a', {
      async note(_, { tx }) {
        await tx.query('select 1')
        seen.push(trace.getActiveSpan()?.spanContext().traceId, baggageOf())
      },
    })
    await box.receive(note('1', { headers: REMOTE.headers }))
    await box.drain()
    expect(seen).toEqual([REMOTE.traceId, { tenant: 'acme' }])
    expect(trace.getActiveSpan()).toBeUndefined()
  })

  test('passes its trace on to what its handler sends', async () => {
    await using box = await server.open()
    box.consumer('a', {
      async note(_, { tx, send }) {
        await tx.query('select 1')
        await send('next', {})
      },
    })
    await box.receive(note('1', { headers: REMOTE.headers }))
    await box.drain()
    const send = otel.the('send next')
    expect(parentOf(send)).toBe(idOf(otel.the('process note')))
    const [event] = await box.sent()
    expect(event!.headers).toMatchObject({
      traceparent: `00-${REMOTE.traceId}-${idOf(send)}-01`,
      tracestate: 'rojo=1',
      baggage: 'tenant=acme',
    })
  })

  test('has a span for every attempt, with the error that it met and what was decided', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note() {
          throw Object.assign(new Error('no stock'), { code: 'E_STOCK' })
        },
      },
      QUICKLY,
    )
    await box.receive(note('1', { headers: REMOTE.headers }))
    await box.drain()
    const attempts = otel.named('process')
    expect(attempts.map(({ attributes }) => attributes['oncebox.attempt'])).toEqual([1, 2])
    for (const span of attempts) {
      expect(span).toSatisfy(hasFailed)
      expect([parentOf(span), linksOf(span)]).toEqual([REMOTE.spanId, [REMOTE.spanId]])
      expect([span.attributes['error.type'], span.status.message]).toEqual(['E_STOCK', 'no stock'])
    }
    const verdicts = otel.named('settle')
    expect(outcomesOf(verdicts)).toEqual(['retry', 'dead'])
    expect(verdicts.map(parentOf)).toEqual(attempts.map(idOf))
  })

  test.each([
    ['puts itself off', () => new RetryLater({ afterMs: 60_000 }), false, 'put-off'],
    ['rejects its message', () => new Reject('never'), true, 'rejected'],
    ['throws what is no error', () => 'a text with a secret', true, 'failed'],
  ])('whose handler %s', async (_, thrown, isFailure, outcome) => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note() {
          throw thrown()
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(note('1'))
    await box.drain()
    const span = otel.the('process')
    expect([span.attributes['oncebox.outcome'], hasFailed(span)]).toEqual([outcome, isFailure])
    expect(JSON.stringify([span.attributes, span.status])).not.toContain('secret')
  })

  test('that fails in PostgreSQL has its state for the type, and no value of a row', async () => {
    await using box = await server.open()
    await box.sql('create table ob.stock (sku text primary key, n int)')
    box.consumer(
      'a',
      {
        async note({ id }, { tx }) {
          if (id === 'unique') await tx.query(`insert into ${box.schema}.stock values ('secret', 1), ('secret', 2)`)
          await tx.query('select $1::text::int', ['secret'])
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive([note('unique'), note('cast')])
    await box.drain()
    const failed = otel.named('process').filter(hasFailed)
    expect(new Set(failed.map(({ attributes }) => attributes['error.type']))).toEqual(new Set(['23505', '22P02']))
    for (const { attributes, status, events } of otel.spans) {
      expect(JSON.stringify([attributes, status, events])).not.toContain('secret')
    }
  })
})

describe('a group', () => {
  test('has a span for each of its messages, and settles once, linked to all', async () => {
    await using box = await server.open()
    const active: unknown[] = []
    box.consumer('a', { note: () => void active.push(trace.getActiveSpan()?.spanContext().spanId) })
    const headers = [1, 2, 3].map((n) => ({ traceparent: `00-${`${n}`.repeat(32)}-${`${n}`.repeat(16)}-01` }))
    await box.receive(notes(3).map((one, at) => ({ ...one, headers: headers[at]! })))
    await box.drain()
    const calls = otel.named('process')
    expect(calls.map(parentOf)).toEqual(['1', '2', '3'].map((n) => n.repeat(16)))
    expect(calls.map(idOf)).toEqual(active)
    expect(outcomesOf(calls)).toEqual(['handled', 'handled', 'handled'])
    const settle = otel.the('settle')
    expect([parentOf(settle), linksOf(settle)]).toEqual([undefined, calls.map(idOf)])
    expect(settle.attributes['messaging.batch.message_count']).toBe(3)
    const receive = otel.the('receive')
    expect([parentOf(receive), linksOf(receive)]).toEqual([undefined, ['1', '2', '3'].map((n) => n.repeat(16))])
  })

  test('that is rolled back says so for those that had returned', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note({ id }) {
          if (id === 'n2') throw new Error('no')
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    await box.drain()
    const fates = otel.named('process').map(({ attributes }) => {
      return `${String(attributes['messaging.message.id'])} ${String(attributes['oncebox.outcome'])}`
    })
    expect(fates).toEqual(['n1 rolled-back', 'n2 failed', 'n1 handled', 'n2 failed', 'n3 handled'])
  })

  test('that fails at COMMIT is rolled back, with the error on its settlement', async () => {
    await using box = await server.open()
    await box.sql('create table ob.parent (n int primary key)')
    await box.sql('create table ob.child (n int references ob.parent deferrable initially deferred)')
    box.consumer('a', { note: (_, { tx }) => tx.query(`insert into ${box.schema}.child values (1)`) }, QUICKLY)
    await box.receive(note('1'))
    await box.drain()
    expect(outcomesOf(otel.named('process'))).toEqual(['rolled-back', 'rolled-back'])
    const settled = otel.named('settle').filter(hasFailed)
    expect(settled.map(({ attributes }) => attributes['error.type'])).toEqual(['23503', '23503'])
  })

  test('of a batch handler has one span, linked to every producer', async () => {
    await using box = await server.open()
    box.consumer('a', {
      note: batch(async (messages, { send }) => {
        await send('summed', { n: messages.length })
      }),
    })
    const headers = [1, 2].map((n) => ({ traceparent: `00-${`${n}`.repeat(32)}-${`${n}`.repeat(16)}-01` }))
    await box.receive(notes(2).map((one, at) => ({ ...one, headers: headers[at]! })))
    await box.drain()
    const span = otel.the('process note')
    expect([parentOf(span), linksOf(span)]).toEqual([undefined, ['1'.repeat(16), '2'.repeat(16)]])
    expect(span.attributes).toMatchObject({ 'messaging.batch.message_count': 2, 'oncebox.outcome': 'handled' })
    expect(parentOf(otel.the('send summed'))).toBe(idOf(span))
    expect(parentOf(otel.the('settle'))).toBe(idOf(span))
  })
})

describe('other ways', () => {
  test.each(['inline', 'direct'] as const)(
    'mode %s: handled within the receipt, in the trace of the producer',
    async (mode) => {
      await using box = await server.open()
      box.consumer('a', { note: () => 'done' }, { mode })
      await box.handle(note('1', { headers: REMOTE.headers }))
      const process = otel.the('process')
      expect([traceOf(process), parentOf(process), linksOf(process)]).toEqual([
        REMOTE.traceId,
        REMOTE.spanId,
        [REMOTE.spanId],
      ])
      expect(outcomesOf([process, otel.the('receive'), otel.the('settle')])).toEqual(['handled', 'handled', 'handled'])
    },
  )

  test('once: a consumer in the trace of the caller, linked to the producer', async () => {
    await using box = await server.open()
    let active: string | undefined
    const work = (): void => void (active = trace.getActiveSpan()?.spanContext().spanId)
    const message = { id: '1', type: 'note', data: {}, headers: REMOTE.headers }
    await otel.inSpan('request', () => transaction((tx) => box.once(tx, 'a', message, work)))
    await transaction((tx) => box.once(tx, 'a', message, work))
    const span = otel.the('process note')
    expect(idOf(span)).toBe(active)
    expect([span.kind, parentOf(span), linksOf(span)]).toEqual([
      SpanKind.CONSUMER,
      idOf(otel.the('request')),
      [REMOTE.spanId],
    ])
  })

  test('an effect has a span under the call that asked for it, and is active in it', async () => {
    await using box = await server.open()
    let active: string | undefined
    box.consumer('a', {
      async note(_, { effect }) {
        await effect('charge', () => {
          active = trace.getActiveSpan()?.spanContext().spanId
          return 'paid'
        })
      },
    })
    await box.receive(note('1', { headers: REMOTE.headers }))
    await box.drain()
    const effect = otel.the('effect charge')
    expect(idOf(effect)).toBe(active)
    expect(effect.attributes).toEqual({ 'messaging.consumer.group.name': 'a', 'oncebox.effect.name': 'charge' })
    expect(new Set(otel.spans.map(traceOf))).toEqual(new Set([REMOTE.traceId]))
    const calls = otel.named('process')
    expect(calls.map(idOf)).toContain(parentOf(effect))
    expect(outcomesOf(calls)).toEqual(['effect', 'handled'])
    expect(calls.filter(hasFailed)).toEqual([])
  })

  test('an effect that throws has failed', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(_, { effect }) {
          await effect('charge', () => Promise.reject(Object.assign(new Error('declined'), { code: 'card' })))
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(otel.the('effect charge')).toSatisfy(hasFailed)
    expect(otel.the('effect charge').attributes['error.type']).toBe('card')
  })

  test('the relay publishes in the trace of an event, and links to those of many', async () => {
    await using box = await server.open()
    const published: (string | undefined)[] = []
    const sink = {
      name: 'events',
      publish: async (batch: readonly unknown[]) => {
        published.push(trace.getActiveSpan()?.spanContext().spanId)
        return batch.map(() => undefined)
      },
      close: async () => undefined,
    }
    box.to(sink)
    await box.migrate()
    await transaction((tx) => box.send(tx, 'placed', {}))
    await box.drain()
    const [send] = otel.named('send')
    const one = otel.the('publish events')
    expect([idOf(one), one.kind, parentOf(one), linksOf(one)]).toEqual([
      published[0],
      SpanKind.CLIENT,
      idOf(send!),
      [idOf(send!)],
    ])
    expect(one.attributes['messaging.operation.type']).toBe('send')
    otel.reset()
    await transaction(async (tx) => {
      await box.send(tx, 'placed', {}, { key: 'k' })
      await box.send(tx, 'placed', {}, { key: 'k' })
    })
    await box.drain()
    const many = otel.the('publish events')
    expect([parentOf(many), linksOf(many)]).toEqual([undefined, otel.named('send').map(idOf)])
    expect(many.attributes['messaging.batch.message_count']).toBe(2)
  })

  test('a sink that throws, and one that refuses, show on the span of the relay', async () => {
    await using box = await server.open()
    let answer: () => unknown[] = () => {
      throw Object.assign(new Error('broker away'), { code: 'ECONNREFUSED' })
    }
    box.to({ name: 'events', publish: async () => answer() as never, close: async () => undefined })
    await box.migrate()
    await transaction((tx) => box.send(tx, 'placed', {}))
    await expect(box.drain()).rejects.toThrow('broker away')
    const [down] = otel.named('publish')
    expect([hasFailed(down!), down!.attributes['error.type']]).toEqual([true, 'ECONNREFUSED'])
    otel.reset()
    answer = () => [{ error: new Error('not you'), retry: false }]
    await box.drain()
    expect(otel.the('publish').attributes['oncebox.refused']).toBe(1)
  })

  test('log lines of a handler name the trace', async () => {
    const logger = recorder()
    await using box = await server.open({ logger })
    box.consumer('a', { note: (_, { log }) => log.info({}, 'hello') })
    await box.handle(note('1', { headers: REMOTE.headers }))
    await box.handle(note('2'))
    const ids = logger.lines
      .filter(({ text }) => text === 'hello')
      .map(({ about }) => (about as { traceId?: string }).traceId)
    expect(ids).toEqual([REMOTE.traceId, traceOf(otel.named('process')[1]!)])
  })
})

test('handlers side by side run in the span of their own message, one of their key that follows too', async () => {
  await using box = await server.open()
  const seen: Record<string, string | undefined> = {}
  box.consumer(
    'a',
    {
      note: async ({ id }, { tx }) => {
        await tx.query('select 1')
        seen[id] = trace.getActiveSpan()?.spanContext().traceId
      },
    },
    // One slot, so that one claim has all of them.
    { group: { together: true }, concurrency: 1 },
  )
  const traceId = (n: number): string => String(n).repeat(32)
  const headers = (n: number) => ({ traceparent: `00-${traceId(n)}-${String(n).repeat(16)}-01` })
  await box.receive([1, 2, 3, 4].map((n) => note(String(n), { key: n % 2 ? 'k' : undefined, headers: headers(n) })))
  await box.drain()
  expect(seen).toEqual(Object.fromEntries([1, 2, 3, 4].map((n) => [n, traceId(n)])))
  expect(otel.the('settle a').links).toHaveLength(4)
})

describe('loops', () => {
  test('belong to no trace: neither what starts a box nor its polling shows', async () => {
    await using box = await server.open()
    const handled: (string | undefined)[] = []
    box.consumer('a', { note: () => void handled.push(trace.getActiveSpan()?.spanContext().traceId) })
    box.to({ name: 'events', publish: async (batch) => batch.map(() => undefined), close: async () => undefined })
    await otel.inSpan('startup', () => box.start())
    await box.receive(note('1'))
    await box.waitFor('1', 'handled')
    await box.stop()
    expect(handled).toEqual([traceOf(otel.the('receive'))])
    expect(handled).not.toContain(traceOf(otel.the('startup')))
    expect(otel.spans.filter((span) => traceOf(span) === traceOf(otel.the('startup')))).toHaveLength(1)
  })
})

describe('sampling', () => {
  test('a trace that is not sampled makes no span, and says so to whoever comes next', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (_, { send }) => send('next', {}) })
    const traceparent = REMOTE.headers.traceparent.replace(/01$/, '00')
    await box.receive(note('1', { headers: { traceparent } }))
    await box.drain()
    expect(otel.tell()).toEqual([])
    expect((await box.sent())[0]!.headers['traceparent']).toMatch(new RegExp(`^00-${REMOTE.traceId}-[0-9a-f]{16}-00$`))
  })

  test('a group of which no trace is sampled makes no span, and its settlement no trace of its own', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined }, { group: { messages: 10 } })
    const unsampled = (n: number) => ({ traceparent: `00-${String(n).repeat(32)}-${String(n).repeat(16)}-00` })
    await box.receive([1, 2, 3].map((n) => note(String(n), { headers: unsampled(n) })))
    otel.reset()
    await box.drain()
    expect(otel.tell()).toEqual([])
  })

  test('a sampler that wants none gets none', async () => {
    await otel.remove()
    const none = registerTracing({ sampler: new AlwaysOffSampler() })
    try {
      await using box = await server.open()
      box.consumer('a', { note: () => undefined })
      await box.handle(note('1', { headers: REMOTE.headers }))
      expect(none.tell()).toEqual([])
    } finally {
      await none.remove()
      otel = registerTracing()
    }
    expect(context.active()).toBeDefined()
  })
})
