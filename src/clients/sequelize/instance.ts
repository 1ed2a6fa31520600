/** Sequelize 6 as its binding sees it. Structural, so that importing oncebox never imports it; most of it is not public. */
export const VERSIONS = ['Sequelize', '6.31 to 6.x'] as const

/** A pool of sequelize-pool. */
export interface SequelizePool {
  readonly size: number
  readonly available: number
  readonly waiting: number
  readonly maxSize: number
  destroy(connection: object): Promise<void>
}

export interface ConnectionManager {
  /** With replication, a pool for each kind of connection. */
  readonly pool?: SequelizePool & { readonly write?: SequelizePool }
  readonly config?: ConnectionConfig & { readonly replication?: { readonly write?: ConnectionConfig } | false | null }
  readonly lib?: { readonly Client?: new (options: object) => never }
  getConnection(options: object): Promise<object>
  releaseConnection(connection: object): unknown
}

export interface ConnectionConfig {
  readonly host?: string
  readonly port?: string | number
  readonly database?: string
  readonly username?: string
  readonly password?: unknown
  readonly dialectOptions?: object
}

/** A namespace that `Sequelize.useCLS` was given. */
export interface Namespace {
  run(work: () => void): unknown
  set(name: 'transaction', value: object): unknown
}

export interface SequelizeInstance {
  readonly options?: { readonly dialect?: string }
  readonly connectionManager: ConnectionManager
  readonly constructor: {
    readonly Transaction?: new (sequelize: SequelizeInstance, options: object) => SequelizeTransaction
    readonly _cls?: Namespace
  }
}

export interface SequelizeTransaction {
  connection?: object
  /** How it has ended. */
  readonly finished?: string
  prepareEnvironment?(): Promise<unknown>
  commit(): Promise<void>
  rollback(): Promise<void>
  afterCommit(work: unknown): void
}
