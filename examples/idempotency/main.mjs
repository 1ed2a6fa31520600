/**
 * An endpoint with Idempotency-Key: charges are made once, however often a client asks, for its answers get lost on their
 * way. The charge, the event about it and the response commit together.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { openDatabase } from '../database.mjs'

const SCHEMA = 'oncebox_example_idempotency'

const database = await openDatabase()
await database.query(`drop schema if exists ${SCHEMA} cascade`)
const messages = defineMessages({ 'charge.made': z.object({ account: z.string(), cents: z.int() }) })
const box = createBox({ db: database.driver, messages, schema: SCHEMA, source: 'payments' })
await box.migrate()
await database.query(`create table ${SCHEMA}.charge (id serial, account text, cents int)`)

/** Who asks. A real one would check a token. @param {Request} request */
const accountOf = (request) => request.headers.get('authorization') ?? new Response(null, { status: 401 })

const charges = idempotent(box, { name: 'charges', scope: accountOf }, async (request, { tx, send, scope = '' }) => {
  const { cents } = z.object({ cents: z.int() }).parse(await request.json())
  const insert = `insert into ${SCHEMA}.charge (account, cents) values ($1, $2) returning id`
  const { rows } = await tx.query(insert, [scope, cents])
  await send('charge.made', { account: scope, cents })
  return Response.json({ charge: rows[0].id }, { status: 201 })
})

// The first answer to every request is lost on its way.
let requests = 0
const listener = toNodeListener(charges)
const server = createServer((request, response) => {
  if (++requests % 2 === 1) response.end = () => response.destroy()
  listener(request, response)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())

/**
 * Asks until it is answered, as clients do.
 * @param {string} account @param {string} key @param {number} cents
 * @returns {Promise<Response>}
 */
async function charge(account, key, cents) {
  const headers = { authorization: account, 'idempotency-key': key }
  const init = { method: 'POST', headers, body: JSON.stringify({ cents }) }
  return fetch(`http://127.0.0.1:${port}/charges`, init).catch(() => charge(account, key, cents))
}

for (const [account, key, cents] of /** @type {const} */ ([
  ['ada', 'order-1', 500],
  ['ada', 'order-2', 700],
  ['bob', 'order-1', 900],
])) {
  const response = await charge(account, key, cents)
  const replayed = response.headers.get('idempotent-replayed') === 'true' ? ', replayed' : ''
  console.log(`${account} ${key}: ${response.status} ${await response.text()}${replayed}`)
}
const other = await charge('ada', 'order-1', 501)
console.log(`ada order-1 with another amount: ${other.status}`)

const made = await database.query(`select account, cents from ${SCHEMA}.charge order by id`)
console.log(`requests: ${requests}, charges: ${made.map(({ account, cents }) => `${account} ${cents}`).join(', ')}`)

server.closeAllConnections()
server.close()
await box.stop()
await database.close()
