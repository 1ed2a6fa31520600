/** The warehouse: reserves what is ordered, once for each order. An order for more than there is goes to the dead letters. */
import { Reject } from 'oncebox'
import { Consumer, Handle, type Ctx, type OrderPlaced } from './messages.js'

@Consumer('reserve-stock')
export class ReserveStock {
  @Handle('order.placed')
  async placed({ data }: OrderPlaced, { tx }: Ctx) {
    const find = 'select pieces from oncebox_example_nest.stock where sku = $1 for update'
    const { rows } = await tx.query(find, [data.sku])
    if (!(rows[0]?.pieces >= data.quantity)) throw new Reject(`there are not ${data.quantity} of ${data.sku}`)
    const take = 'update oncebox_example_nest.stock set pieces = pieces - $2 where sku = $1'
    await tx.query(take, [data.sku, data.quantity])
  }
}
