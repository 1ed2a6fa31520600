/** Connections that are taken and never answered, as of a server that froze behind a load balancer, while new ones work. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, onTestFinished, test } from 'vitest'
import { lazyPool } from '../../src/clients/mikro-orm/pool.js'
import { note, recorder, useServer } from '../inbox/fixture.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('opening')

/** Those that have a place in the pool, connected or not. */
function clientsOf(pool: pg.Pool): readonly { readonly _connected: boolean }[] {
  return (pool as unknown as { _clients: { _connected: boolean }[] })._clients
}

test('a worker goes on though connections that it was opening are never answered', { timeout: 240_000 }, async () => {
  const box = await server.open()
  const proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 2 })
  pool.on('error', () => {})
  const worker = createBox({ db: fromPg(pool), schema: box.schema, logger: recorder() })
  onTestFinished(async () => {
    await worker.stop({ timeoutMs: 1_000 })
    await proxy.close()
    await pool.end()
    await box[Symbol.asyncDispose]()
  })
  const handled: string[] = []
  worker.consumer('a', { note: ({ id }) => void handled.push(id) }, { concurrency: 1, leaseMs: 4_000 })
  await worker.start()
  await box.receive(note('before'))
  await waitUntil(() => handled.length === 1, { what: 'the first to be handled' })
  proxy.pause()
  proxy.cutAll()
  const isStuck = () => clientsOf(pool).length === 2 && clientsOf(pool).every(({ _connected }) => !_connected)
  await waitUntil(isStuck, { what: 'both places to be taken by connections that are not answered' })
  // New connections are answered from here on, and these never are.
  proxy.resume()
  proxy.swallow()
  await box.receive(note('after'))
  // After a minute this server would end them (authentication_timeout); of one that froze nobody does.
  await waitUntil(() => handled.length === 2, { timeoutMs: 50_000, what: 'the second to be handled' })
  expect(handled).toEqual(['before', 'after'])
})

/** How long a client of this pool may take to connect, once a box uses the pool; 0 for ever. */
function openingMs(config: pg.PoolConfig): number {
  const pool = new pg.Pool(config)
  fromPg(pool)
  return limitOf(pool)
}

function limitOf(pool: pg.Pool): number {
  const { Client } = pool as unknown as {
    Client: new (config: object) => { readonly _connectionTimeoutMillis: number }
  }
  return new Client(pool.options)._connectionTimeoutMillis
}

test('how long a pool waits for a connection is its owner’s to say, also that it has no limit', () => {
  expect(openingMs({})).toBe(30_000)
  expect(openingMs({ connectionTimeoutMillis: 5_000 })).toBe(5_000)
  expect(openingMs({ connectionTimeoutMillis: 0 })).toBe(0)
})

test('a pool that comes by a promise has the same limit', async () => {
  const pool = new pg.Pool({})
  const lazy = lazyPool(() => Promise.resolve(pool))
  fromPg(lazy.pool)
  await lazy.ready()
  expect(limitOf(pool)).toBe(30_000)
})
