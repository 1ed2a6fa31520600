/** A private PostgreSQL, as a service among the others. */
import { startPostgres } from '../postgres/server.mjs'
import { givenService } from './process.mjs'

export const name = 'postgres'
export const variable = 'DATABASE_URL'

export async function start() {
  const given = process.env[variable]
  if (given) return givenService({ name, variable, url: given, version: 'unknown' })
  const server = await startPostgres()
  return {
    name,
    variable,
    kind: 'binary',
    version: await server.version(),
    url: server.url,
    stop: server.stop,
    kill: () => server.kill('SIGKILL'),
    resume: server.restart,
    restart: server.restart,
  }
}
