/** The overview: since when something needs a person, how much waits behind it, and what may be seen of why a sink fails. */
import { expect, test } from 'vitest'
import { Reject, type Sink } from 'oncebox'
import type { Dashboard } from 'oncebox/dashboard'
import type { Finding, MessageAnswer, Outbox, Overview } from 'oncebox/dashboard/client'
import { waitUntil } from '../support/wait.js'
import { ask, message, open, useShop } from './fixture.js'

const shop = useShop('dashboard_overview')
const HOUR_MS = 3_600_000

async function overview(): Promise<Overview> {
  const { status, answer } = await ask(shop.ops, 'overview', { box: 'shop' })
  expect(status).toBe(200)
  return answer
}

async function sinceOf(code: Finding['code']): Promise<number> {
  const { findings } = await overview()
  return Date.parse(findings.find((one) => one.code === code)?.since ?? '')
}

/** As if it had failed then. */
const failedAgo = (id: string, ms: number): Promise<unknown> =>
  shop.box.sql(`update ob.work set failed_at = ob.now() - interval '${ms} ms' where id = '${id}'`)

function near(at: number, ms: number): void {
  expect(Math.abs(Date.now() - ms - at)).toBeLessThan(600_000)
}

test('dead messages and what is in quarantine say since when they are, though nobody recorded any minute', async () => {
  shop.box.consumer('mail', { fails: () => Promise.reject(new Reject('no')) })
  await shop.box.receive([
    message('new', 'fails'),
    message('old', 'fails'),
    message('u1', 'nobody'),
    message('u2', 'nobody'),
  ])
  await shop.box.drain()
  await failedAgo('old', 5 * HOUR_MS)
  await shop.box.sql(`update ob.quarantine set received_at = ob.now() - interval '7 hours' where id = 'u2'`)
  near(await sinceOf('dead'), 5 * HOUR_MS)
  near(await sinceOf('quarantined'), 7 * HOUR_MS)
})

test('what was given up needs nobody, and says nothing of since when', async () => {
  await shop.box.receive([message('u1', 'nobody'), message('u2', 'nobody')])
  await shop.box.sql(`update ob.quarantine set received_at = ob.now() - interval '7 hours' where id = 'u1'`)
  await shop.box.admin.discard({ id: 'u1' }, { reason: 'old' })
  near(await sinceOf('quarantined'), 0)
})

test('a message that nobody can tell the outcome of is in quarantine since it stopped', async () => {
  const cut = () => Promise.reject(new Error('cut off'))
  shop.box.consumer('pay', { charge: (_, ctx) => ctx.effect('transfer', cut, { onUnknown: 'park' }) })
  await shop.box.receive([message('e', 'charge')])
  await shop.box.drain()
  await failedAgo('e', 3 * HOUR_MS)
  near(await sinceOf('quarantined'), 3 * HOUR_MS)
})

test('blocked keys say since when, how many messages wait behind them, and of which consumer they are', async () => {
  const refuse = () => Promise.reject(new Reject('no'))
  shop.box.consumer('ledger', { entry: refuse }, { order: 'key' })
  shop.box.consumer('stock', { move: refuse }, { order: 'key' })
  await shop.box.receive(['a', 'b', 'c'].map((key) => message(`l-${key}`, 'entry', { key })))
  await shop.box.receive([message('s-a', 'move', { key: 'a' })])
  await shop.box.drain()
  await shop.box.receive([2, 3, 4].map((n) => message(`l-a-${n}`, 'entry', { key: 'a' })))
  await shop.box.receive([message('l-b-2', 'entry', { key: 'b' }), message('s-a-2', 'move', { key: 'a' })])
  await failedAgo('l-b', 4 * HOUR_MS)
  const { blocked, consumers } = await overview()
  expect(blocked).toEqual({ keys: 4, complete: true, waiting: 5, atLeast: false })
  const keysOf = (name: string) => consumers.find((one) => one.name === name)?.blockedKeys
  expect([keysOf('ledger'), keysOf('stock')]).toEqual([3, 1])
  near(await sinceOf('blocked'), 4 * HOUR_MS)
})

