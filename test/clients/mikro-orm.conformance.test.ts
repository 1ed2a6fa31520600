/** MikroORM keeps what every driver must. */
import { describe } from 'vitest'
import { MIKRO_ORM } from './mikro-orm.js'
import { conformanceOf } from './suite.js'

describe('MikroORM 7', () => conformanceOf({ name: 'mikro-orm', from: MIKRO_ORM }))
