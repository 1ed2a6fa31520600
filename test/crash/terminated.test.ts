/** Connections that die at any moment, the one that listens among them: whatever was under way, the process lives on. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { startPostgres, type PostgresServer } from '../support/postgres.js'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'

const ROUNDS = 30
const CHILD = new URL('./children/survivor.mjs', import.meta.url)
const TIGHT = { default_transaction_isolation: 'serializable', statement_timeout: '2s', lock_timeout: '20ms' }

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

const SESSIONS: [string, Record<string, string>][] = [
  ['settings that suit us', {}],
  ['settings that our statements have to change', TIGHT],
]

describe.each(['pg', 'postgres.js'])('%s', (client) => {
  test.each(SESSIONS)(
    'sessions that begin with %s may end at any moment',
    { timeout: 240_000 },
    async (_, settings) => {
      const { pool, url, close } = await database(settings)
      try {
        const child = spawnChild(CHILD, { env: { CLIENT: client, DATABASE: url } })
        await child.next('started', { timeoutMs: 60_000 })
        for (let round = 0; round < ROUNDS; round++) {
          await worksAgain(pool, child)
          // All of them, or the busy ones alone: they die in the midst of something.
          const which = round % 3 === 0 ? 'true' : "state <> 'idle'"
          await pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name = 'survivor' and ${which}`)
        }
        for (const ends of [() => server.restart(), () => server.kill('SIGKILL').then(() => server.restart())]) {
          await worksAgain(pool, child)
          await ends()
        }
        await worksAgain(pool, child)

        child.send('stop')
        const { ids } = (await child.next('delivered', { timeoutMs: 60_000 })) as unknown as { ids: string[] }
        await waitUntil(async () => (await handled(pool)).size >= ids.length, {
          timeoutMs: 60_000,
          what: 'all effects',
        })
        expect(await handled(pool)).toEqual(new Set(ids))
        expect(uncaught(child)).toEqual([])
        await child.kill()
      } finally {
        await close()
      }
    },
  )
})

async function database(settings: Record<string, string>) {
  const admin = new pg.Client(server.url)
  admin.on('error', () => {})
  await admin.connect()
  const name = `terminated_${++databases}`
  await admin.query(`create database ${name}`)
  for (const [setting, value] of Object.entries(settings))
    await admin.query(`alter database ${name} set ${setting} = ${pg.escapeLiteral(value)}`)
  await admin.end()
  const url = new URL(server.url)
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href, max: 2 })
  pool.on('error', () => {})
  await pool.query('create table effect (n bigserial primary key, id text)')
  await createBox({ db: fromPg(pool) }).migrate()
  return { pool, url: url.href, close: () => pool.end() }
}
let databases = 0

/** Waits for effects that are newer than this call. */
async function worksAgain(pool: pg.Pool, child: Child): Promise<void> {
  const newest = () =>
    pool.query<{ n: number }>('select coalesce(max(n), 0)::int n from effect').then(
      ({ rows }) => rows[0]!.n,
      () => undefined,
    )
  const before = await waitUntil(newest, { what: 'the server to answer', timeoutMs: 60_000 })
  await waitUntil(async () => uncaught(child).length > 0 || ((await newest()) ?? 0) > before, {
    what: 'work to go on',
    timeoutMs: 60_000,
  })
  expect(uncaught(child)).toEqual([])
}

function uncaught({ events }: Child): unknown[] {
  return events.filter(({ event }) => event === 'uncaught')
}

async function handled(pool: pg.Pool): Promise<Set<string>> {
  const { rows } = await pool.query<{ id: string }>('select id from effect')
  expect(rows.length).toBe(new Set(rows.map(({ id }) => id)).size)
  return new Set(rows.map(({ id }) => id))
}
