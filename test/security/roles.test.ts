/** Each role of `rolesSql` does its work, and nothing else: what it may not do fails with 42501, or is refused in words. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createBox,
  migrationSql,
  rolesSql,
  type Box,
  type Deliver,
  type MessageMap,
  type Role,
  type Sink,
} from 'oncebox'
import type { Counted, Job, Jobs } from 'oncebox/dashboard/client'
import { fromPg } from 'oncebox/pg'
import { FUNCTIONS, GRANTS, VIEWS } from '../../src/postgres/roles.js'
import { ask, open } from '../dashboard/fixture.js'
import { scratchDatabase, scratchSchemaName, type ScratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

const ROLES: readonly Role[] = ['owner', 'producer', 'worker', 'janitor', 'viewer', 'reader']
const schema = scratchSchemaName('roles')
const silent = { debug() {}, info() {}, warn() {}, error() {} }

let database: ScratchDatabase
let root: pg.Client
const pools = new Map<Role, pg.Pool>()

beforeAll(async () => {
  database = await scratchDatabase('roles')
  root = new pg.Client(database.url)
  await root.connect()
  await root.query(migrationSql({ schema }))
  // Twice: it is run again after each migration.
  for (let n = 0; n < 2; n++) await root.query(rolesSql({ schema }))
  for (const role of ROLES) {
    const login = `${schema}_${role}_login`
    await root.query(`create role ${login} login in role ${schema}_${role}`)
    const url = new URL(database.url)
    url.username = login
    const pool = new pg.Pool({ connectionString: url.href, max: 10 })
    pool.on('error', () => {})
    pools.set(role, pool)
  }
  const box = boxOf('worker')
  await box.receive([
    { id: 'stored', type: 'note', data: { secret: 1 } },
    { id: 'dead', type: 'fails', data: 1 },
  ])
  await box.drain()
})
afterAll(async () => {
  await Promise.all([...pools.values()].map((pool) => pool.end()))
  const all = ROLES.flatMap((role) => [`${schema}_${role}_login`, `${schema}_${role}`])
  await root.query(`drop schema ${schema} cascade; drop owned by ${all.join(', ')}; drop role ${all.join(', ')}`)
  await root.end()
  await database.close()
})

function boxOf(role: Role): Box<MessageMap, pg.PoolClient, unknown> {
  const box = createBox({ db: fromPg(pools.get(role)!), schema, logger: silent })
  const handlers = { note: () => 1, fails: () => Promise.reject(new Error('no')) }
  box.consumer('c', handlers, { retry: { attempts: 1 } })
  return box
}

async function inTransaction(role: Role, work: (client: pg.PoolClient) => Promise<unknown>): Promise<unknown> {
  const client = await pools.get(role)!.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } finally {
    client.release(true)
  }
}

const sql = (text: string) => (role: Role) => pools.get(role)!.query(text.replaceAll('ob.', `${schema}.`))
let n = 0

/** What is done, and who may. The others get 42501. */
const OPERATIONS: readonly [what: string, may: readonly Role[], run: (role: Role) => Promise<unknown>][] = [
  ['send an event', ['owner', 'producer', 'worker'],
    (role) => inTransaction(role, (tx) => boxOf(role).send(tx, 'sent', { secret: 1 }, { id: `e${n++}`, key: 'k' }))],
  ['send an event that was sent', ['owner', 'producer', 'worker'],
    (role) => inTransaction(role, (tx) => boxOf(role).send(tx, 'sent', 1, { id: 'again' }))],
  ['receive a message', ['owner', 'worker'], (role) => boxOf(role).receive({ id: `r${n++}`, type: 'note', data: 1 })],
  ['handle a message', ['owner', 'worker'], async (role) => {
    const outcome = await boxOf(role).handle({ id: `h${n++}`, type: 'note', data: 1 })
    expect(outcome.status).toBe('handled')
  }],
  ['record a message of its own transaction', ['owner', 'worker'],
    (role) => inTransaction(role, (tx) => boxOf(role).once(tx, 'c', { id: `o${n++}`, type: 'note', data: 1 }, () => 1))],
  ['retry', ['owner', 'worker'], (role) => boxOf(role).admin.retry({ state: 'dead' }, { by: role })],
  ['pause and resume', ['owner', 'worker'], async (role) => {
    await boxOf(role).admin.pause('c')
    await boxOf(role).admin.resume('c')
  }],
  ['remove a sink', ['owner', 'worker'], async (role) => {
    await root.query(`insert into ${schema}.sink (name) values ('gone') on conflict do nothing`)
    await boxOf(role).admin.removeSink('gone')
  }],
  ['mark as handled', ['owner', 'worker'], (role) => boxOf(role).admin.markHandled('c', [`m${n++}`, 'stored'])],
  ['list consumers', ['owner', 'worker', 'viewer'], (role) => boxOf(role).admin.consumers()],
  ['remove a consumer', ['owner', 'worker'], async (role) => {
    await root.query(`insert into ${schema}.consumer (name, retain_ms) values ('gone', 1) on conflict do nothing`)
    await boxOf(role).admin.removeConsumer('gone', { discard: true, forget: true })
  }],
  ['prune', ['owner', 'worker', 'janitor'], (role) => boxOf(role).admin.prune({ by: role })],
  ['see the status', ['owner', 'worker', 'janitor', 'viewer'], (role) => boxOf(role).admin.status()],
  ['list messages', ['owner', 'worker', 'janitor', 'viewer'], (role) => boxOf(role).admin.messages({ state: 'handled' })],
  ['look at a message', ['owner', 'worker', 'janitor', 'viewer'], (role) => boxOf(role).admin.message({ id: 'stored' })],
  ['read the audit', ['owner', 'worker', 'viewer'], (role) => boxOf(role).admin.audit()],
  ['read the view of messages', ['owner', 'viewer', 'reader'], sql('select * from ob.messages')],
  ['read the view of events', ['owner', 'viewer', 'reader'], sql('select * from ob.outbox_events')],
  ['read the view of lags', ['owner', 'viewer', 'reader'], sql('select * from ob.lag')],
  ['read bodies', ['owner', 'worker', 'janitor', 'viewer'], sql('select body from ob.message')],
  ['read what was sent', ['owner', 'worker', 'janitor', 'viewer'], sql('select body from ob.outbox')],
  ['change the audit', ['owner'], sql(`update ob.audit set actor = 'somebody else'`)],
  ['delete the audit', ['owner'], sql('delete from ob.audit')],
  ['empty the audit', ['owner'], sql('truncate ob.audit')],
  ['sign for another role in the audit', ['owner'],
    sql(`insert into ob.audit (action, detail, role) values ('retry', '{}', 'somebody else')`)],
  ['antedate the audit', ['owner'], sql(`insert into ob.audit (action, detail, at) values ('retry', '{}', '2020-01-01')`)],
  ['change the schema', ['owner'], sql('create table ob.x (); drop table ob.x')],
  ['replace a function', ['owner'], sql('alter function ob.now() stable')],
  ['take another version for the schema’s', ['owner'], sql('update ob.schema_version set version = version')],
] // prettier-ignore

