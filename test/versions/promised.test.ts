/** What the pages and the hints promise of clients is what package.json asks for. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const read = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
const { peerDependencies, devDependencies, peerDependenciesMeta } = JSON.parse(await read('package.json')) as {
  peerDependencies: Record<string, string>
  devDependencies: Record<string, string>
  peerDependenciesMeta: Record<string, { optional?: boolean }>
}
const lowest = (name: string): string => peerDependencies[name]!.replace('>=', '')

/** What a page calls the client, where that is not the name of its package. */
const CALLED: Record<string, string> = {
  pg: 'pg (node-postgres)',
  postgres: 'postgres.js',
  '@electric-sql/pglite': 'PGlite',
}
const PAGES: Record<string, string> = {
  pg: 'docs/drivers.md',
  postgres: 'docs/drivers.md',
  '@electric-sql/pglite': 'docs/drivers.md',
  '@aws-sdk/client-sqs': 'docs/sqs.md',
  '@confluentinc/kafka-javascript': 'docs/kafka.md',
  '@nats-io/jetstream': 'docs/nats.md',
  '@nats-io/transport-node': 'docs/nats.md',
  amqplib: 'docs/rabbitmq.md',
  kafkajs: 'docs/kafka.md',
  redis: 'docs/redis.md',
}

/**
 * npm installs nothing whose optional peers do not fit those that a project has: whoever has an older ORM or framework, and
 * does not use it with oncebox, must be able to install it. So these may be of any version. What is too old is refused when
 * it is used; the pages name what is promised.
 */
const OF_ANY_VERSION: Record<string, readonly [page: string, promise: string]> = {
  '@mikro-orm/postgresql': ['docs/drivers.md', '[MikroORM](mikro-orm.md) ≥ 7.2'],
  '@nestjs/common': ['docs/nest.md', 'Nest 10.2, 11 and 12'],
  '@nestjs/core': ['docs/nest.md', 'Nest 10.2, 11 and 12'],
  '@nestjs/terminus': ['docs/nest.md', '[Terminus](https://docs.nestjs.com/recipes/terminus) ≥ 11'],
  '@opentelemetry/api': ['docs/tracing.md', '`@opentelemetry/api` (version 1, from 1.9)'],
  '@prisma/client': ['docs/drivers.md', '[Prisma](prisma.md) ≥ 7.10'],
  'drizzle-orm': ['docs/drivers.md', '[Drizzle](drizzle.md) ≥ 0.45'],
  knex: ['docs/drivers.md', '[Knex](knex.md) ≥ 3.0.1'],
  kysely: ['docs/drivers.md', '[Kysely](kysely.md) ≥ 0.28'],
  sequelize: ['docs/drivers.md', '[Sequelize](sequelize.md) 6 ≥ 6.31'],
  typeorm: ['docs/drivers.md', '[TypeORM](typeorm.md) ≥ 0.3.12'],
}

test.each(Object.entries(OF_ANY_VERSION))('a project with any version of %s can install it', async (name, promise) => {
  expect(peerDependencies[name]).toBe('*')
  expect(peerDependenciesMeta[name]).toEqual({ optional: true })
  const [page, words] = promise
  expect(await read(page)).toContain(words)
})

const limited = Object.keys(peerDependencies).filter((name) => !(name in OF_ANY_VERSION))
test.each(limited)('the page of %s names its lowest version', async (name) => {
  expect(PAGES).toHaveProperty([name])
  const page = await read(PAGES[name]!)
  expect(page).toMatch(new RegExp(`${escaped(CALLED[name] ?? name)} ≥ ${escaped(lowest(name))}(?![.]?\\d)`))
  expect(peerDependenciesMeta[name]).toEqual({ optional: true })
})

test('README.md names the lowest versions of the drivers', async () => {
  const [pg, postgres, pglite] = ['pg', 'postgres', '@electric-sql/pglite'].map(lowest)
  expect(await read('README.md')).toContain(`pg ≥ ${pg}, postgres.js ≥ ${postgres}, PGlite ≥ ${pglite}.`)
})

test.each([
  ['pg', 'pg-lowest'],
  ['postgres', 'postgres-lowest'],
  ['@electric-sql/pglite', 'pglite-lowest'],
])('the lowest %s that is promised is the one that is tried', (name, alias) => {
  const [major, minor, patch = '0'] = lowest(name).split('.')
  expect(devDependencies[alias]).toBe(`npm:${name}@${major}.${minor}.${patch}`)
})

function escaped(text: string): string {
  return text.replaceAll(/[.()/]/g, '\\$&')
}
