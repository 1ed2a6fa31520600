/**
 * Migrate: brings a schema up to date, safely when many processes start at once.
 *
 * Expand, then contract: each migration says the oldest version of the library that still works with it
 * (`compatible`), and a library refuses to run on a schema whose `compatible_from` is newer than itself.
 */
import { createHash } from 'node:crypto'
import { OnceboxError } from '../errors.js'
import { backoffMs, sleep } from '../backoff.js'
import { integer, resolve } from '../options.js'
import { bindTo, type Database } from './database.js'
import { isStalePlan, sqlState } from './errors.js'
import { mayNotMigrate, rightsMissing } from './rights.js'
import { checkSearchPath } from './search-path.js'
import { SCHEMA } from './schema.js'
import { MIGRATIONS } from './migrations.generated.js'
import { ONCE_TRANSACTION } from './sql/once.js'
import { statement } from './statement.js'
import { handOver, lockTaken } from './upgrade.js'

/** The newest schema that this version of the library knows. */
export const SCHEMA_VERSION = MIGRATIONS.at(-1)!.version

export interface SchemaVersion {
  /** 0 if the schema does not exist yet. */
  readonly version: number
  /** The oldest schema version whose library still works with it. */
  readonly compatibleFrom: number
}

const SCHEMA_EXISTS = `select pg_catalog.to_regclass($1::text)::text found`
const READ_VERSION = statement<null, { version: string; compatible_from: string }>(
  `select version::text, compatible_from::text from ob.schema_version where $1::text is not null`,
)
const WRITE_VERSION = statement<{ version: number; compatibleFrom: number }>(`
with input as (select $1::text::jsonb j),
deleted as (delete from ob.schema_version)
insert into ob.schema_version select (j->>'version')::int, (j->>'compatibleFrom')::int from input`)
const LOCK = 'select pg_catalog.pg_advisory_xact_lock($1::text::bigint)'
const NAMESPACE = `select 1 from pg_catalog.pg_namespace where nspname = $1::text`
const CREATE_VERSION = `
create table if not exists ob.schema_version (version int not null, compatible_from int not null)`

const ATTEMPTS = 20
/** Of a table: an ALTER that waits behind one slow transaction makes all handlers wait behind it. */
const TABLE_LOCK = '100ms'
/** How long the migrations of other processes may take. */
const OTHERS_MS = 60_000

/** A migration takes as long as it takes, whatever a role may take at most. Not every server knows of the second limit. */
const LIMITS_LIFTED = [
  'set local statement_timeout = 0',
  `select pg_catalog.set_config(name, '0', true) from pg_catalog.pg_settings where name = 'transaction_timeout'`,
]

/** Who holds an advisory lock. Its number is in two halves; `objsubid` 1 says so. */
const HOLDER = `
select a.pid::text, a.usename::text "user", a.application_name application
from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1::smallint and a.datname = pg_catalog.current_database()
  and l.classid::bigint = (($1::text::bigint >> 32) & 4294967295::bigint)
  and l.objid::bigint = ($1::text::bigint & 4294967295::bigint)`

export async function migrate(
  db: Database,
  attempts = ATTEMPTS,
  othersMs = OTHERS_MS,
): Promise<{ from: number; to: number }> {
  await db.driver.check?.(db.schema)
  await checkSearchPath(db)
  for (let attempt = 0; ; attempt++) {
    const before = await readVersion(db).catch((error: unknown): never => {
      throw mayNotMigrate(db.schema, error)
    })
    refuseNewer(db.schema, before)
    if (before.version >= SCHEMA_VERSION) return { from: before.version, to: before.version }
    try {
      return await db.transaction((tx) => migrateLocked(db, tx, othersMs))
    } catch (error) {
      if (!isWorthAnotherTry(error)) throw mayNotMigrate(db.schema, error)
      if (attempt >= attempts) throw sqlState(error) === '55P03' ? locked(db.schema, error) : error
      await sleep(backoffMs(attempt, 50, 2_000))
    }
  }
}

/**
 * A lock that does not come at once is waited for outside the queue of locks, where it blocks nobody; and of many
 * processes that create one schema at once, all but one are told that it exists, or that somebody changes it too.
 */
