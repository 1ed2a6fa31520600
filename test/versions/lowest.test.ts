/** The lowest version of each client that is promised, on the oldest and the newest PostgreSQL that are. */
import type { PoolClient } from 'pg'
import pgLowest from 'pg-lowest'
import { PGlite as LowestPGlite } from 'pglite-lowest'
import type { PGlite } from '@electric-sql/pglite'
import postgresLowest from 'postgres-lowest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBox, type Driver } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'
import { fromPostgres } from 'oncebox/postgres'
import { bindDatabase } from '../../src/postgres/database.js'
import { driverConformance } from '../../src/testing/driver-conformance/index.js'
import { pgliteSubject, pgSubject, postgresSubject } from '../drivers/subjects.js'
import { type PostgresServer, scratchSchemaName, startPostgres } from '../support/postgres.js'
import { statements } from './statements.js'
import { liveOnce } from './whole-box.js'

/** A fresh machine gets the server first. */
const INSTALL_MS = 300_000

describe.each([14, 18])('PostgreSQL %i', (major) => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres({ embedded: major })
  }, INSTALL_MS)
  afterAll(() => server?.stop())
  const url = () => server.url

  test('it is that version', async () => {
    expect(await server.version()).toMatch(new RegExp(`^${major}\\.`))
  })

  describe('pg', () => {
    const pool = () => new pgLowest.Pool({ connectionString: url(), max: 6 })
    // It has no pipeline mode, without which handlers do not share a transaction side by side.
    const subject = { ...pgSubject(url, (config) => new pgLowest.Pool(config)), capabilities: { together: false } }
    for (const { name, run } of driverConformance(subject)) test(name, run)

    test('a whole box', async () => {
      const own = pool()
      onTestFinished(() => own.end())
      await liveOnce(fromPg(own))
    })

    test('a config of a statement can be used again, and is left as it was', async () => {
      const own = pool()
      onTestFinished(() => own.end())
      const config = { name: 'again', text: 'select $1::text as x' }
      const answers = await lent(fromPg(own), async (tx) => {
        const rows: unknown[] = []
        for (const x of ['a', 'b', 'c']) rows.push((await tx.query(config, [x])).rows[0])
        return rows
      })
      expect(answers).toEqual([{ x: 'a' }, { x: 'b' }, { x: 'c' }])
      expect(config).not.toHaveProperty('callback')
    })

    test('a value that cannot be sent fails its statement, once', async () => {
      const own = pool()
      own.on('error', () => {})
      onTestFinished(() => own.end())
      const unheard: unknown[] = []
      const note = (error: unknown): void => void unheard.push(error)
      process.on('unhandledRejection', note)
      onTestFinished(() => void process.off('unhandledRejection', note))
      const sending = lent(fromPg(own), (tx) => tx.query('select $1::text', [{ cents: 10n }]))
      await expect(sending).rejects.toThrow()
      await own.query('select 1')
      expect(unheard).toEqual([])
    })

    test('every statement', async () => {
      const own = pool()
      onTestFinished(() => own.end())
      await parseAll(fromPg(own))
    })
  })

  describe('postgres.js', () => {
    for (const { name, run } of driverConformance(postgresSubject(url, postgresLowest))) test(name, run)

    test('a whole box', async () => {
      const sql = postgresLowest(url(), { max: 6, onnotice: () => {} })
      onTestFinished(() => sql.end({ timeout: 1 }))
      await liveOnce(fromPostgres(sql))
    })
  })
})

describe('PGlite', () => {
  let db: PGlite
  beforeAll(async () => {
    db = await LowestPGlite.create()
  })
  afterAll(() => db.close())

  for (const { name, run } of driverConformance(pgliteSubject(() => db))) test(name, run)
  test('a whole box', () => liveOnce(fromPglite(db)))
  test('every statement', () => parseAll(fromPglite(db)))
})

/** Lets the server read and analyze every statement: also those that a short life never comes to. */
async function parseAll<Tx, TxIn>(driver: Driver<Tx, TxIn>): Promise<void> {
  const schema = scratchSchemaName()
  await createBox({ db: driver, schema }).migrate()
  const { bind: bound } = bindDatabase(driver, schema)
  // A link moves events from one box to another.
  const bind = (statement: string): string => bound(statement.replace(/\bto_box\./g, 'ob.'))
  const all = await statements()
  expect(all.size).toBeGreaterThan(90)
  const refused: string[] = []
  for (const [name, statement] of all) {
    const prepared = driver.query(`prepare oncebox_trial as ${bind(statement)}; deallocate oncebox_trial`, [])
    await prepared.catch((error: unknown) => refused.push(`${name}: ${String(error)}`))
  }
  expect(refused).toEqual([])
}

/** Runs work with a client as a handler gets it. */
function lent<T>(driver: ReturnType<typeof fromPg<PoolClient>>, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  return driver.transaction(async (tx) => {
    const loan = driver.lend!(tx)
    const answer = await work(loan.tx)
    await loan.giveBack()
    return answer
  })
}
