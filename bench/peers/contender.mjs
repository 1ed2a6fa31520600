/**
 * One contender in a process of its own: stores messages, then handles them, and says how long each took.
 *
 *   BENCH_URL=… node contender.mjs <module> <shape> <messages>
 *
 * Every handler does the same: one INSERT for each message, or one for all messages of a batch. Where the contender offers
 * a transaction that its own mark is part of, the INSERT is in it.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'

const [, , name, shape, messagesText] = process.argv
const count = Number(messagesText)
const url = process.env.BENCH_URL
const admin = new pg.Client({ connectionString: url })
await admin.connect()
await admin.query(`create table effect (n bigint generated always as identity primary key, id text not null,
  sku int not null, quantity int not null)`)

let seen = 0
let allSeen
const everySeen = new Promise((resolve) => (allSeen = resolve))
const handled = (many = 1) => {
  seen += many
  if (seen === count) allSeen()
}
const sql = {
  one: 'insert into effect (id, sku, quantity) values ($1, $2, $3)',
  many: `insert into effect (id, sku, quantity)
    select x->>'orderId', (x->>'sku')::int, (x->>'quantity')::int from jsonb_array_elements($1::text::jsonb) x`,
}

const { open } = await import(`./${name}.mjs`)
const contender = await open({ url, shape, sql, handled })
const messages = Array.from({ length: count }, (_, n) => ({
  id: randomUUID(),
  data: { orderId: `order-${n}`, sku: n % 1_000, quantity: 1 + (n % 9), note: 'x'.repeat(200) },
}))

let started = performance.now()
await contender.store(messages)
const stored = performance.now() - started
await admin.query('vacuum analyze')
await admin.query('checkpoint').catch(() => {})

started = performance.now()
await contender.start()
await everySeen
const effects = async () =>
  (await admin.query('select count(*)::int n, count(distinct id)::int ids from effect')).rows[0]
while ((await effects()).n < count) await new Promise((resolve) => setTimeout(resolve, 2))
const ran = performance.now() - started
const { n, ids } = await effects()
process.stdout.write(`${JSON.stringify({ store: (count * 1_000) / stored, handle: (count * 1_000) / ran, n, ids })}\n`)
await contender.stop()
await admin.end()
