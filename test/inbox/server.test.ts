/** What the server has to be, allow and do, and what `migrate()` and `start()` say where it is not so. */
import { createBox, migrationSql, type BoxOptions, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bindDatabase } from '../../src/postgres/database.js'
import { migrate } from '../../src/postgres/migrate.js'
import { MIGRATIONS } from '../../src/postgres/migrations.generated.js'
import { scratchDatabase, scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer } from './fixture.js'

const server = useServer('server')
const NEWEST = MIGRATIONS.at(-1)!.version

function open(pool = server.pool, options: Partial<BoxOptions<MessageMap, pg.PoolClient, unknown>> = {}) {
  const schema = scratchSchemaName('server')
  const box = createBox({ db: fromPg(pool), schema, logger: recorder(), ...options })
  const sql = async (text: string, on = server.pool) =>
    (await on.query<Record<string, unknown>>(text.replaceAll('ob.', `${options.schema ?? schema}.`))).rows
  return { box, schema: options.schema ?? schema, sql }
}

/** A role with a pool of its own, gone after the test. */
async function openRole(...grants: string[]): Promise<{ name: string; pool: pg.Pool }> {
  const name = scratchSchemaName('role')
  await server.pool.query(`create role ${name} login password 'secret'`)
  for (const grant of grants) await server.pool.query(grant.replaceAll('$role', name))
  const url = new URL(server.url)
  url.username = name
  url.password = 'secret'
  const pool = new pg.Pool({ connectionString: url.href, max: 4 })
  onTestFinished(async () => {
    await pool.end()
    await server.pool.query(`drop owned by ${name} cascade; drop role ${name}`)
  })
  return { name, pool }
}

describe('migrate()', () => {
  test.for<[how: string, version: number]>([
    ['an empty database', 0],
    ['the version before', NEWEST - 1],
  ])('works on %s whose tables are all published, and so does everything else', async ([, version]) => {
    await using database = await scratchDatabase('published')
    const pool = new pg.Pool({ connectionString: database.url, max: 6 })
    try {
      await pool.query('create publication everything for all tables')
      const { box, schema, sql } = open(pool)
      if (version > 0) {
        await pool.query(`create schema ${schema}`)
        await sql('create table ob.schema_version (version int not null, compatible_from int not null)', pool)
        for (const migration of MIGRATIONS.slice(0, version)) await sql(migration.sql, pool)
        await sql(`insert into ob.schema_version values (${version}, 1)`, pool)
      }
      box.consumer('a', { note: (_, { send }) => send('out', 1) }, { order: 'key' })
      box.consumer('b', { note: ({ id }) => (id === 'bad' ? Promise.reject(new Error('no')) : 1) }, { retry: { attempts: 1 } }) // prettier-ignore
      box.to({ publish: async (batch) => batch.map(() => undefined), close: async () => {} })
      expect(await box.migrate()).toEqual({ from: version, to: NEWEST })
      expect(await box.migrate()).toEqual({ from: NEWEST, to: NEWEST })
      await box.start()
      await box.receive([note('1', { key: 'k' }), note('bad')])
      await box.handle(note('2'))
      await box.drain()
      await box.receive({ id: undefined, type: 'note', data: 1 })
      expect(await box.admin.retry({ consumer: 'b', state: 'dead' })).toBe(1)
      await box.drain()
      await box.admin.discard({ state: 'dead' }, { reason: 'test' })
      await sql(`create or replace function ob.now() returns timestamptz language sql stable
        as 'select statement_timestamp() + interval ''40 days'''`, pool) // prettier-ignore
      expect(await box.admin.prune()).toBe(6)
      await box.stop()
      // What a replica could not be told of would have failed.
      const unkeyed = await sql(
        `select c.relname from pg_class c where c.relnamespace = '${schema}'::regnamespace and c.relkind = 'r'
         and c.relpersistence = 'p' and not exists (select 1 from pg_index i where i.indrelid = c.oid and i.indisprimary)`,
        pool,
      )
      expect(unkeyed).toEqual([])
    } finally {
      await pool.end()
    }
  })

  test('needs no right on the database where the schema exists', async () => {
    const schema = scratchSchemaName('given')
    await server.pool.query(`create schema ${schema}`)
    const role = await openRole(`grant all on schema ${schema} to $role`)
    const { box } = open(role.pool, { schema })
    expect(await box.migrate()).toEqual({ from: 0, to: NEWEST })
  })

  test('says SCHEMA_LOCKED, and what to do, where handlers never let go of a table', async () => {
    const { schema, sql } = open()
    await sql(
      `create schema ${schema}; create table ob.schema_version (version int not null, compatible_from int not null)`,
    )
    for (const migration of MIGRATIONS.slice(0, 3)) await sql(migration.sql)
    await sql('insert into ob.schema_version values (3, 1)')
    const handler = await server.pool.connect()
    await handler.query('begin')
    await handler.query(`insert into ${schema}.open_group values ('11111111-1111-1111-1111-111111111111')`)
    const db = bindDatabase(fromPg(server.pool), schema)
    await expect(migrate(db, 2)).rejects.toMatchObject({ code: 'SCHEMA_LOCKED', cause: { code: '55P03' } })
    await handler.query('rollback')
    handler.release()
    expect(await migrate(db, 2)).toEqual({ from: 3, to: NEWEST })
  })

  test('does not try again what cannot go better', async () => {
    const { schema, sql } = open()
    let tries = 0
    const pool = Object.create(server.pool) as pg.Pool
    pool.connect = (() => {
      tries++
      return server.pool.connect()
    }) as never
    await sql(`create schema ${schema}`)
    await sql(`create function ob.fail() returns event_trigger language plpgsql
      as $$ begin if exists (select 1 from pg_event_trigger_ddl_commands() where schema_name = '${schema}') then
        raise exception using errcode = 'XX000', message = 'cache lookup failed'; end if; end $$`) // prettier-ignore
    await sql(`create event trigger ${schema} on ddl_command_end execute function ob.fail()`)
    onTestFinished(async () => void (await server.pool.query(`drop event trigger if exists ${schema}`)))
    const watched = createBox({ db: fromPg(pool), schema, logger: recorder() })
    await expect(watched.migrate()).rejects.toMatchObject({ code: 'XX000' })
    expect(tries).toBeLessThan(5)
  })
})

