/** Rolling deploys: an old version and a new one run side by side, and the new one has more consumers or more types. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { waitUntil, type Child } from '../support/processes.js'
import { deliverFrom, misses, openArena, type Arena, type ConsumerSpec } from './arena.js'

const COUNT = 60

let arena: Arena
beforeEach(async () => {
  arena = await openArena('deploy')
})
afterEach(() => arena.close())

const PLACED: ConsumerSpec = { name: 'orders', types: ['order.placed'] }
const PLACED_AND_CANCELLED: ConsumerSpec = { name: 'orders', types: ['order.placed', 'order.cancelled'] }
const AUDIT: ConsumerSpec = { name: 'audit', types: ['order.placed', 'order.cancelled'] }

/** Every second message is of the new type. */
function messagesOf(prefix: string): Incoming[] {
  return Array.from({ length: COUNT }, (_, seq) => {
    const type = seq % 2 ? 'order.cancelled' : 'order.placed'
    return { id: `${prefix}-${seq}`, type, key: `key-${seq % 7}`, data: { seq, cancelled: seq % 2 } }
  })
}

/** What is neither handled with an effect nor waiting: marked handled without a handler. */
async function handledWithoutEffect(): Promise<string[]> {
  const { rows } = await arena.pool.query<{ id: string }>(
    `select m.consumer || ' ' || m.id id from oncebox.message m
     where not exists (select 1 from oncebox.work w where w.consumer = m.consumer and w.id = m.id)
       and not exists (select 1 from effect e where e.consumer = m.consumer and e.id = m.id)`,
  )
  return rows.map(({ id }) => id)
}

async function quarantined(): Promise<string[]> {
  const { rows } = await arena.pool.query<{ id: string }>('select id from oncebox.quarantine order by id')
  return rows.map(({ id }) => id)
}

/** The old version runs beside the new one for a while, then it goes. */
async function finishDeploy(old: Child): Promise<void> {
  await waitUntil(async () => {
    const work = await arena.work()
    return work.length === 0 || work.some(({ attempts }) => attempts > 0)
  })
  await old.kill('SIGTERM')
  await arena.drained()
}

describe.each(['receive', 'handle'] as const)('delivered by %s to the old version', (door) => {
  const orders = (spec: ConsumerSpec): ConsumerSpec => ({
    ...spec,
    options: { mode: door === 'handle' ? 'inline' : 'stored', retryBy: 'box' },
  })

  test('messages reach a consumer that only the new version has', async () => {
    const old = await arena.worker({ consumers: [orders(PLACED)] })
    const next = await arena.worker({ consumers: [orders(PLACED), AUDIT] })
    const messages = messagesOf('m')
    const answers = await deliverFrom(old, door, [messages])
    expect(answers.flat().every((outcome) => 'ack' in outcome && outcome.ack)).toBe(true)
    await arena.drained()

    expect(
      misses(
        await arena.effects('audit'),
        messages.map(({ id }) => id!),
      ),
    ).toEqual({ doubled: [], lost: [] })
    expect((await arena.effects('audit')).every(({ pid }) => pid === next.pid)).toBe(true)
    const placed = messages.filter(({ type }) => type === 'order.placed').map(({ id }) => id!)
    expect(misses(await arena.effects('orders'), placed)).toEqual({ doubled: [], lost: [] })
    expect(await handledWithoutEffect()).toEqual([])
    expect(await quarantined()).toEqual([])
  })

  test('messages of a type that only the new version of a consumer takes are handled there', async () => {
    const old = await arena.worker({ consumers: [orders(PLACED)] })
    const next = await arena.worker({ consumers: [orders(PLACED_AND_CANCELLED)] })
    const messages = messagesOf('m')
    const answers = await deliverFrom(old, door, [messages])
    expect(answers.flat().every((outcome) => 'ack' in outcome && outcome.ack)).toBe(true)
    await finishDeploy(old)

    const effects = await arena.effects('orders')
    expect(
      misses(
        effects,
        messages.map(({ id }) => id!),
      ),
    ).toEqual({ doubled: [], lost: [] })
    const cancelled = effects.filter(({ seq }) => seq! % 2)
    expect(cancelled.every(({ pid }) => pid === next.pid)).toBe(true)
    expect(await handledWithoutEffect()).toEqual([])
    expect(await quarantined()).toEqual([])
    expect(await arena.work()).toEqual([])
  })

  test('messages that came before anybody wanted them are handled once somebody does', async () => {
    const old = await arena.worker({ consumers: [orders(PLACED)] })
    const messages = messagesOf('m').filter(({ type }) => type === 'order.cancelled')
    await deliverFrom(old, door, [messages])
    const ids = messages.map(({ id }) => id!)
    expect((await quarantined()).sort()).toEqual([...ids].sort())

    await arena.worker({ consumers: [orders(PLACED_AND_CANCELLED)] })
    await waitUntil(async () => (await arena.effects('orders')).length > 0, { what: 'the first to be handled' })
    await finishDeploy(old)
    expect(misses(await arena.effects('orders'), ids)).toEqual({ doubled: [], lost: [] })
    expect(await quarantined()).toEqual([])
  })
})

test('after a rollback, messages that the old version cannot handle wait for the new one to come back', async () => {
  const next = await arena.worker({ consumers: [PLACED_AND_CANCELLED] })
  await next.kill('SIGTERM')
  const old = await arena.worker({ consumers: [PLACED] })
  const messages = messagesOf('m').slice(0, 10)
  await deliverFrom(old, 'receive', [messages])
  const cancelled = messages.filter(({ type }) => type === 'order.cancelled').map(({ id }) => id!)
  await waitUntil(async () => (await arena.effects()).length === messages.length - cancelled.length)
  await waitUntil(async () => (await arena.work()).some(({ attempts }) => attempts > 0), { what: 'an attempt in vain' })
  expect((await arena.work()).map(({ id }) => id).sort()).toEqual([...cancelled].sort())
  expect(await handledWithoutEffect()).toEqual([])

  await old.kill('SIGTERM')
  await arena.worker({ consumers: [PLACED_AND_CANCELLED] })
  await arena.drained()
  expect(
    misses(
      await arena.effects(),
      messages.map(({ id }) => id!),
    ),
  ).toEqual({ doubled: [], lost: [] })
})
