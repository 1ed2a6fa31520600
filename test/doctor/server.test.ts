/** Servers, roles and schemas are made ill, and the doctor names it; what it says mends it does. */
import pg from 'pg'
import { createBox, rolesSql } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { PINS } from '../../src/admin/doctor/pins.js'
import { environment } from '../support/environments.js'
import { scratchSchemaName, startPostgres, type PostgresServer } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { codes, finding, openWard, silent, type Ward, type WardBox } from './ward.js'

let ward: Ward
beforeAll(async () => {
  ward = await openWard('doctor_server')
})
afterAll(() => ward.close())

const mend = (fix: string) => ward.pool.query(fix.replace(/;? +--.*$/, ''))

/** A box on the same schema over connections of another kind. */
function again(box: WardBox, config: pg.PoolConfig): Pick<WardBox, 'admin'> & { pool: pg.Pool } {
  const pool = new pg.Pool({ connectionString: ward.database.url, max: 2, ...config })
  pool.on('error', () => {})
  onTestFinished(() => pool.end())
  return Object.assign(createBox({ db: fromPg(pool), schema: box.schema, logger: silent }), { pool })
}

describe('the schema', () => {
  test('one that is not there is the only finding', async () => {
    const box = createBox({ db: fromPg(ward.pool), schema: scratchSchemaName('nothing'), logger: silent })
    expect(await codes(box as never)).toEqual(['schema-missing'])
  })

  test('one of an older version is named, and one of a newer', async () => {
    const box = await ward.admit()
    await ward.sql(box, 'update ob.schema_version set version = version - 1')
    expect(await codes(box)).toEqual(['schema-outdated'])
    await ward.sql(box, 'update ob.schema_version set version = 900')
    expect(await box.admin.doctor()).toMatchObject([{ code: 'schema-newer', severity: 'note' }])
    await ward.sql(box, 'update ob.schema_version set version = 900, compatible_from = 900')
    expect(await box.admin.doctor()).toMatchObject([{ code: 'schema-newer', severity: 'serious' }])
  })

  test.for<[what: string, harm: string, code: string, named: RegExp]>([
    ['a table', 'drop table ob.attempt', 'object-missing', /^table attempt is missing/],
    ['a column', 'alter table ob.quarantine drop column meant', 'object-missing', /^column quarantine\.meant is missing/],
    ['a view', 'drop view ob.lag', 'object-missing', /^view lag is missing/],
    ['a function', 'drop function ob.settle_one', 'object-missing', /^function settle_one is missing/],
    ['a trigger', 'drop trigger quarantine_added on ob.quarantine', 'object-missing', /^trigger quarantine\.quarantine_added is missing/],
    ['a column of another type', 'alter table ob.attempt alter column error type varchar(10)', 'object-changed', /^column attempt\.error is not what .* character varying\(10\)/],
    ['a table without a log', 'alter table ob.attempt set unlogged', 'object-changed', /^table attempt .*: it is unlogged, and was logged/],
    ['another function', `create or replace function ob.margin(retain_ms float8) returns interval language sql immutable as 'select interval ''1 s'''`, 'object-changed', /^function margin is not/],
    ['a trigger that is off', 'alter table ob.quarantine disable trigger quarantine_added', 'object-broken', /^trigger quarantine\.quarantine_added is switched off/],
    ['an index', 'drop index ob.work_due', 'index-missing', /^index work_due is missing/],
    ['a primary key', 'alter table ob.audit drop constraint audit_pkey', 'index-missing', /^index audit_pkey is missing/],
    ['another index', 'drop index ob.work_due; create index work_due on ob.work (consumer)', 'object-changed', /^index work_due is not/],
    ['another primary key', 'alter table ob.attempt drop constraint attempt_pkey, add constraint attempt_pkey primary key (n, consumer, source, id)', 'object-changed', /^index attempt_pkey is not/],
    ['an index that is not valid', `update pg_index set indisvalid = false where indexrelid = 'ob.work_due'::regclass`, 'object-broken', /^index work_due is not valid/],
    ['a trigger of somebody', 'create trigger mine after insert on ob.message for each row execute function ob.count_quarantine()', 'object-extra', /trigger message\.mine/],
    ['a table of somebody', 'create table ob.mine (n int primary key)', 'object-extra', /: table mine$/],
    ['an index of somebody', 'create index mine on ob.message (body)', 'object-extra', /: index mine$/],
    ['a sequence that is behind', `insert into ob.outbox (n, source, id, type, body, envelope) overriding system value values (999, '', '', '', '', '')`, 'sequence-behind', /outbox_n_seq is behind/],
  ])('%s is named', async ([, harm, code, named]) => {
    const box = await ward.admit()
    await ward.sql(box, harm)
    const found = await finding(box, code)
    expect(found.what).toMatch(named)
    // What can be mended in SQL is.
    if (/^(create|drop|reindex|alter|select) /i.test(found.fix)) {
      for (const statement of found.fix.split('; ')) await mend(statement)
      expect(await codes(box)).not.toContain(code)
    }
  }) // prettier-ignore

  test('a primary key is mended as one, and not as an index', async () => {
    const box = await ward.admit()
    await ward.sql(box, 'alter table ob.attempt drop constraint attempt_pkey')
    const { fix } = await finding(box, 'index-missing')
    expect(fix).toMatch(
      /^alter table .*"attempt" add constraint "attempt_pkey" primary key \(consumer, source, id, n\);$/,
    )
    await mend(fix)
    const keys = `select 1 from pg_constraint where conrelid = 'ob.attempt'::regclass and contype = 'p'`
    expect(await ward.sql(box, keys)).toHaveLength(1)
    expect(await codes(box)).toEqual([])
  })

  test('the description of the schema holds on this server, whatever the name of the schema', async () => {
    for (const schema of ['Odd "name" %s', 'ob']) expect(await codes(await ward.admit({ schema }))).toEqual([])
  })
})

