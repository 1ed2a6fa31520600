/** Messages that take much memory as objects: a worker reads no more of them at once than it can bear. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { misses, openArena, stillAlive, supervise, type Arena, type ConsumerSpec } from './arena.js'

let arena: Arena
beforeAll(async () => {
  arena = await openArena('memory')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

/** Of a megabyte of text these are some twenty of heap. They are made by the server: to receive them takes long. */
const GROW = `update oncebox.message
  set body = left(body, -1) || ',"pad":[' || repeat('{},', $2::int * 349525) || '0]}' where id = any ($1)`

async function store(consumer: ConsumerSpec, sizes: readonly number[]): Promise<string[]> {
  await arena.register([consumer])
  const messages = sizes.map((_, seq) => ({
    id: `${consumer.name}-${seq}`,
    type: consumer.name,
    key: `key-${seq}`,
    data: { seq },
  }))
  await arena.box.receive(messages)
  const ids = messages.map(({ id }) => id)
  for (const megabytes of new Set(sizes)) {
    const large = ids.filter((_, at) => sizes[at] === megabytes)
    if (megabytes > 0) await arena.pool.query(GROW, [large, megabytes])
  }
  return ids
}

test.each<ConsumerSpec>([
  { name: 'loose' },
  { name: 'lanes', options: { order: 'key' } },
  { name: 'batched', batched: true },
])('a backlog of bodies that are large as objects does not fill the heap: $name', async (consumer) => {
  const ids = await store(consumer, new Array<number>(50).fill(1))
  const worker = await arena.worker({ consumers: [consumer], heapMb: 448 })
  await Promise.race([arena.drained({ timeoutMs: 120_000 }), worker.exited])
  await stillAlive(worker)
  expect(misses(await arena.effects(), ids)).toEqual({ doubled: [], lost: [] })
  expect(await arena.failures()).toEqual([])
})

test.each<ConsumerSpec>([{ name: 'alone' }, { name: 'in_order', options: { order: 'key' } }])(
  'a body that kills whoever reads it is counted, and given up: $name',
  async ({ name, options }) => {
    const consumer = { name, options: { ...options, retry: { attempts: 2, baseMs: 1, maxMs: 10 }, leaseMs: 2_000 } }
    const ids = await store(consumer, [0, 0, 0, 24, 0])
    const deaths = await supervise(arena, { consumers: [consumer], heapMb: 96 })
    expect(deaths).toBeGreaterThan(0)
    expect(await arena.work()).toMatchObject([{ id: ids[3], parked: 'dead', code: 'WORKER_DIED' }])
    const others = ids.filter((_, seq) => seq !== 3)
    expect(misses(await arena.effects(), others)).toEqual({ doubled: [], lost: [] })
  },
)
