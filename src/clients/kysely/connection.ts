/** A connection as Kysely sees it, on one client of pg: what its own PostgresDialect has, for a client that is lent. */

export interface CompiledQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: object
  readonly queryId: object
}

interface Result {
  readonly rows: readonly unknown[]
  readonly numAffectedRows?: bigint | undefined
}

export interface Connection {
  executeQuery(query: CompiledQuery): Promise<Result>
  streamQuery(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<Result>
}

/** pg-cursor's class, as Kysely's dialect takes it. */
export type CursorClass = new (
  text: string,
  values: unknown[],
) => {
  read(count: number): Promise<unknown[]>
  close(): Promise<void>
}

interface PgResult {
  readonly command?: string
  readonly rowCount?: number | null
  readonly rows?: readonly unknown[]
}

export interface PgConnection {
  query(text: string, values: unknown[]): Promise<PgResult>
  query<C extends object>(cursor: C): C
}

const COUNTED = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE'])

export function connectionOn(client: PgConnection, Cursor: CursorClass | undefined): Connection {
  return new LentConnection(client, Cursor)
}

class LentConnection implements Connection {
  readonly #client: PgConnection
  readonly #Cursor: CursorClass | undefined

  constructor(client: PgConnection, Cursor: CursorClass | undefined) {
    this.#client = client
    this.#Cursor = Cursor
  }

  async executeQuery({ sql, parameters }: CompiledQuery): Promise<Result> {
    const { command, rowCount, rows = [] } = await this.#client.query(sql, [...parameters])
    return { rows, numAffectedRows: COUNTED.has(command ?? '') ? BigInt(rowCount ?? 0) : undefined }
  }

  async *streamQuery({ sql, parameters }: CompiledQuery, chunkSize: number): AsyncIterableIterator<Result> {
    const Cursor = this.#Cursor
    if (!Cursor) throw new Error('to stream in a handler, give fromKysely the class of pg-cursor: { cursor: Cursor }')
    const cursor = this.#client.query(new Cursor(sql, [...parameters]))
    try {
      for (let rows = await cursor.read(chunkSize); rows.length > 0; rows = await cursor.read(chunkSize)) yield { rows }
    } finally {
      await cursor.close()
    }
  }
}

/** A statement of ours, as Kysely has compiled ones. */
export function query(sql: string, parameters: readonly unknown[]): CompiledQuery {
  const node = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
  return { sql, parameters, query: node, queryId: { queryId: 'oncebox' } }
}
