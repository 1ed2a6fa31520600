/** What anybody in the database may do without a right on the schema: notify, and take locks by their number. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createHash } from 'node:crypto'
import { bindDatabase } from '../../src/postgres/database.js'
import { migrate } from '../../src/postgres/migrate.js'
import { createWaker } from '../../src/worker/wake.js'
import { useServer } from '../inbox/fixture.js'
import { scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('strangers')
const LOOK_MS = 2

test('a flood of notifications makes a box look no more often than every few milliseconds, and once after the last', async () => {
  const db = bindDatabase(fromPg(server.pool), scratchSchemaName())
  const waker = createWaker(db)
  let looks = 0
  let last = 0
  waker.subscribe(() => {
    looks++
    last = performance.now()
  })
  await waker.listen((error) => expect.unreachable(String(error)))
  await waitUntil(() => looks > 0)
  const started = performance.now()
  const before = looks
  for (let n = 0; n < 20; n++) {
    await server.pool.query(`select count(pg_notify($1, g::text)) from generate_series(1, 500) g`, [db.channel])
  }
  const sent = performance.now()
  await server.pool.query('select pg_notify($1, $2)', [db.channel, 'last'])
  await waitUntil(() => last >= sent)
  expect(looks - before).toBeGreaterThan(0)
  expect(looks - before).toBeLessThanOrEqual(2 + (performance.now() - started) / LOOK_MS)
  await waker.close()
})

test('a migration that a stranger locks out ends with who it is', async () => {
  const schema = scratchSchemaName()
  const number = createHash('sha256').update(`oncebox migrate ${schema}`).digest().readBigInt64BE(0)
  const stranger = new pg.Client({ connectionString: server.url, application_name: 'a stranger' })
  await stranger.connect()
  const { rows } = await stranger.query<{ pid: number; user: string }>(
    `select pg_advisory_lock($1), pg_backend_pid() pid, current_user "user"`,
    [String(number)],
  )
  const { pid, user } = rows[0]!
  const db = bindDatabase(fromPg(server.pool), schema)
  const error = await migrate(db, 20, 100).catch((caught: unknown) => caught)
  expect(error).toMatchObject({ code: 'SCHEMA_LOCKED' })
  for (const known of [`process ${pid} `, `user ${user}`, 'a stranger'])
    expect((error as Error).message).toContain(known)
  await stranger.end()
  await expect(migrate(db)).resolves.toMatchObject({ from: 0 })
})

test('sequences are set by start() whoever holds advisory locks', async () => {
  const schema = scratchSchemaName()
  const box = createBox({ db: fromPg(server.pool), schema })
  await box.migrate()
  const stranger = new pg.Client(server.url)
  await stranger.connect()
  await stranger.query(`select pg_advisory_lock(hashtextextended('oncebox sequences ' || $1, 0))`, [schema])
  await server.pool.query(
    `insert into ${schema}.audit (n, action, detail) overriding system value values (50, 'x', '{}')`,
  )
  await box.start()
  await box.stop()
  const { rows } = await server.pool.query(`select last_value::text from ${schema}.audit_n_seq`)
  expect(rows).toEqual([{ last_value: '50' }])
  await stranger.end()
})
