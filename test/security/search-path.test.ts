/**
 * Our statements run under the `search_path` of the user's sessions. Whatever a stranger has created in `public`, they call
 * PostgreSQL's own functions and operators, and the stranger's code does not run with the rights of the box.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBox, type Sink } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { bindDatabase } from '../../src/postgres/database.js'
import { exported, OUTSIDE, PIECE } from '../interleavings/statements.js'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { createTwins } from './twins.js'

/** Pieces of statements, which are in others. */
const PIECES = new Set(Object.keys(OUTSIDE).filter((name) => OUTSIDE[name] === PIECE))

/** The functions of the schema that are not pinned: inlined, or run for every message. */
const UNPINNED = ['close_transaction', 'is_fresh', 'margin', 'now', 'settle_one']

let database: ScratchDatabase
/** As sessions begin by default: `"$user", public`. */
let pool: pg.Pool
/** For what the test itself asks. */
let careful: pg.Pool
const schema = 'box_among_twins'
const bind = bindDatabase({ query: () => Promise.resolve([]) } as never, schema).bind

beforeAll(async () => {
  database = await scratchDatabase('search_path')
  pool = new pg.Pool({ connectionString: database.url, max: 10 })
  careful = new pg.Pool({ connectionString: database.url, max: 2, options: '-c search_path=pg_catalog' })
  for (const one of [pool, careful]) one.on('error', () => {})
  const known = await functionNames()
  const called = new Set<string>()
  for (const text of (await statements()).values())
    for (const name of calls(text)) if (known.has(name)) called.add(name)
  const client = new pg.Client(database.url)
  await client.connect()
  await createTwins(client, [...called]).finally(() => client.end())
})
afterAll(async () => {
  await Promise.all([pool.end(), careful.end()])
  await database.close()
})

/** Every statement of src/postgres/sql, by name, as it is sent. */
async function statements(): Promise<Map<string, string>> {
  const all = new Map<string, string>()
  for (const [name, value] of await exported()) {
    const texts = typeof value === 'string' ? { it: value } : typeof value === 'object' ? { ...value } : {}
    for (const [way, text] of Object.entries(texts as Record<string, unknown>)) {
      if (PIECES.has(name) || typeof text !== 'string' || !/\b(?:select|insert|update|delete)\b/.test(text)) continue
      all.set(way === 'it' ? name : `${name} ${way}`, bind(text).replaceAll('to_box.', `${schema}.`))
    }
  }
  return all
}