function isWorthAnotherTry(error: unknown): boolean {
  const state = sqlState(error) ?? ''
  // An internal error is one of these, or does not go away.
  if (state === 'XX000') return /tuple concurrently (updated|deleted)/.test((error as Error).message)
  // A pooler has given its connection away, or has reset it: after a few of these the driver prepares nothing any more.
  if (isStalePlan(error)) return true
  return ['55P03', '40P01', '23505', '42P06', '42P07', '42723', '42710'].includes(state)
}

function locked(schema: string, cause: unknown): OnceboxError {
  return new OnceboxError(
    'SCHEMA_LOCKED',
    `a table of schema ${schema} that has to be changed is in use all the time, by handlers or another migration; nothing was changed. Pause consumers with slow handlers (box.admin.pause), or stop the workers, and run box.migrate() again`,
    { cause },
  )
}

/** Our own transaction may have the only connection of its pool. */
const LOOK = { limitMs: 2_000, urgent: true }

/** Anybody in the database may take a lock by its number, and keep it. */
async function lockedBy(db: Database, cause: unknown): Promise<OnceboxError> {
  const [holder] = await db.driver.query(HOLDER, [lockOf(db.schema)], undefined, LOOK).catch(() => [])
  const { pid, user, application } = (holder ?? {}) as Record<string, string>
  const who = holder ? `process ${pid} of the server, user ${user}, application "${application}"` : 'another session'
  return new OnceboxError(
    'SCHEMA_LOCKED',
    `${who} holds the lock for migrations of schema ${db.schema}; nothing was changed. If it does not migrate, end it with pg_terminate_backend, and run box.migrate() again`,
    { cause },
  )
}

async function migrateLocked(db: Database, tx: unknown, othersMs: number): Promise<{ from: number; to: number }> {
  // By its id the server is asked whether it is at work for us: to build an index may take long.
  await db.run(ONCE_TRANSACTION, null, tx)
  for (const statement of LIMITS_LIFTED) await db.driver.query(statement, [], tx)
  // Defaults, views and triggers keep what a name meant to the session that created them.
  await db.driver.query('set local search_path = pg_catalog, pg_temp', [], tx)
  // The advisory lock has a time limit of its own.
  await db.driver.query(`set local lock_timeout = ${othersMs}`, [], tx)
  await db.driver.query(LOCK, [lockOf(db.schema)], tx).catch(async (error: unknown) => {
    throw sqlState(error) === '55P03' ? await lockedBy(db, error) : error
  })
  await db.driver.query(`set local lock_timeout = '${TABLE_LOCK}'`, [], tx)
  const { version: from } = await readVersion(db, tx)
  if (from >= SCHEMA_VERSION) return { from, to: from }
  if (from === 0) {
    // `if not exists` would ask for CREATE on the database even where the schema exists.
    const [found] = await db.driver.query(NAMESPACE, [db.schema], tx)
    if (!found) await db.driver.query(`create schema ${quoted(db)}`, [], tx)
    await db.driver.query(db.bind(CREATE_VERSION), [], tx)
  }
  const lock = lockTaken(from)
  if (lock !== undefined) await db.driver.query(db.bind(lock), [], tx)
  for (const { version, sql } of MIGRATIONS) if (version > from) await db.driver.query(db.bind(sql), [], tx)
  if (from > 0) await db.driver.query(db.bind(handOver(from)), [], tx)
  await db.run(WRITE_VERSION, { version: SCHEMA_VERSION, compatibleFrom: compatibleFrom() }, tx)
  return { from, to: SCHEMA_VERSION }
}

/** The oldest version whose library still works with the newest schema. */
function compatibleFrom(): number {
  let from = 1
  for (const { sql } of MIGRATIONS) {
    const breaking = /^-- compatible from: (\d+)$/m.exec(sql)
    if (breaking) from = Number(breaking[1])
  }
  return from
}

export interface MigrationOptions {
  /** The schema of the box. Default: `oncebox`. */
  schema?: string
  /** The version that the schema has. Default 0: there is none yet. */
  from?: number
}

