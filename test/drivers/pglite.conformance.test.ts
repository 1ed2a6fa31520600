import { PGlite, type Transaction } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { fromPglite } from 'oncebox/pglite'
import { driverConformance } from '../../src/testing/driver-conformance.js'

describe('PGlite', () => {
  let db: PGlite
  beforeAll(async () => {
    db = await PGlite.create()
  })
  afterAll(() => db.close())

  const suite = driverConformance({
    open: async () => ({
      driver: fromPglite<Transaction>(db),
      root: db,
      native: (tx, text) => (text.includes(';') ? tx.exec(text) : tx.query(text)),
      outside: async (text) => (await db.query<Record<string, unknown>>(text)).rows,
      async idle() {
        let over: Transaction | undefined
        await db.transaction(async (tx) => {
          over = tx
        })
        return { tx: over!, close: async () => {} }
      },
      close: async () => {},
    }),
    // One session for everybody, in this process; it has no notices either.
    capabilities: { parallel: false, commitWarnings: false },
  })
  for (const { name, run } of suite) test(name, run)
})
