/** Connections of postgres.js that give no answer, or are slow to give one: what is given up, and what is left alone. */
import postgres from 'postgres'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { fromPostgres } from 'oncebox/postgres'
import { type PostgresProxy, startProxy } from '../support/proxy.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

let database: ScratchDatabase
beforeAll(async () => {
  database = await scratchDatabase('postgres_silence')
})
afterAll(() => database.close())

async function open(max: number): Promise<{ proxy: PostgresProxy; sql: postgres.Sql }> {
  const proxy = await startProxy(database.url)
  const sql = postgres(proxy.url, { max, onnotice: () => {} })
  onTestFinished(async () => {
    await sql.end({ timeout: 0 })
    await proxy.close()
  })
  return { proxy, sql }
}

const SELECT = 'select $1::text as x'
const SILENT = { code: 'CONNECTION_SILENT' }

test('a transaction that was given up before its connection was open never runs', async () => {
  const { proxy, sql } = await open(2)
  const driver = fromPostgres(sql)
  proxy.pause()
  let calls = 0
  const givenUp = driver.transaction(() => Promise.resolve((calls += 1)), { limitMs: 200 })
  await expect(givenUp).rejects.toMatchObject(SILENT)
  proxy.resume()
  // postgres.js goes on connecting, and sends the BEGIN that nobody waits for any more.
  const sent = (text: RegExp) => proxy.log.some((entry) => entry.event === 'statement' && text.test(entry.text ?? ''))
  await waitUntil(() => sent(/^begin/), { what: 'the late BEGIN' })
  await waitUntil(() => sent(/^rollback/) || calls > 0, { what: 'its end' })
  expect(calls).toBe(0)
  // As many at once as there is room for, each on a connection of its own.
  const inTransaction = () => driver.transaction((tx) => driver.query(SELECT, ['next'], tx))
  expect(await Promise.all([inTransaction(), driver.query(SELECT, ['alone'])])).toHaveLength(2)
})

test('a transaction is hung up once, and never in the place of the one that has its connection next', async () => {
  const { sql } = await open(1)
  const driver = fromPostgres(sql)
  const never = new Promise<never>(() => {})
  const reason = new Error('gone')
  let first: postgres.TransactionSql | undefined
  const hungUp = driver.transaction(async (tx) => {
    await driver.query(SELECT, ['first'], tx)
    first = tx
    await never
  })
  await waitUntil(() => first !== undefined)
  driver.hangUp!(first!, reason)
  await expect(hungUp).rejects.toBe(reason)
  const next = driver.transaction(async (tx) => {
    await driver.query(SELECT, ['second'], tx)
    driver.hangUp!(first!, reason)
    return driver.query(SELECT, ['still there'], tx)
  })
  expect(await next).toEqual([{ x: 'still there' }])
})
