/** Drizzle on postgres.js: see ../subject.ts. */
import postgres from 'postgres'
import { openDrizzle } from './drizzle.mjs'

// postgres.js hands notices to an option that only the owner of the pool can set.
export const capabilities = { commitWarnings: false }

export async function open({ name, host, port, user, database, max }, from) {
  const sql = postgres({
    ...(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host }),
    ...{ port, user, database, max },
    connection: { application_name: name },
    onnotice: () => {},
    // Nobody would hear of a connection that dies while it asks for them.
    fetch_types: false,
  })
  // It waits for connections that were killed, too.
  return { ...(await openDrizzle(sql, 'postgres-js', from)), close: () => sql.end({ timeout: 0.1 }) }
}
