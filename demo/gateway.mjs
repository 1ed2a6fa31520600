/**
 * A card gateway: a company of its own, so a process of its own, with a ledger file that only it writes. It honours
 * idempotency keys, as real ones do: the same key again gets the first answer and no second charge.
 *
 * Like real ones it sometimes answers slowly, and sometimes it charges and the connection breaks before the answer.
 *
 *     POST /charges/:account { order, cents }  →  { id }
 */
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { parentPort } from './ends.mjs'
import { dice } from './dice.mjs'

const { ONCEBOX_DEMO_SEED: seed, ONCEBOX_DEMO_DIR: directory } = process.env
const answers = new Map()
const calls = new Map()
let charges = 0

const server = createServer(async (request, response) => {
  const account = request.url.split('/').at(-1)
  let body = ''
  for await (const chunk of request) body += chunk
  const { order, cents } = JSON.parse(body)

  const call = (calls.get(`${account} ${order}`) ?? 0) + 1
  calls.set(`${account} ${order}`, call)
  const roll = dice(seed, 'gateway', order, call)
  const slow = roll() < 0.1
  const breaks = roll() < 0.03

  const charge = chargeOnce(account, request.headers['idempotency-key'], { order, cents })
  setTimeout(
    () => {
      if (breaks) return request.socket.destroy()
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(charge))
    },
    slow ? 100 + roll() * 400 : 2 + roll() * 8,
  )
})

function chargeOnce(account, key, details) {
  const known = key && answers.get(`${account} ${key}`)
  if (known) return known
  const charge = { id: `charge-${++charges}` }
  appendFileSync(path.join(directory, `ledger-${account}`), `${JSON.stringify({ ...charge, ...details })}\n`)
  if (key) answers.set(`${account} ${key}`, charge)
  return charge
}

const port = parentPort()
server.listen(0, '127.0.0.1', () => port.post({ ready: true, url: `http://127.0.0.1:${server.address().port}` }))
