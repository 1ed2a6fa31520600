/** Webhooks into a box, over HTTP, on PostgreSQL: answered after the commit, one effect per event. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { toNodeListener, webhook } from 'oncebox/webhook'
import { gate, useServer } from '../inbox/fixture.js'
import { startProxy, type PostgresProxy } from '../support/proxy.js'
import { bodyOf, SECRETS, serve, sign, type Sent } from './senders.js'

const server = useServer('webhook')
const SCHEMES = ['standard', 'stripe', 'github'] as const

async function post(url: string, { body, headers }: Sent): Promise<{ status: number; answer: unknown }> {
  const response = await fetch(url, { method: 'POST', headers, body })
  return { status: response.status, answer: await response.json() }
}

describe.for(['inline', 'stored'] as const)('%s', (mode) => {
  test.for(SCHEMES)(
    'an event that is sent three times is answered 200 three times and has one effect: %s',
    async (scheme) => {
      await using box = await server.open()
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message, message.source) }, { mode })
      const hook = box.from(webhook({ scheme, secret: SECRETS[scheme] }), { types: 'any' })
      await using http = await serve(toNodeListener(hook))
      const sent = await sign(scheme, bodyOf(scheme))
      const answers = [await post(http.url, sent), await post(http.url, sent), await post(http.url, sent)]
      const first = mode === 'inline' ? 'handled' : 'stored'
      expect(answers).toEqual([first, 'duplicate', 'duplicate'].map((status) => ({ status: 200, answer: { status } })))
      await box.drain()
      expect(await box.effects()).toEqual([
        { consumer: 'a', id: scheme === 'stripe' ? 'evt_1' : 'msg_1', note: scheme },
      ])
    },
  )

  test('the data a handler gets is the signed body', async () => {
    await using box = await server.open()
    let got: unknown
    box.consumer('a', { '*': (message) => void (got = message) }, { mode })
    const hook = box.from(webhook({ scheme: 'github', secret: SECRETS.github }), { types: 'any' })
    await using http = await serve(toNodeListener(hook))
    await post(http.url, await sign('github', '{"action":"opened","n":1}'))
    await box.drain()
    expect(got).toMatchObject({ type: 'note', data: { action: 'opened', n: 1 }, source: 'github' })
  })

  test('what is signed but cannot be decoded is kept, answered 200, and kept once', async () => {
    await using box = await server.open()
    box.consumer('a', { '*': () => undefined }, { mode })
    for (const scheme of SCHEMES) {
      const hook = box.from(webhook({ scheme, secret: SECRETS[scheme] }), { types: 'any' })
      await using http = await serve(toNodeListener(hook))
      const sent = await sign(scheme, '{"type":"no')
      for (let times = 0; times < 2; times++) {
        expect(await post(http.url, sent)).toEqual({ status: 200, answer: { status: 'quarantined' } })
      }
    }
    const kept = (await box.quarantine()).map(({ source, reason, body }) => ({ source, reason, body }))
    expect(kept).toEqual(SCHEMES.map((source) => ({ source, reason: 'undecodable', body: '{"type":"no' })))
  })

  test('what is not JSON is kept; what `map` chokes on is left to the sender, and handled once `map` is mended', async () => {
    await using box = await server.open()
    box.consumer('a', { '*': (message, { tx }) => box.write(tx, 'a', message, message.key) }, { mode })
    const errors: unknown[] = []
    let mended = false
    const hook = box.from(
      webhook({
        scheme: 'github',
        secret: SECRETS.github,
        map: ({ message, data }) => ({
          ...message,
          key: mended ? 'none' : (data as { deep: { key: string } }).deep.key,
        }),
        onError: (error) => errors.push(error),
      }),
      { types: ['note'] },
    )
    await using http = await serve(toNodeListener(hook))
    const quarantined = { status: 200, answer: { status: 'quarantined' } }
    expect(await post(http.url, await sign('github', 'payload=%7B%7D'))).toEqual(quarantined)
    const sent = await sign('github', '{"shallow":1}', { id: 'msg_2' })
    expect(await post(http.url, sent)).toMatchObject({ status: 503 })
    expect(errors).toMatchObject([{ name: 'TypeError' }])
    expect(await box.quarantine()).toMatchObject([{ reason: 'undecodable', body: 'payload=%7B%7D' }])
    mended = true
    expect(await post(http.url, sent)).toMatchObject({ status: 200 })
    await box.drain()
    expect(await box.effects()).toMatchObject([{ id: 'msg_2', note: 'none' }])
  })

  test('Stripe’s copies of one event differ in pending_webhooks, and are copies; another body is a conflict', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode })
    const hook = box.from(webhook({ scheme: 'stripe', secret: SECRETS.stripe }), { types: 'any' })
    await using http = await serve(toNodeListener(hook))
    const created = Math.floor(Date.now() / 1_000) - 60
    const deliver = async (more: object) =>
      (await post(http.url, await sign('stripe', bodyOf('stripe', 'evt_8', { created, ...more })))).answer
    expect(await deliver({ pending_webhooks: 2 })).toEqual({ status: mode === 'inline' ? 'handled' : 'stored' })
    expect(await deliver({ pending_webhooks: 1 })).toEqual({ status: 'duplicate' })
    expect(await deliver({ pending_webhooks: 1, amount: 5 })).toEqual({ status: 'quarantined' })
    await box.drain()
    expect(await box.ids()).toEqual(['evt_8'])
    expect(await box.quarantine()).toMatchObject([{ id: 'evt_8', reason: 'conflict' }])
  })

  test('the same id from two producers is two messages', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message, message.source) }, { mode })
    const sent = await sign('standard', bodyOf('standard'))
    for (const source of ['one', 'two']) {
      const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard, source }), { types: 'any' })
      await using http = await serve(toNodeListener(hook))
      expect((await post(http.url, sent)).status).toBe(200)
    }
    await box.drain()
    expect((await box.effects()).map(({ note }) => note).sort()).toEqual(['one', 'two'])
  })
})

test('fifty copies at once have one effect, and the rest are told to come back or that it is done', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode: 'inline' })
  const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard }), { types: 'any' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const answers = await Promise.all(Array.from({ length: 50 }, () => post(http.url, sent)))
  expect(answers.filter(({ status }) => status !== 200 && status !== 409)).toEqual([])
  expect(await box.ids()).toEqual(['msg_1'])
})

test('while the first copy runs the second is busy: 409, and to be sent again', async () => {
  await using box = await server.open()
  const running = gate()
  const finish = gate()
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        running.open()
        await finish.opened
        await box.write(tx, 'a', message)
      },
    },
    { mode: 'inline' },
  )
  const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard }), { types: 'any' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const first = post(http.url, sent)
  await running.opened
  const second = await fetch(http.url, { method: 'POST', ...sent })
  expect([second.status, second.headers.get('retry-after')]).toEqual([409, '1'])
  finish.open()
  expect(await first).toEqual({ status: 200, answer: { status: 'handled' } })
  expect(await post(http.url, sent)).toEqual({ status: 200, answer: { status: 'duplicate' } })
})

test('a handler that fails on arrival is answered 503, and the next delivery has the effect', async () => {
  await using box = await server.open()
  let failing = true
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        if (failing) throw new Error('hunter2')
      },
    },
    { mode: 'inline' },
  )
  const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard }), { types: 'any' })
  await using http = await serve(toNodeListener(hook))
  const sent = await sign('standard', bodyOf('standard'))
  const response = await fetch(http.url, { method: 'POST', ...sent })
  expect([response.status, await response.text()]).toEqual([503, '{"status":"failed"}'])
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await box.ids()).toEqual([])
  failing = false
  expect(await post(http.url, sent)).toEqual({ status: 200, answer: { status: 'handled' } })
  expect(await box.ids()).toEqual(['msg_1'])
})

test('stopping the box waits for the delivery in flight, whose sender gets its answer', async () => {
  await using box = await server.open()
  const running = gate()
  const finish = gate()
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        running.open()
        await finish.opened
        await box.write(tx, 'a', message)
      },
    },
    { mode: 'inline' },
  )
  const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard, onError: () => undefined }), {
    types: 'any',
  })
  await using http = await serve(toNodeListener(hook))
  await box.start()
  const first = post(http.url, await sign('standard', bodyOf('standard')))
  await running.opened
  let stopped = false
  const stopping = box.stop().then(() => (stopped = true))
  expect((await post(http.url, await sign('standard', bodyOf('standard'), { id: 'msg_2' }))).status).toBe(503)
  expect(stopped).toBe(false)
  finish.open()
  expect((await first).status).toBe(200)
  await stopping
  expect(await box.ids()).toEqual(['msg_1'])
})

describe('a database that goes away', () => {
  let proxy: PostgresProxy
  let pool: pg.Pool
  beforeAll(async () => {
    proxy = await startProxy(server.url)
    pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
    pool.on('error', () => undefined)
  })
  afterAll(async () => {
    await pool.end()
    await proxy.close()
  })

  test.for(['inline', 'stored'] as const)('is answered 5xx, and the next delivery has one effect: %s', async (mode) => {
    await using ledger = await server.open()
    const silent = { debug() {}, info() {}, warn() {}, error() {} }
    const box = createBox({ db: fromPg(pool), schema: ledger.schema, logger: silent })
    box.consumer('a', { note: (message, { tx }) => ledger.write(tx, 'a', message) }, { mode })
    await box.migrate()
    const errors: unknown[] = []
    const hook = box.from(
      webhook({ scheme: 'standard', secret: SECRETS.standard, onError: (error) => errors.push(error) }),
      { types: 'any' },
    )
    await using http = await serve(toNodeListener(hook))
    const sent = await sign('standard', bodyOf('standard'))

    await proxy.refuse()
    proxy.cutAll()
    expect(await post(http.url, sent)).toEqual({ status: 503, answer: { error: 'try again later' } })
    expect(errors).toHaveLength(1)
    // The signature is judged first, and needs no database.
    const forged = { ...sent, body: `${sent.body} ` }
    expect((await post(http.url, forged)).status).toBe(401)
    expect(errors).toHaveLength(1)

    await proxy.accept()
    expect((await post(http.url, sent)).status).toBe(200)
    expect((await post(http.url, sent)).answer).toEqual({ status: 'duplicate' })
    await box.drain()
    expect(await ledger.ids()).toEqual(['msg_1'])
  })

  test.for(['before', 'during', 'after'] as const)(
    'with the connection cut %s the COMMIT, there is one effect when the sender has had its 200',
    async (moment) => {
      await using ledger = await server.open()
      const silent = { debug() {}, info() {}, warn() {}, error() {} }
      const box = createBox({ db: fromPg(pool), schema: ledger.schema, logger: silent })
      box.consumer('a', { note: (message, { tx }) => ledger.write(tx, 'a', message) }, { mode: 'inline' })
      await box.migrate()
      const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard, onError: () => undefined }), {
        types: 'any',
      })
      await using http = await serve(toNodeListener(hook))
      const sent = await sign('standard', bodyOf('standard'))
      void proxy.cutAtCommit(moment)
      let status = 0
      let deliveries = 0
      while (status !== 200 && deliveries++ < 20) status = (await post(http.url, sent)).status
      expect(status).toBe(200)
      expect(await ledger.ids()).toEqual(['msg_1'])
    },
  )
})

test.for(['inline', 'direct'] as const)(
  'onError is told of a handler that failed, and the sender of 503: %s',
  async (mode) => {
    await using box = await server.open()
    box.consumer('a', { note: () => Promise.reject(new TypeError('no stock')) }, { mode })
    const errors: unknown[] = []
    const onError = (error: unknown): void => void errors.push(error)
    const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard, onError }), { types: 'any' })
    await using http = await serve(toNodeListener(hook))
    expect(await post(http.url, await sign('standard', bodyOf('standard')))).toMatchObject({ status: 503 })
    expect(errors).toMatchObject([{ name: 'TypeError', message: 'no stock' }])
  },
)
