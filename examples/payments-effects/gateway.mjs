/**
 * A payment gateway, as a process of its own: it charges cards for whoever asks. Asked twice with the same
 * Idempotency-Key, it answers the second time what it answered the first.
 */
import { createServer } from 'node:http'

/** @type {{ key: string, invoice: string }[]} */
const calls = []
/** @type {Map<string, { chargeId: string, invoice: string, cents: number }>} */
const charges = new Map()

const server = createServer((request, response) => {
  if (request.method === 'GET') return void response.end(JSON.stringify({ calls, charges: [...charges.values()] }))
  let body = ''
  request.on('data', (chunk) => (body += chunk))
  request.on('end', () => {
    const { invoice, cents } = JSON.parse(body)
    const key = String(request.headers['idempotency-key'])
    calls.push({ key, invoice })
    const charge = charges.get(key) ?? { chargeId: `charge-${charges.size + 1}`, invoice, cents }
    charges.set(key, charge)
    response.end(JSON.stringify(charge))
  })
})

server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.send?.({ url: `http://127.0.0.1:${port}` })
})
// The example is over, however it ended.
process.on('disconnect', () => process.exit(0))
