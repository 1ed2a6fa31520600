/** What a role or a database sets for its sessions must not change what our own statements mean. */
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { bindDatabase } from '../../src/postgres/database.js'
import { statement } from '../../src/postgres/statement.js'
import { gate } from '../inbox/fixture.js'
import { environment } from '../support/environments.js'

const DRIVERS = {
  pg: (url: string) => {
    const pool = new pg.Pool({ connectionString: url })
    pool.on('error', () => {})
    onTestFinished(() => pool.end())
    return fromPg(pool)
  },
  'pg without pipeline mode': (url: string) => {
    class OldClient extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super(config)
        Object.defineProperty(this, 'pipeline', { get: () => undefined, set: () => {} })
      }
    }
    const pool = new pg.Pool({ connectionString: url, Client: OldClient })
    onTestFinished(() => pool.end())
    return fromPg(pool)
  },
  'postgres.js': (url: string) => {
    const sql = postgres(url, { onnotice: () => {} })
    onTestFinished(() => sql.end({ timeout: 0 }))
    return fromPostgres(sql)
  },
}

async function driverOf(name: keyof typeof DRIVERS, settings: Record<string, string>) {
  const env = await environment('role', { settings })
  onTestFinished(() => env.close())
  return { env, db: DRIVERS[name](env.url) as ReturnType<typeof fromPg<pg.PoolClient>> }
}

const SHOW = statement<
  null,
  Record<string, string>
>(`select current_setting('transaction_isolation') isolation, current_setting('transaction_read_only') read_only,
  current_setting('statement_timeout') statement, current_setting('lock_timeout') lock,
  current_setting('client_min_messages') heard where $1::text is not null`)

const PLAIN = { isolation: 'read committed', read_only: 'off', statement: '0', lock: '0', heard: 'notice' }

const CASES: [settings: Record<string, string>, seen: typeof PLAIN][] = [
  [{}, PLAIN],
  [{ default_transaction_isolation: 'repeatable read' }, PLAIN],
  [{ default_transaction_isolation: 'serializable' }, PLAIN],
  [{ default_transaction_read_only: 'on' }, PLAIN],
  [{ statement_timeout: '500ms' }, { ...PLAIN, statement: '1min' }],
  [{ lock_timeout: '5ms' }, PLAIN],
  // This server has no standbys: there is nothing to be warned of.
  [{ client_min_messages: 'error' }, { ...PLAIN, heard: 'error' }],
  [{ client_min_messages: 'warning' }, { ...PLAIN, heard: 'warning' }],
  // Long enough: left as the owner wants it.
  [
    { statement_timeout: '30s', lock_timeout: '20s' },
    { ...PLAIN, statement: '30s', lock: '20s' },
  ],
]

describe.each(Object.keys(DRIVERS) as (keyof typeof DRIVERS)[])('%s', (name) => {
  test.each(CASES)('a role with %j', async (settings, seen) => {
    const { db } = await driverOf(name, settings)
    const database = bindDatabase(db, 'any')
    for (const rows of [await database.run(SHOW, null), await database.run(SHOW, null)]) {
      expect({ ...rows[0] }).toEqual(seen)
    }
    const inside = await database.transaction((tx) => database.run(SHOW, null, tx))
    expect(inside[0]).toMatchObject({ isolation: 'read committed', read_only: 'off', heard: seen.heard })
    // Nothing is left behind in the session.
    const [plain] = await db.query(`select current_setting('transaction_isolation') isolation`, [])
    expect(plain?.['isolation']).toBe(settings['default_transaction_isolation'] ?? 'read committed')
  })

  test('one contended message does not reject its batch under a short statement timeout', async () => {
    const { db } = await driverOf(name, { statement_timeout: '500ms' })
    const box = createBox({ db })
    const [inside, go] = [gate(), gate()]
    box.consumer('one', {
      note: async () => {
        inside.open()
        await go.opened
      },
    })
    await box.migrate()
    const note = (id: string) => ({ id, type: 'note', data: {} })
    const handling = box.handle(note('a'))
    await inside.opened
    const outcomes = await box.receive([note('a'), note('b'), note('c')])
    go.open()
    await handling
    expect(outcomes.map(({ status }) => status)).toEqual(['busy', 'stored', 'stored'])
  })
})

test.for(Object.keys(DRIVERS) as (keyof typeof DRIVERS)[])(
  '%s: a box starts and handles though sessions are read-only by default',
  async (driver) => {
    const { env, db } = await driverOf(driver, {})
    const box = createBox({ db, schema: 'readonly_default', logger: SILENT })
    const handled = gate()
    box.consumer('a', { note: () => handled.open() })
    await box.migrate()
    await setDefault(env, 'on')
    const later = createBox({ db: DRIVERS[driver](env.url) as typeof db, schema: 'readonly_default', logger: SILENT })
    onTestFinished(() => later.stop())
    later.consumer('a', { note: () => handled.open() })
    await later.start()
    await later.receive({ id: '1', type: 'note', data: null })
    await handled.opened
  },
)

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

async function setDefault({ direct, role }: { direct: string; role: string }, value: string): Promise<void> {
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  await client.query(`alter role ${role} set default_transaction_read_only = ${value}`)
  await client.end()
}
