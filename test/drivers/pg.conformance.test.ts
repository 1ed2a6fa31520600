import pg from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { driverConformance } from '../../src/testing/driver-conformance/index.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { type OpenPool, pgSubject } from './subjects.js'

let database: ScratchDatabase
beforeAll(async () => {
  database = await scratchDatabase('driver_pg')
})
afterAll(() => database.close())

/** The same suite with pg as it is, and as it was before it had a pipeline mode and told the transaction's status. */
const variants: Record<string, OpenPool> = {
  'pg, pipelined': (config) => new pg.Pool(config),
  'pg, pipelined by its owner too': (config) => new pg.Pool({ ...config, pipeline: true }),
  'pg without pipeline mode': (config) => new pg.Pool({ ...config, Client: OldClient }),
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
    const capabilities = { together: variant !== 'pg without pipeline mode' }
    const subject = { ...pgSubject(() => database.url, open), capabilities }
    for (const { name, run } of driverConformance(subject)) test(name, run)
  })
}
