/** Check: PostgreSQL's own functions and operators come first in the path of our sessions. */
import { OnceboxError } from '../errors.js'
import type { Database } from './database.js'
import { SEARCH_PATH } from './sql/server.js'

/**
 * They do, unless `search_path` names `pg_catalog` behind another schema: then even `=` is whatever somebody has put there,
 * in our statements and in those of handlers. A schema that does not exist yet counts: somebody may create it. Asked before
 * anything else.
 */
export async function checkSearchPath({ driver }: Database): Promise<void> {
  const [row] = await driver.query(SEARCH_PATH, [''])
  const path = schemasOf(row!['path'] as string)
  const before = path.slice(0, Math.max(0, path.indexOf('pg_catalog')))
  // In pg_temp no functions and operators are looked for.
  const first = before.find((schema) => schema !== 'pg_temp')
  if (first === undefined) return
  throw new OnceboxError(
    'SEARCH_PATH_UNSAFE',
    `search_path has ${JSON.stringify(first)} before pg_catalog: whoever may create operators there can replace those of PostgreSQL; leave pg_catalog out of it, and PostgreSQL searches it first`,
  )
}

/** The names in the setting, as PostgreSQL reads them: quoted, or in lower case. */
function schemasOf(setting: string): string[] {
  return [...setting.matchAll(/"((?:[^"]|"")*)"|([^\s,"]+)/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!.toLowerCase(),
  )
}
