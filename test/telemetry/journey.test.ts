/**
 * One trace from a request to the end of what it caused:
 *
 *     outbox → RabbitMQ → inbox → outbox → link → inbox
 *
 * with a retry, with a delivery that RabbitMQ repeats, and with the spans of the application's own `pg` under the handlers.
 */
import { createRequire } from 'node:module'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Source } from 'oncebox'
import { link } from 'oncebox/link'
import { fromPg } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'
import type { PrivateService } from '../../tools/services/process.mjs'
import { loadAdapter } from '../brokers/adapter.js'
import { useServer } from '../inbox/fixture.js'
import {
  hasFailed,
  idOf,
  linksOf,
  outcomesOf,
  parentOf,
  registerTracing,
  traceOf,
  untilEnded,
  type Registration,
} from './fixture.js'

const server = useServer('journey')
let otel: Registration
let unregister: () => void
beforeAll(() => {
  otel = registerTracing()
  unregister = registerInstrumentations({ instrumentations: [new PgInstrumentation()] })
  // It changes classes of a module that is required; an import gets the same ones.
  createRequire(import.meta.url)('pg')
})
afterAll(async () => {
  unregister()
  await otel.remove()
})

/** The first batch is taken, and its acknowledgement lost. */
function losingOneAck(source: Source): Source & { readonly lost: number } {
  let lost = 0
  return {
    get lost() {
      return lost
    },
    start: (deliver, report, warn) =>
      source.start(
        async (batch) => {
          const outcomes = await deliver(batch)
          if (lost++ === 0) throw new Error('gone before the acknowledgement')
          return outcomes
        },
        report,
        warn,
      ),
    stop: () => source.stop(),
    name: 'orders',
  }
}

function ofPg(span: ReadableSpan): boolean {
  return span.instrumentationScope.name.endsWith('instrumentation-pg')
}

describe('over RabbitMQ and a link', () => {
  let rabbit: PrivateService
  const broker = loadAdapter(new URL('../brokers/rabbitmq/adapter.mjs', import.meta.url))
  beforeAll(async () => {
    rabbit = (await (await broker).start()) as PrivateService
  }, 300_000)
  afterAll(() => rabbit?.stop())

  test('one trace has every step, each under the one that caused it', { timeout: 240_000 }, async () => {
    const adapter = await broker
    const channel = await adapter.create(rabbit.url, {})
    const otherPool = new pg.Pool({ connectionString: server.url })
    await using _ = { [Symbol.asyncDispose]: () => otherPool.end() }
    await using shop = await server.open({ source: 'shop' })
    await using inventory = await server.open({ source: 'inventory' })
    // On a pool of its own: a link to it publishes, as to another database.
    await using billing = await createTestBox({ db: fromPg(otherPool), source: 'billing' })
    shop.to(adapter.sink(channel), { name: 'events' })
    const orders = inventory.from(losingOneAck(adapter.source(channel)))
    inventory.to(link({ to: billing, name: 'billing' }))
    let attempts = 0
    inventory.consumer(
      'reserve-stock',
      {
        async 'order.placed'(message, { tx, send }) {
          await tx.query('select 1 as reserved')
          if (++attempts === 1) throw new Error('not yet')
          await send('stock.reserved', { order: message.id })
        },
      },
      { retry: { attempts: 3, baseMs: 0 } },
    )
    billing.consumer('bill', { 'stock.reserved': (_, { tx }) => tx.query('select 2 as billed') })
    for (const box of [shop, inventory, billing]) await box.start()
    otel.reset()

    const client = await server.pool.connect()
    await otel.inSpan('POST /orders', async () => {
      await client.query('begin')
      await shop.send(client, 'order.placed', { sku: 'tea' }, { id: 'o-1' })
      await client.query('commit')
    })
    client.release()
    await untilEnded(otel, 'settle bill', 1)
    await untilEnded(otel, 'receive orders', 2)
    const ofLoops = otel.spans.filter((span) => ofPg(span) && parentOf(span) === undefined).map(({ name }) => name)
    for (const box of [shop, inventory, billing]) await box.stop()

    const request = otel.the('POST /orders')
    const ours = otel.spans.filter((span) => !ofPg(span))
    expect(new Set(ours.map(traceOf))).toEqual(new Set([traceOf(request)]))
    const send = otel.the('send order.placed')
    expect(parentOf(send)).toBe(idOf(request))

    const publish = otel.the('publish events')
    const received = otel.named('receive orders')
    const [failed, handled, ...more] = otel.named('process order.placed')
    expect(more).toEqual([])
    for (const span of [publish, ...received, failed!, handled!]) {
      expect([span.name, parentOf(span), linksOf(span)]).toEqual([span.name, idOf(send), [idOf(send)]])
    }
    expect(orders.lost).toBeGreaterThanOrEqual(2)
    expect(outcomesOf(received).slice(0, 2)).toEqual(['stored', 'duplicate'])
    expect([failed!, handled!].map(({ attributes }) => attributes['oncebox.attempt'])).toEqual([1, 2])
    expect([failed!, handled!].map(hasFailed)).toEqual([true, false])
    expect(otel.named('settle reserve-stock').map(parentOf)).toEqual([failed!, handled!].map(idOf))
    expect(outcomesOf(otel.named('settle reserve-stock'))).toEqual(['retry', 'handled'])

    const next = otel.the('send stock.reserved')
    expect(parentOf(next)).toBe(idOf(handled!))
    expect(parentOf(otel.the('publish billing'))).toBe(idOf(next))
    expect(parentOf(otel.the('receive inbox'))).toBe(idOf(otel.the('publish billing')))
    const bill = otel.the('process stock.reserved')
    expect([parentOf(bill), linksOf(bill)]).toEqual([idOf(next), [idOf(next)]])
    expect(parentOf(otel.the('settle bill'))).toBe(idOf(bill))

    const ofHandlers = (text: string): (string | undefined)[] =>
      otel.spans.filter((span) => ofPg(span) && span.attributes['db.query.text'] === text).map(parentOf)
    expect(ofHandlers('select 1 as reserved')).toEqual([failed!, handled!].map(idOf))
    expect(ofHandlers('select 2 as billed')).toEqual([idOf(bill)])
    expect(ofLoops).toEqual([])
  })
})

test('a link inside one database has neither publish nor receive: process follows send', async () => {
  await using shop = await server.open({ source: 'shop' })
  await using billing = await server.open({ source: 'billing' })
  shop.to(link({ to: billing, name: 'billing', sameDatabase: true }))
  billing.consumer('bill', { 'order.placed': () => undefined })
  await Promise.all([shop.migrate(), billing.migrate()])
  otel.reset()
  const client = await server.pool.connect()
  await client.query('begin')
  await shop.send(client, 'order.placed', {})
  await client.query('commit')
  client.release()
  await shop.drain()
  await billing.drain()
  const [send, process] = [otel.the('send'), otel.the('process')]
  expect([parentOf(process), linksOf(process), traceOf(process)]).toEqual([idOf(send), [idOf(send)], traceOf(send)])
  expect(otel.tell().filter((line) => /^(publish|receive)/.test(line))).toEqual([])
})
