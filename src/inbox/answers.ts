/**
 * What a client answers to a statement, where a handler ends in one and returns it: `(message, { tx }) => tx.query('insert …')`.
 *
 * Without rows it is no result. Nobody asked for it, and to keep it would take as long as a third of the message. Of an answer
 * with rows pg's own members stay behind, which are mostly a table of all types.
 */
const COUNTS = [
  'numInsertedOrUpdatedRows',
  'numUpdatedRows',
  'numDeletedRows',
  'numChangedRows',
  'numAffectedRows',
] as const

interface Answer {
  readonly rows: readonly unknown[]
  readonly fields: readonly unknown[]
  readonly command?: unknown
  readonly rowCount?: unknown
  readonly oid?: unknown
}

/** The result of a handler that has returned this. */
export function withoutAnswer(returned: unknown): unknown {
  if (typeof returned !== 'object' || returned === null) return returned
  if (Array.isArray(returned)) return isRowless(returned) ? undefined : returned
  if (isCount(returned)) return undefined
  if (!isAnswer(returned)) return returned
  const { command, rowCount, oid, rows, fields } = returned
  if (rows.length === 0) return undefined
  return command === undefined ? returned : { command, rowCount, oid, rows, fields }
}

/** pg and what is on top of it; PGlite counts `affectedRows`, and has no command. */
function isAnswer(value: object): value is Answer {
  if (!('rows' in value && 'fields' in value && ('rowCount' in value || 'affectedRows' in value))) return false
  return Array.isArray(value.rows) && Array.isArray(value.fields)
}

/** postgres.js answers a list with members of its own, Kysely a list of counts. */
function isRowless(list: readonly unknown[]): boolean {
  return list.length === 0 ? 'command' in list && 'count' in list : list.every(isCount)
}

/** Kysely's, by INSERT, UPDATE, DELETE or MERGE. They are of a type that JSON has not. */
function isCount(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return COUNTS.some((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'bigint')
}
