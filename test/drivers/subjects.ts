/** The clients that the conformance suite of drivers runs on: whichever version, on whichever server. */
import path from 'node:path'
import { tmpdir } from 'node:os'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import pg from 'pg'
import type postgres from 'postgres'
import { fromPg, type PgClient } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'
import { fromPostgres } from 'oncebox/postgres'
import type { Driver } from 'oncebox'
import type { DriverConformance, DriverFaults } from '../../src/testing/driver-conformance/index.js'
import { type PostgresProxy, startProxy } from '../support/proxy.js'

/** A server by its URL, which is known when the tests run. */
export type Url = () => string

export type OpenPool = (config: pg.PoolConfig) => pg.Pool
export type OpenSql = (url: string, options: postgres.Options<Record<string, never>>) => postgres.Sql

export function pgSubject(url: Url, openPool: OpenPool): DriverConformance<pg.PoolClient, PgClient> {
  return {
    async open() {
      const proxy = await startProxy(url())
      const pool = openPool({ connectionString: proxy.url, max: 4 })
      const side = await besides(url())
      return {
        driver: fromPg(pool),
        root: pool,
        native: (tx, text) => tx.query(text),
        outside: side.query,
        async idle() {
          const client = await pool.connect()
          return { tx: client, close: async () => client.release() }
        },
        faults: faultsOf(proxy, (place) => {
          const other = openPool({ ...place, max: 2 })
          return { driver: fromPg(other), close: () => other.end() }
        }),
        async close() {
          // First, or the pool would wait for connections that are silent.
          await proxy.close()
          await pool.end()
          await side.close()
        },
      }
    },
  }
}

export function postgresSubject(url: Url, openSql: OpenSql): DriverConformance<postgres.TransactionSql> {
  return {
    async open() {
      const proxy = await startProxy(url())
      const sql = openSql(proxy.url, { max: 4, onnotice: () => {} })
      const side = await besides(url())
      return {
        driver: fromPostgres(sql),
        root: sql,
        native: async (tx, text) => await tx.unsafe(text),
        outside: side.query,
        async idle() {
          let over: postgres.TransactionSql | undefined
          await sql.begin(async (tx) => {
            over = tx
          })
          return { tx: over!, close: async () => {} }
        },
        faults: faultsOf(proxy, ({ host, port, user, database }) => {
          const socket = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : {}
          const other = openSql(`postgres://127.0.0.1:${port}`, { ...socket, user, database, max: 2 })
          return { driver: fromPostgres(other), close: () => other.end({ timeout: 0.1 }) }
        }),
        async close() {
          // It waits for connections that were killed, too.
          await sql.end({ timeout: 0.1 })
          await proxy.close()
          await side.close()
        },
      }
    },
    // postgres.js hands notices to an option that only the owner of the pool can set.
    capabilities: { commitWarnings: false },
  }
}

export function pgliteSubject(database: () => PGlite): DriverConformance<Transaction> {
  return {
    open: async () => {
      const db = database()
      return {
        driver: fromPglite<Transaction>(db),
        root: db,
        native: (tx, text) => (text.includes(';') ? tx.exec(text) : tx.query(text)),
        outside: async (text) => (await db.query<Record<string, unknown>>(text)).rows,
        async idle() {
          let over: Transaction | undefined
          await db.transaction(async (tx) => {
            over = tx
          })
          return { tx: over!, close: async () => {} }
        },
        close: async () => {},
      }
    },
    // One session for everybody, in this process, without a network; it has no notices either.
    capabilities: { parallel: false, commitWarnings: false, faults: false },
  }
}

/** Where a server is, and who asks. */
export interface Place {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
}

interface Opened<Tx, TxIn> {
  readonly driver: Driver<Tx, TxIn>
  close(): Promise<void>
}

export function faultsOf<Tx, TxIn>(
  proxy: PostgresProxy,
  open: (place: Place) => Opened<Tx, TxIn> | Promise<Opened<Tx, TxIn>>,
): DriverFaults<Tx, TxIn> {
  const place = placeOf(proxy.url)
  const lacking = {
    'unix socket': { ...place, host: path.join(tmpdir(), 'oncebox-no-such-directory') },
    role: { ...place, user: 'oncebox_no_such_role' },
  }
  return {
    swallow: () => void proxy.swallow(),
    cut: (how) => proxy.cutAll({ reset: how === 'reset' }),
    refuse: () => proxy.refuse(),
    accept: () => proxy.accept(),
    lacking: async (what) => open(lacking[what]),
  }
}

export function placeOf(url: string): Place {
  const { hostname, port, username, pathname } = new URL(url)
  return { host: hostname, port: Number(port), user: username, database: pathname.slice(1) }
}

/** A connection past the proxy and the driver. */
export async function besides(url: string) {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  return {
    query: async (text: string) => (await client.query<Record<string, unknown>>(text)).rows,
    close: () => client.end(),
  }
}
