/** Starts the server that all test files share, unless DATABASE_URL names one. Workers inherit the environment. */
import { startPostgres } from './postgres.js'

export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env['DATABASE_URL']) return undefined

  const server = await startPostgres()
  process.env['DATABASE_URL'] = server.url
  return async () => {
    delete process.env['DATABASE_URL']
    await server.stop()
  }
}
