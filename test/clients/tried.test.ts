/** The table of clients in the docs says what the tests of this folder, and of ../drivers, try. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { type DriverCapabilities, driverConformance } from '../../src/testing/driver-conformance/index.js'
import { readPage, ROOT } from '../docs/markdown.js'
import { subject } from './subject.js'

const POSTGRES = { commitWarnings: false }
const PGLITE = { parallel: false, commitWarnings: false, faults: false }

/** The package and its versions: the one of package.json, and those that a test installs or has under another name. */
const TRIED: [client: string, name: string, also: string[], capabilities?: DriverCapabilities][] = [
  ['pg', 'pg', ['8.11.0']],
  ['postgres.js', 'postgres', ['3.4.5'], POSTGRES],
  ['PGlite', '@electric-sql/pglite', ['0.3.0'], PGLITE],
  ['Drizzle on pg', 'drizzle-orm', ['1.0.0-rc.5']],
  ['Drizzle on postgres.js', 'drizzle-orm', ['1.0.0-rc.5'], (await subject('drizzle-postgres')).capabilities],
  ['Drizzle on PGlite', 'drizzle-orm', ['1.0.0-rc.5'], (await subject('drizzle-pglite')).capabilities],
  ['Kysely', 'kysely', ['0.29.8']],
  ['Knex', 'knex', ['3.0.1']],
  ['MikroORM', '@mikro-orm/postgresql', ['7.2.0', '7.2.1']],
  ['Prisma', '@prisma/client', ['7.9.1'], { together: false }],
  ['Sequelize', 'sequelize', ['6.31.0']],
  ['TypeORM', 'typeorm', ['0.3.12']],
]
/** Of MikroORM package.json has a version for its types, which is not the one that is tried. */
const ONLY_THOSE = ['@mikro-orm/postgresql']

const sources = ['test/clients', 'test/drivers', 'test/versions'].flatMap((directory) =>
  readdirSync(path.join(ROOT, directory))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(path.join(ROOT, directory, file), 'utf8')),
)
const devDependencies: Record<string, string> = manifest.devDependencies

test('the page names every client, its versions, and how many cases of the conformance suite it passes', () => {
  const rows = TRIED.map(([client, name, also, capabilities = {}]) => {
    const own = ONLY_THOSE.includes(name) ? [] : [devDependencies[name]!.replace('^', '')]
    const open = (): never => {
      throw new Error('not to be run')
    }
    return [client, [...also, ...own].sort().join(', '), String(driverConformance({ open, capabilities }).length)]
  })
  const shown = readPage('docs/drivers.md')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells.length === 5 && /^\d+$/.test(cells[3]!))
    .map((cells) => cells.slice(1, 4))
  expect(shown).toEqual(rows)
})

test.each(TRIED.flatMap(([, name, also]) => also.map((version) => [name, version])))(
  '%s %s is tried',
  (name, version) => {
    const installs = sources.some((text) => text.includes(`${name}@${version}`))
    const aliased = Object.values(devDependencies).includes(`npm:${name}@${version}`)
    expect(installs || aliased).toBe(true)
  },
)
