/** A process that is frozen while the answer to its intent is on its way, and wakes when another has its message. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase } from '../support/postgres.js'
import { spawnChild, waitUntil } from '../support/processes.js'

const CHILD = new URL('./frozen-child.mjs', import.meta.url)
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const WAITING = `select count(*)::int n from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`

test.for<'retry' | 'park'>(['retry', 'park'])(
  'a process that wakes between its intent and its call does not call, with onUnknown %s',
  { timeout: 300_000 },
  async (onUnknown) => {
    const database = await scratchDatabase(`effect_frozen_${onUnknown}`)
    const pool = new pg.Pool({ connectionString: database.url })
    const box = createBox({ db: fromPg(pool), logger: SILENT })
    const calls: string[] = []
    box.consumer('pay', {
      async order({ id }, { effect }) {
        await effect('charge', () => void calls.push(id), { onUnknown })
      },
    })
    await box.migrate()
    await box.receive({ id: '1', type: 'order', data: null })
    const blocker = await pool.connect()
    await blocker.query('begin')
    await blocker.query(`insert into oncebox.effect (consumer, source, id, name, state)
      select consumer, source, id, 'charge', 'intent' from oncebox.work`)
    const child = spawnChild(CHILD, { env: { DATABASE: database.url, ON_UNKNOWN: onUnknown } })
    const fate = async (id: string) => (await box.admin.message({ id }))[0]!.state
    try {
      await waitUntil(async () => (await pool.query<{ n: number }>(WAITING)).rows[0]!.n === 1, { timeoutMs: 90_000 })
      await child.kill('SIGSTOP')
      await blocker.query('rollback')
      const settled = onUnknown === 'retry' ? 'handled' : 'quarantined'
      await waitUntil(
        async () => {
          await box.drain()
          return (await fate('1')) === settled
        },
        { timeoutMs: 90_000, everyMs: 100 },
      )
      await child.kill('SIGCONT')
      // It handles one message at a time: with the second one it is done with the first.
      await box.receive({ id: '2', type: 'order', data: null })
      await waitUntil(async () => (await fate('1')) === 'handled' && (await fate('2')) === 'handled', {
        timeoutMs: 90_000,
      })
      const charged = child.events.filter(({ event }) => event === 'charged').map(({ id }) => id as string)
      expect([...calls, ...charged].sort()).toEqual(['1', '2'])
      child.send('stop')
      await child.exited
    } finally {
      blocker.release()
      await child.kill()
      await box.stop()
      await pool.end()
      await database.close()
    }
  },
)
