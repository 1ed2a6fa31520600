/**
 * A process that may be killed at any moment: `worker.mjs orders`, `worker.mjs oncebox payment`, `worker.mjs naive
 * inventory`. Its parent (run.mjs) starts it, talks to it over IPC, kills it with SIGKILL and starts another.
 */
import pg from 'pg'
import { fromPg } from 'oncebox/pg'
import { parentPort } from './ends.mjs'
import { startNaive } from './naive.mjs'
import { startOrders } from './orders.mjs'
import { startService } from './services.mjs'

const [side, service] = process.argv.slice(2)
const { url, ...settings } = JSON.parse(process.env.ONCEBOX_DEMO)
const pool = new pg.Pool({ connectionString: url, max: 5 })
const context = { ...settings, db: fromPg(pool), port: parentPort() }

if (side === 'orders') await startOrders(context)
else if (side === 'oncebox') await startService(service, context)
else startNaive(service, context)