function calls(text: string): string[] {
  return [...text.matchAll(/(?<![\w"])(\w+)\(/g)].map(([, name]) => name!)
}

async function functionNames(): Promise<Set<string>> {
  const { rows } = await careful.query<{ name: string }>(
    `select distinct proname name from pg_proc where pronamespace = 'pg_catalog'::regnamespace`,
  )
  return new Set(rows.map(({ name }) => name))
}

/** What these statements take from `public`, by the server's own reading of them. */
async function takenFromPublic(texts: Iterable<[name: string, text: string]>): Promise<string[]> {
  const taken: string[] = []
  const client = await pool.connect()
  for (const [name, text] of texts) {
    await client.query('begin')
    const signature = /^\(.*?\)/s.exec(text)?.[0] ?? '(text)'
    const body = text.slice(signature === '(text)' ? 0 : signature.length)
    try {
      await client.query(
        `create function pg_temp.probe${signature} returns void language sql begin atomic ${body}; end`,
      )
      await client.query('set local search_path = pg_catalog')
      const { rows } = await client.query<{ what: string }>(
        `select pg_describe_object(d.refclassid, d.refobjid, 0) what from pg_depend d
         where d.classid = 'pg_proc'::regclass and d.objid = (select oid from pg_proc where proname = 'probe')
           and (d.refobjid in (select oid from pg_operator where oprnamespace = 'public'::regnamespace)
             or d.refobjid in (select oid from pg_proc where pronamespace = 'public'::regnamespace))`,
      )
      taken.push(...rows.map(({ what }) => `${name}: ${what}`))
    } catch (error) {
      // A twin that fits answers with another type, or cannot read a literal.
      taken.push(`${name}: ${(error as Error).message}`)
    }
    await client.query('rollback')
  }
  client.release()
  return taken
}

describe('among hostile twins of every function and operator', () => {
  beforeAll(async () => {
    const box = createBox({ db: fromPg(pool), schema })
    await box.migrate()
  })

  test('a statement names every function that it calls in full', async () => {
    const known = await functionNames()
    const bare: string[] = []
    for (const [name, text] of await statements()) {
      for (const [, called] of text.matchAll(/(?<![\w".])(\w+)\(/g))
        if (known.has(called!)) bare.push(`${name}: ${called}`)
    }
    expect(bare.filter((one) => !KEYWORDS.test(one))).toEqual([])
  })

  test('no statement takes an operator or a function from public', async () => {
    expect(await takenFromPublic(await statements())).toEqual([])
  })

  test('nor does a function of the schema: it is pinned, or reads as safely', async () => {
    const { rows } = await careful.query<Record<'name' | 'language' | 'args' | 'body' | 'path', string>>(
      `select p.proname name, l.lanname language, '(' || pg_get_function_arguments(p.oid) || ')' args, p.prosrc body,
         coalesce(array_to_string(p.proconfig, ','), '') path
       from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = $1::regnamespace`,
      [schema],
    )
    const unpinned = rows.filter(({ path }) => !/^search_path=pg_catalog, pg_temp$/.test(path))
    expect(unpinned.map(({ name }) => name).sort()).toEqual(UNPINNED)
    const inlined = unpinned.filter(({ language }) => language === 'sql')
    expect(await takenFromPublic(inlined.map(({ name, args, body }) => [name, args + body]))).toEqual([])
    const known = await functionNames()
    for (const { name, body } of unpinned) {
      const bare = [...body.matchAll(/(?<![\w".])(\w+)\(/g)].map(([, called]) => called!)
      expect([name, bare.filter((called) => known.has(called))]).toEqual([name, []])
    }
  })

  test('a box does all that it does', async () => {
    const said: unknown[] = []
    const troubles: unknown[] = []
    const published: string[] = []
    const sink: Sink = {
      publish: (batch) => {
        published.push(...batch.map(({ id }) => id))
        return Promise.resolve(batch.map(() => undefined))
      },
      close: () => Promise.resolve(),
    }
    const say = (...words: unknown[]): void => void said.push(words)
    const logger = { debug: say, info: say, warn: say, error: say }
    const box = createBox({ db: fromPg(pool), schema, logger, hooks: { error: (error) => void troubles.push(error) } })
    box.consumer('loose', {
      note: () => 'done',
      bad: () => Promise.reject(new Error('no')),
      pays: (_, { effect }) => effect('charge', () => 'paid'),
    }, { retry: { attempts: 1 } }) // prettier-ignore
    box.consumer('lanes', { note: (_, { send }) => send('noted', 1) }, { order: 'key' })
    box.consumer('inline', { note: () => 1 }, { mode: 'inline' })
    box.to(sink, { name: 'sink' })
    await box.start()
    const time = new Date()
    await box.receive(['a', 'b', 'c'].map((id) => ({ id, type: 'note', key: 'k', data: { id }, time })))
    await box.receive([{ id: 'd', type: 'bad', data: 1 }, { id: 'e', type: 'pays', data: 1 }, { id: 'x', type: 'nobody', data: 1 }]) // prettier-ignore
    expect(await box.handle({ id: 'f', type: 'note', data: 1, time })).toMatchObject({ status: 'handled' })
    expect(await box.handle({ id: 'f', type: 'note', data: 1, time })).toMatchObject({ status: 'duplicate' })
    const client = await pool.connect()
    await client.query('begin')
    expect(await box.once(client, 'loose', { id: 'g', type: 'note', data: 1 }, () => 1)).toMatchObject({ status: 'handled' }) // prettier-ignore
    await client.query('commit')
    client.release()
    await waitUntil(async () => {
      const { loose, lanes } = (await box.admin.status()).consumers
      return loose!.handled >= 6 && loose!.dead === 1 && lanes!.handled >= 4 && published.length >= 4
    })
    await box.admin.retry({ state: 'dead' }, { by: 'me' })
    await waitUntil(async () => (await box.admin.status()).consumers['loose']!.dead === 1)
    await box.admin.discard({ state: 'dead' }, { reason: 'no use' })
    await box.admin.retry({ state: 'handled', id: 'a' })
    await waitUntil(async () => (await box.admin.status()).consumers['loose']!.pending === 0)
    await box.admin.pause('loose')
    await box.admin.resume('loose')
    await box.admin.prune()
    expect((await box.admin.messages({ type: 'note' })).entries.length).toBeGreaterThan(6)
    await waitUntil(async () => (await box.admin.messages({ box: 'outbox' })).entries.length === 0)
    expect((await box.admin.message({ id: 'x' }))[0]).toMatchObject({ reason: 'unrouted' })
    expect((await box.admin.audit()).records.map(({ action }) => action)).toContain('prune')
    expect(await box.health()).toMatchObject({ database: true })
    await box.admin.removeSink('sink').catch((error: unknown) => expect(error).toMatchObject({ code: 'SINK_IN_USE' }))
    await box.stop()
    expect(await box.admin.markHandled('lanes', ['a', 'm1', 'm2'])).toBeGreaterThan(0)
    expect(await box.admin.removeConsumer('lanes', { discard: true, forget: true })).toBeGreaterThan(0)
    expect((await box.admin.consumers()).map(({ name }) => name)).toContain('loose')
    expect(troubles).toEqual([])
    expect(JSON.stringify(said)).not.toContain('hostile')
  })
})

/** Grammar that looks like a call of a function of the same name, and cannot be taken over. */
const KEYWORDS = /: (?:any|array|coalesce|exists|extract|greatest|in|least|nullif|position|substring|values)$/

test.for<[path: string, first: string]>([
  ['public, pg_catalog', 'public'],
  // Whoever may create schemas can create these later.
  ['tenant, pg_catalog', 'tenant'],
  ['"$user", pg_catalog', '$user'],
  ['pg_temp, "a, ""pg_catalog""", PG_Catalog', 'a, "pg_catalog"'],
])('a session with the path %s is refused, with the way out', async ([path, first]) => {
  const hostile = await sessionsWith(path)
  const box = createBox({ db: fromPg(hostile), schema })
  const refused = {
    code: 'SEARCH_PATH_UNSAFE',
    message: expect.stringContaining(`has ${JSON.stringify(first)} before`) as string,
  }
  await expect(box.start()).rejects.toMatchObject(refused)
  await expect(box.migrate()).rejects.toMatchObject(refused)
})

test.for(['tenant, "pg_catalog "', 'pg_temp, pg_catalog, public', '"pg_catalog", tenant', ''])(
  'a session with the path %s is not',
  async (path) => {
    const box = createBox({ db: fromPg(await sessionsWith(path)), schema })
    await box.migrate()
    await box.start()
    await box.stop()
  },
)

async function sessionsWith(path: string): Promise<pg.Pool> {
  const given = new pg.Pool({
    connectionString: database.url,
    max: 4,
    options: `-c search_path=${path.replaceAll(' ', '\\ ')}`,
  })
  onTestFinished(() => given.end())
  const { rows } = await given.query<{ it: string }>(`select pg_catalog.current_setting('search_path') it`)
  expect(rows[0]!.it).toBe(path)
  return given
}
