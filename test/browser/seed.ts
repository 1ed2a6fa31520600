/**
 * What a dashboard shows in these tests: two boxes on one database, with something of everything.
 *
 * payments:
 * - charge-card: handled pay-1 … pay-6; dead in three groups (12 GatewayTimeout, 4 CardError, 1 TypeError with a cause); pay-unknown
 *   in quarantine, since nobody knows whether its card was charged
 * - ship-order, in order of keys: order-7 and order-9 are blocked, by ship-7-1 and ship-9-1, with 3 and 1 behind
 * - email-receipt: handled, with results; mail-later waits for its third attempt
 * - settle-invoice: paused, 5 pending
 * - update-balance: inline
 * - quarantine: pay-1 again with another body (conflict), inv-bad (invalid), an unrouted one, one that is no JSON
 * - discarded: mail-old
 * - sinks: link-warehouse, up; kafka-ledger, down, events wait; rabbitmq-events, 2 dead
 *
 * warehouse: reserve-stock has got what order-1 caused over the link, and its answer has come back: a conversation of four.
 */
import type pg from 'pg'
import { Reject, unchecked, type Incoming, type Message, type MessageMap, type Refusal, type Sink } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import { link } from 'oncebox/link'
import { createTestBox, type TestBox } from 'oncebox/testing'
import { waitUntil } from '../support/wait.js'

export type SeedBox = TestBox<MessageMap, pg.PoolClient, PgClient>

export interface Seeded {
  readonly payments: SeedBox
  readonly warehouse: SeedBox
  /** From now on handlers and sinks do what they are asked: a retry succeeds. */
  mend(): void
}

const MINUTE_MS = 60_000

class GatewayTimeout extends Error {
  override readonly name = 'GatewayTimeout'
  readonly code = 'ETIMEDOUT'
}
class CardError extends Error {
  override readonly name = 'CardError'
  readonly code = 'card_declined'
}

/** A body with an integer that JavaScript would round, so that it is a text. */
function body(id: string, rest = ''): string {
  return `{"id":"${id}","amount":9007199254740993,"currency":"EUR","customer":{"name":"Ada Lovelace","tags":["vip","eu"]}${rest}}`
}

function message(id: string, type: string, rest: Partial<Incoming> = {}): Incoming {
  const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  return { id, type, source: 'stripe', headers, body: body(id), ...rest } as Incoming
}

function numbered(count: number, id: string, type: string): Incoming[] {
  return Array.from({ length: count }, (_, at) => message(`${id}-${at + 1}`, type))
}

export async function seed(pool: pg.Pool): Promise<Seeded> {
  const broken = { now: true }
  const db = fromPg(pool)
  const messages: MessageMap = {
    'invoice.due': INVOICE,
    ...Object.fromEntries(TYPES.map((type) => [type, unchecked<object>()])),
  }
  const payments: SeedBox = await createTestBox({ db, source: 'payments', messages })
  const warehouse: SeedBox = await createTestBox({ db, source: 'warehouse' })
  declare(payments, broken)
  warehouse.consumer('reserve-stock', {
    'stock.requested': async (_, { send }) => {
      await send('stock.reserved', { order: 'order-1' })
    },
  })
  attachSinks(payments, warehouse, broken)
  await inThePast([payments, warehouse], 45, async () => {
    await payments.admin.pause('settle-invoice', { by: 'ines@acme.example', reason: 'ledger is being moved' })
    await payments.receive([
      ...numbered(6, 'pay', 'payment.requested'),
      ...numbered(12, 'late', 'payment.requested'),
      message('ship-7-1', 'order.paid', { key: 'order-7' }),
      message('ship-9-1', 'order.paid', { key: 'order-9' }),
      message('mail-old', 'payment.captured'),
    ])
    await payments.drain()
  })
  await inThePast([payments, warehouse], 12, async () => {
    await payments.receive([
      ...numbered(4, 'declined', 'payment.requested'),
      message('pay-null', 'payment.requested'),
      message('pay-unknown', 'payment.requested'),
      ...[2, 3, 4].map((at) => message(`ship-7-${at}`, 'order.paid', { key: 'order-7' })),
      message('ship-9-2', 'order.paid', { key: 'order-9' }),
      message('mail-later', 'payment.captured'),
      ...numbered(3, 'mail', 'payment.captured'),
      message('order-1', 'order.placed', { source: 'shop', key: 'order-1' }),
      ...numbered(5, 'inv', 'invoice.due').map((one) => ({ ...one, body: '{"total":12}' }) as Incoming),
    ])
    await payments.drain()
    await payments.handle(message('bal-1', 'balance.changed'))
    await payments.receive([
      message('pay-1', 'payment.requested', { body: body('pay-1', ',"note":"sent again"') }),
      message('inv-bad', 'invoice.due', { body: '{"total":"twelve"}' }),
      { id: 'lost-1', type: 'nobody.wants', source: 'shop', body: '{"n":1}' },
      { id: 'bytes-1', type: 'payment.captured', source: 'shop', body: Buffer.from([0xff, 0xfe, 0x00, 0x41]) },
    ])
    await payments.admin.discard({ id: 'mail-old' }, { reason: 'the customer is gone', by: 'ines@acme.example' })
  })
  await waitUntil(async () => {
    await payments.drain()
    await warehouse.drain()
    const unknown = await payments.admin.message({ id: 'pay-unknown' })
    const { entries } = await payments.admin.messages({ type: 'stock.reserved', state: 'handled' })
    return unknown.some(({ state }) => state === 'quarantined') && entries.length === 1
  })
  return { payments, warehouse, mend: () => void (broken.now = false) }
}

