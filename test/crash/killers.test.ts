/** Messages that fail, and messages that kill their worker, among a hundred that do neither. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { waitUntil, type Child } from '../support/processes.js'
import { deliverFrom, inversions, misses, openArena, supervise, type Arena, type ConsumerSpec } from './arena.js'

const COUNT = 100
const BAD = 37
const KEYS = 10
const ATTEMPTS = 3

let arena: Arena
beforeAll(async () => {
  arena = await openArena('killers')
})
beforeEach(() => arena.pool.query('truncate effect'))
afterEach(() => arena.clear())
afterAll(() => arena?.close())

/** One group for all of them: nothing but a failure splits it. */
const group = { messages: COUNT, ms: 60_000 }
const retry = { attempts: ATTEMPTS, baseMs: 1, maxMs: 10 }

async function receive(consumer: ConsumerSpec, bad: Record<string, unknown>): Promise<string[]> {
  await arena.register([consumer])
  const messages = Array.from({ length: COUNT }, (_, seq): Incoming => ({
    id: `${consumer.name}-${seq}`,
    type: consumer.name,
    key: `key-${seq % KEYS}`,
    data: { seq, ...(seq === BAD && bad) },
  }))
  const outcomes = await arena.box.receive(messages)
  expect(outcomes.every(({ status }) => status === 'stored')).toBe(true)
  return outcomes.map(({ id }) => id!)
}

test('a bad message in a group of 100 is retried, and the other 99 are handled', async () => {
  const consumer = {
    name: 'bad',
    options: { group, retry: { ...retry, baseMs: 3_600_000, maxMs: 3_600_000, jitter: 'none' } },
  }
  const ids = await receive(consumer, { failTimes: 1 })
  await arena.worker({ consumers: [consumer] })
  await waitUntil(async () => (await arena.work('bad')).length === 1, { what: '99 of 100 to be handled' })
  await waitUntil(async () => (await arena.failures()).length === 1, { what: 'the failure to be recorded' })

  const others = ids.filter((_, seq) => seq !== BAD)
  const effects = await arena.effects()
  expect(misses(effects, others)).toEqual({ doubled: [], lost: [] })
  expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
  expect(await arena.failures()).toEqual([ids[BAD]])
  expect(await arena.work('bad')).toMatchObject([{ id: ids[BAD], attempts: 1, parked: null, claimed: false }])
})

test.each(['none', 'key'])(
  'a message that fails twice in a group of 100 is handled in its third attempt, in order %s',
  async (order) => {
    const consumer = { name: `flaky-${order}`, options: { group, retry, order } }
    const ids = await receive(consumer, { failTimes: 2 })
    await arena.worker({ consumers: [consumer] })
    await arena.drained({ consumer: consumer.name })
    const effects = await arena.effects()
    expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
    expect(effects.filter(({ attempt }) => attempt > 1)).toMatchObject([{ id: ids[BAD], attempt: 3 }])
    if (order === 'key') expect(inversions(effects)).toEqual([])
  },
)

describe.each(['exit', 'kill'])('a message that ends its worker by %s', (die) => {
  const timeout = 120_000

  test('is dead after its attempts, and takes none of the other 99 with it', { timeout }, async () => {
    const consumer = { name: `loose-${die}`, options: { group, retry, leaseMs: 1_000 } }
    const ids = await receive(consumer, { die })
    const deaths = await supervise(arena, { consumers: [consumer] })
    const effects = await arena.effects(consumer.name)
    expect(misses(effects, ids)).toEqual({ doubled: [], lost: [ids[BAD]] })
    expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
    expect(await arena.work(consumer.name)).toMatchObject([
      { id: ids[BAD], parked: 'dead', attempts: ATTEMPTS, code: 'WORKER_DIED' },
    ])
    // Once in the group, where nobody is blamed, and once for each attempt on its own.
    expect(deaths).toBe(ATTEMPTS + 1)
  })

  test.each(['block', 'skip'])('in a key whose dead messages %s, it stops nobody else', { timeout }, async (onDead) => {
    const consumer = { name: `${onDead}-${die}`, options: { group, retry, leaseMs: 1_000, order: 'key', onDead } }
    const ids = await receive(consumer, { die })
    await supervise(arena, { consumers: [consumer] })
    const behind = ids.filter((_, seq) => seq % KEYS === BAD % KEYS && seq > BAD)
    const effects = await arena.effects(consumer.name)
    const lost = onDead === 'block' ? [ids[BAD]!, ...behind] : [ids[BAD]!]
    expect(misses(effects, ids)).toEqual({ doubled: [], lost })
    expect(await arena.work(consumer.name)).toMatchObject(
      lost.map((id) => ({ id, parked: id === ids[BAD] ? 'dead' : null, attempts: id === ids[BAD] ? ATTEMPTS : 0 })),
    )
  })
})

