/**
 * The consumer inbox with states and a reaper, on TypeORM: messages are stored on arrival, each with a state, and claimed by
 * workers. One worker is killed in the middle of a message: its claim runs out, and another worker takes the message over.
 * One message fails, is kept as a dead letter, and handled after its cause was removed.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { openServer } from '../server.mjs'
import { Invoice, openInbox, SCHEMA } from './inbox.mjs'

const server = await openServer()
const closed = new Set(['A-2'])
const { dataSource, box } = await openInbox(server.url, (order) => {
  if (closed.has(order)) throw new Error(`the books of ${order} are closed`)
})
await dataSource.query(`drop schema if exists ${SCHEMA} cascade`)
await box.migrate()
await dataSource.synchronize() // creates the table of invoices, and leaves those of the box alone

for (const { order, cents } of [
  { order: 'A-1', cents: 500 },
  { order: 'A-1', cents: 500 },
  { order: 'A-2', cents: 700 },
  { order: 'A-3', cents: 900 },
]) {
  const { status } = await box.receive({ id: `order-${order}`, type: 'order.placed', data: { order, cents } })
  console.log(`${order}: ${status}`)
}

const worker = fork(new URL('worker.mjs', import.meta.url), { env: { ...process.env, INBOX_URL: server.url } })
await once(worker, 'message')
console.log('a worker has begun:', await states())
worker.kill('SIGKILL')
await once(worker, 'exit')
console.log('it was killed:', await states())

await box.start()
await until(async () => /^(handled|dead)/.test(await states()))
console.log('its claim has run out:', await states())

closed.clear()
await box.admin.retry({ consumer: 'invoice', state: 'dead' }, { by: 'ada', reason: 'books are open again' })
await until(async () => (await states()) === 'handled 3')
console.log('the dead letter was retried:', await states())
const invoices = await dataSource.manager.find(Invoice, { order: { order: 'ASC' } })
console.log('invoices:', invoices.map(({ order, cents }) => `${order} ${cents}`).join(', '))

await box.stop()
await dataSource.destroy()
await server.close()

async function states() {
  const counts = (await box.admin.status()).consumers['invoice']
  const known = /** @type {const} */ (['pending', 'processing', 'handled', 'dead'])
  return known
    .filter((state) => counts?.[state])
    .map((state) => `${state} ${counts?.[state]}`)
    .join(', ')
}

/** @param {() => Promise<boolean>} condition */
async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}