describe('rights', () => {
  test('a viewer may ask: what it cannot see or do is a note', async () => {
    const box = await ward.admit()
    await ward.pool.query(rolesSql({ schema: box.schema }))
    const login = `${box.schema}_login`
    await ward.pool.query(`create role ${login} login in role ${box.schema}_viewer`)
    const url = new URL(ward.database.url)
    url.username = login
    const viewer = again(box, { connectionString: url.href })
    const roles = ['owner', 'producer', 'worker', 'janitor', 'viewer', 'reader'].map((role) => `${box.schema}_${role}`)
    onTestFinished(async () => {
      await ward.sql(box, `drop schema ${box.schema} cascade; drop owned by ${[...roles, login].join(', ')}; drop role ${[...roles, login].join(', ')}`)
    }) // prettier-ignore
    const session = await ward.pool.connect()
    const found = await viewer.admin.doctor()
    session.release()
    expect(found.map(({ code, severity }) => [code, severity])).toEqual([
      ['rights-missing', 'note'],
      ['sessions-hidden', 'note'],
    ])
    // A role that may store and lacks something was meant to work.
    await ward.pool.query(`grant ${box.schema}_worker to ${login}; revoke delete on "${box.schema}".work from ${box.schema}_worker`)
    const [serious] = await viewer.admin.doctor()
    expect(serious).toMatchObject({ code: 'rights-missing', severity: 'serious', figures: { missing: 'delete on work' } })
    // The reader has the views alone: what it cannot look at is said, and nothing fails.
    await ward.pool.query(`revoke ${box.schema}_worker, ${box.schema}_viewer from ${login}; grant ${box.schema}_reader to ${login}`)
    await expect(viewer.admin.doctor()).resolves.toContainEqual(expect.objectContaining({ code: 'check-failed', severity: 'note' }))
  }) // prettier-ignore
})

