/** A pooler that resets its connections after each transaction: no statement stays prepared. */
import pg from 'pg'
import postgres from 'postgres'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { expect, test } from 'vitest'
import { note, recorder } from '../inbox/fixture.js'
import { environment, type PgBouncerEnvironment } from '../support/environments.js'
import { waitUntil } from '../support/wait.js'

const DRIVERS = {
  pg: ({ connection }: PgBouncerEnvironment) => {
    const pool = new pg.Pool({ ...connection, max: 4 })
    pool.on('error', () => {})
    return { db: fromPg(pool), end: () => pool.end() }
  },
  'postgres.js': ({ connection }: PgBouncerEnvironment) => {
    const sql = postgres({ ...connection, max: 4, onnotice: () => {} } as postgres.Options<Record<string, never>>)
    return {
      db: fromPostgres(sql) as unknown as ReturnType<typeof fromPg<pg.PoolClient>>,
      end: () => sql.end({ timeout: 1 }),
    }
  },
}

test.each(Object.entries(DRIVERS))('a box on %s migrates, starts and handles behind it', async (_, make) => {
  const settings = { default_pool_size: 4, server_reset_query: 'DISCARD ALL', server_reset_query_always: 1 }
  await using env = await environment('pgbouncer', { settings })
  const { db, end } = make(env)
  const box = createBox({ db, logger: recorder() })
  const attempts: number[] = []
  box.consumer('a', { note: ({ attempt }) => void attempts.push(attempt) }, { group: { messages: 1 } })
  // This asks in transactions too, which the first lost names may cost.
  const isHandled = async (id: string) => (await box.admin.message({ id }).catch(() => []))[0]?.state === 'handled'
  try {
    await box.migrate()
    await box.start()
    // One after the other, so that each meets a connection that had the statements prepared once.
    for (const id of ['1', '2', '3', '4', '5', '6', '7', '8']) {
      await box.receive(note(id))
      await waitUntil(() => isHandled(id), { what: `message ${id} to be handled` })
    }
    // Nobody is to blame for a transaction that a pooler has spoilt.
    expect(new Set(attempts)).toEqual(new Set([1]))
  } finally {
    await box.stop({ timeoutMs: 5_000 })
    await end()
  }
})
