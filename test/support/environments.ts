/**
 * Databases as they are met in the field, each by its name: `await using env = await environment('slow-commits')`.
 * Nothing is started before a test asks for it, and everything ends with it.
 *
 *   slow-commits   a private server where every durable commit takes some milliseconds, as on a cloud disk
 *   unix-socket    a private server that is reached through a directory, without TCP
 *   pgbouncer      PgBouncer in transaction mode before a scratch database of the shared server
 *   role           a scratch database of the shared server, with a role whose sessions begin with settings of their own
 *   standby        a private server whose commits wait for a streaming standby, which can stall and be promoted
 *   black-hole     a proxy before a scratch database that swallows what exists, while new connections work
 */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { startPgBouncer } from '../../tools/services/pgbouncer.mjs'
import { scratchDatabase, sharedDatabaseUrl, startPostgres, type PostgresServer } from './postgres.js'
import { startProxy, type PostgresProxy, type Swallowed } from './proxy.js'
import { waitUntil } from './wait.js'

/** How a client gets there: for `new pg.Pool(env.connection)` and `postgres(env.connection)` alike. */
export interface ConnectionOptions {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password?: string
  readonly database: string
}

export interface Environment {
  /** For pg. postgres.js cannot be told of a unix socket by its URL: give it `connection`. */
  readonly url: string
  readonly connection: ConnectionOptions
  /** Ends what was started. Connections of the test's own are closed before. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface ServerEnvironment extends Environment {
  /** A test may kill it, or restart it. */
  readonly server: PostgresServer
}

export interface PgBouncerEnvironment extends Environment {
  /** The database itself, without PgBouncer. */
  readonly direct: string
}

export interface RoleEnvironment extends Environment {
  readonly role: string
  /** The same database as the superuser, without the role's settings. */
  readonly direct: string
}

export interface StandbyEnvironment extends ServerEnvironment {
  readonly standby: PostgresServer
  /** The standby answers no more: from here on a commit waits. Resolves when it has stopped. */
  stall(): Promise<void>
  /** The standby catches up, and commits that waited return. */
  resume(): Promise<void>
  /** Kills the primary and makes the standby a primary of its own. Resolves with its URL when it takes writes. */
  promote(): Promise<string>
}

export interface BlackHoleEnvironment extends Environment {
  readonly direct: string
  readonly proxy: PostgresProxy
  /** Every connection that exists goes silent in both directions; nobody is told. */
  swallow(): Swallowed
}

/** The names, what each can be told, and what it gives. */
export interface Environments {
  'slow-commits': { options: { commitMs?: number }; gives: ServerEnvironment }
  'unix-socket': { options: object; gives: ServerEnvironment }
  pgbouncer: { options: { settings?: Record<string, string | number> }; gives: PgBouncerEnvironment }
  role: { options: { settings?: Record<string, string | number> }; gives: RoleEnvironment }
  standby: { options: object; gives: StandbyEnvironment }
  'black-hole': { options: object; gives: BlackHoleEnvironment }
}

export type EnvironmentName = keyof Environments

export async function environment<Name extends EnvironmentName>(
  name: Name,
  options: Environments[Name]['options'] = {},
): Promise<Environments[Name]['gives']> {
  return STARTERS[name](options)
}

const STARTERS: {
  [Name in EnvironmentName]: (options: Environments[Name]['options']) => Promise<Environments[Name]['gives']>
} = {
  'slow-commits': slowCommits,
  'unix-socket': unixSocket,
  pgbouncer: behindPgBouncer,
  role: withRole,
  standby: withStandby,
  'black-hole': blackHole,
}

/** With no sibling asked for, the server sleeps before each flush; asynchronous commits do not wait for one. */
async function slowCommits({ commitMs = 10 }: { commitMs?: number }): Promise<ServerEnvironment> {
  const settings = { fsync: 'on', commit_delay: commitMs * 1_000, commit_siblings: 0 }
  const server = await startPostgres({ settings })
  return { ...at(server.url, () => server.stop()), server }
}

async function unixSocket(): Promise<ServerEnvironment> {
  const server = await startPostgres({ unixSocket: true })
  const connection = { ...connectionOf(server.url), host: server.socketDirectory }
  const url = new URL(server.url)
  url.searchParams.set('host', server.socketDirectory)
  return { ...at(url.href, () => server.stop()), connection, server }
}

