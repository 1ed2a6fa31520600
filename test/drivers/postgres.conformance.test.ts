import postgres from 'postgres'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { fromPostgres } from 'oncebox/postgres'
import { driverConformance } from '../../src/testing/driver-conformance.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'

let database: ScratchDatabase
beforeAll(async () => {
  database = await scratchDatabase('driver_postgres')
})
afterAll(() => database.close())

const variants = {
  'postgres.js': {},
  'postgres.js with camel case': { transform: postgres.camel },
  'postgres.js without prepared statements': { prepare: false },
}

for (const [variant, options] of Object.entries(variants)) {
  describe(variant, () => {
    const suite = driverConformance({
      async open() {
        const sql = postgres(database.url, { ...options, max: 4, onnotice: () => {} })
        const side = postgres(database.url, { max: 1, onnotice: () => {} })
        return {
          driver: fromPostgres(sql),
          root: sql,
          native: async (tx: postgres.TransactionSql, text: string) => await tx.unsafe(text),
          outside: async (text: string) => await side.unsafe(text),
          async idle() {
            let over: postgres.TransactionSql | undefined
            await sql.begin(async (tx) => {
              over = tx
            })
            return { tx: over!, close: async () => {} }
          },
          async close() {
            // It waits for connections that were killed, too.
            await sql.end({ timeout: 0.1 })
            await side.end()
          },
        }
      },
      // postgres.js hands notices to an option that only the owner of the pool can set.
      capabilities: { commitWarnings: false },
    })
    for (const { name, run } of suite) test(name, run)
  })
}
