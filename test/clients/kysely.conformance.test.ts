/** Kysely keeps what every driver must, in the version that runs on the oldest Node.js. The newest is in kysely.test.ts. */
import { describe } from 'vitest'
import { conformanceOf } from './suite.js'

describe('Kysely 0.28', () => conformanceOf({ name: 'kysely' }))
