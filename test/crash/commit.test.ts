/** COMMITs whose answer never comes: cut before they reach the server, on the way, and after it has answered. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { startProxy, type Moment, type PostgresProxy } from '../support/proxy.js'
import { deliverFrom, inversions, misses, openArena, runsOf, type Arena, type ConsumerSpec } from './arena.js'

let arena: Arena
let proxy: PostgresProxy
beforeAll(async () => {
  arena = await openArena('commit')
  // What a slow synchronous standby or a slow constraint does to a COMMIT.
  await arena.pool.query(`
    create function slow_commit() returns trigger language plpgsql as 'begin perform pg_sleep(1.5); return null; end';
    create constraint trigger slow_commit after insert on effect deferrable initially deferred for each row
      when (new.key = 'slow' and new.seq = 0) execute function slow_commit()`)
})
beforeEach(async () => {
  proxy = await startProxy(arena.url)
})
afterEach(async () => {
  await arena.clear()
  await proxy.close()
})
afterAll(() => arena?.close())

/** How messages are delivered, and how many share the transaction whose COMMIT is cut. */
interface Shape {
  door: 'receive' | 'handle'
  messages: number
  consumer: Omit<ConsumerSpec, 'name'>
  /** Each message has a key of its own. */
  apart?: boolean
}
const group = { messages: 10, ms: 60_000 }
const SHAPES: Record<string, Shape> = {
  'a stored message': { door: 'receive', messages: 1, consumer: { options: { group } } },
  'a group of stored messages': { door: 'receive', messages: 5, consumer: { options: { group } } },
  'a group of stored messages of one key': {
    door: 'receive',
    messages: 5,
    consumer: { options: { group, order: 'key' } },
  },
  'a group of stored messages side by side': {
    door: 'receive',
    messages: 5,
    consumer: { options: { group: { ...group, together: true } } },
    apart: true,
  },
  'a batch of stored messages': { door: 'receive', messages: 5, consumer: { batched: true, options: { group } } },
  'a message handled on arrival': { door: 'handle', messages: 1, consumer: { options: { group, mode: 'inline' } } },
  'a group handled on arrival': { door: 'handle', messages: 5, consumer: { options: { group, mode: 'inline' } } },
  'a message handled directly': { door: 'handle', messages: 1, consumer: { options: { group, mode: 'direct' } } },
  'a batch handled on arrival': {
    door: 'handle',
    messages: 5,
    consumer: { batched: true, options: { group, mode: 'inline' } },
  },
}

let runs = 0

/** Runs a shape while COMMITs are cut, and sees to it that everything is delivered until it is acknowledged. */
async function runCut({ door, messages, consumer, apart }: Shape, cuts: Moment[], key = 'key') {
  const name = `c${++runs}`
  const own = { ...consumer, name }
  await arena.register([own])
  const ids = Array.from({ length: messages }, (_, seq) => `${name}-${seq}`)
  const batch = ids.map((id, seq): Incoming => ({
    id,
    type: name,
    key: apart && seq > 0 ? `${key}-${seq}` : key,
    data: { seq },
  }))
  if (door === 'receive') await arena.box.receive(batch)
  const cut = cuts.map((moment) => proxy.cutAtCommit(moment))
  const worker = await arena.worker({ url: proxy.url, consumers: [own], report: true, start: door === 'receive' })
  if (door === 'handle') {
    for (let acked = false; !acked;) {
      const [answer] = await deliverFrom(worker, 'handle', [batch])
      acked = !('rejected' in answer!) && answer!.every(({ ack }) => ack)
    }
  }
  await Promise.all(cut)
  await arena.drained({ consumer: name })
  return { ids, effects: await arena.effects(name), runs: runsOf(worker) }
}

describe.each(Object.entries(SHAPES))('%s', (_, shape) => {
  test.each<[Moment, number]>([
    ['before', 2],
    ['during', 1],
    ['after', 1],
  ])('whose COMMIT is cut %s it has one effect each', async (moment, times) => {
    const { ids, effects, runs } = await runCut(shape, [moment])
    expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
    expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
    expect(await arena.failures()).toEqual([])
    expect([...runs]).toEqual(ids.map((id) => [id, times]))
  })

  test('whose COMMIT is cut and then takes long is not taken for rolled back', async () => {
    const { ids, effects, runs } = await runCut(shape, ['during'], 'slow')
    expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
    expect([...runs]).toEqual(ids.map((id) => [id, 1]))
  })

  test('whose COMMITs are cut again and again has one effect each, in order', async () => {
    const { ids, effects } = await runCut(shape, ['before', 'before', 'after'])
    expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
    expect(inversions(effects)).toEqual([])
    expect(await arena.failures()).toEqual([])
  })
})
