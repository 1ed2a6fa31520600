/** Audit: writes down what was done to messages. Rows are only ever inserted. */
import type { Database } from '../postgres/database.js'
import { AUDIT } from '../postgres/sql/audit.js'

export interface Deed {
  readonly action: string
  /** Plain data for people: the filter, the count, the reason. */
  readonly detail: object
  /** Who says that they did it. What the box does on its own has nobody. */
  readonly by?: string | undefined
}

/** In the transaction `tx` if given: then the row is there if and only if the deed is. */
export async function writeAudit({ db }: { readonly db: Database }, deed: Deed, tx?: unknown): Promise<void> {
  const { action, detail, by } = deed
  await db.run(AUDIT, { action, detail: JSON.stringify(detail), actor: by ?? null }, tx)
}
