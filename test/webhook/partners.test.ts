/** Two partners on one box, over HTTP: with the options of the page, neither gets at what is the other's. */
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Source } from 'oncebox'
import { toNodeListener, webhook, type VerifiedRequest, type WebhookSourceOptions } from 'oncebox/webhook'
import { recorder, useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { OLD_SECRETS, SECRETS, serve, sign } from './senders.js'

const server = useServer('partners')
const DAY = 86_400_000
const SECRET = { acme: SECRETS.standard, bolt: OLD_SECRETS.standard }
type Partner = keyof typeof SECRET

/** The key of a message is what its sender says. */
const keyed = ({ message, data }: VerifiedRequest) => ({ ...message, key: (data as { key?: string }).key ?? 'none' })

/** A route for each partner, with its own secret, source and types. */
async function attach(box: Bench, more: Partial<WebhookSourceOptions> = {}) {
  const hookOf = (partner: Partner) =>
    webhook({ scheme: 'standard', secret: SECRET[partner], source: partner, map: keyed, ...more })
  const acme = box.from(hookOf('acme'), { types: ['order.paid', 'order.shipped'] })
  const bolt = box.from(hookOf('bolt'), { types: ['stock.changed', 'order.shipped'], quarantine: { maxRows: 3 } })
  const routes = { acme: await serve(toNodeListener(acme)), bolt: await serve(toNodeListener(bolt)) }
  const post = async (partner: Partner, id: string, body: object) => {
    const { headers, body: text } = await sign('standard', JSON.stringify(body), { id, secret: SECRET[partner] })
    const response = await fetch(routes[partner].url, { method: 'POST', headers, body: text })
    const answer = (await response.json()) as { status?: string }
    return { status: response.status, answer: answer.status, retryAfter: response.headers.get('retry-after') }
  }
  const end = async () => {
    await routes.acme[Symbol.asyncDispose]()
    await routes.bolt[Symbol.asyncDispose]()
  }
  return { post, [Symbol.asyncDispose]: end }
}

describe.for(['stored', 'inline'] as const)('%s', (mode) => {
  test('no partner runs a handler of the other by naming its type', async () => {
    await using box = await server.open()
    box.consumer('a', { '*': (message, { tx }) => box.write(tx, 'a', message, message.source) }, { mode })
    await using http = await attach(box)
    expect(await http.post('bolt', 'm1', { type: 'order.paid' })).toMatchObject({ status: 200, answer: 'quarantined' })
    expect(await http.post('acme', 'm1', { type: 'order.paid' })).toMatchObject({ status: 200 })
    await box.drain()
    expect(await box.effects()).toEqual([{ consumer: 'a', id: 'm1', note: 'acme' }])
    expect(await box.quarantine()).toMatchObject([{ source: 'bolt', type: 'order.paid', reason: 'not-allowed' }])
  })

  test('no partner takes an id of the other, whatever source its CloudEvents name', async () => {
    await using box = await server.open()
    box.consumer('a', { 'order.shipped': (message, { tx }) => box.write(tx, 'a', message, message.source) }, { mode })
    await using http = await attach(box)
    const event = { specversion: '1.0', id: 'e1', source: 'acme', type: 'order.shipped' }
    for (const partner of ['bolt', 'acme'] as const) {
      expect((await http.post(partner, 'm1', { ...event, data: partner })).status).toBe(200)
    }
    await box.drain()
    expect((await box.effects()).map(({ note }) => note)).toEqual(['bolt', 'acme'])
    expect(await box.quarantine()).toEqual([])
  })

  test('no partner fills the quarantine of the other, nor keeps itself from sending what is right', async () => {
    const log = recorder()
    await using box = await server.open({ logger: log })
    box.consumer('a', { '*': (message, { tx }) => box.write(tx, 'a', message, message.source) }, { mode })
    await using http = await attach(box)
    const junk = (partner: Partner, n: number) => http.post(partner, `j${n}`, { type: 'order.refunded', n })
    for (let n = 0; n < 3; n++) expect((await junk('bolt', n)).status).toBe(200)
    for (let n = 3; n < 6; n++) expect(await junk('bolt', n)).toMatchObject({ status: 429, retryAfter: '60' })
    // What is there already needs no room.
    expect((await junk('bolt', 0)).status).toBe(200)
    expect((await junk('acme', 0)).status).toBe(200)
    expect((await http.post('bolt', 'm1', { type: 'stock.changed' })).status).toBe(200)
    await box.drain()
    expect((await box.effects()).map(({ note }) => note)).toEqual(['bolt'])
    expect((await box.quarantine()).map(({ source }) => source)).toEqual(['bolt', 'bolt', 'bolt', 'acme'])

    const told = () => log.lines.filter(({ text }) => /quarantine of source/.test(text ?? '')).map(({ text }) => text)
    expect(told()).toHaveLength(1)
    // The other partner's service is as ready as ever.
    expect(await box.health()).toMatchObject({
      ok: true,
      reasons: [expect.stringContaining('webhook:bolt is full')],
    })
    await box.admin.discard({ source: 'bolt' }, { reason: 'junk' })
    expect((await box.health()).reasons).toBeUndefined()
    expect((await junk('bolt', 7)).status).toBe(200)
    expect(told()).toHaveLength(2)
  })
})

test('no partner holds up a key of the other; each has its own order, and handlers see the key as it was sent', async () => {
  await using box = await server.open()
  const keys = new Set<string | undefined>()
  box.consumer(
    'a',
    {
      async 'order.shipped'(message, { tx }) {
        if ((message.data as { bad?: true }).bad) throw new Error('bad')
        keys.add(message.key)
        await box.write(tx, 'a', message, message.source)
      },
    },
    { order: 'key', retry: { attempts: 1 } },
  )
  await using http = await attach(box)
  const send = (partner: Partner, id: string, more = {}) =>
    http.post(partner, id, { type: 'order.shipped', key: 'k', ...more })
  await send('bolt', 'b1', { bad: true })
  await box.drain()
  await send('bolt', 'b2')
  await send('acme', 'a1')
  await send('acme', 'a2')
  await box.drain()
  expect(await box.ids()).toEqual(['a1', 'a2'])
  expect(keys).toEqual(new Set(['k']))
  expect((await box.admin.messages({ key: 'k' })).entries).toHaveLength(4)
  // What was released, discarded or replayed by a person is still in the lane of its partner.
  await box.admin.discard({ id: 'b1' }, { reason: 'bad' })
  await box.drain()
  expect(await box.ids()).toEqual(['a1', 'a2', 'b2'])
  expect(await box.admin.retry({ id: ['b2', 'a2'], state: 'handled' })).toBe(2)
  const lanes = await box.sql(`select count(distinct lane)::int lanes from ob.work where parked is null`)
  expect(lanes).toEqual([{ lanes: 2 }])
})

describe('what a partner may not send', () => {
  test('is not released by a consumer that appears, and is by a person', async () => {
    await using box = await server.open()
    await using http = await attach(box)
    await http.post('bolt', 'm1', { type: 'order.paid' })
    box.consumer('a', { 'order.paid': (message, { tx }) => box.write(tx, 'a', message, message.key) })
    await box.start()
    await box.stop()
    await box.drain()
    expect(await box.ids()).toEqual([])
    expect(await box.admin.retry({ reason: 'not-allowed' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['m1'])
  })

  test('is kept for 30 days, and what it may send for as long as nobody decides', async () => {
    const archived: string[] = []
    await using box = await server.open({
      hooks: { archive: async (entries) => void archived.push(...entries.map(({ state }) => state)) },
    })
    await using http = await attach(box)
    await http.post('acme', 'm1', { type: 'order.refunded' })
    await http.post('acme', 'm2', { type: 'order.paid' })
    await box.clock.advance(29 * DAY)
    expect(await box.admin.prune()).toBe(0)
    await box.clock.advance(2 * DAY)
    expect(await box.admin.prune()).toBe(1)
    expect(archived).toEqual(['quarantined'])
    expect(await box.quarantine()).toMatchObject([{ id: 'm2', reason: 'unrouted' }])
    expect(await box.sql('select via, messages::int from ob.quarantine_account')).toEqual([
      { via: 'webhook:acme', messages: 1 },
    ])
  })
})

test('one captured request that has no id, sent thirty times, is one row', async () => {
  await using box = await server.open()
  const hook = box.from(webhook({ scheme: 'stripe', secret: SECRETS.stripe }), { types: ['paid'] })
  await using http = await serve(toNodeListener(hook))
  const { headers, body } = await sign('stripe', '{"type":"paid"}')
  for (let times = 0; times < 30; times++) {
    expect((await fetch(http.url, { method: 'POST', headers, body })).status).toBe(200)
  }
  expect(await box.quarantine()).toMatchObject([{ reason: 'no-id' }])
})

describe('a captured request', () => {
  const hookOf = (more: Partial<WebhookSourceOptions>) =>
    webhook({ scheme: 'standard', secret: SECRETS.standard, ...more })
  const refused = expect.objectContaining({ code: 'OPTION_INVALID' })

  test('cannot outlive the memory of a consumer: shorter than the window of its signature is refused', async () => {
    await using box = await server.open()
    box.from(hookOf({ source: 'first' }), { types: ['paid'] })
    const declare = (name: string, type: string, retainMs: number) => () =>
      void box.consumer(name, { [type]: () => undefined }, { retainMs })
    expect(declare('a', 'paid', 599_999)).toThrow(refused)
    expect(declare('a', 'paid', 599_999)).toThrow(/599999 ms.* 600000 ms/s)
    expect(declare('a', 'paid', 600_000)).not.toThrow()
    expect(declare('b', 'unsent', 1_000)).not.toThrow()
    expect(() => box.from(hookOf({ source: 'second' }), { types: 'any' })).toThrow(refused)
    expect(() => box.from(hookOf({ source: 'second' }), { types: 'any', consumers: ['a'] })).not.toThrow()
    expect(() => box.from(hookOf({ source: 'third', toleranceMs: 500 }), { types: 'any' })).not.toThrow()
  })

  test('and forgotten is told by the time of its signature, and does not run again', async () => {
    await using box = await server.open()
    box.consumer('a', { paid: (message, { tx }) => box.write(tx, 'a', message) }, { retainMs: 3_600_000 })
    let nowMs = Date.now()
    // As if the clock of this process stood still.
    const hook = box.from(hookOf({ now: () => nowMs }), { types: ['paid'] })
    await using http = await serve(toNodeListener(hook))
    const { headers, body } = await sign('standard', '{"type":"paid"}', { at: nowMs })
    const send = async () => (await fetch(http.url, { method: 'POST', headers, body })).json()
    expect(await send()).toEqual({ status: 'stored' })
    await box.drain()
    await box.clock.advance(2 * 3_600_000)
    await box.admin.prune()
    expect(await send()).toEqual({ status: 'quarantined' })
    expect(await box.quarantine()).toMatchObject([{ reason: 'too-old' }])
    nowMs += 600_000
    expect(await send()).toEqual({ error: expect.stringContaining('timestamp') })
    await box.drain()
    expect(await box.ids()).toEqual(['msg_1'])
  })

  test('whose time a map takes away is one without a time, however often its sender signs it anew', async () => {
    await using box = await server.open()
    const options = { retainMs: 3_600_000, untimed: 'quarantine' } as const
    box.consumer('a', { paid: (message, { tx }) => box.write(tx, 'a', message) }, options)
    const hook = box.from(hookOf({ map: ({ message }) => ({ ...message, time: undefined }) }), { types: ['paid'] })
    await using http = await serve(toNodeListener(hook))
    const { headers, body } = await sign('standard', '{"type":"paid"}')
    const answer = await fetch(http.url, { method: 'POST', headers, body })
    expect(await answer.json()).toEqual({ status: 'quarantined' })
    expect(await box.quarantine()).toMatchObject([{ reason: 'too-old' }])
  })

  test('of a sender of your own, for longer than a consumer remembers, is refused by the name of its option', async () => {
    await using box = await server.open()
    box.consumer('a', { paid: () => undefined }, { retainMs: 3_600_000 })
    const custom = webhook({ source: 'custom', replayMs: 7_200_000, verify: () => false as const })
    expect(() => box.from(custom, { types: ['paid'] })).toThrow(/7200000 ms \(replayMs/)
  })

  test('a process that starts is told of a consumer elsewhere that forgets too soon', async () => {
    const log = recorder()
    await using box = await server.open({ logger: log })
    await box.sql(`insert into ob.consumer (name, retain_ms) values ('elsewhere', 1000)`)
    box.from(hookOf({}), { types: 'any' })
    await box.start()
    await waitUntil(() => log.lines.some(({ text }) => /elsewhere.*1000 ms/.test(text ?? '')))
  })
})

describe('two push sources of one name on one box', () => {
  test('are refused: each would take the ids of the other', async () => {
    await using box = await server.open()
    const make = (source?: string) =>
      webhook({ scheme: 'standard', secret: SECRETS.standard, ...(source !== undefined && { source }) })
    box.from(make(), { types: 'any' })
    expect(() => box.from(make(), { types: 'any' })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(() => box.from(make('other'), { types: 'any' })).not.toThrow()
  })
})

test('what belongs to box.from or box.to is refused elsewhere, and the error says where it goes', async () => {
  await using box = await server.open()
  const given = { scheme: 'standard', secret: SECRETS.standard, types: ['paid'] } as WebhookSourceOptions
  expect(() => webhook(given)).toThrow(/box\.from\(webhook\(…\), \{ types: \['order\.paid'\] \}\)/)
  const sink = webhook({ url: 'https://example.com/hooks', secret: SECRETS.standard })
  expect(() => box.from(sink as unknown as Source)).toThrow(/with a url\): it is a sink, for box\.to/)
})

test('a signed body that cannot be decoded is kept for that reason, not for the type that it could not tell', async () => {
  await using box = await server.open()
  const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard }), { types: ['paid'] })
  await using http = await serve(toNodeListener(hook))
  const bodies: [string, Uint8Array][] = [
    ['bom', Buffer.from('\ufeff{"type":"paid"}')],
    ['utf16', Buffer.from('{"type":"paid"}', 'utf16le')],
    ['latin1', Buffer.from([0x22, 0xe9, 0x22])],
    ['empty', Buffer.alloc(0)],
  ]
  for (const [id, bytes] of bodies) {
    const at = Math.floor(Date.now() / 1_000)
    const key = Buffer.from(SECRETS.standard.replace('whsec_', ''), 'base64')
    const signature = createHmac('sha256', key).update(`${id}.${at}.`).update(bytes).digest('base64')
    const headers = { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` }
    const response = await fetch(http.url, { method: 'POST', headers, body: bytes as never })
    expect(response.status).toBe(200)
  }
  const kept = await box.quarantine()
  expect(kept.map(({ id, reason }) => [id, reason])).toEqual(bodies.map(([id]) => [id, 'undecodable']))
  for (const { detail } of kept) expect(detail).not.toContain('may not send')
  // What can be read, and says another type or none, is still not allowed.
  for (const body of ['{"type":"other"}', '[1]']) {
    const sent = await sign('standard', body, { id: body })
    await fetch(http.url, { method: 'POST', ...sent })
  }
  expect((await box.quarantine()).slice(bodies.length).map(({ reason }) => reason)).toEqual([
    'not-allowed',
    'not-allowed',
  ])
})
