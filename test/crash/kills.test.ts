/** Four workers under load, one of them killed every second and replaced. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { waitUntil, type Child } from '../support/processes.js'
import { inversions, misses, openArena, type Arena, type ConsumerSpec } from './arena.js'

const MESSAGES = Number(process.env['ONCEBOX_CRASH_MESSAGES'] ?? 10_000)
const WORKERS = 4
const KEYS = 200
const BATCH = 250
/** Deliveries are spread over this long, so that there is work whenever a worker is killed. */
const LOAD_MS = 8_000
const KILL_EVERY_MS = 1_000

let arena: Arena
beforeAll(async () => {
  arena = await openArena('kills')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

const options = { leaseMs: 1_000, group: { messages: 50, ms: 500 } }

describe.each<[string, number, ConsumerSpec & { sleepMs?: number }]>([
  ['without order', MESSAGES, { name: 'loose', options }],
  ['in order per key', MESSAGES, { name: 'keyed', options: { ...options, order: 'key' } }],
  [
    'side by side, in order per key',
    MESSAGES / 4,
    {
      name: 'together',
      sleepMs: 200,
      options: { ...options, group: { ...options.group, together: true }, order: 'key' },
    },
  ],
  [
    'batched, in order per key',
    MESSAGES / 4,
    { name: 'batched', batched: true, sleepMs: 2, options: { ...options, order: 'key' } },
  ],
])('%s', (_, count, consumer) => {
  const ids = Array.from({ length: count }, (_, seq) => `${consumer.name}-${seq}`)
  const message = (seq: number): Incoming => ({
    id: ids[seq]!,
    type: consumer.name,
    key: `key-${seq % KEYS}`,
    // A batch, or a group side by side, is over before a kill could hit it, unless its messages take a moment.
    data: { seq, ...(consumer.sleepMs && { sleepMs: consumer.sleepMs }) },
  })

  /** In order of `seq`, each batch with copies of what came before or is in it. */
  async function deliver(): Promise<void> {
    const started = performance.now()
    for (let at = 0; at < count; at += BATCH) {
      const fresh = Array.from({ length: Math.min(BATCH, count - at) }, (_, i) => message(at + i))
      const copies = Array.from({ length: Math.round(fresh.length * 0.3) }, () =>
        message(Math.floor(Math.random() * (at + fresh.length))),
      )
      await arena.box.receive([...fresh, ...copies])
      const aheadMs = started + (LOAD_MS * at) / count - performance.now()
      if (aheadMs > 0) await new Promise((resolve) => setTimeout(resolve, aheadMs))
    }
  }

  test(
    `${count} messages with 30 % duplicates have one effect each while workers are killed`,
    { timeout: 400_000 },
    async () => {
      await arena.register([consumer])
      const workers: Child[] = await Promise.all(
        Array.from({ length: WORKERS }, () => arena.worker({ consumers: [consumer] })),
      )
      let orphaned = 0
      let loading = true
      const loaded = deliver().finally(() => (loading = false))
      for (let turn = 0; loading; turn++) {
        await new Promise((resolve) => setTimeout(resolve, KILL_EVERY_MS))
        await waitUntil(async () => !loading || (await arena.work(consumer.name)).some(({ claimed }) => claimed))
        await workers[turn % WORKERS]!.kill('SIGKILL')
        orphaned += (await arena.work(consumer.name)).filter(({ claimed }) => claimed).length
        workers[turn % WORKERS] = await arena.worker({ consumers: [consumer] })
      }
      await loaded
      await arena.drained({ consumer: consumer.name, timeoutMs: 120_000 })

      const effects = await arena.effects(consumer.name)
      expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
      if (consumer.name !== 'loose') expect(inversions(effects)).toEqual([])
      expect(await arena.work(consumer.name)).toEqual([])
      // Else no kill hit anything, and the test has shown nothing.
      expect(orphaned).toBeGreaterThan(0)
    },
  )
})
