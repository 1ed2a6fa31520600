/**
 * One contender in a process of its own: stores messages, then handles them, and says how long each took.
 *
 *   BENCH_URL=… node contender.mjs <module> <shape> <messages> [<messages to warm up with>]
 *
 * Every handler does the same: one INSERT for each message, or one for all messages of a batch. Where the contender offers
 * a transaction that its own mark is part of, the INSERT is in it.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'

const [, , name, shape, messagesText, warmText = '0'] = process.argv
const url = process.env.BENCH_URL
const admin = new pg.Client({ connectionString: url })
await admin.connect()
await admin.query(`create table effect (n bigint generated always as identity primary key, id text not null,
  sku int not null, quantity int not null)`)

const sql = {
  one: 'insert into effect (id, sku, quantity) values ($1, $2, $3)',
  many: `insert into effect (id, sku, quantity)
    select x->>'orderId', (x->>'sku')::int, (x->>'quantity')::int from jsonb_array_elements($1::text::jsonb) x`,
}

const { open } = await import(`./${name}.mjs`)
const effects = async () =>
  (await admin.query('select count(*)::int n, count(distinct id)::int ids from effect')).rows[0]

/** Stores so many messages and handles them, with a contender that is opened for it. */
async function measure(count) {
  let seen = 0
  let allSeen
  const everySeen = new Promise((resolve) => (allSeen = resolve))
  const handled = (many = 1) => {
    seen += many
    if (seen === count) allSeen()
  }
  const contender = await open({ url, shape, sql, handled })
  const messages = Array.from({ length: count }, (_, n) => ({
    id: randomUUID(),
    data: { orderId: `order-${n}`, sku: n % 1_000, quantity: 1 + (n % 9), note: 'x'.repeat(200) },
  }))
  const before = (await effects()).n
  let started = performance.now()
  await contender.store(messages)
  const stored = performance.now() - started
  await admin.query('vacuum analyze')
  await admin.query('checkpoint').catch(() => {})

  const cpu = process.cpuUsage()
  started = performance.now()
  await contender.start()
  await everySeen
  while ((await effects()).n - before < count) await new Promise((resolve) => setTimeout(resolve, 2))
  const ran = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  return { contender, store: (count * 1_000) / stored, handle: (count * 1_000) / ran, cpu: (user + system) / count }
}

if (Number(warmText) > 0) {
  const { contender } = await measure(Number(warmText))
  await contender.stop()
  await admin.query(`delete from effect`)
}
const { contender, ...sample } = await measure(Number(messagesText))
process.stdout.write(`${JSON.stringify({ ...sample, ...(await effects()) })}\n`)
await contender.stop()
await admin.end()
