/** Handlers that hold every connection of their pool for longer than their lease. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { openArena, runsOf, type Arena } from './arena.js'

let arena: Arena
beforeAll(async () => {
  arena = await openArena('pool')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

describe.each(['none', 'key'])('order %s', (order) => {
  test('heartbeats go on, and nobody takes over what they hold or wait with', { timeout: 240_000 }, async () => {
    const name = `held-${order}`
    const consumer = { name, options: { order, leaseMs: 2_000, concurrency: 4, group: { messages: 1 } } }
    await arena.register([consumer])
    const ids = Array.from({ length: 8 }, (_, seq) => `${name}-${seq}`)
    const workers = await Promise.all(
      [1, 2].map(() => arena.worker({ consumers: [consumer], pool: { max: 2 }, report: true })),
    )
    await arena.box.receive(
      ids.map((id, seq): Incoming => ({ id, type: name, key: `key-${seq}`, data: { seq, sleepMs: 4_000 } })),
    )
    await arena.drained({ consumer: name, timeoutMs: 50_000 })
    const effects = await arena.effects(name)
    expect(effects.map(({ id }) => id).sort()).toEqual(ids)
    expect([...runsOf(...workers).values()]).toEqual(ids.map(() => 1))
    expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
  })
})
