/** What surrounds the migrations of a schema that is in use: the locks that they need, and whose their tables are. */
import { MIGRATIONS } from './migrations.generated.js'

/** Tables that every handler holds, in the order in which a claim, and then its handler, takes them. */
const TAKEN = ['work', 'message', 'outbox'] as const

/**
 * Takes at once, in the order of handlers, what the migrations behind `from` change one after the other: whoever holds one of these
 * tables and waits for the next then never waits for a migration that waits for it. Undefined if they change none.
 */
export function lockTaken(from: number): string | undefined {
  const old = sqlOf(MIGRATIONS.filter(({ version }) => version <= from))
  const pending = sqlOf(MIGRATIONS.filter(({ version }) => version > from))
  const changed = TAKEN.filter(
    (table) =>
      old.includes(`create table ob.${table} (`) && new RegExp(`\\b(?:alter table|on) ob\\.${table}\\b`).test(pending),
  )
  if (changed.length === 0) return undefined
  return `lock table ${changed.map((table) => `ob.${table}`).join(', ')} in access exclusive mode`
}

function sqlOf(migrations: typeof MIGRATIONS): string {
  return migrations.map(({ sql }) => sql).join('\n')
}
