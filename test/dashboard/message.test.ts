/** What the page of a message asks for, where a message lacks what most have: its source, its id, or anything but its cause. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Reject, type Incoming } from 'oncebox'
import type { Dashboard } from 'oncebox/dashboard'
import type { Conflict, Conversation, Failures, MessageAnswer } from 'oncebox/dashboard/client'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { ask, open } from './fixture.js'

const server = useServer('dashboard_message')
let box: Bench
let ops: Dashboard
const at = { box: 'shop' }

beforeAll(async () => {
  box = await server.open({ source: 'shop' })
  box.consumer('pay', {
    charge: (_, ctx) => ctx.effect('transfer', () => Promise.reject(new Error('cut off')), { onUnknown: 'park' }),
  })
  box.consumer('ship', {
    lost: () => Promise.reject(new Reject('no such address')),
  })
  ops = open({ shop: box })
})
afterAll(() => box[Symbol.asyncDispose]())

describe('a message without a source', () => {
  beforeAll(async () => {
    await box.receive({ id: 'plain', type: 'charge', source: '', data: { n: 1 } } as Incoming)
    await waitUntil(async () => {
      await box.drain()
      return (await box.fates('plain')).some(({ state }) => state === 'quarantined')
    })
  })

  test('is shown, with its body and its conversation, by the empty source that lists name', async () => {
    const asked = { ...at, id: 'plain', source: '' }
    const { status, answer } = await ask(ops, 'message', { ...asked, consumer: 'pay' })
    expect([status, answer]).toMatchObject([200, { fates: [{ id: 'plain', source: '' }] }])
    expect(await ask(ops, 'body', { ...asked, consumer: 'pay' })).toMatchObject({ status: 200, text: '{"n":1}' })
    expect(await ask(ops, 'conversation', asked)).toMatchObject({ status: 200, answer: { caused: [] } })
  })

  test('is not taken for another producer’s of the same id: who does not say which is told to', async () => {
    const asked = { ...at, id: 'twin', consumer: 'ship' }
    await box.receive({ id: 'twin', type: 'lost', source: '', data: { of: 'nobody' } } as Incoming)
    await box.receive({ id: 'twin', type: 'lost', source: 'shop', data: { of: 'shop' } } as Incoming)
    expect(await ask(ops, 'body', { ...asked, source: '' })).toMatchObject({ status: 200, text: '{"of":"nobody"}' })
    expect(await ask(ops, 'body', { ...asked, source: 'shop' })).toMatchObject({ status: 200, text: '{"of":"shop"}' })
    expect(await ask(ops, 'body', asked)).toMatchObject({ status: 400, answer: { error: { code: 'INPUT_INVALID' } } })
  })

  test('has its effect answered, by the empty source too', async () => {
    const asked = { ...at, consumer: 'pay', id: 'plain', source: '', effect: 'transfer', happened: true }
    expect(await ask(ops, 'answer', asked)).toMatchObject({ status: 200, answer: { done: true } })
    await box.drain()
    expect(await box.fates('plain')).toMatchObject([{ state: 'handled' }])
  })
})

describe('a conversation', () => {
  test('has the events that are still in the outbox, and they have theirs', async () => {
    await using shop = await server.open({ source: 'shop' })
    const sink = { name: 'bus', publish: () => Promise.reject(new Error('away')), close: () => Promise.resolve() }
    shop.to(sink, { types: ['placed'] })
    shop.consumer('order', {
      order: async (_, ctx) => {
        await ctx.send('placed', {}, { id: 'placed-1' })
        await ctx.send('unwanted', {}, { id: 'unwanted-1' })
      },
    })
    await shop.receive({ id: 'o-0', type: 'order', source: 'web', data: {} })
    await shop.drain().catch(() => undefined)
    const own = open({ shop })
    const { answer } = await ask(own, 'conversation', { ...at, id: 'o-0', source: 'web' })
    const event = { box: 'shop', source: 'shop', cause: 'o-0', state: 'pending', outbox: true }
    expect((answer as Conversation).caused).toEqual([
      expect.objectContaining({ ...event, type: 'placed', consumer: 'bus', id: 'placed-1' }),
      expect.objectContaining({ ...event, type: 'unwanted', consumer: '', id: 'unwanted-1' }),
    ])
    const of = await ask(own, 'conversation', { ...at, id: 'placed-1', source: 'shop' })
    expect(of).toMatchObject({ status: 200, answer: { cause: { id: 'o-0', consumer: 'order' }, caused: [] } })
  })
})

describe('a body in quarantine without an id', () => {
  let n: string

  beforeAll(async () => {
    await box.receive({ type: 'charge', source: 'shop', data: { card: 7 } } as never)
    n = String((await box.sql(`select n from ob.quarantine where reason = 'no-id'`))[0]!['n'])
  })

  test('is found by its number, by both pages, and its body is read', async () => {
    const { status, answer } = await ask(ops, 'message', { ...at, id: '', source: 'shop', n })
    expect([status, answer]).toMatchObject([200, { fates: [{ id: '', reason: 'no-id', n }] }])
    expect((answer as MessageAnswer).fates).toHaveLength(1)
    const { answer: conflict } = await ask(ops, 'conflict', { ...at, n })
    expect(conflict as Conflict).toMatchObject({ second: { id: '', reason: 'no-id', n } })
    expect(conflict as Conflict).not.toHaveProperty('first')
    expect(await ask(ops, 'body', { ...at, id: '', n })).toMatchObject({ status: 200, text: '{"card":7}' })
  })

  test('is not there under a number that is none, or of another id', async () => {
    for (const given of [
      { id: '', n: '9999999' },
      { id: 'another', n },
    ]) {
      expect((await ask(ops, 'message', { ...at, ...given })).status).toBe(404)
      expect((await ask(ops, 'body', { ...at, ...given })).status).toBe(404)
    }
    expect((await ask(ops, 'conflict', { ...at, n: '9999999' })).status).toBe(404)
    for (const name of ['message', 'body'] as const) {
      expect((await ask(ops, name, { ...at, id: '', n: 'first' })).status).toBe(400)
    }
  })
})

test('a dead message names the group of failures that it is in', async () => {
  await box.receive({ id: 'l', type: 'lost', source: 'shop', data: {} } as Incoming)
  await box.drain()
  const { answer } = await ask(ops, 'message', { ...at, id: 'l', consumer: 'ship' })
  const { answer: failures } = await ask(ops, 'failures', { ...at, consumer: 'ship' })
  const [group] = (failures as Failures).groups
  expect((answer as MessageAnswer).fates).toMatchObject([{ state: 'dead', fingerprint: group!.fingerprint }])
  const { answer: plain } = await ask(ops, 'message', { ...at, id: 'plain' })
  expect((plain as MessageAnswer).fates[0]).not.toHaveProperty('fingerprint')
})

describe('how long a message is kept', () => {
  const DAY_MS = 86_400_000
  const keptOf = async (id: string): Promise<(number | undefined)[]> => {
    const { answer } = await ask(ops, 'message', { ...at, id })
    return (answer as MessageAnswer).fates.map(({ keptUntil, receivedAt }) =>
      keptUntil === undefined ? undefined : Date.parse(keptUntil) - Date.parse(receivedAt),
    )
  }
  const MARGIN_MS = 300_000

  test('is said of what is handled or discarded, as retention goes by it, and of nothing that waits for a person', async () => {
    box.consumer('keep', { kept: () => undefined, refused: () => Promise.reject(new Reject('no')) }, { retainMs: 10 * DAY_MS })
    await box.sql(`insert into ob.consumer (name, retain_ms) values ('keep', ${10 * DAY_MS})`)
    await box.receive([
      { id: 'kept', type: 'kept', source: 'shop', data: {} },
      { id: 'dropped', type: 'refused', source: 'shop', data: {} },
      { id: 'dead', type: 'refused', source: 'shop', data: {} },
    ])
    await box.drain()
    await box.admin.discard({ id: 'dropped' }, { reason: 'a test' })
    await box.receive({ id: 'waits', type: 'kept', source: 'shop', data: {} })
    for (const id of ['kept', 'dropped']) expect(await keptOf(id)).toEqual([10 * DAY_MS + MARGIN_MS])
    for (const id of ['dead', 'waits']) expect(await keptOf(id)).toEqual([undefined])
    await box.sql(`update ob.message set received_at = ob.now() - interval '10 days 4 minutes' where id in ('kept', 'dropped')`)
    await box.admin.prune()
    expect((await ask(ops, 'message', { ...at, id: 'kept' })).status).toBe(200)
    await box.sql(`update ob.message set received_at = ob.now() - interval '10 days 6 minutes' where id in ('kept', 'dropped')`)
    await box.admin.prune()
    expect((await ask(ops, 'message', { ...at, id: 'kept' })).status).toBe(404)
  })

  test('is said of what is in quarantine, if its source lets it go, or somebody has discarded it', async () => {
    const other = (id: string): Incoming => ({ id, type: 'nobody', source: 'shop', data: {} })
    await box.receive([other('stays'), other('goes')])
    expect(await keptOf('stays')).toEqual([undefined])
    await box.sql(`update ob.quarantine set expires_at = received_at + interval '2 days' where id = 'goes'`)
    expect(await keptOf('goes')).toEqual([2 * DAY_MS])
  })
}) // prettier-ignore