test.for<[how: string, version: number, grants: (schema: string) => string, needs: string]>([
  ['create a schema', 0, (schema) => `drop schema ${schema}; select`, 'CREATE on the database'],
  ['read the version of one', 1, () => 'select', 'own its tables'],
  ['change the tables of one', 1, (schema) => `grant all on schema ${schema} to $role; grant all on all tables in schema ${schema} to $role`, 'own its tables'],
])('migrate() says RIGHTS_MISSING, and what is needed, where it may not %s', async ([, version, grants, needs]) => {
  const schema = scratchSchemaName('foreign')
  await server.pool.query(`create schema ${schema}`)
  if (version > 0) {
    await server.pool.query(`create table ${schema}.schema_version (version int not null, compatible_from int not null)`)
    for (const { sql } of MIGRATIONS.slice(0, 3)) await server.pool.query(sql.replaceAll('ob.', `${schema}.`))
    await server.pool.query(`insert into ${schema}.schema_version values (3, 1)`)
  }
  const role = await openRole(grants(schema))
  const { box } = open(role.pool, { schema })
  const refused = { code: 'RIGHTS_MISSING', message: expect.stringContaining(needs) as string, cause: { code: '42501' } }
  await expect(box.migrate()).rejects.toMatchObject(refused)
}) // prettier-ignore

describe('migrationSql()', () => {
  async function openOld(version: number): Promise<string> {
    const { schema, sql } = open()
    await sql(
      `create schema ${schema}; create table ob.schema_version (version int not null, compatible_from int not null)`,
    )
    for (const migration of MIGRATIONS.slice(0, version)) await sql(migration.sql)
    await sql(`insert into ob.schema_version values (${version}, 1)`)
    return schema
  }

  test('refuses a schema of another version than it was printed for, and says how to print it', async () => {
    const schema = await openOld(10)
    const client = await server.pool.connect()
    try {
      for (const from of [0, 9, NEWEST]) {
        await expect(client.query(migrationSql({ schema, from }))).rejects.toThrow(
          'the schema is at version 10; print the SQL with from: 10',
        )
        await client.query('rollback')
      }
      await client.query(migrationSql({ schema, from: 10 }))
    } finally {
      client.release(true)
    }
    expect(await open(server.pool, { schema }).box.migrate()).toEqual({ from: NEWEST, to: NEWEST })
  })

  test('does not wait for a table that is in use, which would make others wait behind it', async () => {
    const schema = await openOld(10)
    const [reader, deployer] = await Promise.all([server.pool.connect(), server.pool.connect()])
    try {
      await reader.query(`begin; select from ${schema}.quarantine`)
      await expect(deployer.query(migrationSql({ schema, from: 10 }))).rejects.toMatchObject({ code: '55P03' })
      await deployer.query('rollback')
      await reader.query('commit')
      await deployer.query(migrationSql({ schema, from: 10 }))
    } finally {
      reader.release(true)
      deployer.release(true)
    }
  })

  test('waits its turn behind migrate()', async () => {
    const schema = await openOld(10)
    const [first, second] = await Promise.all([server.pool.connect(), server.pool.connect()])
    try {
      await first.query(migrationSql({ schema, from: 10 }).replace('commit;', ''))
      const refused = second
        .query(migrationSql({ schema, from: 10 }))
        .catch((error: unknown) => (error as Error).message)
      await waitUntil(async () => {
        const waiting = `select from pg_locks l join pg_stat_activity using (pid)
          where l.locktype = 'advisory' and not l.granted and datname = current_database()`
        return (await server.pool.query(waiting)).rowCount === 1
      })
      await first.query('commit')
      expect(await refused).toContain(`is at version ${NEWEST}`)
    } finally {
      first.release(true)
      second.release(true)
    }
  })

  test('refuses options that it does not have', () => {
    for (const given of ['oncebox', { version: 3 }, { from: '10' }, null]) {
      expect(() => migrationSql(given as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }) as Error)
    }
  })
})