describe.for(OPERATIONS)('to %s', ([, may, run]) => {
  test.for(ROLES)('the %s may, or may not', async (role) => {
    if (may.includes(role)) await run(role)
    else await expect(run(role)).rejects.toMatchObject({ code: '42501' })
  })
})

test.for<[Role, allowed: boolean]>([
  ['owner', true],
  ['worker', true],
  ['producer', false],
  ['janitor', false],
  ['viewer', false],
  ['reader', false],
])('a box that is started under the %s runs (%s), or says which rights it lacks', async ([role, allowed]) => {
  const box = boxOf(role)
  const published: string[] = []
  const sink: Sink = {
    publish: (batch) => {
      published.push(...batch.map(({ id }) => id))
      return Promise.resolve(batch.map(() => undefined))
    },
    close: () => Promise.resolve(),
  }
  box.to(sink, { name: `sink of ${role}` })
  if (!allowed) {
    const refused = { code: 'RIGHTS_MISSING', message: expect.stringContaining('rolesSql') as string }
    await expect(box.start()).rejects.toMatchObject(refused)
    return
  }
  await box.start()
  await inTransaction('producer', (tx) => box.send(tx, 'sent', 1, { id: `for ${role}` }))
  await box.receive({ id: `for ${role}`, type: 'note', key: 'k', data: 1 })
  await waitUntil(async () => {
    const [entry] = await box.admin.message({ id: `for ${role}` })
    return entry?.state === 'handled' && published.includes(`for ${role}`)
  })
  await box.stop()
})

test('every table is on the list of rights', async () => {
  // A foreign key refers to it, and nothing is ever in it.
  const unused = ['nobody']
  const { rows } = await root.query<{ name: string }>('select tablename "name" from pg_tables where schemaname = $1', [
    schema,
  ])
  expect([...Object.keys(GRANTS.worker), ...unused].sort()).toEqual(rows.map(({ name }) => name).sort())
})

