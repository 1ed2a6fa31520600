/**
 * What the relay shares with sinks of our own, beside the public seam.
 *
 * A link between two boxes of one database needs no broker: one statement can move events from the outbox of the one
 * into the inbox of the other. The relay holds the lease and runs the statement; the link only says where to. Neither a
 * method of `Sink` (every broker would have to think about it) nor a check for the class (the relay must not know the
 * brokers) would do, so a sink may carry this symbol, and the relay looks for it.
 */
import { sharedByCopies } from '../copies.js'
import type { LocalConsumer } from '../local-consumer.js'
import type { Message } from '../message.js'

/** On a sink: where its events go, if the relay may move them itself; undefined if they must be published. */
export const RELAY_INTO: unique symbol = Symbol.for('oncebox.relay-into') as never
/** On a box: how a link finds its inbox. */
export const INBOX: unique symbol = Symbol.for('oncebox.inbox') as never

/** The inbox of a box, as the relay of another one needs to know it. */
export interface InboxTarget {
  /** The driver of the box: the same one means the same database. */
  readonly driver: object
  /** The name of its schema, quoted. */
  readonly schema: string
  /** Its local consumers, as RECEIVE takes them; undefined if one of them computes identities, which SQL cannot. */
  consumers(): readonly LocalConsumer[] | undefined
  /** Something has arrived. */
  wake(): void
  /** So many have arrived, past its front doors. */
  arrived?(count: number): void
}

export interface RelayInto {
  readonly target: InboxTarget
  /** Vouched for by the user: another driver, but the same database. */
  readonly sameDatabase: boolean
}

const bodies = sharedByCopies('bodies', () => new WeakMap<Message, string>())

export function rememberBody(message: Message, body: string): void {
  bodies.set(message, body)
}

/** The body of an outgoing message as it was stored, so that nobody has to write its data as JSON a second time. */
export function bodyOf(message: Message): string {
  return bodies.get(message) ?? JSON.stringify(message.data) ?? 'null'
}
