/**
 * What an HTTP endpoint of ours needs of its box, beside the public methods: a name that retention and the registry know,
 * and transactions as handlers get them.
 */
import type { Isolation, Loan } from './postgres/driver.js'

/** On a box. */
export const ENDPOINTS: unique symbol = Symbol.for('oncebox.endpoints') as never

export interface EndpointHost {
  /** A consumer without handlers: it takes no message, and `once` knows it. */
  declare(name: string, retainMs: number): void
  transaction<R>(work: (tx: unknown) => Promise<R>, isolation: Isolation): Promise<R>
  /** The transaction for one call of a handler; undefined if the driver has no other. */
  lend(tx: unknown): Loan<unknown> | undefined
}
