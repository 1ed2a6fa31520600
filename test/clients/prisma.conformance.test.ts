/** Prisma keeps what every driver must. */
import { describe } from 'vitest'
import { formerPrisma } from './prisma.js'
import { conformanceOf } from './suite.js'

describe('Prisma 7.10', () => conformanceOf({ name: 'prisma' }))
describe('Prisma 7.9', () => conformanceOf({ name: 'prisma', from: formerPrisma }))
