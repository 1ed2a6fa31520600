/**
 * A bank on several servers: a fixed number of logical boxes, each of them a schema, several on each server. The account
 * decides in which box a transfer is booked, and where a box is can change.
 */
import { createHash } from 'node:crypto'
import pg from 'pg'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { spreadLink } from './spread.mjs'

/**
 * Fixed for ever: a box knows what it has handled, and no other box does. With another number most accounts would be in
 * another box, where copies of what they sent before are new. Take more than you will ever have servers.
 */
export const BOXES = 6
/** How long a claim outlives its worker. Shorter than the default, so that nobody has to wait for half a minute. */
const LEASE_MS = 3_000

export const messages = defineMessages({
  'transfer.ordered': z.object({ from: z.string(), to: z.string(), cents: z.int(), n: z.int() }),
  'transfer.arrived': z.object({ to: z.string(), cents: z.int() }),
})

/**
 * The same on every machine, in every version and every language: the first four bytes of SHA-256, modulo the number.
 * @param {string} key
 * @param {number} [count]
 */
export function shardOf(key, count = BOXES) {
  return createHash('sha256').update(key).digest().readUInt32BE(0) % count
}

/** @param {number} shard */
export const schemaOf = (shard) => `oncebox_example_scale_${shard}`

/**
 * @typedef {object} Shards
 * @property {ReturnType<typeof createShard>[]} boxes one for each logical box, whichever server it is on
 * @property {(shard: number, text: string, values?: unknown[]) => Promise<any[]>} query on the server of that box
 * @property {() => Promise<void>} close
 */

/**
 * @param {readonly string[]} placement the URL of the server of each box
 * @param {{ entries?: string, logger?: import('oncebox').Logger, poolMax?: number }} [options] `entries`: one distributed
 *   table for all boxes, on Citus; by default each box has its own, in its schema, and takes it along when it moves
 * @returns {Shards}
 */
export function openShards(placement, { entries, logger, poolMax = 14 } = {}) {
  if (placement.length !== BOXES) throw new Error(`there are ${BOXES} boxes; got the servers of ${placement.length}`)
  /** One pool for each server, which its boxes share. @type {Map<string, pg.Pool>} */
  const pools = new Map()
  for (const url of new Set(placement)) {
    const pool = new pg.Pool({ connectionString: url, max: poolMax })
    // A connection that dies while it is idle: the pool has taken it out already.
    pool.on('error', () => {})
    pools.set(url, pool)
  }
  const drivers = new Map([...pools].map(([url, pool]) => [url, fromPg(pool)]))
  const boxes = placement.map((url, shard) => {
    const schema = schemaOf(shard)
    const table = entries ?? `${schema}.entry`
    // Deletes nothing, on several shards: Citus then commits in two phases, however few nodes a handler writes to.
    const first = entries === undefined ? undefined : `delete from ${entries}_two_phases`
    return createShard(/** @type {any} */ (drivers.get(url)), { schema, table, first, logger })
  })
  return {
    boxes,
    query: async (shard, text, values) => (await pools.get(placement[shard] ?? '')?.query(text, values))?.rows ?? [],
    close: async () => void (await Promise.all([...pools.values()].map((pool) => pool.end()))),
  }
}

/**
 * @param {import('oncebox').Driver<pg.PoolClient>} db
 * @param {{ schema: string, table: string, first: string | undefined, logger: import('oncebox').Logger | undefined }} options
 */
function createShard(db, { schema, table, first, logger }) {
  const box = createBox({ db, messages, schema, source: 'bank', ...(logger && { logger }) })
  const BOOK = `insert into ${table} (account, cents, id, n, after) values ($1, $2, $3, $4, $5)`
  box.consumer(
    'book',
    {
      'transfer.ordered': async ({ id, data }, { tx, send }) => {
        if (first) await tx.query(first)
        const last = await tx.query(`select max(n) n from ${table} where account = $1`, [data.from])
        await tx.query(BOOK, [data.from, -data.cents, id, data.n, last.rows[0].n])
        // To the box of the other account, on whichever server that is.
        await send('transfer.arrived', { to: data.to, cents: data.cents }, { key: data.to })
      },
      'transfer.arrived': async ({ id, data }, { tx }) => {
        if (first) await tx.query(first)
        await tx.query(BOOK, [data.to, data.cents, id, null, null])
      },
    },
    { order: 'key', concurrency: 2, leaseMs: LEASE_MS },
  )
  return box
}

/**
 * Lets events of each of these boxes go to the box of their key.
 * @param {Shards} shards
 */
export function connect({ boxes }) {
  for (const box of boxes) box.to(spreadLink(boxes, shardOf))
}

/** The user's table. It has no unique key, so that a double would show. */
export const ENTRY = '(account text not null, cents int not null, id text not null, n int, after int)'

/** @param {Shards} shards */
export async function migrate({ boxes, query }) {
  for (const [shard, box] of boxes.entries()) {
    await box.migrate()
    await query(shard, `create table if not exists ${schemaOf(shard)}.entry ${ENTRY}`)
    await query(shard, `create index if not exists entry_account on ${schemaOf(shard)}.entry (account, n)`)
  }
}
