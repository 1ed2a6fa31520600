/** Prisma keeps what every driver must. */
import { describe } from 'vitest'
import { conformanceOf } from './suite.js'

describe('Prisma', () => conformanceOf({ name: 'prisma' }))
