/** A worker that freezes beyond its lease, and wakes up when another has taken over its work. */
import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { waitUntil } from '../support/processes.js'
import { misses, openArena, type Arena } from './arena.js'

let arena: Arena
beforeAll(async () => {
  arena = await openArena('frozen')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

interface Wait {
  data: Record<string, unknown>
  /** What the frozen worker passes over, so that it is found in the right place. */
  ignores: string[]
}

/** Where the worker is frozen. Where its event loop is blocked, the handler goes on before any timer can tell of the loss. */
const WAITS: [string, Wait][] = [
  ['while its handler waits', { data: { hold: true, late: true }, ignores: [] }],
  ['while its handler computes', { data: { hold: true }, ignores: ['hold'] }],
  // It is stored in a trip of its own, during which the loss is noticed.
  ['while its handler computes a result', { data: { hold: true, result: 42 }, ignores: ['hold'] }],
]

/** The frozen worker's runs out soon; whoever takes over keeps its own, however busy the machine is. */
const LEASES = { frozen: 1_000, other: 60_000 }

/** A computation that lasts until it is told otherwise: `blockUntil` is for the data of a message. */
function computation(): { readonly blockUntil: string; end(): Promise<void> } {
  const blockUntil = join(tmpdir(), `frozen-${randomUUID()}`)
  onTestFinished(() => rm(blockUntil, { force: true }))
  return { blockUntil, end: () => writeFile(blockUntil, '') }
}

describe.each(['none', 'key'])('order %s', (order) => {
  describe.each<[string, number]>([
    ['alone', 1],
    ['in a group', 5],
  ])('%s', (how, messages) => {
    test.each(WAITS)(
      'a worker frozen %s commits nothing; the other worker’s effects are the only ones',
      async (where, wait) => {
        const name = `${order} ${how} ${where}`
        const consumer = { name, options: { order, leaseMs: LEASES.frozen, group: { messages, ms: 60_000 } } }
        const patient = { name, options: { ...consumer.options, leaseMs: LEASES.other } }
        await arena.register([consumer])
        const { blockUntil, end } = computation()
        const data = { ...wait.data, ...(wait.ignores.includes('hold') && { blockUntil }) }
        const ids = Array.from({ length: messages }, (_, seq) => `${name} ${seq}`)
        const last = ids.at(-1)!
        // Before there is anything to compute: a handler that blocks the worker's event loop keeps it from saying that it has started.
        const frozen = await arena.worker({ name: 'frozen', consumers: [consumer], ignores: wait.ignores })
        await arena.box.receive(
          ids.map((id, seq): Incoming => ({
            id,
            type: name,
            key: 'key',
            data: { seq, ...(id === last && data) },
          })),
        )

        expect((await frozen.next('holding')).id).toBe(last)
        await frozen.kill('SIGSTOP')
        const other = await arena.worker({ name: 'other', consumers: [patient], ignores: ['blockUntil'] })
        await other.next('holding')

        // The messages are the other worker's now, and not settled yet.
        const before = await arena.effects(name)
        await end()
        await frozen.kill('SIGCONT')
        frozen.send(`go:${last}`)
        await waitUntil(async () => (await arena.busySessions('frozen')) === 0, {
          what: 'the frozen worker to give up',
        })
        expect(await arena.effects(name)).toEqual(before)

        other.send(`go:${last}`)
        await arena.drained({ consumer: name })
        const effects = await arena.effects(name)
        expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
        expect(effects.every(({ pid, attempt }) => pid === other.pid && attempt === 1)).toBe(true)

        // It works on as if nothing had happened.
        await other.kill('SIGKILL')
        await arena.box.receive({ id: `${name} after`, type: name, key: 'other', data: { seq: 0 } })
        await arena.drained({ consumer: name })
        expect((await arena.effects(name)).at(-1)).toMatchObject({ id: `${name} after`, pid: frozen.pid })
      },
    )
  })

  test('a worker that wakes up when its work is done commits nothing', async () => {
    const name = `${order} done`
    const consumer = { name, options: { order, leaseMs: LEASES.frozen } }
    const patient = { name, options: { order, leaseMs: LEASES.other } }
    await arena.register([consumer])
    const { blockUntil, end } = computation()
    const frozen = await arena.worker({ name: 'frozen', consumers: [consumer] })
    await arena.box.receive({ id: name, type: name, key: 'key', data: { seq: 0, blockUntil } })
    await frozen.next('holding')
    await frozen.kill('SIGSTOP')
    const other = await arena.worker({ name: 'other', consumers: [patient], ignores: ['blockUntil'] })
    await arena.drained({ consumer: name })
    await end()
    await frozen.kill('SIGCONT')
    await waitUntil(async () => (await arena.busySessions('frozen')) === 0, { what: 'the frozen worker to give up' })
    expect((await arena.effects(name)).map(({ pid }) => pid)).toEqual([other.pid])
  })
})
