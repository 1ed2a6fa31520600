/** A pooler that resets its connections after each transaction: no statement stays prepared. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { gate, note, recorder } from '../inbox/fixture.js'
import { environment } from '../support/environments.js'

test('a box migrates, starts and handles behind it', async () => {
  const settings = { default_pool_size: 4, server_reset_query: 'DISCARD ALL', server_reset_query_always: 1 }
  await using env = await environment('pgbouncer', { settings })
  const pool = new pg.Pool({ ...env.connection, max: 4 })
  pool.on('error', () => {})
  const box = createBox({ db: fromPg(pool), logger: recorder() })
  const handled = gate<number>()
  box.consumer('a', { note: ({ attempt }) => handled.open(attempt) })
  try {
    await box.migrate()
    await box.start()
    await box.receive(note('1'))
    expect(await handled.opened).toBe(1)
  } finally {
    await box.stop({ timeoutMs: 5_000 })
    await pool.end()
  }
})
