/** Encoding: whether a database can write down whatever text a message may have. */
import type { Database } from './database.js'
import { ENCODING } from './sql/server.js'

/** SQL_ASCII takes bytes as they come. */
export function takesAllText(encoding: string): boolean {
  return encoding === 'UTF8' || encoding === 'SQL_ASCII'
}

/** What is to be said of a database that lacks characters; undefined if it takes all. */
export async function encodingProblem(db: Database): Promise<string | undefined> {
  const [row] = await db.run(ENCODING, null)
  const { encoding } = row!
  if (takesAllText(encoding)) return undefined
  const advice = 'recreate the database with ENCODING UTF8'
  return `the encoding of the database is ${encoding}: messages with text that it lacks, such as an emoji, cannot be stored; ${advice}`
}
