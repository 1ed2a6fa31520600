/**
 * What a crash does to handlers on Citus whose rows are on another node than their box.
 *
 *     npm run build && ONCEBOX_TEST_POSTGRES=<directory of the programs of a PostgreSQL that has Citus> node bench/citus.mjs
 *
 * Starts a coordinator and two nodes. The node with the box takes 100 ms for a commit of its own, and is stopped at once eight
 * times while messages are handled. Each message is one row, without a unique key, so that a double shows.
 */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { startPostgres, statement } from '../tools/postgres/server.mjs'

const MESSAGES = 600
const CRASHES = 8
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const SETTINGS = {
  shared_preload_libraries: 'citus',
  max_prepared_transactions: 100,
  'citus.node_conninfo': 'sslmode=disable',
  // How long a transaction that was prepared waits for a node that is back, at most.
  'citus.recover_2pc_interval': '3s',
}

const nodes = []
for (const slow of [{}, {}, { commit_delay: 100_000, commit_siblings: 0 }]) {
  nodes.push(await startPostgres({ settings: { ...SETTINGS, ...slow } }))
}
const [coordinator, , home] = nodes
const look = new pg.Pool({ connectionString: coordinator.url, max: 2 })
look.on('error', () => {})
try {
  await setUp()
  const place = await places()
  const results = []
  results.push(await crashed('elsewhere', { place: place.elsewhere }))
  results.push(await crashed('elsewhere_two_phases', { place: place.elsewhere, twoPhases: true }))
  results.push(await crashed('same_node', { place: place.home }))
  console.table(results)
} finally {
  await look.end()
  for (const node of nodes) await node.stop()
}

async function setUp() {
  for (const { url } of nodes) await statement(url, 'create extension citus')
  await look.query(`select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`)
  for (const { port } of nodes.slice(1)) await look.query(`select citus_add_node('127.0.0.1', ${port})`)
  await look.query('create table entry (place int not null, id text not null)')
  await look.query(`select create_distributed_table('entry', 'place')`)
  await look.query('create table two_phases (n int not null)')
  await look.query(`select create_distributed_table('two_phases', 'n', shard_count => 2, colocate_with => 'none')`)
}

/** A value whose rows are on the node of the box, and one whose rows are not. */
async function places() {
  const { rows } = await look.query(
    `select value, nodeport = $1 as home from generate_series(0, 63) value
     join pg_dist_placement on shardid = get_shard_id_for_distribution_column('entry', value)
     join pg_dist_node using (groupid)`,
    [home.port],
  )
  return { home: rows.find((row) => row.home).value, elsewhere: rows.find((row) => !row.home).value }
}

async function crashed(schema, { place, twoPhases = false }) {
  const connectionString = `${home.url}?options=-c%20citus.enable_ddl_propagation%3Doff`
  const pool = new pg.Pool({ connectionString, max: 10 })
  pool.on('error', () => {})
  const box = createBox({ db: fromPg(pool), schema, logger: SILENT })
  const handler = async ({ id }, { tx }) => {
    if (twoPhases) await tx.query('delete from two_phases')
    await tx.query('insert into entry values ($1, $2)', [place, `${schema}/${id}`])
  }
  box.consumer('note', { noted: handler }, { group: { messages: 5 }, leaseMs: 2_000 })
  await box.migrate()
  await box.start()
  await box.receive(Array.from({ length: MESSAGES }, (_, n) => ({ id: `m-${n}`, type: 'noted', data: {} })))
  for (let crash = 1; crash <= CRASHES; crash++) {
    await until(async () => (await entries(schema)).distinct >= (crash * MESSAGES) / (CRASHES + 2))
    await home.kill('SIGQUIT')
    await home.restart()
  }
  await until(async () => (await pool.query(`select from ${schema}.work`)).rowCount === 0)
  await until(async () => (await entries(schema)).distinct === MESSAGES)
  await box.stop()
  await pool.end()
  const { rows, distinct } = await entries(schema)
  return { 'rows of handlers': schema, messages: MESSAGES, rows, doubled: rows - distinct }
}

async function entries(schema) {
  const text = 'select count(*)::int as rows, count(distinct id)::int as distinct from entry where id like $1'
  return (await look.query(text, [`${schema}/%`])).rows[0]
}

async function until(condition) {
  for (let n = 0; n < 2_000; n++) {
    if (await condition().catch(() => false)) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`waited in vain: ${condition}`)
}
