/** A worker that is told to end by SIGTERM, in the middle of its work. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { waitUntil } from '../support/processes.js'
import { inversions, misses, openArena, type Arena } from './arena.js'

const COUNT = 400

let arena: Arena
beforeAll(async () => {
  arena = await openArena('sigterm')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

describe.each(['none', 'key'])('order %s', (order) => {
  const group = { messages: 20, ms: 500 }
  // So long a lease that whatever is not released shows.
  const options = { order, group, leaseMs: 60_000, concurrency: 2 }

  test('it settles what is in flight, releases the rest, burns no attempt, and exits with 0', async () => {
    const name = `stop-${order}`
    const consumer = { name, options }
    await arena.register([consumer])
    const ids = Array.from({ length: COUNT }, (_, seq) => `${name}-${seq}`)
    await arena.box.receive(
      ids.map((id, seq): Incoming => ({ id, type: name, key: `key-${seq % 20}`, data: { seq, sleepMs: 5 } })),
    )
    const worker = await arena.worker({ consumers: [consumer] })
    await waitUntil(
      async () => (await arena.effects(name)).length > 0 && (await arena.work(name)).some(({ claimed }) => claimed),
      { what: 'its first effects, and more under way' },
    )
    await worker.kill('SIGTERM')
    expect(await worker.exited).toEqual({ code: 0, signal: null })

    const left = await arena.work(name)
    expect(left.length).toBeGreaterThan(0)
    expect(left.filter(({ claimed, attempts }) => claimed || attempts > 0)).toEqual([])
    expect(left).toHaveLength(COUNT - (await arena.effects(name)).length)

    await arena.worker({ consumers: [consumer] })
    await arena.drained({ consumer: name, timeoutMs: 90_000 })
    const effects = await arena.effects(name)
    expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
    expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
    if (order === 'key') expect(inversions(effects)).toEqual([])
    expect(await arena.failures()).toEqual([])
  })

  test('a handler that is running finishes, and what waited behind it runs at once elsewhere', async () => {
    const name = `busy-${order}`
    const consumer = { name, options: { ...options, concurrency: 1 } }
    await arena.register([consumer])
    const message = (id: string, data: Record<string, unknown>): Incoming => ({
      id: `${name}-${id}`,
      type: name,
      key: id,
      data,
    })
    await arena.box.receive([message('a', { hold: true }), message('b', {}), message('c', {})])
    const leaving = await arena.worker({ consumers: [consumer] })
    const staying = await arena.worker({ consumers: [consumer] })
    await leaving.next('holding')

    const exited = leaving.kill('SIGTERM')
    await arena.box.receive(message('d', {}))
    await waitUntil(async () => (await arena.effects(name)).length === 1, {
      what: 'the other worker to run the new one',
    })
    leaving.send(`go:${name}-a`)
    await exited
    expect(await leaving.exited).toEqual({ code: 0, signal: null })
    await arena.drained({ consumer: name, timeoutMs: 5_000 })

    const effects = await arena.effects(name)
    expect(
      misses(
        effects,
        ['a', 'b', 'c', 'd'].map((id) => `${name}-${id}`),
      ),
    ).toEqual({ doubled: [], lost: [] })
    expect(effects.find(({ id }) => id === `${name}-a`)!.pid).toBe(leaving.pid)
    expect(effects.filter(({ pid }) => pid === staying.pid)).toHaveLength(3)
    expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
  })
})
