/** Drizzle keeps what every driver must, on each of its clients, in the oldest and the newest version. */
import { describe } from 'vitest'
import { ALL } from './all.js'
import { subject } from './subject.js'
import { conformanceOf } from './suite.js'
import { installed } from './versions.js'

const onPglite = await subject('drizzle-pglite')
const onPostgres = await subject('drizzle-postgres')

/** The network fails under the driver underneath in the same way, whatever sits on it. */
const faults = ALL ? {} : { faults: false }
const newest = (): Promise<string> => installed('drizzle-orm@1.0.0-rc.5')

describe('Drizzle 0.45', () => {
  describe('on pg', () => conformanceOf({ name: 'drizzle-pg' }))
  describe('on postgres.js', () =>
    conformanceOf({ name: 'drizzle-postgres' }, { ...onPostgres.capabilities, ...faults }))
  describe('on PGlite', () => conformanceOf({ name: 'drizzle-pglite' }, onPglite.capabilities))
})

describe('Drizzle 1.0', () => {
  const version = { from: newest }
  describe('on pg', () => conformanceOf({ name: 'drizzle-pg', ...version }, faults))
  describe('on postgres.js', () =>
    conformanceOf({ name: 'drizzle-postgres', ...version }, { ...onPostgres.capabilities, ...faults }))
  describe('on PGlite', () => conformanceOf({ name: 'drizzle-pglite', ...version }, onPglite.capabilities))
})