test('behind blocked keys no more are counted than is cheap, and that is said', async () => {
  await shop.box.sql(`insert into ob.message (consumer, source, id, type, key, body)
    select 'ledger', 'shop', 'm' || i, 'entry', 'k' || i % 3, '{}' from generate_series(1, 10050) i`)
  await shop.box
    .sql(`insert into ob.work (consumer, source, id, lane, due_at, parked) select consumer, source, id, key, 'infinity',
    case when id in ('m1', 'm2', 'm3') then 'dead' end from ob.message`)
  await shop.box.sql(`insert into ob.lane (consumer, key, due_at, blocked) values ('ledger', 'k0', 'infinity', true),
    ('ledger', 'k1', 'infinity', true), ('ledger', 'k2', 'infinity', true)`)
  expect((await overview()).blocked).toEqual({ keys: 3, complete: true, waiting: 10_000, atLeast: true })
})

test('a paused consumer says since when: since it was paused first, after it was resumed', async () => {
  for (const name of ['mail', 'stock', 'well']) shop.box.consumer(name, { [name]: () => undefined })
  await shop.box.admin.status()
  for (const name of ['mail', 'stock']) await shop.box.admin.pause(name)
  await shop.box.admin.resume('mail')
  await shop.box.admin.pause('mail', { reason: 'a text with \u0000 in it' })
  await shop.box.admin.pause('mail')
  await shop.box.sql(`update ob.audit set at = ob.now() - interval '10 hours' + n * interval '1 hour'`)
  const { consumers } = await overview()
  const pausedOf = (name: string) => consumers.find((one) => one.name === name)!
  const rows = await shop.box.sql(`select n, extract(epoch from at) * 1000 ms from ob.audit order by n`)
  const at = rows.map(({ ms }) => new Date(Math.round(Number(ms))).toISOString())
  expect(pausedOf('mail')).toMatchObject({ paused: true, pausedAt: at[3] })
  expect(pausedOf('stock')).toMatchObject({ paused: true, pausedAt: at[1] })
  expect(pausedOf('well')).not.toHaveProperty('pausedAt')
})

/** It refuses each event, or throws. */
async function attach(publish: Sink['publish'], baseMs = 1_000): Promise<void> {
  shop.box.to({ name: 'bus', publish, close: () => Promise.resolve() } as Sink, { retry: { attempts: 7, baseMs } })
  await send('ev-1')
  await shop.box.start()
}

async function send(id: string): Promise<void> {
  const tx = await shop.server.pool.connect()
  try {
    await tx.query('begin')
    await shop.box.send(tx, 'ev', {}, { id })
    await tx.query('commit')
  } finally {
    tx.release()
  }
}

const refusing: Sink['publish'] = (events) =>
  Promise.resolve(events.map(() => ({ error: new Error('refused 4111-3333'), retry: true })))

test('why a sink refuses its events is in the words of its error for who may see them, and for nobody with redact', async () => {
  await attach(refusing)
  await waitUntil(async () => (await overview()).sinks[0]?.error !== undefined)
  const redacting = open({ shop: shop.box }, { redact: (one) => one })
  const errorFor = async (of: Dashboard, who: 'reader' | 'looker' | 'all') =>
    ((await ask(of, 'overview', { box: 'shop' }, { who })).answer as Overview).sinks[0]!.error
  expect(await errorFor(shop.ops, 'looker')).toEqual({ name: 'Error', message: 'refused 4111-3333' })
  expect(await errorFor(shop.ops, 'reader')).toEqual({ name: 'Error' })
  expect(await errorFor(redacting, 'all')).toEqual({ name: 'Error' })
  await redacting.close()
})

test('a sink whose destination is down says since when, and does not once it works again', async () => {
  let isDown = true
  const began = Date.now()
  await attach((events) =>
    isDown ? Promise.reject(new Error('connect ECONNREFUSED')) : Promise.resolve(events.map(() => undefined)),
  )
  const sinks = async () => ((await ask(shop.ops, 'outbox', { box: 'shop' })).answer as Outbox).sinks
  await waitUntil(async () => (await sinks())[0]?.failing === true)
  const since = Date.parse((await sinks())[0]!.failingSince!)
  expect(since).toBeGreaterThanOrEqual(began)
  const failingSince = new Date(since).toISOString()
  // The event has waited for so long that the sink is behind too: that is one thing.
  await shop.box.sql(`update ob.delivery set due_at = ob.now() - interval '1 hour'`)
  await waitUntil(async () => (await overview()).sinks[0]!.lagMs > HOUR_MS - 60_000)
  const { sinks: read, findings } = await overview()
  expect(read[0]!.failingSince).toBe(failingSince)
  expect(findings).toMatchObject([{ code: 'unhealthy', sink: 'bus', count: 1, since: failingSince }])
  isDown = false
  await waitUntil(async () => (await sinks())[0]?.failing === undefined)
  expect((await sinks())[0]).not.toHaveProperty('failingSince')
})

