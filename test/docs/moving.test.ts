/** The pages about moving in: their code runs as it stands, step after step, and each message has one effect. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import pg from 'pg'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { cli } from '../cli/fixture.js'
import { installed } from '../support/installed.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { recipesOf, runRecipe } from './recipe.js'

interface Order {
  id: string
  data: { orderId: string; sku: string; quantity: number }
}
const messages = defineMessages({ 'order.placed': unchecked<Order['data']>() })
const order = (id: string): Order => ({ id, data: { orderId: id, sku: 's', quantity: 1 } })

let database: ScratchDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('moving')
  pool = new pg.Pool({ connectionString: database.url, max: 8 })
  await pool.query(`create table processed (message_id text primary key, processed_at timestamptz not null default now());
    create table reserved (id text)`)
})
afterAll(async () => {
  await pool.end()
  await database.close()
})

const boxOf = () => {
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  return createBox({ db: fromPg(pool), messages, source: 'shop', logger })
}
const reserve = async (client: pg.PoolClient, { id }: { id: string }): Promise<void> => {
  await client.query('insert into reserved values ($1)', [id])
}
const reserved = async (): Promise<string[]> =>
  (await pool.query<{ id: string }>('select id from reserved order by id')).rows.map(({ id }) => id)

describe('from a dedup table', () => {
  const path = 'docs/moving-from-a-dedup-table.md'
  const recipes = recipesOf(path)
  const page = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const step = async (title: string, box: ReturnType<typeof boxOf>) => {
    const { values } = await runRecipe(recipes.get(title)!, { values: { box, pool, reserve } })
    return values as { onOrder(given: Order): Promise<boolean | void>; marked: number }
  }

  test('before, beside, switch and back: each message is handled once', async () => {
    const box = boxOf()
    await box.migrate()
    const before = await step('before.ts', box)
    for (const id of ['a', 'a', 'b', 'old']) await before.onOrder(order(id))
    await pool.query(`update processed set processed_at = now() - interval '100 days' where message_id = 'old'`)

    const beside = await step('beside.ts', box)
    for (const id of ['b', 'c', 'c']) await beside.onOrder(order(id))
    expect(await reserved()).toEqual(['a', 'b', 'c', 'old'])
    // The step before, once more, and again forward.
    await before.onOrder(order('c'))

    const after = await step('after.ts', box)
    await box.migrate()
    const [, command] = /^npx oncebox (import [^`]*)$/m.exec(page)!
    const argv = command!.split(/[\s\\]+/).filter(Boolean)
    const imported = await cli([...argv, '--yes', '--json'], { env: { DATABASE_URL: database.url } })
    expect(imported.documents).toMatchObject([{ rows: 4, marked: 2 }])
    expect((await step('history.ts', box)).marked).toBe(0)

    for (const id of ['a', 'b', 'c', 'd', 'old']) expect(await after.onOrder(order(id))).toBe(true)
    await beside.onOrder(order('e'))
    await box.drain()
    expect(await after.onOrder(order('e'))).toBe(true)
    await box.drain()
    expect(await reserved()).toEqual(['a', 'b', 'c', 'd', 'e', 'old'])

    // The way back: the table knows what the consumer has handled.
    for (const id of ['d', 'e', 'f']) await before.onOrder(order(id))
    expect(await reserved()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'old'])
  })
})

/** A box with the consumer of a page, and what it did. */
async function confirming(page: string) {
  const recipes = recipesOf(page)
  const schema = `moving_${page.replaceAll(/\W/g, '_')}`
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  const box = createBox({ db: fromPg(pool), messages, schema, logger })
  await pool.query('create table if not exists confirmation (order_id text); truncate confirmation')
  const mails: string[] = []
  const sendMail = async ({ orderId }: Pick<Order['data'], 'orderId'>): Promise<void> => void mails.push(orderId)
  const run = (title: string, values: object = {}) =>
    runRecipe(recipes.get(title)!, { values: { box, sendMail, ...values } })
  await run('consumer.ts')
  await box.migrate()
  const confirmed = async () => (await pool.query('select order_id from confirmation order by 1')).rows.length
  return { box, run, mails, confirmed }
}

const data = (orderId: string) => ({ orderId, sku: 's', quantity: 1 })

describe('from pg-boss', () => {
  test('jobs that a real queue has are handed over, and handled once', { timeout: 240_000 }, async () => {
    const { require } = await installed('pg-boss', ['pg-boss@10.3.2'])
    const PgBoss = require('pg-boss') as new (url: string) => {
      start(): Promise<unknown>
      stop(options: object): Promise<void>
      createQueue(name: string): Promise<void>
      send(name: string, job: object): Promise<string>
      on(event: 'error', hear: (error: Error) => void): void
    }
    const { box, run, mails, confirmed } = await confirming('docs/moving-from-pg-boss.md')
    const boss = new PgBoss(database.url)
    boss.on('error', () => undefined)
    await boss.start()
    try {
      await boss.createQueue('order.placed')
      for (const orderId of ['1', '2', '3']) await boss.send('order.placed', data(orderId))
      await run('hand-over.ts', { boss })
      const stored = async () => {
        const { pending, handled } = (await box.admin.status()).consumers['confirm-order']!
        return pending + handled
      }
      await expect.poll(stored, { timeout: 60_000 }).toBe(3)
      await box.drain()
      expect([await confirmed(), mails.toSorted()]).toEqual([3, ['1', '2', '3']])
    } finally {
      await boss.stop({ graceful: false, wait: true })
    }
  })
})

describe('from graphile-worker', () => {
  test('jobs that a real queue has are handed over, and handled once', { timeout: 240_000 }, async () => {
    const { require } = await installed('graphile-worker', ['graphile-worker@0.16.6'])
    const { runMigrations, runOnce, quickAddJob } = require('graphile-worker') as Record<
      string,
      (options: object, ...more: unknown[]) => Promise<unknown>
    >
    const { box, run, mails, confirmed } = await confirming('docs/moving-from-graphile-worker.md')
    const { taskList } = (await run('hand-over.ts')).values
    const options = { connectionString: database.url }
    await runMigrations!(options)
    for (const orderId of ['1', '2', '3']) await quickAddJob!(options, 'order.placed', data(orderId))
    await runOnce!({ ...options, taskList })
    await box.drain()
    // A job that runs again, because its runner died, is one message.
    const again = taskList as { 'order.placed'(payload: object, helpers: object): Promise<void> }
    const [entry] = (await box.admin.messages({ consumer: 'confirm-order' })).entries
    await again['order.placed'](entry!.message.data, { job: { id: entry!.message.id } })
    await box.drain()
    expect([await confirmed(), mails.toSorted()]).toEqual([3, ['1', '2', '3']])
  })
})
