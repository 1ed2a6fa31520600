/** The connection that listens is opened again whenever it is not known to be alive. */
import pg from 'pg'
import { fromPg } from 'oncebox/pg'
import { expect, onTestFinished, test } from 'vitest'
import { useServer } from '../inbox/fixture.js'
import { startProxy, type PostgresProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('listener')

async function behindProxy(config: pg.PoolConfig = {}) {
  const proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 2, ...config })
  pool.on('error', () => undefined)
  onTestFinished(async () => {
    await pool.end()
    await proxy.close()
  })
  return { proxy, driver: fromPg(pool) }
}

function listens({ log }: PostgresProxy): number {
  return log.filter(({ event, text }) => event === 'answer' && text === 'LISTEN').length
}

test('a LISTEN that gets no answer keeps nobody waiting', async () => {
  const { proxy, driver } = await behindProxy()
  let woken = 0
  const held = proxy.intercept({ at: 'before', statement: /^LISTEN/ })
  const unlisten = await driver.listen!('a channel', () => void woken++)
  onTestFinished(unlisten)
  await held
  await waitUntil(() => woken > 0, { timeoutMs: 30_000, what: 'it to listen on another connection' })
  expect(listens(proxy)).toBe(1)
})

test('a look after it that a limit of the pool ends is not the last one', async () => {
  const { proxy, driver } = await behindProxy({ query_timeout: 1_000 })
  const held = proxy.intercept({ at: 'during', statement: /^select 1$/ })
  const unlisten = await driver.listen!('a channel', () => undefined)
  onTestFinished(unlisten)
  await held
  await waitUntil(() => listens(proxy) === 2, { timeoutMs: 30_000, what: 'it to listen on another connection' })
})
