/** What a test of a driver gives to the suite and gets from it, and how a case is added. */
import type { Driver } from '../../postgres/driver.js'
import type { Bench } from './bench.js'

export interface DriverUnderTest<Tx, TxIn = Tx> {
  readonly driver: Driver<Tx, TxIn>
  /** The handle that is not a transaction: pool, `sql`, `db`. */
  readonly root: unknown
  /** Runs a statement without values on the transaction in the client's own way, as a handler does. */
  native(tx: Tx, text: string): Promise<unknown>
  /** Runs a statement on another connection, past the driver. */
  outside(text: string): Promise<readonly Record<string, unknown>[]>
  /** A client or handle that is connected but not inside a transaction, where there is such a thing. */
  idle?(): Promise<{ tx: TxIn; close(): Promise<void> }>
  /** Required unless `capabilities` says `faults: false`. */
  readonly faults?: DriverFaults<Tx, TxIn>
  close(): Promise<void>
}

/** What can go wrong between the driver and its server: through a proxy that sits between them, for instance. */
export interface DriverFaults<Tx, TxIn = Tx> {
  /** Nothing passes any more on the connections that exist, in either direction, and nobody is told. New ones work. */
  swallow(): void
  /** The connections that exist are ended, or reset (ECONNRESET). New ones work. */
  cut(how: 'ended' | 'reset'): void
  /** New connections are refused (ECONNREFUSED), until `accept`. */
  refuse(): Promise<void>
  accept(): Promise<void>
  /** The same client, told of a unix socket that is not there (ENOENT), or a role that may not log in (SQLSTATE 28…). */
  lacking(what: 'unix socket' | 'role'): Promise<{ readonly driver: Driver<Tx, TxIn>; close(): Promise<void> }>
}

export interface DriverCapabilities {
  /** Several transactions at once, on connections that the server can kill. Default true. */
  parallel?: boolean | undefined
  /** A warning during COMMIT is noticed. Default true. */
  commitWarnings?: boolean | undefined
  /** Several commands in one text without values. Default true. */
  scripts?: boolean | undefined
  /** There is a network between client and server, and `faults` breaks it. Default true. */
  faults?: boolean | undefined
  /** The driver has `lend`: handlers get a transaction that is watched. Default true. */
  lend?: boolean | undefined
  /** It has `listen`: workers are woken by notifications. Default true. */
  listen?: boolean | undefined
  /** It has `silentMs` and `hangUp`: a connection that has fallen silent is noticed. Default true. */
  silent?: boolean | undefined
  /** It has `together` and `lendTogether`: several handlers share a transaction side by side. Default true. */
  together?: boolean | undefined
}

export interface ConformanceCase {
  readonly name: string
  run(): Promise<void>
}

export interface DriverConformance<Tx, TxIn = Tx> {
  open(): Promise<DriverUnderTest<Tx, TxIn>>
  capabilities?: DriverCapabilities | undefined
}

/** Adds a case, which is left out where the client lacks one of its needs. Its name is the promise. */
export type AddCase<Tx, TxIn> = (
  name: string,
  run: (bench: Bench<Tx, TxIn>) => Promise<void>,
  ...needs: (keyof DriverCapabilities)[]
) => unknown
