/** The README's hello world: a payment is delivered five times, and booked once. */
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { openDatabase } from '../database.mjs'

const database = await openDatabase()
await database.query('drop schema if exists oncebox_example_hello cascade')
const messages = defineMessages({ 'payment.received': z.object({ account: z.string(), cents: z.int() }) })
const box = createBox({ db: database.driver, messages, schema: 'oncebox_example_hello' })

box.consumer('update-balance', {
  'payment.received': async ({ data }, { tx }) => {
    const add = 'update oncebox_example_hello.balance set cents = cents + $2 where account = $1'
    await tx.query(add, [data.account, data.cents])
  },
})

await box.migrate()
await database.query('create table oncebox_example_hello.balance (account text primary key, cents int not null)')
await database.query(`insert into oncebox_example_hello.balance values ('ada', 0)`)

const payment = { id: 'payment-1', type: 'payment.received', data: { account: 'ada', cents: 500 } }
for (let delivery = 1; delivery <= 5; delivery++) {
  const { status } = await box.handle(payment)
  console.log(`delivery ${delivery}: ${status}`)
}
const [row] = await database.query(`select cents from oncebox_example_hello.balance where account = 'ada'`)
console.log('balance:', row)
await database.close()
