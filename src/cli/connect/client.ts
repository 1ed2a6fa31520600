/** The client that the project has: pg or postgres, found from its directory, else beside oncebox. */
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Driver } from '../../postgres/driver.js'
import { failed } from '../exit.js'
import { passwordFor } from './passfile.js'

export interface Client {
  readonly name: 'pg' | 'postgres'
  readonly driver: Driver<unknown, unknown>
  /** Ends its connections; those that do not answer are cut. */
  close(): Promise<void>
}

export interface ClientOptions {
  readonly cwd: string
  /** Undefined: libpq's variables say it. */
  readonly url: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly connectTimeoutMs: number
  /** Default true: what is installed beside oncebox will do, where the project itself has none. */
  readonly beside?: boolean
}

/** What runs next to each other: a command, and the loops of none. */
const CONNECTIONS = 4

const OPENERS = { pg: openPg, postgres: openPostgres }

export async function openClient(options: ClientOptions): Promise<Client> {
  const { cwd, beside = true } = options
  const own = pathToFileURL(path.join(cwd, 'from.js')).href
  for (const from of beside ? [own, import.meta.url] : [own]) {
    for (const name of ['pg', 'postgres'] as const) {
      const file = find(name, from)
      if (file !== undefined) return OPENERS[name](file, options)
    }
  }
  throw failed('there is no client for PostgreSQL here', 'install one of them: npm install pg, or npm install postgres')
}

/** The file of a package, as a module there would import it. */
function find(name: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(name)
  } catch {
    return undefined
  }
}

async function load<T>(file: string): Promise<T> {
  const module = (await import(pathToFileURL(file).href)) as { default?: T }
  return module.default ?? (module as T)
}

interface PgModule {
  Pool: new (config: object) => PgPool
}
interface PgPool {
  on(event: 'error', listener: () => void): unknown
  end(): Promise<void>
}

async function openPg(file: string, { url, connectTimeoutMs }: ClientOptions): Promise<Client> {
  const pg = await load<PgModule>(file)
  const { fromPg } = await import('../../postgres/drivers/pg.js')
  const pool = new pg.Pool({
    ...(url !== undefined && { connectionString: url }),
    ...{ max: CONNECTIONS, connectionTimeoutMillis: connectTimeoutMs, application_name: 'oncebox' },
  })
  // What it is of is told by the statement that fails.
  pool.on('error', () => undefined)
  return { name: 'pg', driver: fromPg(pool as never), close: () => pool.end() }
}

type PostgresModule = (...given: unknown[]) => { end(options: { timeout: number }): Promise<void> }

async function openPostgres(file: string, { url, env, connectTimeoutMs }: ClientOptions): Promise<Client> {
  const postgres = await load<PostgresModule>(file)
  const { fromPostgres } = await import('../../postgres/drivers/postgres.js')
  // This client does not know libpq's file of passwords.
  const password = await passwordFor(url, env)
  const settings = {
    ...{ max: CONNECTIONS, connect_timeout: Math.ceil(connectTimeoutMs / 1_000), onnotice: () => undefined },
    ...{ connection: { application_name: 'oncebox' }, ...(password !== undefined && { password }) },
  }
  const sql = url === undefined ? postgres(settings) : postgres(url, settings)
  return {
    name: 'postgres',
    driver: fromPostgres<unknown>(sql as never),
    close: () => sql.end({ timeout: 1 }),
  }
}
