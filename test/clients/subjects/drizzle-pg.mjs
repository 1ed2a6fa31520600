/** Drizzle on pg: see ../subject.ts. */
import pg from 'pg'
import { openDrizzle } from './drizzle.mjs'

export async function open({ name, ...options }, from) {
  const pool = new pg.Pool({ ...options, application_name: name })
  pool.on('error', () => {})
  return { ...(await openDrizzle(pool, 'node-postgres', from)), close: () => pool.end() }
}
