/** MikroORM keeps what every driver must. */
import { describe } from 'vitest'
import { FIRST_MIKRO_ORM, MIKRO_ORM } from './mikro-orm.js'
import { conformanceOf } from './suite.js'

describe('MikroORM 7.2.1', () => conformanceOf({ name: 'mikro-orm', from: MIKRO_ORM }))
describe('MikroORM 7.2.0', () => conformanceOf({ name: 'mikro-orm', from: FIRST_MIKRO_ORM }))
