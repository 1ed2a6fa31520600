/** The pages about moving in: their code runs as it stands, step after step, and each message has one effect. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import pg from 'pg'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { cli } from '../cli/fixture.js'
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
  const recipes = recipesOf('docs/moving-from-a-dedup-table.md')
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
    const argv = ['import', '--from-table', 'public.processed', '--id-column', 'message_id']
    const of = ['--at-column', 'processed_at', '--source', 'shop', '--consumer', 'reserve-stock', '--yes']
    const imported = await cli([...argv, ...of, '--json'], { env: { DATABASE_URL: database.url } })
    expect(imported.documents).toMatchObject([{ rows: 4, marked: 1 }])
    expect((await step('history.ts', box)).marked).toBe(0)

    for (const id of ['a', 'b', 'c', 'd']) expect(await after.onOrder(order(id))).toBe(true)
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
