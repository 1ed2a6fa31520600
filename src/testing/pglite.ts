/** PGlite's own types, as far as handlers of a test box see them: tests with another driver need not install it. */

/** What a statement answers. */
export interface PgliteResults<T> {
  rows: T[]
  affectedRows?: number
  command?: string
  rowCount?: number
  fields: { name: string; dataTypeID: number }[]
  blob?: Blob
}

export interface PgliteQueryOptions {
  rowMode?: 'array' | 'object'
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as PGlite has it
  parsers?: Record<number, (value: string) => any>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as PGlite has it
  serializers?: Record<number, (value: any) => string>
  blob?: Blob
  paramTypes?: number[]
}

/** A transaction of PGlite. */
export interface PgliteTx {
  query<T>(query: string, params?: unknown[], options?: PgliteQueryOptions): Promise<PgliteResults<T>>
  sql<T>(strings: TemplateStringsArray, ...params: unknown[]): Promise<PgliteResults<T>>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as PGlite has it
  exec(query: string, options?: PgliteQueryOptions): Promise<PgliteResults<Record<string, any>>[]>
  rollback(): Promise<void>
  listen(channel: string, callback: (payload: string) => void): Promise<(tx?: PgliteTx) => Promise<void>>
  readonly closed: boolean
}
