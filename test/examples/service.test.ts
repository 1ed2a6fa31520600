/** The service of the README: an order goes in twice, one event comes out, and a signal ends it in peace. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { connect, type ChannelModel } from 'amqplib'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { start } from '../../tools/services/rabbitmq.mjs'
import type { PrivateService } from '../../tools/services/process.mjs'
import { blocksOf, readPage, ROOT } from '../docs/markdown.js'
import { freePort, type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { spawnChild, waitUntil } from '../support/processes.js'

const FILE = path.join(ROOT, 'examples/service.mjs')

let database: ScratchDatabase
let pool: pg.Pool
let broker: PrivateService
let connection: ChannelModel
beforeAll(async () => {
  database = await scratchDatabase('service')
  pool = new pg.Pool({ connectionString: database.url })
  broker = (await start()) as PrivateService
  connection = await connect(broker.url)
}, 300_000)
afterAll(async () => {
  await connection?.close()
  await broker?.stop()
  await pool?.end()
  await database?.close()
})

test('the README shows the file', async () => {
  const shown = blocksOf(readPage('README.md')).find(({ title }) => title === 'service.ts')
  expect(shown?.text).toBe(await readFile(FILE, 'utf8'))
})

test('an order that comes twice is reserved once, and is told of once', async () => {
  await pool.query(`create table stock (sku text primary key, quantity int); insert into stock values ('tea', 10)`)
  const channel = await connection.createConfirmChannel()
  await channel.assertExchange('stock', 'topic')
  await channel.assertQueue('reserved', { exclusive: true })
  await channel.bindQueue('reserved', 'stock', '#')

  const port = await freePort()
  const service = spawnChild(FILE, {
    env: { DATABASE_URL: database.url, AMQP_URL: broker.url, PORT: String(port) },
  })
  const healthy = () =>
    fetch(`http://127.0.0.1:${port}`)
      .then(({ status }) => status === 200)
      .catch(() => false)
  await waitUntil(healthy, { what: 'the service to be healthy', timeoutMs: 60_000 })

  const order = Buffer.from('{"sku":"tea","quantity":3}')
  for (const _ of ['once', 'again']) {
    channel.publish('', 'orders', order, {
      messageId: 'order-1',
      type: 'order.placed',
      contentType: 'application/json',
    })
  }
  await channel.waitForConfirms()

  const told: unknown[] = []
  await channel.consume('reserved', (message) => told.push(JSON.parse(message!.content.toString())), { noAck: true })
  await waitUntil(async () => told.length > 0, { what: 'the event', timeoutMs: 60_000 })
  await waitUntil(async () => (await channel.checkQueue('orders')).messageCount === 0, { what: 'an empty queue' })

  await service.kill('SIGTERM')
  expect(await service.exited).toEqual({ code: 0, signal: null })
  expect(told).toEqual([{ sku: 'tea', left: 7 }])
  expect((await pool.query('select quantity from stock')).rows).toEqual([{ quantity: 7 }])
})
