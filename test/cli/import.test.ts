/** `oncebox import` over real tables: of any shape, page by page, again and again. */
import { execFileSync } from 'node:child_process'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { COMMANDS } from '../../src/cli/registry.js'
import { openDedupTable } from '../../src/cli/shared/dedup-table.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { cli, type CliOptions, type Ran } from './fixture.js'
import { problems } from './schema.js'

let database: ScratchDatabase
let pool: pg.Pool
const boxOf = () => createBox({ db: fromPg(pool), logger: { debug() {}, info() {}, warn() {}, error() {} } })
const note = (id: string, source = '') => ({ id, source, type: 'note', data: 1 })

beforeAll(async () => {
  database = await scratchDatabase('cli_import')
  pool = new pg.Pool({ connectionString: database.url, max: 4 })
  const box = boxOf()
  for (const name of ['mail', 'bill', 'ship']) box.consumer(name, { note: () => 1 })
  for (const name of ['keyed', 'resumed']) box.consumer(name, { a: () => 1, b: () => 1 }, { identity: ({ id }) => id })
  await box.migrate()
  await pool.query(`
    create schema "Old Shop";
    create table "Old Shop"."Processed; drop" (consumer text, "Message Id" text, origin text, done timestamptz, primary key (consumer, "Message Id", origin));
    insert into "Old Shop"."Processed; drop" values ('mail', 'a', 'shop', now()), ('mail', 'a', 'web', now()), ('mail', 'b', 'shop', now() - interval '60 days'),
      ('mail', '', 'shop', now()), ('else', 'c', 'shop', now());
    create table seen (n bigint primary key, at timestamp not null default now());
    insert into seen (n) select generate_series(1, 12000);
    create table uuids (id uuid primary key); insert into uuids select gen_random_uuid() from generate_series(1, 10);
    create table typed (id text, type text, at timestamptz not null, primary key (id, type));
    insert into typed select lpad(n::text, 6, '0'), type, now() from generate_series(1, 5003) n, unnest(array['a', 'b']) type;
    delete from typed where id = '000001' and type = 'a';
    create table strange (id text primary key, origin text, kind text, at timestamptz, clock time, "when" date);
    insert into strange values ('a', 'shop', 'note', now(), '12:00', current_date), ('b', 'shop', 'note', 'infinity', '12:00', '-infinity'),
      ('c', 'shop', 'note', '0044-03-15 BC', '12:00', '0044-03-15 BC'), ('d', repeat('x', 513), 'note', now(), '12:00', current_date),
      ('e', 'shop', repeat('x', 513), now(), '12:00', current_date), ('f', null, 'note', null, null, null), ('', 'shop', 'note', now(), '12:00', now()),
      ('h', 'shop', 'note', '294276-01-01', '12:00', '12000-01-01');
    create table twice (id text, at timestamptz);
    insert into twice select lpad(n::text, 6, '0'), at from generate_series(1, 3000) n, unnest(array[now() - interval '90 days', now()]) at;
    delete from twice where id = '000001' and at < now() - interval '80 days';`)
})
afterAll(async () => {
  await pool.end()
  await database.close()
})

const oncebox = (argv: readonly string[], options: CliOptions = {}): Promise<Ran> =>
  cli(['import', ...argv], { ...options, env: { DATABASE_URL: database.url, ...options.env } })

const OLD = ['--from-table', '"Old Shop"."Processed; drop"', '--id-column', 'Message Id', '--consumer', 'mail']
const OF_MAIL = [...OLD, '--only', 'consumer=mail', '--source-column', 'origin', '--at-column', 'done']
const SEEN = ['--from-table', 'seen', '--id-column', 'n', '--consumer', 'bill']