describe('start()', () => {
  test.for<[what: string, statement: string]>([
    [
      'update a row by its place',
      `create trigger lost before update on ob.work for each row execute function ob.lose()`,
    ],
    [
      'delete a row by its place',
      `create trigger lost before delete on ob.work for each row execute function ob.lose()`,
    ],
    ['defer a foreign key', 'alter table ob.open_group drop constraint a_handler_must_not_end_its_transaction'],
    ['check a foreign key', 'alter table ob.open_group disable trigger all'],
  ])('refuses a server that cannot %s', async ([, statement]) => {
    const { box, sql } = open()
    await box.migrate()
    await sql(`create function ob.lose() returns trigger language plpgsql as 'begin return null; end'`)
    await sql(statement)
    await expect(box.start()).rejects.toMatchObject({ code: 'ENGINE_UNSUPPORTED' })
  })

  const SEQUENCES = ['ob.seq', 'ob.outbox_n_seq', 'ob.quarantine_n_seq', 'ob.attempt_n_seq', 'ob.audit_n_seq']
  async function switchOver() {
    const opened = open()
    const { box, sql } = opened
    const ran: string[] = []
    box.consumer('a', { note: ({ id }) => void ran.push(id) }, { order: 'key' })
    await box.migrate()
    await box.admin.pause('a')
    await box.receive(Array.from({ length: 9 }, (_, n) => note(`old${n}`, { key: 'k' })))
    await box.receive([{ id: 'x', type: 'unknown', data: 1 }, { id: 'y', type: 'unknown', data: 1 }]) // prettier-ignore
    await send(box, 5)
    // Logical replication copies rows, not sequences.
    for (const sequence of SEQUENCES) await sql(`select setval('${sequence}', 1, false)`)
    return { ...opened, ran }
  }
  const send = async (box: ReturnType<typeof open>['box'], count: number): Promise<void> => {
    const client = await server.pool.connect()
    await client.query('begin')
    for (let n = 0; n < count; n++) await box.send(client, 'note', n)
    await client.query('commit')
    client.release()
  }

  test('sets sequences that are behind their tables, as after a switch-over, and order holds', async () => {
    const { box, ran } = await switchOver()
    await box.start()
    await box.receive(note('new', { key: 'k' }))
    await send(box, 5)
    await box.receive({ id: 'z', type: 'unknown', data: 1 })
    await box.admin.resume('a')
    await box.drain()
    await box.stop()
    expect(ran).toEqual([...Array.from({ length: 9 }, (_, n) => `old${n}`), 'new'])
  })

  test('sets the sequence of a box that had handled all: a new message has no number of a handled one', async () => {
    const { box, sql } = open()
    box.consumer('a', { note() {} })
    await box.migrate()
    await box.receive(Array.from({ length: 9 }, (_, n) => note(`old${n}`)))
    await box.drain()
    for (const sequence of SEQUENCES) await sql(`select setval('${sequence}', 1, false)`)
    const [behind] = (await box.admin.doctor()).filter(({ code }) => code === 'sequence-behind')
    expect(behind?.fix).toMatch(/^select setval\('.*seq', greatest\(.*handled/)
    await box.start()
    await box.admin.pause('a')
    await box.receive(note('new'))
    await box.stop()
    const shared = await sql(`select m.id from ob.message m join ob.handled h using (n) where m.id = 'new'`)
    expect(shared).toEqual([])
    expect((await box.admin.doctor()).map(({ code }) => code)).not.toContain('sequence-behind')
  })

  test('does not set the numbers of events back behind a sink that was removed', async () => {
    const { box, sql } = open()
    box.consumer('a', { note() {} })
    await box.migrate()
    // All its events are published and deleted: nothing else remembers their numbers.
    await sql(`insert into ob.removed_sink (sink, n) values ('gone', 40)`)
    await box.start()
    await box.stop()
    await send(box, 1)
    expect(await sql('select n::int from ob.outbox')).toEqual([{ n: 41 }])
  })

  test('says SEQUENCE_BEHIND with the statement to run, where it may not', async () => {
    const { schema, sql } = await switchOver()
    const role = await openRole(
      `grant usage on schema ${schema} to $role`,
      `grant select, insert, update, delete on all tables in schema ${schema} to $role`,
      `grant usage on all sequences in schema ${schema} to $role`,
    )
    const { box } = open(role.pool, { schema })
    const error = (await box.start().catch((reason: unknown) => reason)) as Error & { code: string }
    expect(error.code).toBe('SEQUENCE_BEHIND')
    const statements = error.message.slice(error.message.indexOf('select setval'))
    await sql(statements)
    await box.start()
    await box.stop()
  })
})
