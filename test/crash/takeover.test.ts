/** How long the work of a dead worker waits. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openArena, type Arena } from './arena.js'

const LEASE_MS = 2_000

let arena: Arena
beforeAll(async () => {
  arena = await openArena('takeover')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

test.each(['none', 'key'])(
  'the work of a dead worker runs again soon after its lease, in order %s, also where others are busy',
  async (order) => {
    const name = `taken-${order}`
    const consumer = { name, options: { order, leaseMs: LEASE_MS, group: { messages: 1 } } }
    await arena.register([consumer])
    const hold = (id: string) => ({
      id: `${name}-${id}`,
      type: name,
      key: id,
      data: { seq: 0, late: true, hold: true },
    })
    const alive = await arena.worker({ consumers: [consumer] })
    await arena.box.receive(hold('busy'))
    await alive.next('holding')
    // The one that keeps watch is busy for the rest of the test; the others have nothing to do.
    const dying = await arena.worker({ consumers: [consumer] })
    await alive.kill('SIGSTOP')
    await arena.box.receive(hold('left'))
    await dying.next('holding')
    await alive.kill('SIGCONT')
    await dying.kill('SIGKILL')
    const diedAt = Date.now()
    await alive.next('holding', { timeoutMs: LEASE_MS + 5_000 })
    expect(Date.now() - diedAt).toBeLessThan(LEASE_MS + 5_000)

    for (const id of ['busy', 'left']) alive.send(`go:${name}-${id}`)
    await arena.drained({ consumer: name })
    expect((await arena.effects(name)).every(({ pid, attempt }) => pid === alive.pid && attempt === 1)).toBe(true)
  },
)
