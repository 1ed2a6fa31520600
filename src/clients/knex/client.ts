/** Knex as its binding sees it. Structural, so that importing oncebox never imports Knex; most of it is not public. */
import type { PoolOptions } from '../../postgres/drivers/pg/client.js'

export const VERSIONS = ['Knex', '3.0.1 to 3.x'] as const

/** A pool of tarn. */
export interface KnexPool {
  readonly max?: number
  readonly destroyed?: boolean
  numUsed(): number
  numFree(): number
  numPendingCreates(): number
  numPendingAcquires(): number
  on?(event: 'createSuccess', listener: (id: number, connection: object) => void): void
}

/** A connection of pg with Knex's mark for one that is not to be used again. */
export interface KnexConnection {
  __knex__disposed?: unknown
  release?: ((error?: unknown) => void) | undefined
  end?(): Promise<void>
}

export interface KnexBuilder {
  readonly client: object
  readonly _method?: string
  table(name: unknown, options?: unknown): unknown
}

export interface KnexSchemaBuilder {
  readonly _sequence?: readonly { readonly method: string }[]
}

export interface KnexClient {
  readonly dialect?: string
  readonly config?: { readonly connectionPool?: unknown }
  readonly pool?: KnexPool
  readonly driver?: { readonly Client?: new (options: object) => never }
  readonly connectionSettings?: PoolOptions
  acquireConnection(): Promise<KnexConnection>
  releaseConnection(connection: KnexConnection): Promise<void>
  queryBuilder(): KnexBuilder
  queryCompiler(builder: object, formatter?: unknown): unknown
  schemaBuilder(): KnexSchemaBuilder
  schemaCompiler(builder: object): unknown
  emit(event: string, ...args: unknown[]): boolean
}

/** An instance, or a transaction, which is one too. */
export interface KnexInstance {
  readonly client: KnexClient
  readonly context: object & {
    readonly _transaction?: (work: unknown, config: object, outer: object) => PromiseLike<unknown>
    readonly batchInsert?: (...batch: unknown[]) => Promise<unknown>
  }
  readonly isTransaction?: boolean
  isCompleted?(): boolean
  emit(event: string, ...args: unknown[]): boolean
}
