/** Whatever else is passed in place of a client is refused at once, with what to pass instead. */
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'
import { fromPostgres } from 'oncebox/postgres'

const url = 'postgres://localhost/none'
/** None of them connects: they are made, and looked at. */
const GIVEN: Record<string, unknown> = {
  'a connection string': url,
  undefined,
  null: null,
  'a number': 5432,
  'an options object': { connectionString: url },
  'a pool of pg': new pg.Pool({ connectionString: url }),
  'a client of pg': new pg.Client(url),
  'the sql of postgres.js': postgres(url),
  PGlite: Object.create(PGlite.prototype),
  Drizzle: { $client: {}, select: () => {}, transaction: () => {}, execute: () => {} },
  Prisma: { $transaction: () => {}, $queryRaw: () => {}, $connect: () => {} },
  Knex: Object.assign(() => {}, { raw: () => {}, transaction: () => {}, select: () => {} }),
  Sequelize: { connectionManager: {}, transaction: () => {}, query: () => {}, define: () => {} },
  TypeORM: { createQueryRunner: () => {}, transaction: () => {}, query: () => {}, manager: {} },
  Kysely: { getExecutor: () => {}, transaction: () => {}, selectFrom: () => {} },
}

const TAKES: Record<string, [from: (given: never) => unknown, takes: string]> = {
  fromPg: [fromPg, 'a pool of pg'],
  fromPostgres: [fromPostgres, 'the sql of postgres.js'],
  fromPglite: [fromPglite, 'PGlite'],
}

describe.each(Object.entries(TAKES))('%s', (name, [from, takes]) => {
  test.each(Object.entries(GIVEN))('given %s', (what, given) => {
    const call = (): unknown => from(given as never)
    if (what === takes) expect(call).not.toThrow()
    else expect(call).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  test('says what to pass instead', () => {
    expect(() => from(url as never)).toThrow(new RegExp(`^${name} takes .*; got a text`))
  })
})

describe('createBox', () => {
  const drivers = ['a connection string', 'undefined', 'null', 'a number', 'an options object']
  test.each(Object.entries(GIVEN))('given %s in place of a driver', (what, given) => {
    const call = (): unknown => createBox({ db: given as never })
    expect(call).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    if (!drivers.includes(what))
      expect(call).toThrow(/^createBox: db must be a driver; got .*: (use|pass)|got a single client/)
  })
})