test('every view is on the list of rights', async () => {
  const { rows } = await root.query<{ name: string }>('select viewname "name" from pg_views where schemaname = $1', [
    schema,
  ])
  expect([...VIEWS].sort()).toEqual(rows.map(({ name }) => name).sort())
})

test('no view has a column of a payload, and whoever reads them finds none', async () => {
  await inTransaction('worker', (tx) => boxOf('worker').send(tx, 'sent', { secret: 'canary' }, { id: 'canary' }))
  await boxOf('worker').handle({ id: 'canary', type: 'note', data: { secret: 'canary body' } })
  await boxOf('worker').receive({ id: 'canary', type: 'note', data: { secret: 'canary other body' } })
  const found = []
  for (const view of VIEWS) {
    const { rows } = await pools.get('reader')!.query<{ row: string }>(`select t::text "row" from ${schema}.${view} t`)
    found.push(...rows.map(({ row }) => row))
  }
  expect(found.join('\n')).toMatch(/conflict/)
  expect(found.filter((row) => /canary (other )?body|secret/.test(row))).toEqual([])
})

test('every function that is called is on the list of rights', async () => {
  const { rows } = await root.query<{ name: string }>(
    `select proname "name" from pg_proc where pronamespace = $1::regnamespace and prorettype <> 'trigger'::regtype`,
    [schema],
  )
  expect([...FUNCTIONS].sort()).toEqual(rows.map(({ name }) => name).sort())
})

test('the worker is told of a sequence that is behind its table', async () => {
  await inTransaction('producer', (tx) => boxOf('producer').send(tx, 'sent', 1, { id: `e${n++}` }))
  await root.query(`select setval('${schema}.outbox_n_seq', 1, false)`)
  try {
    await expect(boxOf('worker').start()).rejects.toMatchObject({ code: 'SEQUENCE_BEHIND' })
  } finally {
    await root.query(`select setval('${schema}.outbox_n_seq', (select max(n) from ${schema}.outbox))`)
  }
})

test.for<[what: string, taken: string, given: string]>([
  ['USAGE on sequence', 'revoke usage on sequence ob.outbox_n_seq from $role', 'grant usage on sequence ob.outbox_n_seq to $role'],
  ['EXECUTE on function', 'revoke execute on function ob.settle_one from public, $role', 'grant execute on function ob.settle_one to public, $role'],
])('start() names the %s that its role lacks', async ([what, taken, given]) => {
  const run = (text: string) => root.query(text.replaceAll('ob.', `${schema}.`).replaceAll('$role', `${schema}_worker`))
  await run(taken)
  try {
    const refused = { code: 'RIGHTS_MISSING', message: expect.stringContaining(what) as string }
    await expect(boxOf('worker').start()).rejects.toMatchObject(refused)
  } finally {
    await run(given)
  }
}) // prettier-ignore

test('where functions are not everybody’s, each role may call those of the schema', async () => {
  await using hardened = await scratchDatabase('hardened')
  const client = new pg.Client(hardened.url)
  await client.connect()
  try {
    await client.query('alter default privileges revoke execute on functions from public')
    await client.query(migrationSql({ schema }))
    await client.query(rolesSql({ schema }))
    const url = new URL(hardened.url)
    url.username = `${schema}_worker_login`
    const pool = new pg.Pool({ connectionString: url.href, max: 6 })
    const box = createBox({ db: fromPg(pool), schema, logger: silent })
    box.consumer('c', { note: () => 1 })
    await box.start()
    expect(await box.handle({ id: '1', type: 'note', data: 1 })).toMatchObject({ status: 'handled' })
    await box.stop()
    await pool.end()
    for (const role of ['viewer', 'reader']) {
      await client.query(`set role ${schema}_${role}; select * from ${schema}.messages; reset role`)
    }
  } finally {
    await client.query(`drop schema if exists ${schema} cascade`)
    await client.query(`drop owned by ${ROLES.map((role) => `${schema}_${role}`).join(', ')}`)
    await client.end()
  }
})

test('it takes from its roles what they should not have', async () => {
  const worker = `${schema}_worker`
  await root.query(`grant create on schema ${schema} to ${worker};
    grant update on all sequences in schema ${schema} to ${worker}; grant usage on sequence ${schema}.seq to ${schema}_viewer;
    grant execute on all functions in schema ${schema} to ${worker}; grant truncate on ${schema}.audit to ${worker}`)
  await root.query(rolesSql({ schema }))
  const { rows } = await root.query(`select has_schema_privilege('${worker}', '${schema}', 'create') "create",
    has_sequence_privilege('${worker}', '${schema}.seq', 'update') "update",
    has_sequence_privilege('${schema}_viewer', '${schema}.seq', 'usage') "usage",
    has_function_privilege('${worker}', '${schema}.count_quarantine()', 'execute') "execute",
    has_table_privilege('${worker}', '${schema}.audit', 'truncate') "truncate"`)
  expect(rows).toEqual([{ create: false, update: false, usage: false, execute: false, truncate: false }])
})

