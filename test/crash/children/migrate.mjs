/** Migrates when it is told to, together with others. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../../support/child.mjs'

const { url, schema } = JSON.parse(process.env.ARENA)
const pool = new pg.Pool({ connectionString: url, max: 3 })
const box = createBox({ db: fromPg(pool), schema })
box.consumer('orders', { '*': () => {} })
emit('ready')
await command('migrate')
emit('migrated', await box.migrate())
await box.start()
const { status } = await box.receive({ id: 'same', type: 'order', data: {} })
emit('received', { status })
await box.stop()
await pool.end()
process.exit(0)
