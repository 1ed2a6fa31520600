/** Lists what was done, newest first. */
import { OnceboxError } from '../errors.js'
import { resolve } from '../options.js'
import { READ_AUDIT, type AuditRow } from '../postgres/sql/audit.js'
import { MAX_BIGINT } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { PAGE, type Page } from './page.js'
import type { AuditRecord } from './types.js'

export async function audit({ db }: Runtime, page: Page = {}): Promise<{ records: AuditRecord[]; cursor?: string }> {
  const { cursor, limit } = resolve('audit', page, PAGE)
  const rows = await db.run(READ_AUDIT, { before: checkCursor(cursor), limit: limit + 1 })
  const records = rows.slice(0, limit).map(toRecord)
  return rows.length > limit ? { records, cursor: rows[limit - 1]!.n } : { records }
}

/** The number of the last record on the page before. */
function checkCursor(cursor: unknown): string {
  if (cursor === undefined) return MAX_BIGINT
  if (typeof cursor === 'string' && /^\d{1,18}$/.test(cursor)) return cursor
  throw new OnceboxError(
    'CURSOR_INVALID',
    'audit: this is no cursor of audit(); pass on the one that the last page had',
  )
}

function toRecord({ at, action, detail, actor, role, login }: AuditRow): AuditRecord {
  return {
    at: new Date(Number(at)),
    action,
    detail: readDetail(detail),
    ...(actor !== null && { by: actor }),
    ...(role !== null && { role }),
    ...(login !== null && { login }),
  }
}

/** A role that may insert may write anything: such a row must not keep the other rows from being read. */
function readDetail(text: string): Record<string, unknown> {
  try {
    const detail: unknown = JSON.parse(text)
    if (typeof detail === 'object' && detail !== null) return detail as Record<string, unknown>
  } catch {
    // Told as it is.
  }
  return { text }
}
