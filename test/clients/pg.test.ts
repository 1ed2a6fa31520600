/** The yardstick: pg keeps what every other client must. Its conformance is in ../drivers. */
import { describe } from 'vitest'
import { promisesOf } from './suite.js'

describe('pg', () => promisesOf({ name: 'pg' }))
