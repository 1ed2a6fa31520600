/**
 * A worker is killed between a call to a payment gateway and its record. What then?
 *
 * For the first invoice the next worker calls again, with the same idempotency key, and the gateway answers what it
 * answered before. For the second, which must not be called again, a person is asked.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openDatabase } from '../database.mjs'
import { createPayments, LEASE_MS } from './payments.mjs'

const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-example-'))
const gateway = fork(new URL('gateway.mjs', import.meta.url))
const [{ url }] = await once(gateway, 'message')

try {
  await inDatabase(async (box, database) => {
    await database.query('drop schema if exists oncebox_example_payments cascade')
    await box.migrate()
    await database.query('create table oncebox_example_payments.charge (invoice text, charge_id text)')
    await box.receive([
      { id: 'due-1', type: 'invoice.due', data: { invoice: 'A-1', cents: 900 } },
      { id: 'due-2', type: 'invoice.due.abroad', data: { invoice: 'B-2', cents: 4_200 } },
    ])
  })

  console.log(`worker 1 charges A-1, ${await runWorker({ CRASH_AT: 'A-1' })}`)
  await leaseIsOver()
  console.log(`worker 2 takes A-1 over, charges B-2, ${await runWorker({ CRASH_AT: 'B-2' })}`)
  await leaseIsOver()
  console.log(`worker 3 finds B-2, ${await runWorker({})}`)

  await inDatabase(async (box) => {
    const { entries } = await box.admin.messages({ state: 'quarantined' })
    for (const { message, consumer, reason } of entries) {
      console.log(`${message.id} waits for a person: ${reason}`)
      const { charges } = await askGateway()
      const found = charges.find(({ invoice }) => invoice === message.data.invoice)
      const answer = found ? { happened: true, result: found.chargeId } : { happened: false }
      console.log(`the person found ${found?.chargeId ?? 'no charge'}, and says so`)
      await box.admin.answer(
        { consumer, id: message.id, effect: 'charge' },
        /** @type {Parameters<typeof box.admin.answer>[1]} */ (answer),
      )
    }
  })
  console.log(`worker 4 goes on with B-2, ${await runWorker({})}`)
  await report()
} finally {
  gateway.disconnect()
  await rm(directory, { recursive: true, force: true })
}

/** @param {(box: ReturnType<typeof createPayments>, database: import('../database.mjs').Database) => Promise<unknown>} work */
async function inDatabase(work) {
  const database = await openDatabase({ directory })
  try {
    await work(createPayments(database, { gateway: url }), database)
  } finally {
    await database.close()
  }
}

/** @param {Record<string, string>} env */
async function runWorker(env) {
  const worker = fork(new URL('worker.mjs', import.meta.url), {
    env: { ...process.env, ...env, GATEWAY_URL: url, PGLITE_DIRECTORY: directory },
  })
  const [code, signal] = await once(worker, 'exit')
  return signal ? `and is killed by ${signal}` : `and exits with ${code}`
}

/** Until then the message belongs to the dead worker. */
function leaseIsOver() {
  return new Promise((resolve) => setTimeout(resolve, LEASE_MS + 100))
}

/** @returns {Promise<{ calls: { key: string, invoice: string }[], charges: { chargeId: string, invoice: string }[] }>} */
async function askGateway() {
  return /** @type {any} */ (await (await fetch(url)).json())
}

async function report() {
  const { calls, charges } = await askGateway()
  for (const { invoice, chargeId } of charges) {
    const own = calls.filter((call) => call.invoice === invoice)
    console.log(
      `gateway: ${invoice}: calls ${own.length}, keys ${new Set(own.map(({ key }) => key)).size}, charged as ${chargeId}`,
    )
  }
  await inDatabase(async (_box, database) => {
    const booked = await database.query('select * from oncebox_example_payments.charge order by invoice')
    console.log(`booked: ${booked.map((row) => `${row.invoice} ${row.charge_id}`).join(', ')}`)
  })
}
