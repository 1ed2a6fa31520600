/** The vocabulary, the boxes that speak it, and decorators that know it. */
import { z } from 'zod'
import { defineMessages, type Context, type MessageOf } from 'oncebox'
import { boxClass, decorators } from 'oncebox/nest'
import type { Tx } from '../../database.mjs'

export const messages = defineMessages({
  'order.placed': z.object({ order: z.string(), sku: z.string(), quantity: z.int().positive() }),
})
export type Messages = typeof messages
export type OrderPlaced = MessageOf<Messages, 'order.placed'>
export type Ctx = Context<Messages, Tx>

/** Boxes that are injected by their class. */
export class ShopBox extends boxClass<Messages, Tx>() {}
export class WarehouseBox extends boxClass<Messages, Tx>() {}

/** For consumers of the warehouse. */
export const { Consumer, Handle } = decorators<Messages, Tx>(WarehouseBox)
