/** A server of which one process crashes ends all of its sessions: that is nothing that their messages have done. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { startPostgres } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { gate, note, recorder } from './fixture.js'

/** A message is blamed after three losses in a row. */
const CRASHES = 4

test.for(['stored', 'inline'] as const)(
  'a message that is running in several crashes of its server is not blamed for them: %s',
  async (mode) => {
    await using server = await startPostgres()
    const pool = new pg.Pool({ connectionString: server.url, max: 4 })
    pool.on('error', () => {})
    const box = createBox({ db: fromPg(pool), logger: recorder() })
    const attempts: number[] = []
    let running = gate()
    let goOn = gate()
    const handle = async ({ attempt }: { attempt: number }, { tx }: { tx: pg.PoolClient }): Promise<void> => {
      attempts.push(attempt)
      running.open()
      // It waits for something else, and sees only then that its connection is gone.
      await goOn.opened
      await tx.query('select 1')
    }
    box.consumer('a', { note: handle }, { mode, concurrency: 1, retry: { attempts: 1 }, leaseMs: 600_000 })
    try {
      await box.migrate()
      if (mode === 'stored') await box.start()
      let delivered = mode === 'stored' ? box.receive(note('1')) : box.handle(note('1'))
      for (let crash = 1; crash <= CRASHES; crash++) {
        // A message that was blamed does not run again.
        await (mode === 'inline' ? Promise.race([running.opened, delivered]) : running.opened)
        expect(attempts).toHaveLength(crash)
        await crashOther(server.url)
        const [before] = [goOn, (running = gate()), (goOn = gate())]
        before.open()
        await delivered.catch(() => undefined)
        if (mode === 'inline') delivered = box.handle(note('1', { redelivered: true }))
      }
      await running.opened
      goOn.open()
      await delivered
      const left = async () => (await pool.query('select 1 from oncebox.work')).rows.length
      await waitUntil(async () => (await left()) === 0, { what: 'it to be handled' })
      expect((await pool.query('select error from oncebox.attempt')).rows).toEqual([])
      expect(attempts).toHaveLength(CRASHES + 1)
    } finally {
      goOn.open()
      await box.stop({ timeoutMs: 5_000 })
      await pool.end()
    }
  },
)

/** Kills a session of its own, and waits until the server is there again. */
async function crashOther(url: string): Promise<void> {
  const other = new pg.Client({ connectionString: url })
  const gone = new Promise((resolve) => other.once('end', resolve))
  other.on('error', () => {})
  await other.connect()
  const { rows } = await other.query<{ pid: number }>('select pg_backend_pid() pid')
  process.kill(rows[0]!.pid, 'SIGKILL')
  await gone
  await waitUntil(() => answers(url), { what: 'the server to be there again' })
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}
