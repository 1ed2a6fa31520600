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

test.each(Object.keys(peerDependencies))('the page of %s names its lowest version', async (name) => {
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
