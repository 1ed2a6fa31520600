/** A schema that an earlier version made, and is in use, is brought up to date. */
import { createBox, migrationSql } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { bindDatabase } from '../../src/postgres/database.js'
import { migrate } from '../../src/postgres/migrate.js'
import { MIGRATIONS } from '../../src/postgres/migrations.generated.js'
import { scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer } from './fixture.js'

const server = useServer('upgrade')
const NEWEST = MIGRATIONS.at(-1)!.version

/** What `migrate` of the version that ended with this migration left behind, with one message pending. */
async function openOld(version: number) {
  const schema = scratchSchemaName()
  const sql = async (text: string) => (await server.pool.query(text.replaceAll('ob.', `${schema}.`))).rows
  await sql(
    `create schema ${schema}; create table ob.schema_version (version int not null, compatible_from int not null)`,
  )
  for (const migration of MIGRATIONS.slice(0, version)) await sql(migration.sql)
  await sql(`insert into ob.schema_version values (${version}, 1);
    insert into ob.consumer (name, retain_ms) values ('a', 86400000);
    insert into ob.subscription values ('a', 'note');
    insert into ob.message (consumer, source, id, type, body) values ('a', 'test', 'old', 'note', '{"text":"old"}');
    insert into ob.work (consumer, source, id, due_at) values ('a', 'test', 'old', now())`)
  const box = createBox({ db: fromPg(server.pool), schema, logger: recorder() })
  return { box, schema }
}

test.for(MIGRATIONS.slice(0, -1).map(({ version }) => version))(
  'what version %i has stored is handled after migrate()',
  async (version) => {
    const { box } = await openOld(version)
    const ran: string[] = []
    box.consumer('a', { note: ({ id }) => void ran.push(id) })
    await expect(box.start()).rejects.toMatchObject({ code: 'SCHEMA_OUTDATED' })
    expect(await box.migrate()).toEqual({ from: version, to: NEWEST })
    await box.receive(note('new'))
    await box.drain()
    expect(ran.sort()).toEqual(['new', 'old'])
    expect(await box.admin.status()).toMatchObject({ consumers: { a: { handled: 2, pending: 0 } } })
  },
)

test('migrate() waits for a handler of the version before, and messages come in meanwhile', async () => {
  const { box, schema } = await openOld(3)
  const old = await server.pool.connect()
  // What a transaction of the version before does: it holds its row until it settles.
  await old.query('begin')
  await old.query(`insert into ${schema}.open_group values ('11111111-1111-1111-1111-111111111111')`)
  const moved = box.migrate()
  await waitUntil(async () => {
    const { rows } = await server.pool.query(
      `select 1 from pg_locks join pg_stat_activity using (pid) where not granted and datname = current_database()`,
    )
    return rows.length > 0
  })
  // As the version before receives.
  await server.pool.query(
    `insert into ${schema}.message (consumer, source, id, type, body) values ('a', '', 'meanwhile', 'note', '{}')`,
  )
  await server.pool.query(
    `insert into ${schema}.work (consumer, source, id, due_at) values ('a', '', 'meanwhile', now())`,
  )
  await old.query(`delete from ${schema}.open_group`)
  await old.query('commit')
  old.release()
  expect(await moved).toEqual({ from: 3, to: NEWEST })
})

test('migrate() writes no row of the journal again, so that its size does not matter', async () => {
  const { box, schema } = await openOld(4)
  const files = async (): Promise<unknown[]> =>
    (
      await server.pool.query(
        `select relname, relfilenode from pg_class where relnamespace = '${schema}'::regnamespace
           and relname in ('message', 'work', 'outbox', 'delivery', 'quarantine') order by relname`,
      )
    ).rows
  const before = await files()
  expect(before).toHaveLength(5)
  await box.migrate()
  expect(await files()).toEqual(before)
})