describe('import', () => {
  test('records what the table knows, by its source and time, and says what it left out', async () => {
    const ran = await oncebox([...OF_MAIL, '--yes', '--reason', 'moving', '--json'])
    expect(ran.stderr).toContain('1 rows have an id that no message can have')
    const { output } = await COMMANDS['import']!()
    expect(ran.documents.flatMap((one) => problems(one, output!))).toEqual([])
    const table = '"Old Shop"."Processed; drop"'
    expect(ran.documents).toEqual([{ table, consumer: 'mail', rows: 4, marked: 2, skipped: 1, dryRun: false }])
    const outcomes = await boxOf().receive([note('a', 'shop'), note('a', 'web'), note('b', 'shop'), note('c', 'shop')])
    const ofMail = outcomes.map(({ consumers }) => consumers.find(({ consumer }) => consumer === 'mail')!.status)
    // b is beyond the horizon, and its copy carries no time.
    expect(ofMail).toEqual(['duplicate', 'duplicate', 'stored', 'stored'])
    expect((await boxOf().admin.audit()).records[0]).toMatchObject({
      action: 'mark-handled',
      by: expect.stringContaining('@'),
      detail: { consumer: 'mail', count: 2, reason: 'moving' },
    })
  })

  test('reads a large table page by page, shows how far it is, and adds nothing the second time', async () => {
    const dry = await oncebox([...SEEN, '--dry-run'])
    expect(dry).toMatchObject({
      code: 0,
      stdout: '12 000 rows of public.seen would be recorded; nothing was changed\n',
    })
    const ran = await oncebox([...SEEN, '--at-column', 'at', '--source', 'shop', '--yes', '--json'])
    expect(ran.documents).toMatchObject([{ rows: 12_000, marked: 12_000, skipped: 0 }])
    expect(ran.stderr).toContain('recording 100 %')
    const again = await oncebox([...SEEN, '--source', 'shop', '--yes'])
    expect(again.stdout).toContain('12 000 rows of public.seen: 0 recorded')
    const rest = await oncebox([...SEEN, '--source', 'else', '--after', '11990', '--yes', '--json'])
    expect(rest.documents).toMatchObject([{ rows: 10, marked: 10 }])
  })

  test('is stopped by Ctrl-C, says how far it got, and goes on from there', async () => {
    const controller = new AbortController()
    const argv = [...SEEN.slice(0, -1), 'ship', '--json']
    const stop = (text: string): void => (text.includes('recording') ? controller.abort() : undefined)
    const ran = await oncebox([...argv, '--yes'], { signal: controller.signal, onOutput: stop })
    expect(ran.code).toBe(130)
    const [, after] = /--after=(\d+)/.exec(ran.stderr) ?? []
    const rest = await oncebox([...argv, '--yes', '--after', after!])
    expect(rest.code).toBe(0)
    expect(Number(ran.documents[0]!['marked']) + Number(rest.documents[0]!['marked'])).toBe(12_000)
    expect(Number(rest.documents[0]!['marked'])).toBeGreaterThan(0)
  })

  test('records every row of an id, wherever a page ends', async () => {
    const typed = ['--from-table', 'typed', '--id-column', 'id', '--type-column', 'type', '--yes', '--json']
    const ran = await oncebox([...typed, '--consumer', 'keyed'])
    expect(ran.documents).toMatchObject([{ rows: 10_005, marked: 10_005, skipped: 0 }])

    const controller = new AbortController()
    const stop = (text: string): void => (text.includes('recording') ? controller.abort() : undefined)
    const part = [...typed, '--consumer', 'resumed']
    const stopped = await oncebox(part, { signal: controller.signal, onOutput: stop })
    const [, after] = /--after=(\d+)/.exec(stopped.stderr) ?? []
    const rest = await oncebox([...part, `--after=${after}`])
    expect([...stopped.documents, ...rest.documents].map(({ marked }) => marked)).toEqual([5_001, 5_004])
  })

  test.for(['at', 'when'])('leaves out rows that no message can be like, by %s, and takes the others', async (at) => {
    const strange = [
      '--from-table',
      'strange',
      '--id-column',
      'id',
      '--source-column',
      'origin',
      '--type-column',
      'kind',
    ]
    const ran = await oncebox([
      ...strange,
      '--at-column',
      at,
      '--consumer',
      at === 'at' ? 'bill' : 'ship',
      '--yes',
      '--json',
    ])
    expect(ran.documents).toMatchObject([{ rows: 8, marked: 2, skipped: 6 }])
    expect(ran.stderr).toContain('1 rows have an id that no message can have')
    expect(ran.stderr).toContain('1 rows have a source that no message can have')
    expect(ran.stderr).toContain('1 rows have a type that no message can have')
    expect(ran.stderr).toContain('3 rows have a time that is not from the year 1 to 9999')
    expect(ran.code).toBe(0)
  })

  test.for([
    [
      'an id',
      ['--id-column', 'id'],
      'insert into holes values (null, $1)',
      /2 rows of public\.holes have no id.*\(0,3\)/,
    ],
    ['a type', ['--id-column', 'id', '--type-column', 'kind'], "insert into holes values ('c', null)", /2 rows of public\.holes have no type.*the id of one is c/], // prettier-ignore
  ] as const)('rows without %s are named, and nothing is imported', async ([what, columns, insert, words]) => {
    await pool.query(`drop table if exists holes; create table holes (id text, kind text);
      insert into holes values ('a', 'note'), ('b', 'note')`)
    for (let n = 0; n < 2; n++) await pool.query(insert, insert.includes('$1') ? ['note'] : [])
    const argv = ['--from-table', 'holes', ...columns, '--source', what, '--consumer', 'bill']
    for (const more of [['--yes'], ['--dry-run']]) {
      const ran = await oncebox([...argv, ...more])
      expect(ran).toMatchObject({ code: 1, stdout: '' })
      expect(ran.stderr).toMatch(words)
      expect(ran.stderr).toMatch(/select \* from public\.holes where \w+ is null/)
    }
    const [known] = await boxOf().receive([note('a', what)])
    expect(known!.consumers.find(({ consumer }) => consumer === 'bill')).toMatchObject({ status: 'stored' })
    await pool.query(`create or replace view whole as select * from holes where id is not null and kind is not null`)
    const rest = await oncebox(['--from-table', 'whole', ...argv.slice(2), '--yes', '--json'])
    expect(rest.documents).toMatchObject([{ rows: 2 }])
    await pool.query('drop view whole')
  })

  test('of several times of one id the latest counts', async () => {
    const twice = ['--from-table', 'twice', '--id-column', 'id', '--at-column', 'at', '--source', 'twice']
    const ran = await oncebox([...twice, '--consumer', 'mail', '--yes', '--json'])
    expect(ran.documents).toMatchObject([{ rows: 5_999, marked: 3_000 }])
  })

  test.for(["it's $HOME", '-5', 'a"b'])('says where to go on as a shell takes it: %s', async (id) => {
    await pool.query('drop table if exists odd; create table odd (id text primary key)')
    await pool.query(`insert into odd select $1 || n from generate_series(1, 5000) n`, [id])
    const controller = new AbortController()
    const argv = ['--from-table', 'odd', '--id-column', 'id', '--consumer', 'ship', '--yes']
    const stop = (text: string): void => (text.includes('recording') ? controller.abort() : undefined)
    const ran = await oncebox(argv, { signal: controller.signal, onOutput: stop })
    const [, after] = /go on with (.*)/.exec(ran.stderr) ?? []
    const words = execFileSync('sh', ['-c', `printf %s ${after}`], { encoding: 'utf8' })
    const { rows } = await pool.query<{ id: string }>('select id from odd order by id desc limit 1')
    expect(words).toBe(`--after=${rows[0]!.id}`)
  })

  test('asks before it changes anything, and not in a pipe', async () => {
    const piped = await oncebox(['--from-table', 'uuids', '--id-column', 'id', '--consumer', 'ship'])
    expect(piped).toMatchObject({ code: 2, stdout: '' })
    expect(piped.stderr).toContain('--yes')
    const ran = await oncebox(['--from-table', 'uuids', '--id-column', 'id', '--consumer', 'ship', '--yes', '--json'])
    expect(ran.documents).toMatchObject([{ rows: 10, marked: 10 }])
  })

  test.for<[what: string, argv: string[], words: string]>([
    ['no table', ['--id-column', 'x', '--consumer', 'mail'], 'import needs --from-table'],
    [
      'a table that is not there',
      ['--from-table', 'sene', '--id-column', 'n', '--consumer', 'bill'],
      'there is no table sene',
    ],
    [
      'a name that is SQL',
      ['--from-table', 'seen; drop table seen', '--id-column', 'n', '--consumer', 'bill'],
      'there is no table',
    ],
    [
      'a column that is not there',
      ['--from-table', 'seen', '--id-column', 'm', '--consumer', 'bill'],
      'has no column m',
    ],
    [
      'a column that is SQL',
      ['--from-table', 'seen', '--id-column', 'n; drop table seen', '--consumer', 'bill'],
      'has no column',
    ],
    ['a time that is none', [...SEEN, '--at-column', 'n'], 'is bigint, and no time'],
    [
      'a time without a date',
      ['--from-table', 'strange', '--id-column', 'id', '--consumer', 'bill', '--at-column', 'clock'],
      'a time without its date',
    ],
    ['two sources', [...SEEN, '--source', 'a', '--source-column', 'at'], 'exclude each other'],
    ['half a criterion', [...SEEN, '--only', 'n'], 'column=value'],
  ])('refuses %s', async ([, argv, words]) => {
    const ran = await oncebox([...argv, '--yes'])
    expect(ran.stderr).toContain(words)
    expect(ran).toMatchObject({ code: 2, stdout: '' })
  })

  test('refuses a consumer that nobody has declared', async () => {
    const ran = await oncebox([...SEEN.slice(0, -1), 'bil', '--yes'])
    expect(ran.code).toBe(1)
    expect(ran.stderr).toContain('did you mean bill?')
  })
})

test('a table that the role may not read is told with the grant that helps, and not with a role of oncebox', async () => {
  const login = `import_${process.pid}`
  await pool.query(`create role ${login} login; create table secluded (id text primary key);
    grant usage on schema oncebox to ${login}; grant select on all tables in schema oncebox to ${login};
    grant execute on all functions in schema oncebox to ${login}`)
  onTestFinished(() => pool.query(`drop owned by ${login}; drop role ${login}`).then(() => undefined))
  const url = new URL(database.url)
  url.username = login
  const argv = ['import', '--from-table', 'secluded', '--id-column', 'id', '--consumer', 'mail', '--yes']
  const { code, stderr } = await cli(argv, { env: { DATABASE_URL: url.href } })
  expect(code).toBe(1)
  expect(stderr).toContain('grant select on public.secluded')
  expect(stderr).not.toContain('oncebox_worker')
})

test('a connection that is lost is not taken for a table that is not there', async () => {
  const dead = new pg.Pool({ connectionString: 'postgres://app@127.0.0.1:1/x' })
  onTestFinished(() => dead.end())
  const columns = { id: 'id', source: undefined, type: undefined, at: undefined, only: [] }
  await expect(openDedupTable(fromPg(dead) as never, 'seen', columns)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})
