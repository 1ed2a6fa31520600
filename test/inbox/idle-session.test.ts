/** A server that ends sessions which idle in their transaction, as a handler does that waits for something else. */
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer } from './fixture.js'

const server = useServer('idle_session')

test.for(['returns', 'asks again'])('a handler that idles for too long, and then %s, is to blame', async (then) => {
  await using bench = await server.open()
  const pool = new pg.Pool({ connectionString: server.url, options: '-c idle_in_transaction_session_timeout=200' })
  pool.on('error', () => {})
  onTestFinished(() => pool.end())
  const box = createBox({ db: fromPg(pool), schema: bench.schema, logger: recorder() })
  let runs = 0
  box.consumer(
    'a',
    {
      async note(_, { tx }) {
        runs++
        const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() pid')
        await waitUntil(async () => {
          const session = `select 1 from pg_stat_activity where pid = ${rows[0]!.pid}`
          return (await server.pool.query(session)).rowCount === 0
        })
        if (then === 'asks again') await tx.query('select 1')
      },
    },
    { retry: { attempts: 2, baseMs: 0, jitter: 'none' } },
  )
  await box.start()
  onTestFinished(() => box.stop())
  await box.receive(note('1'))
  await waitUntil(async () => (await bench.fate('1')).state === 'dead', { what: 'the message to be dead' })
  const { error, attempts } = await bench.fate('1')
  expect(attempts).toBe(2)
  expect(error).toMatchObject({ code: 'SESSION_ENDED' })
  expect(error!.message).toContain('idle_in_transaction_session_timeout')
  // Three losses in a row for each attempt.
  expect(runs).toBeLessThanOrEqual(6)
})
