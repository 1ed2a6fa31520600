/** Delivers to itself without end, on the client that `CLIENT` names, and reports every error that nobody caught. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import postgres from 'postgres'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { command, emit } from '../../support/child.mjs'

const { CLIENT, DATABASE } = process.env
process.on('unhandledRejection', (error) => emit('uncaught', { error: error?.stack, query: error?.query }))
process.on('uncaughtException', (error) => emit('uncaught', { error: error.stack }))

const clients = {
  pg: () => fromPg(new pg.Pool({ connectionString: DATABASE, max: 6, application_name: 'survivor' })),
  'postgres.js': () =>
    fromPostgres(
      postgres(DATABASE, {
        max: 6,
        onnotice: () => {},
        // Its own look at the types of a new connection rejects unheard when that connection dies: see docs/drivers.md.
        fetch_types: false,
        connection: { application_name: 'survivor' },
        backoff: () => 0.05,
      }),
    ),
}
const insert = 'insert into effect (id) values ($1)'
const box = createBox({ db: clients[CLIENT](), logger: { debug() {}, info() {}, warn() {}, error() {} } })
box.consumer(
  'survivor',
  {
    async noted({ id, data }, { tx }) {
      await (CLIENT === 'pg' ? tx.query(insert, [id]) : tx.unsafe(insert, [id]))
      await sleep(data.ms)
    },
  },
  { group: { messages: 2 }, leaseMs: 1_000, retry: { attempts: 1_000, baseMs: 1, maxMs: 50 } },
)
await box.start()
emit('started')

let going = true
const ids = []
async function deliver(lane) {
  for (let count = 0; going; count++) {
    const id = `${lane}.${count}`
    // As a source would: what was not acknowledged is delivered again.
    while (!(await acknowledged({ id, type: 'noted', data: { ms: count % 20 } }))) await sleep(5)
    ids.push(id)
    await sleep(1)
  }
}
async function acknowledged(message) {
  try {
    return (await box.receive(message)).ack
  } catch {
    return false
  }
}
const lanes = [1, 2, 3].map(deliver)
await command('stop')
going = false
await Promise.all(lanes)
emit('delivered', { ids })