describe('settings of a role', () => {
  test.for<[setting: string, value: string, code: string, severity: string]>([
    ['synchronous_commit', 'off', 'synchronous-commit-off', 'serious'],
    ['idle_in_transaction_session_timeout', '5s', 'timeout-short', 'warning'],
    ['default_transaction_isolation', 'serializable', 'isolation-default', 'note'],
  ])('%s = %s is named', async ([setting, value, code, severity]) => {
    const box = await ward.admit()
    const other = again(box, { options: `-c ${setting}=${value}` })
    const found = await finding(other, code)
    expect(found).toMatchObject({ severity })
    expect(found.fix).toContain(`set ${setting} = `)
  })

  test.for<[where: string, ill: (login: string, database: string) => string, as?: (owner: string) => string]>([
    ['the role', (login) => `alter role ${login} set`],
    ['the role in this database', (login, database) => `alter role ${login} in database ${database} set`],
    [
      'the role that has logged in and become another one',
      (login) => `alter role ${login} set`,
      (owner) => `-c role=${owner}`,
    ],
    ['the database', (_, database) => `alter database ${database} set`],
  ])('of %s: what the doctor says mends them in new sessions', async ([, ill, as]) => {
    const box = await ward.admit()
    const database = `"${ward.database.name}"`
    const login = `${box.schema}_login`
    const settings = {
      synchronous_commit: 'off',
      idle_in_transaction_session_timeout: `'5s'`,
      default_transaction_isolation: 'serializable',
    }
    onTestFinished(async () => {
      await ward.pool.query(
        `alter database ${database} reset all; alter database ${database} set synchronous_commit = on`,
      )
      await ward.pool.query(`drop role ${login}`)
    })
    await ward.pool.query(`create role ${login} login superuser`)
    for (const [name, value] of Object.entries(settings))
      await ward.pool.query(`${ill(login, database)} ${name} = ${value}`)
    const url = new URL(ward.database.url)
    const options = as?.(url.username)
    url.username = login
    const ask = () => again(box, { connectionString: url.href, ...(options && { options }) }).admin.doctor()
    const found = await ask()
    expect(found.map(({ code }) => code)).toEqual(['synchronous-commit-off', 'timeout-short', 'isolation-default'])
    for (const { fix } of found) await ward.pool.query(fix)
    expect(await ask()).toEqual([])
  })
})

test('a clock that is off is named, and by how much', async () => {
  const box = await ward.admit()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000, shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
  const found = await finding(box, 'clock-skew')
  expect(found).toMatchObject({ severity: 'warning' })
  expect(found.what).toMatch(/ahead of the database/)
  expect(found.figures['skewMs']).toBeLessThan(-30_000)
  vi.setSystemTime(Date.now() - 660_000)
  expect(await finding(box, 'clock-skew')).toMatchObject({ severity: 'serious' })
})

describe('connections', () => {
  test('a pool that is too small for its consumers is named, and one that is exhausted', async () => {
    const box = await ward.admit()
    const pool = new pg.Pool({ connectionString: ward.database.url, max: 2 })
    onTestFinished(() => pool.end())
    const small = createBox({ db: fromPg(pool), schema: box.schema, logger: silent })
    small.consumer('c', { t: () => undefined }, { concurrency: 4 })
    expect(await finding(small as never, 'pool-small')).toMatchObject({ figures: { pool: 2, concurrency: 4 } })
    const held = await pool.connect()
    // They have one connection between them: whenever one of them has an answer, others wait.
    const found = await Promise.all(Array.from({ length: 4 }, () => codes(small as never)))
    held.release()
    expect(found.flat()).toContain('pool-exhausted')
  })

  test('a database whose limit of connections is near is named', async () => {
    const box = await ward.admit()
    const { rows } = await ward.pool.query<{ n: number }>(
      'select count(*)::int n from pg_stat_activity where datname = current_database()',
    )
    await ward.pool.query(`alter database "${ward.database.name}" connection limit ${rows[0]!.n}`)
    onTestFinished(async () => void (await ward.pool.query(`alter database "${ward.database.name}" connection limit -1`)))
    expect(await finding(box, 'connections-scarce')).toMatchObject({ severity: 'serious', figures: { of: `database ${ward.database.name}` } })
  }) // prettier-ignore
})

describe('what keeps dead rows', () => {
  test('a transaction that is open for long is named, and so is who has it', async () => {
    const box = await ward.admit()
    const client = new pg.Client({ connectionString: ward.database.url, application_name: 'a report' })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.end())
    await client.query('begin isolation level repeatable read; select 1')
    expect(await codes(box)).toEqual([])
    await client.query('select pg_sleep(0.05)')
    const found = await finding(box, 'transaction-long', { transactionMs: 10 })
    expect(found.what).toContain('a report')
    await mend(found.fix)
    await expect(client.query('select 1')).rejects.toThrow()
    expect(await codes(box, { transactionMs: 10 })).not.toContain('transaction-long')
  })
})

