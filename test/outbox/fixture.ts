/** What the tests of the outbox share: a scratch database per file, boxes in schemas of their own, sinks that record. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll } from 'vitest'
import {
  createBox,
  type Box,
  type BoxOptions,
  type Message,
  type MessageMap,
  type SendOptions,
  type Sink,
} from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import { scratchDatabase, scratchSchemaName, type ScratchDatabase } from '../support/postgres.js'

export type PgBox<M extends MessageMap = MessageMap> = Box<M, pg.PoolClient, PgClient>
export type Options<M extends MessageMap> = Partial<BoxOptions<M, pg.PoolClient, PgClient>>

export interface Server {
  readonly pool: pg.Pool
  readonly url: string
  /** A box on a migrated schema: a new one, or that of another box, as if in another process. Stopped after the test. */
  open<const M extends MessageMap = MessageMap>(options?: Options<M>): Promise<PgBox<M> & { readonly schema: string }>
  /** Sends events in a transaction of their own. */
  send(box: PgBox, ...events: Event[]): Promise<void>
  /** Runs a statement; `ob.` stands for the schema. */
  sql(schema: string, text: string): Promise<Record<string, unknown>[]>
}

export interface Event extends SendOptions {
  type?: string
  data?: unknown
}

export const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export function useServer(name: string, config: pg.PoolConfig = {}): Server {
  let database: ScratchDatabase
  let pool: pg.Pool
  const opened: PgBox[] = []
  beforeAll(async () => {
    database = await scratchDatabase(name)
    pool = new pg.Pool({ connectionString: database.url, max: 20, ...config })
    pool.on('error', () => {})
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((box) => box.stop({ timeoutMs: 5_000 })))
  })
  afterAll(async () => {
    await pool.end()
    await database.close()
  })
  return {
    get pool() {
      return pool
    },
    get url() {
      return database.url
    },
    async open(options = {}) {
      const schema = options.schema ?? scratchSchemaName('outbox')
      const box = createBox({ db: fromPg(pool), logger: SILENT, source: 'shop', ...options, schema })
      await box.migrate()
      opened.push(box as unknown as PgBox)
      return Object.assign(box, { schema })
    },
    async send(box, ...events) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const list = events.map(({ type = 'event', data = null, ...rest }) => ({ type, data, ...rest }))
        await box.sendMany(client, list)
        await client.query('commit')
      } finally {
        client.release()
      }
    },
    async sql(schema, text) {
      const { rows } = await pool.query(text.replaceAll('ob.', `"${schema}".`))
      return rows
    },
  }
}

type Answer = undefined | { error: unknown; retry: boolean }

export interface RecordingSink extends Sink {
  readonly name?: string
  /** What was published, in order. */
  readonly published: Message[]
  readonly ids: string[]
  /** Every call, also those that failed. */
  readonly calls: (readonly Message[])[]
  readonly closed: number
}

/** A sink that keeps what it is given. `answer` may refuse one message, `fail` the whole call. */
export function recordingSink(
  how: { name?: string; answer?: (message: Message) => Answer; fail?: () => void | Promise<void> } = {},
): RecordingSink {
  const published: Message[] = []
  const calls: (readonly Message[])[] = []
  let closed = 0
  return {
    ...(how.name !== undefined && { name: how.name }),
    published,
    calls,
    get ids() {
      return published.map(({ id }) => id)
    },
    get closed() {
      return closed
    },
    async publish(batch) {
      calls.push(batch)
      await how.fail?.()
      const failedKeys = new Set<string>()
      return batch.map((message) => {
        const { key } = message
        const answer =
          key !== undefined && failedKeys.has(key)
            ? { error: new Error('an earlier one of the key failed'), retry: true }
            : how.answer?.(message)
        if (answer) {
          if (key !== undefined) failedKeys.add(key)
        } else published.push(message)
        return answer
      })
    },
    async close() {
      closed++
    },
  }
}
