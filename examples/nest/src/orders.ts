/** The shop: an order and its event are stored together, or neither is. */
import { Inject, Injectable } from '@nestjs/common'
import type { Database } from '../../database.mjs'
import { DATABASE } from './database.module.js'
import { ShopBox } from './messages.js'

@Injectable()
export class Orders {
  constructor(
    private readonly box: ShopBox,
    @Inject(DATABASE) private readonly database: Database,
  ) {}

  place(order: string, sku: string, quantity: number) {
    return this.database.transaction(async (tx) => {
      await tx.query('insert into oncebox_example_nest.orders values ($1, $2, $3)', [order, sku, quantity])
      return this.box.send(tx, 'order.placed', { order, sku, quantity }, { id: order })
    })
  }
}