describe('tables', () => {
  test('one that autovacuum leaves alone is named', async () => {
    const box = await ward.admit()
    await ward.sql(box, 'alter table ob.work set (autovacuum_enabled = false)')
    const found = await finding(box, 'autovacuum-off-for-table')
    await mend(found.fix)
    expect(await codes(box)).toEqual([])
  })

  test('dead rows are named, and a file that is mostly empty', async () => {
    const box = await ward.admit()
    await ward.sql(box, 'alter table ob.work set (autovacuum_enabled = false)')
    await ward.sql(
      box,
      `insert into ob.work (consumer, source, id, due_at, parked, error)
       select '', '', n::text, 'infinity', 'discarded', repeat('x', 300) from generate_series(1, 120000) n; delete from ob.work; analyze ob.work`,
    )
    await vi.waitFor(async () => expect(await codes(box)).toContain('dead-rows'), { timeout: 30_000, interval: 500 })
    await ward.sql(box, 'insert into ob.work (consumer, source, id, due_at, parked) values (\'\', \'\', \'last\', \'infinity\', \'discarded\')')
    await mend((await finding(box, 'dead-rows')).fix.replace('verbose, ', ''))
    const bloated = await finding(box, 'table-bloated')
    expect(bloated).toMatchObject({ severity: 'note', figures: { table: 'work' } })
    await mend(bloated.fix)
    await ward.sql(box, 'delete from ob.work')
    expect(await codes(box)).toEqual(['autovacuum-off-for-table'])
  }) // prettier-ignore
})

