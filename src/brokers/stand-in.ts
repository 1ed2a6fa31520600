/**
 * Messages whose type is in the body, and whose body could not be read: their adapter has put another word in its place. What such
 * a message may send is not known; that it cannot be decoded is.
 */
import type { Incoming } from '../message.js'

/** A symbol: a copy of the message has it too, and no sender can set it. */
const STAND_IN: unique symbol = Symbol.for('oncebox.stand-in') as never

export function withStandIn(message: Incoming): Incoming {
  return Object.assign(message, { [STAND_IN]: message.type })
}

/** Whether its type is only a word for one that nobody could read. */
export function isStandIn(incoming: Incoming): boolean {
  return (incoming as { readonly [STAND_IN]?: string })[STAND_IN] === incoming.type
}
