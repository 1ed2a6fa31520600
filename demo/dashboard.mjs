/**
 * `--dashboard`: the boxes of the demo in a browser, from the first order on, and after the audit until Ctrl-C. No handler runs in
 * them: the workers are processes of their own, and are killed.
 */
import { createServer } from 'node:http'
import pg from 'pg'
import { dashboard } from 'oncebox/dashboard'
import { toNodeListener } from 'oncebox/http'
import { fromPg } from 'oncebox/pg'
import { SERVICES } from './link.mjs'
import { ordersBox } from './orders.mjs'
import { serviceBox } from './services.mjs'

export async function openDashboard({ db, url, schema }, port) {
  // Connections of its own: who looks must not keep the audit waiting.
  const pool = url ? new pg.Pool({ connectionString: url, max: 3 }) : undefined
  pool?.on('error', () => {})
  const context = { db: pool ? fromPg(pool) : db, schema }
  const services = SERVICES.map((service) => [service, serviceBox(service, context)])
  const boxes = { orders: ordersBox(context), ...Object.fromEntries(services) }
  const ops = dashboard(boxes, { dev: true, title: 'oncebox demo', environment: 'demo' })
  const server = createServer(toNodeListener(ops))
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    /** Two deliveries that are not what they say, so that the quarantine has something to show. */
    async forge() {
      const { entries } = await boxes.payment.admin.messages({ state: 'handled' }, { limit: 1 })
      if (entries.length === 0) return
      const { id, source, key } = entries[0].message
      await boxes.payment.receive([
        { id, source, type: 'order.placed', key, data: { id: key, sku: 'forged', quantity: 1, cents: 1 } },
        { id: 'not-json', source, type: 'order.placed', body: Buffer.from([0xff, 0xfe, 0x00]) },
      ])
    },
    async close() {
      await ops.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await pool?.end()
    },
  }
}
