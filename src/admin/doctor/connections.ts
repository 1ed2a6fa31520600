/** Connections: how many the server has left, and whether the pool carries the consumers of this process. */
import { LOOK_CONNECTIONS, type ConnectionFacts } from '../../postgres/sql/doctor-server.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'

const NEARLY = 0.8
const FULL = 0.95

const SCARCE = check<ConnectionFacts>({
  code: 'connections-scarce',
  severity: 'warning',
  why: 'A process that finds no connection can neither store nor handle: it fails and tries again, and so does everything else on this server.',
  find({ used, most, ofRole, mostOfRole, ofDatabase, mostOfDatabase, role, database }) {
    const limits = [
      { of: 'the server', used, most, fix: `alter system set max_connections = ${most * 2};   -- and restart the server; or put PgBouncer before it` }, // prettier-ignore
      { of: `role ${role}`, used: ofRole, most: mostOfRole, fix: `alter role "${role.replaceAll('"', '""')}" connection limit ${ofRole * 2};` }, // prettier-ignore
      { of: `database ${database}`, used: ofDatabase, most: mostOfDatabase, fix: `alter database "${database.replaceAll('"', '""')}" connection limit ${ofDatabase * 2};` }, // prettier-ignore
    ]
    return limits.flatMap(({ of, used: taken, most: limit, fix }) => {
      if (limit === null || taken < limit * NEARLY) return []
      return [
        {
          ...(taken >= limit * FULL && { severity: 'serious' as const }),
          what: `${taken} of the ${limit} connections of ${of} are in use`,
          figures: { used: taken, most: limit, of },
          fix,
        },
      ]
    })
  },
})

const POOL_SMALL = check<ConnectionFacts>({
  code: 'pool-small',
  severity: 'warning',
  why: 'Each transaction of handlers holds a connection: with fewer than that, consumers wait for each other, and heartbeats and receivers for both.',
  find(_, { runtime, consumers }) {
    const { capacity } = runtime.db.driver
    const needed = consumers.reduce((sum, { options }) => sum + options.concurrency, 0)
    if (capacity === undefined || needed === 0 || capacity > needed) return []
    return [
      {
        what: `the pool has ${capacity} connections, and the consumers of this process run up to ${needed} transactions at once`,
        figures: { pool: capacity, concurrency: needed },
        fix: `new Pool({ max: ${needed + 2} })   // or lower concurrency of the consumers`,
      },
    ]
  },
})

const POOL_EXHAUSTED = check<ConnectionFacts>({
  code: 'pool-exhausted',
  severity: 'warning',
  why: 'All connections of the pool are taken and something waits for one, perhaps a handler for itself.',
  find(_, { runtime }) {
    const { capacity, exhausted } = runtime.db.driver
    if (!exhausted) return []
    return [
      {
        what: 'all connections of the pool are in use, and more are waited for',
        figures: { ...(capacity !== undefined && { pool: capacity }) },
        fix: 'use the tx that a handler is given instead of the pool, or raise the pool’s max',
      },
    ]
  },
})

export const CONNECTIONS = family('connections', readConnections, [SCARCE, POOL_SMALL, POOL_EXHAUSTED])

async function readConnections({ ask }: Look): Promise<ConnectionFacts> {
  const [row] = await ask(LOOK_CONNECTIONS, null)
  return readJson(row!.facts)
}
