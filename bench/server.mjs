/**
 * The benchmark's PostgreSQL: durable (fsync and synchronous_commit on), private, gone when we are. `DATABASE_URL` wins
 * if it is set.
 */
import { startPostgres } from '../tools/postgres/server.mjs'

/** Durable commits; checkpoints are made between measurements and not in the middle of one. */
const SETTINGS = {
  max_connections: 100,
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
}

export async function startServer(more = {}) {
  if (process.env.DATABASE_URL) return { url: process.env.DATABASE_URL, stop: async () => {} }

  const server = await startPostgres({ settings: { ...SETTINGS, ...more } })
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130))
  return { url: server.url, pid: server.pid, stop: server.stop }
}
