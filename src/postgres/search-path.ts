/** Check: PostgreSQL's own functions and operators come first in the path of our sessions. */
import { OnceboxError } from '../errors.js'
import type { Database } from './database.js'
import { SEARCH_PATH } from './sql/server.js'

/**
 * They do, unless `search_path` names `pg_catalog` behind another schema: then even `=` is whatever somebody has put there,
 * in our statements and in those of handlers. Asked before anything else.
 */
export async function checkSearchPath({ driver }: Database): Promise<void> {
  const [row] = await driver.query(SEARCH_PATH, [''])
  const path = JSON.parse(row!['path'] as string) as string[]
  const first = path.find((schema) => !schema.startsWith('pg_temp'))
  if (first === 'pg_catalog') return
  throw new OnceboxError(
    'SEARCH_PATH_UNSAFE',
    `search_path has ${first} before pg_catalog: whoever may create operators there can replace those of PostgreSQL; leave pg_catalog out of it, and PostgreSQL searches it first`,
  )
}
