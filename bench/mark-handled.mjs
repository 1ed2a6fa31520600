/**
 * What moving in and out costs: ids recorded as handled by `markHandled`, new ones and known ones, and a consumer removed with
 * all of them.
 *
 *     node bench/mark-handled.mjs [ids, default 20000]
 */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { startServer } from './server.mjs'

const COUNT = Number(process.argv[2] ?? 20_000)
const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url })
const schema = `marks_${process.pid}`
try {
  const box = createBox({ db: fromPg(pool), schema })
  box.consumer('mail', { note: () => 1 })
  await box.migrate()
  const ids = Array.from({ length: COUNT }, (_, n) => `order-${n}-${Math.random().toString(36).slice(2)}`)
  const measure = async (what, work) => {
    const started = performance.now()
    const count = await work()
    console.log(`${what}: ${count} in ${Math.round(performance.now() - started)} ms`)
  }
  await measure('warm up', () => box.admin.markHandled('mail', ['warm']))
  await measure('new ids', () => box.admin.markHandled('mail', ids, { source: 'shop' }))
  await measure('known ids', () => box.admin.markHandled('mail', ids, { source: 'shop' }))
  await box.receive(ids.map((id) => ({ id: `w-${id}`, type: 'note', source: 'shop', data: 1 })))
  await measure('consumer removed', () => box.admin.removeConsumer('mail', { discard: true, forget: true }))
} finally {
  await pool.query(`drop schema if exists ${schema} cascade`)
  await pool.end()
  await server.stop?.()
}
