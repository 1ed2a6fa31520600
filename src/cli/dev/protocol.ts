/** What `oncebox dev` and the process that runs the user's box say to each other. */
import type { Happening } from '../../tap.js'

export interface ChildOptions {
  readonly config: string
  /** What the server answers that the box has to be on; undefined if any database will do. */
  readonly token: string | undefined
  /** The database has no data yet: the example is received. */
  readonly fresh: boolean
  /** Payloads may be shown. */
  readonly data: boolean
}

export type FromChild =
  | { readonly kind: 'ready'; readonly runs: readonly string[]; readonly example: boolean }
  | { readonly kind: 'happened'; readonly happening: Happening }
  | { readonly kind: 'refused'; readonly message: string; readonly advice: string | undefined }

export type ToChild = { readonly kind: 'stop' } | { readonly kind: 'example' }
