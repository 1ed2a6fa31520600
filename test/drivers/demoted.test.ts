/** After a failover a pool may be left with connections to a server that is a standby by now. They are not used again. */
import { createConnection, createServer, type Socket } from 'node:net'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Driver } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { environment, type StandbyEnvironment } from '../support/environments.js'
import { freePort } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

let env: StandbyEnvironment
beforeAll(async () => {
  env = await environment('standby')
  const pool = new pg.Pool({ connectionString: env.url, max: 1 })
  await pool.query('create table note (id text)')
  await pool.end()
  const standby = new pg.Pool({ connectionString: env.standby.url, max: 1 })
  await waitUntil(async () => (await standby.query(`select to_regclass('note') name`)).rows[0]?.['name'] !== null)
  await standby.end()
})
afterAll(() => env?.close())

/** One address before both servers, as a virtual IP is: a connection stays where it began. */
async function address(): Promise<{ url: string; pointAt(server: string): void }> {
  const port = await freePort()
  const url = new URL(env.url)
  url.host = `127.0.0.1:${port}`
  let target = new URL(env.standby.url)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = createConnection(Number(target.port), target.hostname)
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: url.href, pointAt: (next) => (target = new URL(next)) }
}

const DRIVERS = {
  pg(url: string): Driver<unknown> {
    const pool = new pg.Pool({ connectionString: url, max: 2, idleTimeoutMillis: 0 })
    pool.on('error', () => {})
    onTestFinished(() => pool.end())
    return fromPg(pool)
  },
  'postgres.js'(url: string): Driver<unknown> {
    const sql = postgres(url, { max: 2, onnotice: () => {} })
    onTestFinished(() => sql.end({ timeout: 0 }))
    return fromPostgres(sql)
  },
}

const INSERT = 'insert into note select $1::text where $1::text is not null'

/** The ways in which a box writes. */
const WAYS = {
  'a statement': (driver: Driver<unknown>) => driver.query(INSERT, ['a']),
  'a statement behind settings': (driver: Driver<unknown>) =>
    driver.query(INSERT, ['a'], undefined, { settings: `SET LOCAL lock_timeout = '5s'` }),
  'a transaction': (driver: Driver<unknown>) => driver.transaction((tx) => driver.query(INSERT, ['a'], tx)),
}

test.for(
  (['pg', 'postgres.js'] as const).flatMap((name) =>
    Object.keys(WAYS).map((way) => [name, way] as [keyof typeof DRIVERS, keyof typeof WAYS]),
  ),
)('%s: %s that met a server that only reads finds the primary once the address points at it', async ([name, way]) => {
  const { url, pointAt } = await address()
  const driver = DRIVERS[name](url)
  const write = WAYS[way]
  for (let times = 0; times < 2; times++) await expect(write(driver)).rejects.toMatchObject({ code: '25006' })
  pointAt(env.url)
  const failures: unknown[] = []
  await waitUntil(
    () =>
      write(driver).then(
        () => true,
        (error: unknown) => void failures.push((error as { code?: unknown }).code),
      ),
    { timeoutMs: 20_000, what: 'a write on the primary' },
  )
  // One for each connection at most, and a moment in which postgres.js closes them.
  expect(failures.filter((code) => code === '25006').length).toBeLessThanOrEqual(2)
})
