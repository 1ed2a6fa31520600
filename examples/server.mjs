/** The server of an example whose client cannot use PGlite: the one at DATABASE_URL if it is set, else one of its own. */
import { startPostgres } from '../tools/postgres/server.mjs'

/** @returns {Promise<{ url: string, close(): Promise<void> }>} */
export async function openServer() {
  const url = process.env['DATABASE_URL']
  if (url) return { url, close: async () => {} }
  const server = await startPostgres()
  return { url: server.url, close: () => server.stop() }
}