describe('a server of one’s own', () => {
  let server: PostgresServer
  let pool: pg.Pool
  let box: Pick<WardBox, 'admin'>
  beforeAll(async () => {
    server = await startPostgres({
      settings: { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_prepared_transactions: 5, max_replication_slots: 5, wal_level: 'replica', max_connections: 20, superuser_reserved_connections: 3 },
    }) // prettier-ignore
    pool = new pg.Pool({ connectionString: server.url })
    pool.on('error', () => {})
    const own = createBox({ db: fromPg(pool), logger: silent })
    await own.migrate()
    box = own
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  test('settings by which it may lose what it has committed, and autovacuum that is off, are named', async () => {
    expect(await codes(box)).toEqual(['fsync-off', 'fsync-off', 'autovacuum-off'])
  })

  test('a prepared transaction that nobody ends is named', async () => {
    await pool.query('create table prepared (); drop table prepared')
    const client = await pool.connect()
    await client.query(`begin; create table left_behind (n int); prepare transaction 'it''s left'`)
    client.release()
    await pool.query('select pg_sleep(0.05)')
    expect(await codes(box)).not.toContain('transaction-prepared')
    const found = await finding(box, 'transaction-prepared', { transactionMs: 10 })
    expect(found.figures['gid']).toBe(`it's left`)
    await pool.query(found.fix.replace(/; +--.*$/, ''))
    expect(await codes(box, { transactionMs: 10 })).not.toContain('transaction-prepared')
  })

  test('a replication slot that nobody reads is named', async () => {
    await pool.query(`select pg_create_physical_replication_slot('unread', true)`)
    const found = await finding(box, 'slot-unused')
    expect(found).toMatchObject({ severity: 'warning', figures: { slot: 'unread' } })
    await pool.query(found.fix.replace(/; +--.*$/, ''))
    expect(await codes(box)).not.toContain('slot-unused')
  })

  test('a replication slot that is read, and far behind, is not to be dropped', async () => {
    const pin = { kind: 'slot', name: 'standby', who: 'physical, active', ageMs: null, xids: 2_000_000, walBytes: 0 }
    const ask = async () => [{ facts: JSON.stringify({ ...pin, active: true }) }]
    const [found] = await PINS.examine({ ask, limits: {} } as never)
    expect(found).toMatchObject({ code: 'slot-unused', figures: { slot: 'standby' } })
    expect(found!.fix).not.toContain('drop')
    await pool.query(found!.fix.slice(found!.fix.indexOf('select')))
  })

  test('a server that runs out of connections is named', async () => {
    const clients: pg.Client[] = []
    for (let n = 0; n < 14; n++) {
      const client = new pg.Client(server.url)
      await client.connect()
      clients.push(client)
    }
    const found = await finding(box, 'connections-scarce')
    expect(found.figures['most']).toBe(17)
    await Promise.all(clients.map((client) => client.end()))
  })

  test('a server that takes no writes is named', async () => {
    await pool.query('alter system set default_transaction_read_only = on')
    await pool.query('select pg_reload_conf()')
    await vi.waitFor(async () => expect(await codes(box)).toContain('database-read-only'), { timeout: 30_000 })
    const client = await pool.connect()
    await client.query('begin read write')
    await client.query('rollback')
    await client.query('set default_transaction_read_only = off')
    await client.query('alter system reset default_transaction_read_only')
    await client.query('select pg_reload_conf()')
    client.release()
  })
})

test('a question that takes too long is a finding, and the others are asked', async () => {
  const box = await ward.admit()
  await ward.sql(
    box,
    `insert into ob.work (consumer, source, id, due_at, parked) values ('c', '', 'x', 'infinity', 'dead')`,
  )
  const locked = await ward.pool.connect()
  try {
    await locked.query(`begin; lock table "${box.schema}".quarantine in access exclusive mode`)
    const found = await box.admin.doctor({ timeoutMs: 1_500 })
    expect(found.map(({ code }) => code)).toContain('work-orphaned')
    expect(found).toContainEqual(
      expect.objectContaining({
        code: 'check-failed',
        severity: 'note',
        figures: { checks: 'the quarantine', sqlstate: '57014' },
      }),
    )
  } finally {
    await locked.query('rollback')
    locked.release()
  }
})

test('a database that is not there is an error, and an option that does not exist', async () => {
  const pool = new pg.Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/none' })
  const box = createBox({ db: fromPg(pool), logger: silent })
  await expect(box.admin.doctor()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await expect(box.admin.doctor({ lagMS: 1 } as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  await pool.end()
})

test('behind PgBouncer, in transaction mode, a healthy box has no finding', async () => {
  await using env = await environment('pgbouncer')
  const root = new pg.Client(env.direct)
  await root.connect()
  await root.query(`alter database "${env.connection.database}" set synchronous_commit = on`)
  await root.end()
  const pool = new pg.Pool(env.connection)
  const box = createBox({ db: fromPg(pool), logger: silent })
  box.consumer('c', { t: () => undefined })
  await box.migrate()
  await box.handle({ id: '1', type: 't', data: 1 })
  expect(await box.admin.doctor()).toEqual([])
  await pool.end()
})

test('on PGlite a healthy box has no finding', async () => {
  const { PGlite } = await import('@electric-sql/pglite')
  const db = new PGlite()
  const box = createBox({ db: fromPglite(db), logger: silent })
  box.consumer('c', { t: () => undefined })
  await box.migrate()
  await box.handle({ id: '1', type: 't', data: 1 })
  expect(await box.admin.doctor()).toEqual([])
  await db.close()
})

test('a query on a standby that keeps dead rows on the primary is named, and ended by what the doctor says', async () => {
  await using env = await environment('standby')
  const pool = new pg.Pool({ ...env.connection, max: 2 })
  const standby = new pg.Pool({ connectionString: env.standby.url, max: 2 })
  for (const one of [pool, standby]) one.on('error', () => {})
  try {
    const box = createBox({ db: fromPg(pool), logger: silent }) as unknown as WardBox
    await box.migrate()
    for (const setting of ['hot_standby_feedback = on', `wal_receiver_status_interval = '1s'`]) {
      await standby.query(`alter system set ${setting}`)
    }
    await standby.query('select pg_reload_conf()')
    const report = await standby.connect()
    report.on('error', () => {})
    await report.query('begin isolation level repeatable read; select 1')
    const pinned = async (): Promise<boolean> =>
      (await pool.query('select from pg_stat_replication where backend_xmin is not null')).rowCount === 1
    await waitUntil(pinned, { what: 'the feedback of the standby', timeoutMs: 60_000 })
    expect(await codes(box)).not.toContain('standby-pins-rows')
    // A million transactions later.
    await pool.query(`do $$ begin for n in 1..1000001 loop perform pg_current_xact_id(); rollback; end loop; end $$`)
    const found = await finding(box, 'standby-pins-rows')
    expect(found).toMatchObject({ severity: 'warning', figures: { standby: 'standby' } })
    expect(found.figures['transactionsSince']).toBeGreaterThan(1_000_000)

    const [, looks] = /(select .*?);/.exec(found.fix) ?? []
    const { rows } = await standby.query<{ pid: number; xact_start: Date | null }>(looks!)
    const { pid } = rows.find((row) => row.xact_start !== null)!
    await standby.query('select pg_terminate_backend($1)', [pid])
    await expect(report.query('select 1')).rejects.toThrow()
    report.release(true)
    await waitUntil(async () => !(await codes(box)).includes('standby-pins-rows'), { what: 'the end of the query', timeoutMs: 60_000 }) // prettier-ignore
  } finally {
    await pool.end()
    await standby.end()
  }
})
