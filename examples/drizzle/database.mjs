/** Drizzle on the server at DATABASE_URL if it is set, else on PGlite, PostgreSQL inside the process. */

/** @typedef {import('drizzle-orm/node-postgres').NodePgDatabase & { $client: import('pg').Pool }} Db */

/** @returns {Promise<{ db: Db, close: () => Promise<void> }>} */
export async function openDrizzle() {
  if (process.env['DATABASE_URL']) {
    const { drizzle } = await import('drizzle-orm/node-postgres')
    const db = drizzle(process.env['DATABASE_URL'])
    return { db, close: () => db.$client.end() }
  }
  const { drizzle } = await import('drizzle-orm/pglite')
  const db = drizzle()
  // The two have the same methods.
  return { db: /** @type {any} */ (db), close: () => db.$client.close() }
}
