/**
 * A worker: runs what is due, and exits. With CRASH_AT it kills itself right after the gateway has charged that invoice,
 * and before anybody could write it down.
 */
import { openDatabase } from '../database.mjs'
import { createPayments } from './payments.mjs'

const database = await openDatabase({ directory: process.env['PGLITE_DIRECTORY'] })
const box = createPayments(database, {
  gateway: String(process.env['GATEWAY_URL']),
  afterCall: (invoice) => process.env['CRASH_AT'] === invoice && process.kill(process.pid, 'SIGKILL'),
})
await box.drain()
await database.close()