describe('a message that ends its worker on arrival, redelivered with its neighbours', () => {
  test('is dead after its attempts, and takes none of them with it', { timeout: 120_000 }, async () => {
    const name = 'arrives'
    const consumer = { name, options: { group, retry, leaseMs: 1_000, mode: 'inline' } }
    await arena.register([consumer])
    const batch = Array.from({ length: 20 }, (_, seq): Incoming => ({
      id: `${name}-${seq}`,
      type: name,
      data: { seq, ...(seq === 7 && { die: 'kill' }) },
      redelivered: true,
    }))
    let left = batch
    let deaths = 0
    while (left.length > 0) {
      const worker = await arena.worker({ consumers: [consumer], start: false })
      // As a broker that hears nothing of a batch, and of those that are not acknowledged, delivers them again.
      const delivered = deliverFrom(worker, 'handle', [left]).then(([answer]) => {
        if (!Array.isArray(answer)) return 'rejected'
        left = left.filter((_, at) => !answer[at]!.ack)
        return 'answered'
      })
      const died = worker.exited.then(() => 'died')
      delivered.catch(() => undefined)
      if ((await Promise.race([delivered, died])) === 'died') deaths++
      else await arena.endWorkers()
    }
    const [killer] = batch.splice(7, 1)
    const effects = await arena.effects(name)
    expect(
      misses(
        effects,
        batch.map(({ id }) => id!),
      ),
    ).toEqual({ doubled: [], lost: [] })
    expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
    expect(await arena.work(name)).toMatchObject([
      { id: killer!.id, parked: 'dead', attempts: ATTEMPTS, code: 'WORKER_DIED' },
    ])
    // Once with the others, where nobody is blamed, and once for each attempt on its own.
    expect(deaths).toBe(ATTEMPTS + 1)
  })
})

describe('a message that ends its worker among slow ones that run at the same time', () => {
  test('is dead after its attempts; they are handled in their first', { timeout: 300_000 }, async () => {
    const slow = { concurrency: 4, group: { messages: 1 }, retry, leaseMs: 1_000 }
    const consumers = ['slow-one', 'slow-two'].map((name) => ({ name, options: slow }))
    await arena.register(consumers)
    const messages = consumers.flatMap(({ name }, at) =>
      Array.from({ length: 3 }, (_, seq): Incoming => {
        const dies = at === 0 && seq === 0
        // It dies while the others run, each time: they have begun by then, and would not be through.
        return {
          id: `${name}-${seq}`,
          type: name,
          data: { seq, sleepMs: dies ? 200 : 700, ...(dies && { die: 'exit' }) },
        }
      }),
    )
    await arena.box.receive(messages)
    let done = false
    let deaths = 0
    const supervising = (async () => {
      while (!done) {
        const worker: Child = await arena.worker({ consumers }).catch(() => undefined as never)
        if (worker) await worker.exited
        deaths++
      }
    })()
    await arena.drained({ timeoutMs: 100_000 })
    done = true
    await arena.endWorkers()
    await supervising
    const [killer, ...others] = messages.map(({ id }) => id!)
    const effects = await arena.effects()
    expect(misses(effects, others)).toEqual({ doubled: [], lost: [] })
    expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
    expect(await arena.work()).toMatchObject([{ id: killer, parked: 'dead', attempts: ATTEMPTS, code: 'WORKER_DIED' }])
    expect(deaths - 1).toBeLessThanOrEqual(ATTEMPTS + 2)
  })
})