const OPTIONS = { schema: SCHEMA, from: integer({ least: 0, most: SCHEMA_VERSION, fallback: 0 }) }

/**
 * What `box.migrate()` runs, as one transaction in SQL, for people who change databases by hand. It does not register consumers:
 * `start()` does.
 */
export function migrationSql(options: MigrationOptions = {}): string {
  const { schema, from } = resolve('migrationSql', options, OPTIONS)
  const bind = bindTo(schema)
  const lock = lockTaken(from)
  return [
    '-- If a lock does not come in time, which would make handlers wait behind this, nothing is changed: run it again.',
    'begin;',
    ...LIMITS_LIFTED.map((statement) => `${statement};`),
    'set local search_path = pg_catalog, pg_temp;',
    `set local lock_timeout = ${OTHERS_MS};`,
    `select pg_catalog.pg_advisory_xact_lock(${lockOf(schema)});`,
    `set local lock_timeout = '${TABLE_LOCK}';`,
    bind(refuseOther(from)),
    ...(from === 0 ? [`create schema if not exists ${bind('ob.').slice(0, -1)};`, `${bind(CREATE_VERSION)};`] : []),
    ...(lock === undefined ? [] : [`${bind(lock)};`]),
    ...MIGRATIONS.filter(({ version }) => version > from).map(({ sql }) => bind(sql)),
    ...(from > 0 && from < SCHEMA_VERSION ? [`${bind(handOver(from))};`] : []),
    bind('delete from ob.schema_version;'),
    bind(`insert into ob.schema_version values (${SCHEMA_VERSION}, ${compatibleFrom()});`),
    'commit;',
    '',
  ].join('\n')
}

/** What is printed for one version must not run on another. */
function refuseOther(from: number): string {
  return `do $$
declare present int := 0;
begin
  if to_regclass('ob.schema_version') is not null then
    select coalesce(max(version), 0) into present from ob.schema_version;
  end if;
  if present <> ${from} then
    raise exception using errcode = '55000', message =
      concat('the schema is at version ', present, '; print the SQL with from: ', present);
  end if;
end $$;`
}

export async function readVersion(db: Database, tx?: unknown): Promise<SchemaVersion> {
  const name = db.bind('ob.schema_version')
  const [row] = await db.driver.query(SCHEMA_EXISTS, [name], tx)
  if (!row || row['found'] === null) return { version: 0, compatibleFrom: 0 }
  const [found] = await db.run(READ_VERSION, null, tx)
  return { version: Number(found?.version ?? 0), compatibleFrom: Number(found?.compatible_from ?? 0) }
}

/** What `start()` asks before it touches anything. */
export async function checkVersion(db: Database): Promise<void> {
  await db.driver.check?.(db.schema)
  await checkSearchPath(db)
  const found = await readVersion(db).catch((error: unknown) => {
    throw sqlState(error) === '42501' ? rightsMissing(db.schema, 'it may not read its version', error) : error
  })
  refuseNewer(db.schema, found)
  if (found.version < SCHEMA_VERSION) {
    const what = found.version === 0 ? 'does not exist' : `has version ${found.version}`
    throw new OnceboxError(
      'SCHEMA_OUTDATED',
      `schema ${db.schema} ${what}, this version of oncebox needs ${SCHEMA_VERSION}; run box.migrate() first`,
    )
  }
}

function refuseNewer(schema: string, { version, compatibleFrom }: SchemaVersion): void {
  if (compatibleFrom <= SCHEMA_VERSION) return
  throw new OnceboxError(
    'SCHEMA_NEWER',
    `schema ${schema} has version ${version}, which needs oncebox with schema ${compatibleFrom} or newer; this one knows ${SCHEMA_VERSION}. Upgrade oncebox here`,
  )
}

function quoted(db: Database): string {
  return db.bind('ob.x').slice(0, -2)
}

/** One lock per schema, so boxes in one database do not wait for each other. */
function lockOf(schema: string): string {
  return createHash('sha256').update(`oncebox migrate ${schema}`).digest().readBigInt64BE(0).toString()
}
