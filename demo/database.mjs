/**
 * The demo's database: the one you name, else a private PostgreSQL that ends with the demo, else PGlite in this process.
 * All tables live in schemas of their own, which are dropped at the end.
 */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { fromPg } from 'oncebox/pg'
import { startPostgres } from '../tools/postgres/server.mjs'
import { ordersBox, SKUS } from './orders.mjs'
import { SERVICES } from './link.mjs'
import { serviceBox } from './services.mjs'

const TABLES = `
create table orders (id text primary key, sku text not null, quantity int not null, cents int not null);

create table stock (sku text primary key, reserved int not null default 0);
create table reservation (order_id text not null, quantity int not null);
create table payment (order_id text not null, charge_id text not null, cents int not null);

create table naive_stock (sku text primary key, reserved int not null default 0);
create table naive_reservation (order_id text not null, quantity int not null);
create table naive_payment (order_id text not null, charge_id text not null, cents int not null);
`
const FILL_STOCK = 'with sku as (insert into stock (sku) values ($1)) insert into naive_stock (sku) values ($1)'

/** No connection to the database that was asked for. */
export class CannotConnect extends Error {}

/** `wanted` is a URL, 'pglite', or undefined for whatever can be had. */
export async function openDatabase(wanted, say) {
  const schema = `oncebox_demo_${randomBytes(4).toString('hex')}`
  if (wanted === 'pglite') return openPglite(schema)
  if (wanted) return openUrl(wanted, schema)
  let server
  try {
    say('starting a private PostgreSQL')
    server = await startPostgres({ debianPackage: false, settings: { max_connections: 100 } })
  } catch (error) {
    say(`no PostgreSQL: ${error.message}`)
    return openPglite(schema)
  }
  const database = await openUrl(server.url, schema)
  return { ...database, name: `${database.name}, a private server`, close: server.stop }
}

async function openUrl(given, schema) {
  const url = withSearchPath(given, schema)
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  const version = await pool.query('show server_version').catch((error) => {
    throw new CannotConnect(`cannot connect to the database: ${error.message || error.code}`)
  })
  return {
    name: `PostgreSQL ${version.rows[0].server_version.split(' ')[0]}`,
    url,
    schema,
    db: fromPg(pool),
    async close() {
      const client = await pool.connect()
      await client.query(`set lock_timeout = '10s'`)
      for (const owned of schemas(schema)) await client.query(`drop schema if exists ${owned} cascade`)
      client.release()
      await pool.end()
    },
  }
}

/** One process, one session: there is nobody to kill, so kills are simulated. */
async function openPglite(schema) {
  const { PGlite } = await import('@electric-sql/pglite')
  const { fromPglite } = await import('oncebox/pglite')
  const pglite = await PGlite.create()
  await pglite.exec(`set search_path = ${schema}`)
  return { name: 'PGlite in one process', schema, db: fromPglite(pglite), close: () => pglite.close() }
}

export async function createTables({ db, schema }) {
  await db.query(`create schema ${schema}`, [])
  for (const statement of TABLES.split(';')) if (statement.trim()) await db.query(statement, [])
  for (const sku of SKUS) await db.query(FILL_STOCK, [sku])
  await ordersBox({ db, schema }).migrate()
  for (const service of SERVICES) await serviceBox(service, { db, schema }).migrate()
}

function schemas(schema) {
  return [schema, `${schema}_orders`, ...SERVICES.map((service) => `${schema}_${service}`)]
}

function withSearchPath(given, schema) {
  let url
  try {
    url = new URL(given)
  } catch {
    throw new CannotConnect('the database must be a URL: postgres://user@host:5432/database')
  }
  url.searchParams.set('options', `-c search_path=${schema}`)
  return url.href
}
