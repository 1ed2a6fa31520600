import { describe } from 'vitest'
import { conformanceOf, OLD_PG } from './suite.js'
import { installed } from './versions.js'

describe('TypeORM 1', () => conformanceOf({ name: 'typeorm' }))
describe('TypeORM 0.3', () =>
  conformanceOf({ name: 'typeorm', from: () => installed('typeorm@0.3.12', 'pg@8.11.0') }, OLD_PG))
