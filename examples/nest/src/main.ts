import { NestFactory } from '@nestjs/core'
import type { Database } from '../../database.mjs'
import { AppModule } from './app.module.js'
import { DATABASE } from './database.module.js'
import { WarehouseBox } from './messages.js'
import { Orders } from './orders.js'

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] })
const [orders, warehouse] = [app.get(Orders), app.get(WarehouseBox)]
const database = app.get<Database>(DATABASE)

await orders.place('A-1', 'tea', 3)
await orders.place('A-2', 'tea', 2)
await orders.place('A-3', 'cup', 5)

const states = async () => {
  const found = await Promise.all(['A-1', 'A-2', 'A-3'].map((id) => warehouse.admin.message({ id })))
  return found.map(([entry]) => entry?.state)
}
while ((await states()).some((state) => state !== 'handled' && state !== 'dead')) {
  await new Promise((resolve) => setTimeout(resolve, 50))
}
// Somebody delivers an order once more.
const data = { order: 'A-1', sku: 'tea', quantity: 3 }
const again = await warehouse.receive({ id: 'A-1', source: 'shop', type: 'order.placed', data })

console.log(`orders: ${(await states()).join(', ')}; A-1 once more: ${again.status}`)
const stock = await database.query('select sku, pieces from oncebox_example_nest.stock order by sku')
console.log(`stock: ${stock.map(({ sku, pieces }) => `${sku} ${pieces}`).join(', ')}`)
console.log(`healthy: ${(await warehouse.health()).ok}`)

await app.close()
