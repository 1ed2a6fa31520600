/** Two PostgreSQL servers: those at SCALE_URLS, or two that are started here; and where `psql` and `pg_dump` are. */
import path from 'node:path'
import { findOrInstallBinaries } from '../../tools/postgres/binaries.mjs'
import { startPostgres } from '../../tools/postgres/server.mjs'

/** @returns {Promise<{ urls: [string, string], env: NodeJS.ProcessEnv, close(): Promise<void> }>} */
export async function openTwoServers() {
  const { bin } = await findOrInstallBinaries()
  const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env['PATH']}` }
  const [first, second] = (process.env['SCALE_URLS'] ?? '').split(',').filter(Boolean)
  if (first && second) return { urls: [first, second], env, close: async () => {} }
  const started = [await startPostgres(), await startPostgres()]
  return {
    urls: [started[0]?.url ?? '', started[1]?.url ?? ''],
    env,
    close: async () => void (await Promise.all(started.map((server) => server.stop()))),
  }
}