async function behindPgBouncer({ settings = {} }: Environments['pgbouncer']['options']): Promise<PgBouncerEnvironment> {
  const database = await scratchDatabase('pgbouncer')
  try {
    const pooler = await startPgBouncer(database.url, settings)
    const close = async (): Promise<void> => {
      await pooler.stop()
      await database.close()
    }
    return { ...at(pooler.url, close), direct: database.url }
  } catch (error) {
    await database.close()
    throw error
  }
}

async function withRole({ settings = {} }: Environments['role']['options']): Promise<RoleEnvironment> {
  const database = await scratchDatabase('role')
  const role = `role_${randomBytes(5).toString('hex')}`
  const password = randomBytes(8).toString('hex')
  await query(database.url, `create role ${role} login password '${password}'`)
  await query(database.url, `alter database ${database.name} owner to ${role}`)
  for (const [name, value] of Object.entries(settings))
    await query(database.url, `alter role ${role} set ${name} = ${pg.escapeLiteral(String(value))}`)

  const url = new URL(database.url)
  url.username = role
  url.password = password
  const close = async (): Promise<void> => {
    await database.close()
    await query(sharedDatabaseUrl(), `drop role if exists ${role}`)
  }
  return { ...at(url.href, close), role, direct: database.url }
}

async function withStandby(): Promise<StandbyEnvironment> {
  const server = await startPostgres()
  let standby: PostgresServer | undefined
  const close = async (): Promise<void> => {
    await standby?.stop()
    await server.stop()
  }
  try {
    const { host, port, user } = connectionOf(server.url)
    const primary = `host=${host} port=${port} user=${user} application_name=standby`
    const follower = await startPostgres({ standbyOf: server.url, settings: { primary_conninfo: primary } })
    standby = follower
    await waitUntil(() => isStandby(server.url, `state = 'streaming'`), { what: 'the standby to stream' })
    // Only now: before, the server's own start would wait for a standby that is not there.
    await query(server.url, `alter system set synchronous_standby_names = 'standby'`)
    await query(server.url, 'select pg_reload_conf()')
    await waitUntil(() => isStandby(server.url, `sync_state = 'sync'`), { what: 'the standby to be synchronous' })
    return { ...at(server.url, close), server, standby, ...faultsOf(server, follower) }
  } catch (error) {
    await close()
    throw error
  }
}

/** The walreceiver alone is stopped, so that the standby still answers questions, and can be shut down. */
function faultsOf(
  server: PostgresServer,
  standby: PostgresServer,
): Pick<StandbyEnvironment, 'stall' | 'resume' | 'promote'> {
  let stalled: number | undefined
  const resume = async (): Promise<void> => {
    if (stalled !== undefined) process.kill(stalled, 'SIGCONT')
    stalled = undefined
  }
  return {
    async stall() {
      const [receiver] = await query(standby.url, 'select pid from pg_stat_wal_receiver')
      if (receiver === undefined) throw new Error('the standby does not follow')
      stalled = receiver['pid'] as number
      process.kill(stalled, 'SIGSTOP')
    },
    resume,
    async promote() {
      await server.kill('SIGKILL')
      await resume()
      await query(standby.url, 'select pg_promote()')
      return standby.url
    },
  }
}

async function isStandby(primary: string, condition: string): Promise<boolean> {
  const rows = await query(
    primary,
    `select from pg_stat_replication where application_name = 'standby' and ${condition}`,
  )
  return rows.length > 0
}

async function blackHole(): Promise<BlackHoleEnvironment> {
  const database = await scratchDatabase('black_hole')
  const proxy = await startProxy(database.url)
  const close = async (): Promise<void> => {
    await proxy.close()
    await database.close()
  }
  return { ...at(proxy.url, close), direct: database.url, proxy, swallow: () => proxy.swallow() }
}

function at(url: string, close: () => Promise<void>): Environment {
  return { url, connection: connectionOf(url), close, [Symbol.asyncDispose]: close }
}

function connectionOf(url: string): ConnectionOptions {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    database: decodeURIComponent(pathname.slice(1)),
  }
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}
