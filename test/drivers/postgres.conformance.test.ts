import postgres from 'postgres'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { driverConformance } from '../../src/testing/driver-conformance/index.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { postgresSubject } from './subjects.js'

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
    const subject = postgresSubject(
      () => database.url,
      (url, given) => postgres(url, { ...given, ...options }),
    )
    for (const { name, run } of driverConformance(subject)) test(name, run)
  })
}
