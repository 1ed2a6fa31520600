/** What a worker costs that has nothing to do. A busy machine makes these counts smaller, never larger. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { note, useServer } from './fixture.js'

const server = useServer('idle')
const WINDOW_MS = 1_500
const WINDOWS = 3

/** Three consumers of one process, and the statements that they send from now on in a second. */
async function openIdle(schema: string) {
  const proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 10 })
  const box = createBox({ db: fromPg(pool), schema })
  let runs = 0
  const handlers = { note: () => void runs++ }
  box.consumer('a', handlers)
  box.consumer('b', handlers, { order: 'key' })
  box.consumer('c', { other: () => undefined }, { concurrency: 4 })
  const statements = (): string[] =>
    proxy.log.filter(({ event }) => event === 'statement').map(({ text }) => text ?? '')
  return {
    box,
    runs: () => runs,
    /** Whatever it was about before it was idle, a busy machine may leave it to do in the first of these. */
    async perSecond(): Promise<number> {
      const rates: number[] = []
      for (let window = 0; window < WINDOWS; window++) {
        const before = statements().length
        const began = performance.now()
        await waitUntil(() => performance.now() - began >= WINDOW_MS, { what: 'the window' })
        rates.push(((statements().length - before) / (performance.now() - began)) * 1_000)
      }
      return Math.min(...rates)
    },
    async [Symbol.asyncDispose]() {
      await box.stop()
      await pool.end()
      await proxy.close()
    },
  }
}

test('three consumers on an idle database make at most five statements in a second', async () => {
  await using setup = await server.open()
  await using idle = await openIdle(setup.schema)
  await idle.box.start()
  await idle.box.receive(note('1', { key: 'k' }))
  await waitUntil(() => idle.runs() === 2, { what: 'both consumers' })
  expect(await idle.perSecond()).toBeLessThanOrEqual(5)
  // They are as awake as ever.
  await idle.box.receive(note('2', { key: 'k' }))
  await waitUntil(() => idle.runs() === 4, { what: 'both consumers' })
})

test.each([
  ['a message', 'a', 'work'],
  ['a lane', 'b', 'lane'],
])('%s that is due and locked makes at most 25 statements in a second', async (_, consumer, table) => {
  await using setup = await server.open()
  await using idle = await openIdle(setup.schema)
  const client = await server.pool.connect()
  try {
    // Registers its consumers, and is stopped before there is anything to do.
    await idle.box.start()
    await idle.box.stop()
    await idle.box.receive(note('1', { key: 'k' }))
    await client.query('begin')
    await client.query(`select 1 from ${setup.schema}.${table} where consumer = $1 for update`, [consumer])
    await idle.box.start()
    await waitUntil(() => idle.runs() === 1, { what: 'the other consumer' })
    expect(await idle.perSecond()).toBeLessThanOrEqual(25)
  } finally {
    await client.query('commit')
    client.release()
  }
  await waitUntil(() => idle.runs() === 2, { what: 'the message that was locked' })
})
