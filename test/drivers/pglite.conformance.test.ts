import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { driverConformance } from '../../src/testing/driver-conformance/index.js'
import { pgliteSubject } from './subjects.js'

describe('PGlite', () => {
  let db: PGlite
  beforeAll(async () => {
    db = await PGlite.create()
  })
  afterAll(() => db.close())

  for (const { name, run } of driverConformance(pgliteSubject(() => db))) test(name, run)
})