test('a role with rights on the tables of before keeps the quarantine after migrate()', async () => {
  const { box, schema } = await openOld(10)
  const role = scratchSchemaName('role')
  await server.pool.query(`create role ${role}; grant usage on schema ${schema} to ${role};
    grant select, insert, update, delete on all tables in schema ${schema} to ${role};
    grant usage on all sequences in schema ${schema} to ${role}`)
  onTestFinished(async () => void (await server.pool.query(`drop owned by ${role}; drop role ${role}`)))
  await box.migrate()
  const old = await server.pool.connect()
  try {
    await old.query(`set role ${role}`)
    // As the version before does it, and as one that keeps an account.
    for (const via of ['null', `'partner'`]) {
      await old.query(
        `insert into ${schema}.quarantine (consumer, source, type, reason, detail, hash, via)
         values ('', 'test', 'note', 'unrouted', '', '\\x00', ${via})`,
      )
    }
    await old.query(`update ${schema}.quarantine set discarded = '{}'`)
    await old.query(`delete from ${schema}.quarantine`)
  } finally {
    await old.query('reset role')
    old.release()
  }
  const { rows } = await server.pool.query(`select via, messages from ${schema}.quarantine_account`)
  expect(rows).toEqual([{ via: 'partner', messages: '0' }])
})

test('what counts the quarantine does so for that table alone, whoever would have it count others', async () => {
  const { box, schema } = await openOld(10)
  await box.migrate()
  const role = scratchSchemaName('role')
  await server.pool.query(`create role ${role}; grant usage on schema ${schema} to ${role}`)
  onTestFinished(async () => void (await server.pool.query(`drop owned by ${role}; drop role ${role}`)))
  const stranger = await server.pool.connect()
  const attach = `create trigger forged after insert on pg_temp.mine
    referencing new table as added for each statement execute function ${schema}.count_quarantine()`
  try {
    await stranger.query(`set role ${role}; create temp table mine (via text)`)
    await expect(stranger.query(attach)).rejects.toMatchObject({ code: '42501' })
    // Where somebody has granted too much.
    await stranger.query(`reset role; grant execute on all functions in schema ${schema} to ${role}; set role ${role}`)
    await stranger.query(attach)
    await expect(stranger.query('insert into mine default values')).rejects.toThrow(/belongs to/)
  } finally {
    stranger.release(true)
  }
})

/** Waits for locks for so long that the test decides who gets them. */
const patient = (sql: string): string => sql.replace(`lock_timeout = '100ms'`, `lock_timeout = '60s'`)

const MIGRATORS: readonly [what: string, migrate: (schema: string) => Promise<unknown>][] = [
  ['migrate()', (schema) => {
    const driver = fromPg(server.pool)
    const query = driver.query.bind(driver)
    driver.query = (text, ...rest) => query(patient(text), ...rest)
    return migrate(bindDatabase(driver, schema), 0)
  }],
  ['migrationSql', (schema) => server.pool.query(patient(migrationSql({ schema, from: 18 })))],
] // prettier-ignore

test.for(MIGRATORS)('%s does not wait for a claim that waits for it', async ([, upgrade]) => {
  const { schema } = await openOld(18)
  const claim = await server.pool.connect()
  onTestFinished(() => claim.release(true))
  await claim.query('begin')
  await claim.query(`lock table ${schema}.work in row exclusive mode`)
  const upgraded = upgrade(schema)
  await waitUntil(async () => {
    const { rows } = await server.pool.query(
      `select 1 from pg_locks where not granted and relation = '${schema}.work'::regclass`,
    )
    return rows.length > 0
  })
  for (const table of ['message', 'outbox', 'sink_set']) {
    await claim.query(`lock table ${schema}.${table} in row exclusive mode nowait`)
  }
  await claim.query('commit')
  await upgraded
  expect((await server.pool.query(`select version from ${schema}.schema_version`)).rows).toEqual([{ version: NEWEST }])
})

test('an upgrade that changes nothing that handlers hold does not wait for them', async () => {
  const { box, schema } = await openOld(21)
  const handler = await server.pool.connect()
  onTestFinished(() => handler.release(true))
  await handler.query('begin')
  await handler.query(`lock table ${schema}.work, ${schema}.message, ${schema}.outbox in row exclusive mode`)
  expect(await box.migrate()).toEqual({ from: 21, to: NEWEST })
})