describe('a dashboard', () => {
  const at = { box: 'shop' }
  const opsOf = (role: Role) => open({ shop: boxOf(role) })
  const endOf = async (ops: ReturnType<typeof opsOf>, id: string): Promise<Job> =>
    waitUntil(async () => {
      const { jobs } = (await ask(ops, 'jobs', at)).answer as Jobs
      return jobs.find((job) => job.id === id && job.state !== 'running')
    })

  test('of a worker changes many messages, and of a viewer shows them and changes nothing', async () => {
    const [worker, viewer] = [opsOf('worker'), opsOf('viewer')]
    const count = await ask(worker, 'countDiscard', { ...at, q: 'state:dead' })
    const { confirmation } = count.answer as Counted
    const started = await ask(worker, 'discard', { ...at, confirmation, reason: 'a test' })
    const { id } = started.answer as Job
    expect(await endOf(worker, id)).toMatchObject({ state: 'done' })
    expect(await endOf(viewer, id)).toMatchObject({ state: 'done' })
    expect((await ask(viewer, 'history', { ...at, minutes: 60 })).status).toBe(200)
    expect((await ask(viewer, 'overview', at)).status).toBe(200)
    await root.query(`update ${schema}.bulk set state = 'running', ended_at = null, lease_until = '-infinity'`)
    // It sees what was left behind, and has no right to carry it.
    expect((await ask(viewer, 'jobs', at)).answer).toMatchObject({ jobs: [{ id, state: 'running' }] })
    expect((await ask(viewer, 'cancelDiscard', { ...at, job: id })).status).toBe(403)
    expect(await endOf(worker, id)).toMatchObject({ state: 'done', resumed: true })
    await Promise.all([worker.close(), viewer.close()])
  })
})

test('a worker that is started writes its minutes', async () => {
  const received = async (): Promise<number[]> => {
    const text = `select coalesce(sum(m.received), 0)::int n from unnest(array['', 'c']) c
      left join ${schema}.minute m on m.consumer = c group by c order by c`
    return (await root.query<{ n: number }>(text)).rows.map(({ n }) => n)
  }
  const before = await received()
  const box = boxOf('worker')
  await box.start()
  await box.receive({ id: 'minute', type: 'note', data: 1 })
  await box.stop()
  expect(await received()).toEqual(before.map((n) => n + 1))
})

test('the worker keeps accounts of the quarantine', async () => {
  const box = boxOf('worker')
  let deliver: Deliver | undefined
  const source = { name: 'partner', push: true, start: async (given: Deliver) => void (deliver = given) } as const
  box.from({ ...source, stop: async () => {} }, { types: ['note'] })
  await waitUntil(() => deliver !== undefined, { what: 'the source' })
  expect(await deliver!([{ id: 'x', type: 'other', data: 1 }])).toMatchObject([{ reason: 'not-allowed' }])
  await box.admin.discard({ reason: 'not-allowed' }, { reason: 'a test' })
  const account = `select messages from ${schema}.quarantine_account where via = 'partner'`
  expect((await pools.get('janitor')!.query(account)).rows).toEqual([{ messages: '0' }])
})

test('the owner’s login migrates, and what it creates is the owner’s', async () => {
  const url = new URL(database.url)
  url.username = `${schema}_owner_login`
  const own = `${schema}_own`
  await root.query(`create schema ${own} authorization ${schema}_owner`)
  const pool = new pg.Pool({ connectionString: url.href, options: `-c role=${schema}_owner` })
  await createBox({ db: fromPg(pool), schema: own, logger: silent }).migrate()
  await pool.end()
  const { rows } = await root.query(`select distinct tableowner from pg_tables where schemaname = $1`, [own])
  expect(rows).toEqual([{ tableowner: `${schema}_owner` }])
  await root.query(`drop schema ${own} cascade`)
})

