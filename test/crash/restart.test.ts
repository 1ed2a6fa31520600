/** The database goes away and comes back while workers drain. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { startPostgres, type PostgresServer } from '../support/postgres.js'
import { waitUntil, type Child } from '../support/processes.js'
import { inversions, misses, openArena, type Arena, type ConsumerSpec } from './arena.js'

const COUNT = 2_000
const BATCH = 50
const KEYS = 40
/** The promise: work goes on so long after the server accepts connections. */
const RESUMES_MS = 2_000

let server: PostgresServer
let arena: Arena
beforeAll(async () => {
  server = await startPostgres()
  arena = await openArena('restart', server.url)
})
afterEach(() => arena.clear())
afterAll(async () => {
  await arena?.close()
  await server?.stop()
})

const FAULTS: [string, () => Promise<void>][] = [
  ['its server is killed', () => server.kill('SIGKILL').then(() => server.restart())],
  ['its server is restarted', () => server.restart()],
]

const options = { leaseMs: 1_000, group: { messages: 20, ms: 500 } }
const CONSUMERS: [string, ConsumerSpec][] = [
  ['without order', { name: 'loose', options }],
  ['in order per key', { name: 'keyed', options: { ...options, order: 'key' } }],
]

/** Delivers as a source would: what was not acknowledged is delivered again. */
async function deliver(messages: Incoming[]): Promise<void> {
  for (let at = 0; at < messages.length; at += BATCH) {
    const batch = messages.slice(at, at + BATCH)
    await waitUntil(
      () =>
        arena.box.receive(batch).then(
          (outcomes) => outcomes.every(({ ack }) => ack),
          () => false,
        ),
      {
        timeoutMs: 60_000,
        what: 'a batch to be acknowledged',
      },
    )
  }
}

describe.each(CONSUMERS)('%s', (_, consumer) => {
  test.each(FAULTS)(
    'when %s, work resumes, no attempt is burnt, nothing is lost or doubled',
    { timeout: 300_000 },
    async (_, fault) => {
      const type = `${consumer.name}-${FAULTS.findIndex(([, one]) => one === fault)}`
      const own = { ...consumer, name: type }
      await arena.register([own])
      const ids = Array.from({ length: COUNT }, (_, seq) => `${type}-${seq}`)
      const messages = ids.map((id, seq): Incoming => ({
        id,
        type,
        key: `key-${seq % KEYS}`,
        data: { seq, sleepMs: 1 },
      }))
      const workers: Child[] = await Promise.all([1, 2].map(() => arena.worker({ consumers: [own] })))
      const ends = workers.map((worker) => worker.exited)

      const delivered = deliver(messages)
      for (const half of [0.3, 0.6]) {
        await waitUntil(async () => (await arena.effects(type)).length > COUNT * half, {
          timeoutMs: 60_000,
          what: 'some effects',
        })
        await fault()
        const accepted = await now()
        await waitUntil(async () => ((await arena.effects(type)).at(-1)?.at ?? 0) > accepted, {
          what: 'work to resume',
        })
        const resumed = (await arena.effects(type)).find(({ at }) => at > accepted)!
        expect(resumed.at - accepted).toBeLessThan(RESUMES_MS)
      }
      await delivered
      await arena.drained({ consumer: type })

      const effects = await arena.effects(type)
      expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
      if (consumer.name === 'keyed') expect(inversions(effects)).toEqual([])
      expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
      expect(await arena.failures()).toEqual([])
      expect(await Promise.race([...ends, Promise.resolve('all alive')])).toBe('all alive')
    },
  )
})

test('a server that crashes again and again costs nobody an attempt', { timeout: 300_000 }, async () => {
  const consumer = { name: 'crashing', options: { retry: { attempts: 1 }, group: { messages: 1 }, concurrency: 2 } }
  await arena.register([consumer])
  const ids = Array.from({ length: 4 }, (_, seq) => `crashing-${seq}`)
  await arena.box.receive(ids.map((id, seq): Incoming => ({ id, type: 'crashing', data: { seq, hold: seq < 2 } })))
  const worker = await arena.worker({ consumers: [consumer] })
  // More often than a message may lose its connection before it is held responsible.
  for (let time = 0; time < 5; time++) {
    const two = [await worker.next('holding'), await worker.next('holding')]
    await server.kill('SIGKILL')
    await server.restart()
    for (const { id } of two) worker.send(`go:${id as string}`)
  }
  const last = [await worker.next('holding'), await worker.next('holding')]
  for (const { id } of last) worker.send(`go:${id as string}`)
  await arena.drained({ consumer: 'crashing' })
  const effects = await arena.effects('crashing')
  expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
  expect(effects.every(({ attempt }) => attempt === 1)).toBe(true)
  expect(await arena.failures()).toEqual([])
})

async function now(): Promise<number> {
  const ask = () => arena.pool.query<{ ms: number }>('select (extract(epoch from clock_timestamp()) * 1000)::float8 ms')
  const answer = await waitUntil(() => ask().catch(() => undefined), { what: 'the server to answer' })
  return answer.rows[0]!.ms
}
