/** A worker that freezes beyond its lease, and wakes up when another has done its work. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { waitUntil } from '../support/processes.js'
import { misses, openArena, type Arena } from './arena.js'

let arena: Arena
beforeAll(async () => {
  arena = await openArena('frozen')
})
afterEach(() => arena.endWorkers())
afterAll(() => arena?.close())

/** How the handler waits to be frozen: asleep, or with its event loop blocked, so that no timer runs before it goes on. */
const WAITS: [string, Record<string, unknown>][] = [
  ['while its handler waits', { hold: true, late: true }],
  ['while its handler computes', { blockMs: 1_500 }],
]

describe.each(['none', 'key'])('order %s', (order) => {
  describe.each([
    ['alone', 1],
    ['in a group', 5],
  ])('%s', (how, messages) => {
    test.each(WAITS)('a worker frozen %s commits nothing; the other worker’s effect is the only one', async (_, waits) => {
      const name = `${order}-${how}-${Object.keys(waits)[0]}`
      const consumer = { name, options: { order, leaseMs: 1_000, group: { messages, ms: 60_000 } } }
      await arena.register([consumer])
      const ids = Array.from({ length: messages }, (_, seq) => `${name}-${seq}`)
      const list = ids.map((id, seq): Incoming => {
        const last = seq === messages - 1
        return { id, type: name, key: 'key', data: { seq, ...(last && waits) } }
      })
      await arena.box.receive(list)

      const frozen = await arena.worker({ name: 'frozen', consumers: [consumer] })
      const { id } = await frozen.next('holding')
      expect(id).toBe(ids.at(-1))
      await frozen.kill('SIGSTOP')
      const other = await arena.worker({ name: 'other', consumers: [consumer], holds: false })
      await arena.drained({ consumer: name })
      expect((await arena.effects(name)).map(({ pid }) => pid)).toEqual(ids.map(() => other.pid))

      await frozen.kill('SIGCONT')
      frozen.send(`go:${ids.at(-1)}`)
      await waitUntil(async () => (await arena.busySessions('frozen')) === 0, { what: 'the frozen worker to give up' })
      const effects = await arena.effects(name)
      expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
      expect(effects.map(({ pid }) => pid)).toEqual(ids.map(() => other.pid))

      // It works on as if nothing had happened.
      await other.kill('SIGKILL')
      await arena.box.receive({ id: `${name}-after`, type: name, key: 'other', data: { seq: 0 } })
      await arena.drained({ consumer: name })
      expect((await arena.effects(name)).at(-1)).toMatchObject({ id: `${name}-after`, pid: frozen.pid, attempt: 1 })
    })
  })
})
