/**
 * What a box takes from its server: bytes of a message, on disk and in the WAL, and connections of a process.
 *
 *     npm run build && node bench/sizing.mjs
 *
 * Bytes depend on the bodies and not on the machine. Connections are the most that were seen at any moment under load.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { startPostgres } from '../tools/postgres/server.mjs'

const MESSAGES = Number(process.env.MESSAGES ?? 20_000)
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

// No checkpoint meanwhile: the first change of a page after one writes the whole page, which says nothing of messages.
const server = await startPostgres({ settings: { checkpoint_timeout: '1h', max_wal_size: '16GB', autovacuum: 'off' } })
const look = new pg.Pool({ connectionString: server.url, max: 2, application_name: 'look' })
try {
  const bytes = []
  for (const body of [200, 1_000, 5_000]) bytes.push(await measureBytes({ body }))
  bytes.push(await measureBytes({ body: 1_000, order: 'key' }))
  bytes.push(await measureBytes({ body: 1_000, sends: true }))
  console.log('bytes of a message:')
  console.table(bytes)

  const connections = []
  for (const consumers of [1, 2]) connections.push(await measureConnections({ consumers }))
  connections.push(await measureConnections({ sink: true }))
  connections.push(await measureConnections({ boxes: 4 }))
  connections.push(await measureConnections({ consumers: 2, max: 4 }))
  console.log('most connections of a process:')
  console.table(connections)
} finally {
  await look.end()
  await server.stop()
}

async function measureBytes({ body, order = 'none', sends = false }) {
  const schema = `bytes_${body}_${order}_${sends}`
  const pool = new pg.Pool({ connectionString: server.url, max: 8 })
  const box = createBox({ db: fromPg(pool), schema, logger: SILENT })
  const handler = async ({ key, data }, { send }) => void (sends && (await send('order.noted', data, { key })))
  box.consumer('note', { 'order.placed': handler }, { order })
  if (sends) box.to(nowhere())
  await box.migrate()
  // The first pages of tables and indexes are not counted.
  await handIn(box, { body, from: 0, count: 2_000 })
  await box.drain()
  const before = await weigh(schema)
  await handIn(box, { body, from: 2_000, count: MESSAGES })
  const stored = await weigh(schema)
  await box.drain()
  const handled = await weigh(schema)
  await pool.end()
  const each = (name, from, to) => Math.round((to[name] - from[name]) / MESSAGES)
  return {
    ...{ body, order, sends },
    'kept: tables': each('tables', before, handled),
    'kept: indexes': each('indexes', before, handled),
    'WAL to store': each('wal', before, stored),
    'WAL to handle': each('wal', stored, handled),
  }
}

async function handIn(box, { body, from, count }) {
  for (let at = from; at < from + count; at += 500) {
    const batch = Array.from({ length: 500 }, (_, index) => {
      const data = { note: randomBytes(Math.floor((body - 11) * 0.75)).toString('base64') }
      return { id: randomUUID(), key: `key-${(at + index) % 1_000}`, type: 'order.placed', data }
    })
    await box.receive(batch)
  }
}

/** What stays after a message is handled is in these two; the other tables are small, and used again. */
async function weigh(schema) {
  const { rows } = await look.query(
    `select pg_table_size($1) + pg_table_size($2) as tables, pg_indexes_size($1) + pg_indexes_size($2) as indexes,
       pg_current_wal_lsn() - '0/0' as wal`,
    [`${schema}.message`, `${schema}.handled`],
  )
  return Object.fromEntries(Object.entries(rows[0]).map(([name, value]) => [name, Number(value)]))
}

async function measureConnections({ consumers = 1, max = 20, sink = false, boxes: count = 1 }) {
  const pool = new pg.Pool({ connectionString: server.url, max, application_name: 'measured' })
  const db = fromPg(pool)
  const boxes = Array.from({ length: count }, (_, index) => {
    const box = createBox({ db, schema: `connections_${consumers}_${max}_${sink}_${count}_${index}`, logger: SILENT })
    // Handlers that take a moment, so that all of `concurrency` is in flight.
    const handler = async (_, { tx, send }) => {
      await tx.query('select pg_sleep(0.02)')
      if (sink) await send('order.noted', {})
    }
    for (let n = 0; n < consumers; n++) box.consumer(`note-${n}`, { 'order.placed': handler })
    if (sink) box.to(nowhere())
    return box
  })
  for (const box of boxes) await box.migrate()
  for (const box of boxes) await box.start()
  let most = 0
  const seen = async () => {
    const text = `select count(*)::int as n, count(*) filter (where query like 'LISTEN%')::int as listening
      from pg_stat_activity where application_name = 'measured'`
    const { rows } = await look.query(text)
    most = Math.max(most, rows[0].n)
    return rows[0].listening
  }
  const done = Promise.all(boxes.map((box) => handIn(box, { body: 200, from: 0, count: 1_000 })))
  let listening = 0
  let handled = 0
  while (handled < 1_000 * consumers * count) {
    listening = Math.max(listening, await seen())
    const counts = boxes.map(async (box) => Object.values((await box.admin.status()).consumers))
    handled = (await Promise.all(counts)).flat().reduce((sum, consumer) => sum + consumer.handled, 0)
  }
  await done
  for (const box of boxes) await box.stop()
  await pool.end()
  return { boxes: count, consumers, sink, 'pool max': max, most, 'of these listen': listening }
}

function nowhere() {
  return { name: 'nowhere', publish: async (batch) => batch.map(() => undefined), close: async () => {} }
}
