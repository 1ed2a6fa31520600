import { describe } from 'vitest'
import { conformanceOf, OLD_PG } from './suite.js'
import { installed } from './versions.js'

describe('Knex 3.3', () => conformanceOf({ name: 'knex' }))
describe('Knex 3.0', () => conformanceOf({ name: 'knex', from: () => installed('knex@3.0.1', 'pg@8.11.0') }, OLD_PG))