test('a deployer who may create roles and belongs to the owner can run it, and run it again', async () => {
  await using given = await scratchDatabase('deployer')
  const own = scratchSchemaName('deployed')
  const deployer = `${own}_deployer`
  const superuser = new pg.Client(given.url)
  await superuser.connect()
  const url = new URL(given.url)
  url.username = deployer
  const client = new pg.Client(url.href)
  try {
    await superuser.query(`create role ${deployer} login createrole; create role ${own}_owner; grant ${own}_owner to ${deployer};
      grant create on database ${new URL(given.url).pathname.slice(1)} to ${deployer}`)
    await client.connect()
    await client.query(migrationSql({ schema: own }))
    for (let n = 0; n < 2; n++) await client.query(rolesSql({ schema: own }))
    const { rows } = await client.query('select distinct tableowner from pg_tables where schemaname = $1', [own])
    expect(rows).toEqual([{ tableowner: `${own}_owner` }])
  } finally {
    await client.end()
    const { rows } = await superuser.query<{ name: string }>(
      `select rolname "name" from pg_roles where rolname like '${own}%'`,
    )
    const all = rows.map(({ name }) => name).join(', ')
    await superuser.query(`drop schema if exists ${own} cascade; drop owned by ${all}; drop role ${all}`)
    await superuser.end()
  }
})

test('a name that could end the statement around it is refused', () => {
  for (const schema of ["a'b", 'a$$b', 'a?b', 'a\\b']) {
    expect(() => rolesSql({ schema })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }) as Error)
  }
  for (const worker of ['', "a'b", 'a$$b', 'pg_monitor', 'public', 'x'.repeat(64), 7 as never]) {
    expect(() => rolesSql({ roles: { worker } })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }) as Error)
  }
  expect(() => rolesSql({ roles: { wroker: 'x' } as never })).toThrow(/did you mean worker/)
  expect(() => rolesSql({ roles: { worker: 'x', owner: 'x' } })).toThrow(/owner and worker have the same name/)
  expect(() => rolesSql({ role: {} } as never)).toThrow(/did you mean roles/)
  expect(() => rolesSql('oncebox' as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }) as Error)
  expect(rolesSql({ schema: 'a"b', roles: { worker: 'the "best"' } })).toContain('to "the ""best""";')
})

describe('a role that only reads', () => {
  test('is told what it lacks when it migrates a schema that is up to date', async () => {
    const error: unknown = await boxOf('viewer')
      .migrate()
      .catch((told: unknown) => told)
    expect(error).toMatchObject({ code: 'RIGHTS_MISSING' })
    expect((error as Error).message).toContain('lacks')
  })

  test('is not healthy where it has to write, and is where it only looks', async () => {
    expect(await boxOf('viewer').health()).toMatchObject({ database: true })
    const box = boxOf('viewer')
    box.from(
      { name: 'hook', push: true, start: () => Promise.resolve(), stop: () => Promise.resolve() },
      { types: 'any' },
    )
    expect(await box.health()).toMatchObject({
      ok: false,
      database: false,
      reasons: [expect.stringContaining('may not write')],
    })
    const worker = boxOf('worker')
    worker.from(
      { name: 'hook', push: true, start: () => Promise.resolve(), stop: () => Promise.resolve() },
      { types: 'any' },
    )
    expect(await worker.health()).toMatchObject({ database: true })
  })
})

test('row-level security that hides work is named at the start and by the doctor, and nothing is pruned', async () => {
  await root.query(`alter table ${schema}.work enable row level security`)
  const message = { id: 'hidden', type: 'fails', data: 1 }
  try {
    const box = boxOf('worker')
    await expect(box.start()).rejects.toMatchObject({
      code: 'RIGHTS_MISSING',
      message: expect.stringMatching(
        /all rows of work, .*disable row level security, or alter role .* bypassrls/,
      ) as string,
    })
    const [finding] = (await box.admin.doctor()).filter(({ code }) => code === 'rights-missing')
    expect(finding).toMatchObject({ severity: 'serious' })
    // No grant gives sight of rows.
    expect(finding?.fix).not.toContain('grant')
    expect(finding?.fix).toContain(`alter table ${schema}.work disable row level security;`)
    await root.query(`insert into ${schema}.message (consumer, source, id, type, body, received_at)
      values ('c', 's', '${message.id}', 'fails', '{}', now() - interval '1 year')`)
    await root.query(`insert into ${schema}.work (consumer, source, id, due_at, parked)
      values ('c', 's', '${message.id}', now(), 'dead')`)
    await expect(box.admin.prune()).rejects.toMatchObject({ code: '42501' })
    const { rows } = await root.query(`select id from ${schema}.message where id = '${message.id}'`)
    expect(rows).toHaveLength(1)
  } finally {
    await root.query(`alter table ${schema}.work disable row level security`)
    for (const table of ['work', 'message']) {
      await root.query(`delete from ${schema}.${table} where id = '${message.id}'`)
    }
  }
})
