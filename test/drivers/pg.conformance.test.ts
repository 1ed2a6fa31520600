import pg from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { fromPg } from 'oncebox/pg'
import { driverConformance } from '../../src/testing/driver-conformance.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'

let database: ScratchDatabase
beforeAll(async () => {
  database = await scratchDatabase('driver_pg')
})
afterAll(() => database.close())

/** The same suite with pg as it is, and as it was before it had a pipeline mode and told the transaction's status. */
const variants = {
  'pg, pipelined': (config: pg.PoolConfig) => new pg.Pool(config),
  'pg, pipelined by its owner too': (config: pg.PoolConfig) => new pg.Pool({ ...config, pipeline: true }),
  'pg without pipeline mode': (config: pg.PoolConfig) => new pg.Pool({ ...config, Client: OldClient }),
}

class OldClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    Object.defineProperty(this, 'pipeline', { get: () => undefined, set: () => {} })
    Object.defineProperty(this, 'getTransactionStatus', { value: undefined })
  }
}

for (const [variant, open] of Object.entries(variants)) {
  describe(variant, () => {
    const suite = driverConformance({
      async open() {
        const pool = open({ connectionString: database.url, max: 4 })
        const side = new pg.Client(database.url)
        side.on('error', () => {})
        await side.connect()
        return {
          driver: fromPg(pool),
          root: pool,
          native: (tx: pg.PoolClient, text: string) => tx.query(text),
          outside: async (text: string) => (await side.query(text)).rows,
          async idle() {
            const client = await pool.connect()
            return { tx: client, close: async () => client.release() }
          },
          async close() {
            await pool.end()
            await side.end()
          },
        }
      },
    })
    for (const { name, run } of suite) test(name, run)
  })
}