/** A schema of version 18 whose tables an owner has, who may log in, as may a member of the owner's role; and a role with no rights of its own. */
async function openOwned() {
  const { schema } = await openOld(18)
  const [owner, member, anybody] = ['owner', 'member', 'anybody'].map((role) => `${schema}_${role}`) as [string, string, string] // prettier-ignore
  await server.pool.query(
    `create role ${owner} login; create role ${member} login in role ${owner}; create role ${anybody} login`,
  )
  await server.pool.query(`do $do$ declare command text; begin
    execute 'alter schema ${schema} owner to ${owner}';
    for command in
      select format('alter table %s owner to ${owner}', oid::regclass) from pg_class
      where relnamespace = '${schema}'::regnamespace and (relkind in ('r', 'v') or relkind = 'S' and relname = 'seq')
      union all select format('alter function %s owner to ${owner}', oid::regprocedure) from pg_proc
      where pronamespace = '${schema}'::regnamespace
    loop execute command; end loop; end $do$`)
  const pools: pg.Pool[] = []
  onTestFinished(async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    const all = `${owner}, ${member}, ${anybody}`
    await server.pool.query(`drop schema ${schema} cascade; drop owned by ${all}; drop role ${all}`)
  })
  const as = (user: string): pg.Pool => {
    const url = new URL(server.url)
    url.username = user
    const pool = new pg.Pool({ connectionString: url.href })
    pools.push(pool)
    return pool
  }
  const boxOf = (user: string) => createBox({ db: fromPg(as(user)), schema, logger: recorder() })
  return { schema, owner, member, anybody, as, boxOf }
}

const UPGRADERS: readonly [who: string, upgrade: (owned: Awaited<ReturnType<typeof openOwned>>) => Promise<unknown>][] =
  [
    ['a superuser', ({ schema }) => server.pool.query(migrationSql({ schema, from: 18 }))],
    ['a member of the owner’s role', ({ boxOf, member }) => boxOf(member).migrate()],
  ]

test.for(UPGRADERS)('what %s migrates stays the owner’s', async ([, upgrade]) => {
  const owned = await openOwned()
  await server.pool.query(`create view ${owned.schema}.foreign as select 1 one`)
  await upgrade(owned)
  const { rows } = await server.pool.query(
    `select relname from pg_class where relnamespace = '${owned.schema}'::regnamespace
       and relowner <> '${owned.owner}'::regrole union all
     select proname from pg_proc where pronamespace = '${owned.schema}'::regnamespace and proowner <> '${owned.owner}'::regrole`,
  )
  expect(rows).toEqual([{ relname: 'foreign' }])
  const box = owned.boxOf(owned.owner)
  box.to({ publish: () => Promise.resolve([]), close: () => Promise.resolve() }, { name: 'k' })
  await box.start()
  await box.stop()
})

test('rights that everybody has on the tables of before are everybody’s on what migrate() adds to them', async () => {
  const { schema, anybody, as } = await openOwned()
  await server.pool.query(`grant usage on schema ${schema} to public;
    grant select, insert, update, delete on all tables in schema ${schema} to public;
    grant usage on all sequences in schema ${schema} to public`)
  await server.pool.query(migrationSql({ schema, from: 18 }))
  // As every version registers its sinks.
  await as(anybody).query(`select ${schema}.register_sinks($1)`, [
    {
      s: [{ n: 'k', k: 1, t: null }],
      process: '11111111-1111-1111-1111-111111111111',
      host: 'h',
      ms: 1000,
      again: false,
    },
  ])
})

test('the minutes of a sink move into a table of their own, for the roles that had those of before', async () => {
  const { box, schema } = await openOld(23)
  const role = scratchSchemaName('role')
  await server.pool.query(`create role ${role}; grant usage on schema ${schema} to ${role};
    grant select, insert on ${schema}.minute to ${role}; grant update (at) on ${schema}.minute to ${role}`)
  onTestFinished(async () => void (await server.pool.query(`drop owned by ${role}; drop role ${role}`)))
  await server.pool.query(`insert into ${schema}.minute (consumer, at, handled)
    values ('', '2024-01-01', 9), ('a', '2024-01-01', 9), (E'\\x1fbus', '2024-01-01', 7)`)
  await box.migrate()
  const rows = async (text: string) => (await server.pool.query<Record<string, unknown>>(text)).rows
  expect(await rows(`select sink, published from ${schema}.sink_minute`)).toEqual([{ sink: 'bus', published: '7' }])
  expect(await rows(`select consumer from ${schema}.minute order by 1`)).toEqual([{ consumer: '' }, { consumer: 'a' }])
  const may = (right: string) => `has_table_privilege('${role}', '${schema}.sink_minute', '${right}') as "${right}"`
  expect(
    await rows(`select ${['select', 'insert', 'update', 'delete'].map(may).join(', ')},
    has_column_privilege('${role}', '${schema}.sink_minute', 'at', 'update') as at`),
  ).toEqual([{ select: true, insert: true, update: false, delete: false, at: true }])
})
