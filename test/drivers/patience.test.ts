/** What takes long is waited for: the limits of short statements, and those of a role, are not meant for it. */
import { createHash } from 'node:crypto'
import pg from 'pg'
import postgres from 'postgres'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { idempotent } from 'oncebox/idempotency'
import { expect, onTestFinished, test } from 'vitest'
import { bindDatabase, type Database } from '../../src/postgres/database.js'
import { migrate, migrationSql, SCHEMA_VERSION } from '../../src/postgres/migrate.js'
import { EXTEND } from '../../src/postgres/sql/claim.js'
import { statement } from '../../src/postgres/statement.js'
import { useServer } from '../inbox/fixture.js'
import { scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('patience')
/** With it a short statement may take two seconds. */
const LEASE_MS = 1_000
const LONG = '5 seconds'

function lockOf(schema: string): string {
  return createHash('sha256').update(`oncebox migrate ${schema}`).digest().readBigInt64BE(0).toString()
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** Resolves when a session has waited for a lock for so long, or when what it does has ended. */
async function waitsForLock(name: string, work: Promise<unknown>, long = LONG): Promise<void> {
  let ended = false
  const end = (): void => void (ended = true)
  work.then(end, end)
  const waits = `select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'
    and clock_timestamp() - query_start > $2::interval`
  await waitUntil(async () => ended || (await server.pool.query(waits, [name, long])).rowCount! > 0, {
    timeoutMs: 60_000,
    what: 'a session to wait for a lock',
  })
}

function poolOf(name: string, config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url, max: 3, application_name: name, ...config })
  pool.on('error', () => undefined)
  onTestFinished(() => pool.end())
  return pool
}

/** Not one of the short statements. */
const COUNT = statement<null, { n: string }>('select count(*)::text n from ob.work where $1::text is not null')

/** As a worker does that has short leases. */
async function claimShortly(db: Database): Promise<void> {
  await db.run(EXTEND, { leaseMs: LEASE_MS } as never).catch(() => undefined)
}

test('a migration waits for that of another process', async () => {
  const schema = scratchSchemaName()
  const other = await connect()
  await other.query('select pg_advisory_lock($1)', [lockOf(schema)])
  const db = bindDatabase(fromPg(poolOf('later')), schema)
  await claimShortly(db)
  const migrated = migrate(db)
  await waitsForLock('later', migrated)
  await other.query('select pg_advisory_unlock_all()')
  expect(await migrated).toEqual({ from: 0, to: SCHEMA_VERSION })
})

test('a migration is not ended by what the role may take for a statement', async () => {
  const schema = scratchSchemaName()
  const other = await connect()
  await other.query('select pg_advisory_lock($1)', [lockOf(schema)])
  const options = '-c statement_timeout=200'
  const migrated = migrate(bindDatabase(fromPg(poolOf('hurried', { options })), schema))
  await waitsForLock('hurried', migrated, '1 second')
  await other.query('select pg_advisory_unlock_all()')
  expect(await migrated).toEqual({ from: 0, to: SCHEMA_VERSION })
})

test('neither is what is printed of it', async () => {
  const schema = scratchSchemaName()
  const other = await connect()
  await other.query('select pg_advisory_lock($1)', [lockOf(schema)])
  const pool = poolOf('by hand', { options: '-c statement_timeout=200' })
  const run = pool.query(migrationSql({ schema }))
  await waitsForLock('by hand', run, '1 second')
  await other.query('select pg_advisory_unlock_all()')
  await run
  expect(await migrate(bindDatabase(fromPg(pool), schema))).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION })
})

test('who holds the lock of a migration is told where the pool has one connection', async () => {
  const schema = scratchSchemaName()
  const other = await connect()
  await other.query('select pg_advisory_lock($1)', [lockOf(schema)])
  const sql = postgres(server.url, { max: 1, onnotice: () => undefined })
  onTestFinished(() => sql.end({ timeout: 1 }))
  const refused = migrate(bindDatabase(fromPostgres(sql), schema), 0, 100)
  await expect(refused).rejects.toMatchObject({ code: 'SCHEMA_LOCKED' })
})

test('what an administrator asks may take longer than a claim', async () => {
  await using box = await server.open()
  await box.migrate()
  const db = bindDatabase(fromPg(poolOf('admin')), box.schema)
  await claimShortly(db)
  const other = await connect()
  await other.query(`begin; lock table ${box.schema}.work in access exclusive mode`)
  const counted = db.transaction((tx) => db.run(COUNT, null, tx))
  await waitsForLock('admin', counted)
  await other.query('commit')
  expect(await counted).toEqual([{ n: '0' }])
})

test('a handler of a request without a key may take longer than a claim', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined }, { leaseMs: LEASE_MS })
  await box.drain()
  const endpoint = idempotent(box, { name: 'slow', scope: 'shared', required: false }, async (_request, { tx }) => {
    await tx.query(`set local application_name = 'handler'`)
    await tx.query('select pg_advisory_xact_lock(12)')
    return new Response('done')
  })
  const other = await connect()
  await other.query('select pg_advisory_lock(12)')
  const answered = endpoint.fetch(new Request('http://localhost/', { method: 'POST' }))
  await waitsForLock('handler', answered)
  await other.query('select pg_advisory_unlock_all()')
  expect(await (await answered).text()).toBe('done')
})
