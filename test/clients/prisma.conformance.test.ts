/** Prisma keeps what every driver must. */
import { describe } from 'vitest'
import { formerPrisma } from './prisma.js'
import { conformanceOf } from './suite.js'

/** Its transaction runs one statement after the other. */
const LACKING = { together: false }

describe('Prisma 7.10', () => conformanceOf({ name: 'prisma' }, LACKING))
describe('Prisma 7.9', () => conformanceOf({ name: 'prisma', from: formerPrisma }, LACKING))