test('the error of a sink stays while its event is tried again', async () => {
  let tries = 0
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const refuse = async (events: readonly unknown[]) => {
    if (++tries > 1) await held
    return events.map(() => ({ error: new Error('refused'), retry: true }))
  }
  await attach(refuse, 0)
  try {
    await waitUntil(() => tries > 1)
    const { sinks } = (await ask(shop.ops, 'outbox', { box: 'shop' })).answer as Outbox
    expect(sinks[0]!.error).toEqual({ name: 'Error', message: 'refused' })
  } finally {
    release()
  }
})

test('a sink is behind by how long its events have been due, whenever they were sent', async () => {
  await attach(() => Promise.reject(new Error('connect ECONNREFUSED')))
  await shop.box.sql(`update ob.outbox set created_at = ob.now() - interval '7 days'`)
  const lagMs = async () => (await overview()).sinks[0]!.lagMs
  expect(await lagMs()).toBeLessThan(HOUR_MS)
  await shop.box.sql(`update ob.delivery set due_at = ob.now() - interval '2 hours'`)
  await waitUntil(async () => (await lagMs()) >= 2 * HOUR_MS)
  // It has fallen due, and no relay has said so yet.
  await shop.box.stop()
  await shop.box.sql(`update ob.delivery set waiting = true, due_at = ob.now() - interval '5 hours'`)
  await waitUntil(async () => (await lagMs()) >= 5 * HOUR_MS)
})

test('a process says how many sources it has, of which none says nothing of the brokers', async () => {
  expect((await overview()).health).toMatchObject({ sources: true, attached: 0 })
  shop.box.from({ name: 'bus', start: () => Promise.resolve(), stop: () => Promise.resolve() })
  await waitUntil(async () => (await overview()).health.attached === 1)
})

test('a message says after how many attempts it is given up, unless its policy decides case by case', async () => {
  const fail = () => Promise.reject(new Error('no'))
  shop.box.consumer('ten', { t: fail }, { retry: { attempts: 10, baseMs: HOUR_MS } })
  shop.box.consumer('own', { t: fail }, { retry: () => HOUR_MS })
  await shop.box.receive([message('m', 't')])
  await shop.box.drain()
  const { fates } = (await ask(shop.ops, 'message', { box: 'shop', id: 'm' })).answer as MessageAnswer
  expect(fates.map(({ consumer, attempts, mostAttempts }) => [consumer, attempts, mostAttempts]).sort()).toEqual([
    ['own', 1, undefined],
    ['ten', 1, 10],
  ])
})

test('dead events of a sink need somebody, and the last of them says what the sink failed with', async () => {
  await attach((events) =>
    Promise.resolve(events.map(({ id }) => ({ error: new Error(`refused ${id}`), retry: false }))),
  )
  await waitUntil(async () => (await overview()).sinks[0]?.dead === 1)
  await send('ev-2')
  await waitUntil(async () => (await overview()).sinks[0]?.dead === 2)
  const { sinks, findings } = await overview()
  expect(sinks[0]).toMatchObject({ name: 'bus', deadError: { message: 'refused ev-2' } })
  expect(sinks[0]).not.toHaveProperty('error')
  const since = expect.any(String)
  expect(findings).toEqual([{ code: 'sink-dead', severity: 'warning', sink: 'bus', count: 2, since }])
  const [died] = await shop.box.sql(`select min(due_at) at from ob.delivery where parked = 'dead'`)
  // A Date has whole milliseconds.
  expect(Math.abs(Date.parse(findings[0]!.since!) - (died!['at'] as Date).getTime())).toBeLessThanOrEqual(1)
  const reader = (await ask(shop.ops, 'outbox', { box: 'shop' }, { who: 'reader' })).answer as Outbox
  expect(reader.sinks[0]!.deadError).toEqual({ name: 'Error' })
})

test('an event says after how many attempts its sink gives it up', async () => {
  await attach(refusing)
  const event = async () =>
    ((await ask(shop.ops, 'message', { box: 'shop', id: 'ev-1' })).answer as MessageAnswer).fates[0]
  await waitUntil(async () => (await event())!.attempts > 0)
  expect(await event()).toMatchObject({ outbox: true, mostAttempts: 7 })
})
