/**
 * Real PostgreSQL for tests: one shared server per run (see global-setup.ts), a fresh database per test file, and
 * private servers for the tests that kill theirs. `tools/postgres` launches them.
 */
import { randomBytes } from 'node:crypto'
import { statement } from '../../tools/postgres/server.mjs'

export { freePort, startPostgres, type PostgresOptions, type PostgresServer } from '../../tools/postgres/server.mjs'

export interface ScratchDatabase {
  readonly url: string
  readonly name: string
  /** Drops the database, with whatever is still connected to it. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** A fresh database on the shared server, for one test file. */
export async function scratchDatabase(name = 'scratch'): Promise<ScratchDatabase> {
  const shared = sharedDatabaseUrl()
  const database = `${safeName(name)}_${randomBytes(5).toString('hex')}`
  await statement(shared, `create database "${database}"`)
  const url = new URL(shared)
  url.pathname = `/${database}`
  const close = async () => {
    await statement(shared, gone(database))
    await statement(shared, `drop database if exists "${database}" with (force)`)
  }
  return { url: url.href, name: database, close, [Symbol.asyncDispose]: close }
}

/** Waits a second for sessions that were closed just now: a pool that is ended does not, and one that is cut off complains. */
function gone(database: string): string {
  return `do $$ begin
    for i in 1 .. 50 loop
      exit when not exists (select from pg_stat_activity where datname = '${database}');
      perform pg_stat_clear_snapshot(), pg_sleep(0.02);
    end loop;
  end $$`
}

/** A schema name that no other test uses. */
export function scratchSchemaName(name = 'oncebox'): string {
  return `${safeName(name)}_${randomBytes(5).toString('hex')}`
}

/** The server that global-setup.ts started, or the one that DATABASE_URL names. */
export function sharedDatabaseUrl(): string {
  const url = process.env['DATABASE_URL']
  if (!url) throw new Error('DATABASE_URL is not set: run the tests through vitest, whose global setup starts a server')
  return url
}

/** What libpq and `new pg.Pool()` read when they are given nothing. */
export function libpqEnvironment(url: string): Record<string, string> {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    PGHOST: hostname,
    PGPORT: port || '5432',
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
  }
}

function safeName(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .slice(0, 40)
}
