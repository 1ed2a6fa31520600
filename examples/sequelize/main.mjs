/** A payment is delivered five times on Sequelize, and booked once; its receipt leaves with the booking. */
import { DataTypes, Sequelize } from 'sequelize'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { fromSequelize } from 'oncebox/sequelize'
import { openServer } from '../server.mjs'

const SCHEMA = 'oncebox_example_sequelize'
const server = await openServer()
const sequelize = new Sequelize(server.url, { logging: false })
const columns = { account: { type: DataTypes.TEXT, primaryKey: true }, cents: DataTypes.INTEGER }
const Balance = sequelize.define('balance', columns, { schema: SCHEMA, timestamps: false })

const messages = defineMessages({
  'payment.received': z.object({ account: z.string(), cents: z.int() }),
  'payment.booked': z.object({ account: z.string() }),
})
const box = createBox({ db: fromSequelize(sequelize), messages, schema: SCHEMA })
box.consumer('update-balance', {
  'payment.received': async ({ data: { account, cents } }, { tx, send }) => {
    await Balance.increment({ cents }, { where: { account }, transaction: tx })
    await send('payment.booked', { account })
  },
})

await sequelize.query(`drop schema if exists ${SCHEMA} cascade`)
await box.migrate()
await sequelize.sync() // creates the table of balances, and leaves those of the box alone
await Balance.create({ account: 'ada', cents: 0 })

const payment = { id: 'payment-1', type: 'payment.received', data: { account: 'ada', cents: 500 } }
for (let delivery = 1; delivery <= 5; delivery++) {
  const { status } = await box.handle(payment)
  console.log(`delivery ${delivery}: ${status}`)
}
console.log('balance:', (await Balance.findByPk('ada'))?.get('cents'))
console.log('in the outbox:', (await box.admin.status()).outbox['payment.booked']?.pending)

await box.stop()
await sequelize.close()
await server.close()