/** As if it happened so many minutes ago. */
async function inThePast(boxes: readonly SeedBox[], minutes: number, happen: () => Promise<void>): Promise<void> {
  for (const { clock } of boxes) await clock.advance(-minutes * MINUTE_MS)
  await happen()
  for (const { clock } of boxes) await clock.advance(minutes * MINUTE_MS)
}

const TYPES = [
  'payment.requested',
  'payment.captured',
  'order.paid',
  'order.placed',
  'balance.changed',
  'stock.requested',
  'stock.reserved',
]

/** Refuses what has no number for a total. */
const INVOICE = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof (value as { total?: unknown }).total === 'number'
        ? { value: value as { total: number } }
        : { issues: [{ message: 'total must be a number', path: ['total'] }] },
  },
}

function declare(box: SeedBox, broken: { now: boolean }): void {
  box.consumer(
    'charge-card',
    {
      'payment.requested': async ({ id }, { effect, send }) => {
        if (broken.now) refuse(id)
        const receipt = await effect(
          'charge',
          () => {
            if (broken.now && id === 'pay-unknown') throw new GatewayTimeout('no answer from the gateway in 30000 ms')
            return { charge: `ch_${id}`, captured: true }
          },
          { onUnknown: 'park' },
        )
        await send('payment.captured', { id })
        return receipt
      },
    },
    { retry: { attempts: 1 } },
  )
  box.consumer(
    'ship-order',
    {
      'order.paid': ({ id }) => {
        if (broken.now) throw new Reject(`no parcel service for ${id}`)
      },
    },
    { order: 'key' },
  )
  box.consumer(
    'email-receipt',
    {
      'payment.captured': ({ id }) => {
        if (broken.now && id === 'mail-old') throw new Reject('no such mailbox')
        if (broken.now && id === 'mail-later') throw new GatewayTimeout('smtp.acme.example did not answer')
        return { sent: id }
      },
    },
    { retry: { attempts: 10, baseMs: 3_600_000, jitter: 'none' } },
  )
  box.consumer('settle-invoice', { 'invoice.due': () => undefined })
  box.consumer('update-balance', { 'balance.changed': () => ({ balance: 12 }) }, { mode: 'inline' })
  box.consumer('place-order', {
    'order.placed': async ({ id, data }, { send }) => {
      await send('stock.requested', data as object, { key: id })
    },
  })
  box.consumer('confirm-order', { 'stock.reserved': () => ({ confirmed: true }) })
}

/** What is wrong with these, and in several ways. */
function refuse(id: string): void {
  if (id.startsWith('late-'))
    throw new GatewayTimeout(`no answer from 10.0.4.17 in ${30_000 + Number(id.split('-').at(-1))} ms`)
  if (id.startsWith('declined-')) throw new CardError(`card of ${id} was declined`)
  if (id !== 'pay-null') return
  const cause = withStack(new RangeError('the list of rates is empty'), ['loadRates (/app/src/rates.ts:17:11)'])
  const error = new TypeError(`cannot read properties of undefined (reading 'rate')`, { cause })
  throw withStack(error, ['rateOf (/app/src/rates.ts:41:17)', 'chargeCard (/app/src/payments/charge.ts:88:23)'])
}

/** As of a program that is deployed: where these tests are is nobody's business. */
function withStack<E extends Error>(error: E, own: readonly string[]): E {
  const library = ['handle', 'callWithin', 'callHandler', 'runAlone', 'settle', 'loop'].map(
    (name, at) => `${name} (/app/node_modules/oncebox/dist/inbox/run.js:${40 + 7 * at}:9)`,
  )
  const frames = [...own, ...library].map((frame) => `\n    at ${frame}`)
  return Object.assign(error, { stack: `${error.name}: ${error.message}${frames.join('')}` })
}

/** Where events go. */
function attachSinks(payments: SeedBox, warehouse: SeedBox, broken: { now: boolean }): void {
  payments.to(link({ to: warehouse, name: 'link-warehouse' }), { types: ['stock.requested'] })
  warehouse.to(link({ to: payments, name: 'link-payments' }))
  const later = { retry: { attempts: 10, baseMs: 3_600_000, jitter: 'none' as const }, types: ['payment.captured'] }
  payments.to(sink('kafka-ledger', () => broken.now && { error: new GatewayTimeout('connect ETIMEDOUT 10.0.4.17:9092'), retry: true }), later)
  payments.to(sink('rabbitmq-events', ({ data }) => broken.now && /[12]$/.test((data as { id: string }).id) && { error: new Error('PRECONDITION_FAILED'), retry: false }), later)
} // prettier-ignore

function sink(name: string, refusal: (message: Message) => false | Refusal): Sink & { name: string } {
  return {
    name,
    publish: (batch) => Promise.resolve(batch.map((one) => refusal(one) || undefined)),
    close: () => Promise.resolve(),
  }
}
