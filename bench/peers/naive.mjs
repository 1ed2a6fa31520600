/**
 * An inbox as tutorials have it: for each message one transaction with a row for its id and the handler, 24 at a time, as it
 * arrives. No retries, no quarantine, no order, and nothing is stored: what fails the broker has to deliver again. What it
 * stores, it stores with INSERT … ON CONFLICT DO NOTHING, many rows in one statement.
 */
import pg from 'pg'
import { chunks, inFlight } from '../messages.mjs'

const CONNECTIONS = 24
const MARK = { name: 'mark', text: 'insert into inbox (id) values ($1) on conflict do nothing' }
const STORE = {
  name: 'store',
  text: `insert into inbox (id, body) select * from unnest($1::text[], $2::jsonb[]) on conflict do nothing`,
}
const STORE_ONE = { name: 'store-one', text: 'insert into inbox (id, body) values ($1, $2) on conflict do nothing' }

export async function open({ url, work, handled }) {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS, idleTimeoutMillis: 0 })
  await pool.query(
    'create table if not exists inbox (id text primary key, body jsonb, received_at timestamptz default now())',
  )
  const handle = async ({ id, data }) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rowCount } = await client.query({ ...MARK, values: [id] })
      if (rowCount > 0) await work(client, data)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
    handled()
  }
  return {
    tables: ['inbox'],
    left: 'false',
    store: (messages, many) =>
      inFlight(many, chunks(messages, 1_000), (part) =>
        pool.query({ ...STORE, values: [part.map(({ id }) => id), part.map(({ data }) => JSON.stringify(data))] }),
      ),
    storeOne: ({ id, data }) => pool.query({ ...STORE_ONE, values: [id, JSON.stringify(data)] }),
    start: (messages) => inFlight(CONNECTIONS, messages, handle),
    pause: async () => undefined,
    close: () => pool.end(),
  }
}
