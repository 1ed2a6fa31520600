/** Rights: what the role of this session may do, and see. */
import { missingRights } from '../../postgres/rights.js'
import type { RightsRow } from '../../postgres/sql/server.js'
import { HIDDEN_SESSIONS } from '../../postgres/sql/doctor-server.js'
import { check, family, type Look } from './check.js'
import { counted, identifier } from './words.js'

interface Rights extends RightsRow {
  /** Sessions that it may not look at. */
  readonly hidden: number
}

const RIGHTS_MISSING = check<Rights>({
  code: 'rights-missing',
  severity: 'note',
  why: 'A box that is started under this role is refused. One that only looks needs no more.',
  find(rights, { runtime: { db } }) {
    const { role, missing } = rights
    if (missing === null) return []
    const writes = !missing.includes('insert on message')
    return [
      {
        // A role that may store was meant to work.
        ...(writes && { severity: 'serious' as const }),
        what: `role ${role} may not run a box on schema ${db.schema}: it lacks ${missing}`,
        figures: { role, missing },
        fix: fixOf(rights, db.schema),
      },
    ]
  },
})

/** Sight of rows is nothing that can be granted: row-level security has to go. */
function fixOf({ role, granted, unveil }: Rights, schema: string): string {
  const grant = `run rolesSql({ schema: ${JSON.stringify(schema)} }) again, then: grant ${identifier(`${schema}_worker`)} to ${identifier(role)};`
  if (unveil === null) return grant
  const seen = `as the owner of the tables: ${unveil}`
  return granted === 'true' ? `${grant} And ${seen}` : seen
}

const SESSIONS_HIDDEN = check<Rights>({
  code: 'sessions-hidden',
  severity: 'note',
  why: 'Transactions of other roles that keep dead rows from being removed cannot be named.',
  find: ({ role, hidden }) =>
    hidden === 0
      ? []
      : [
          {
            what: `role ${role} may not look at ${counted(hidden, 'session')} of other roles`,
            figures: { role, sessions: hidden },
            fix: `grant pg_read_all_stats to ${identifier(role)};`,
          },
        ],
})

export const RIGHTS = family('the rights of the role', readRights, [RIGHTS_MISSING, SESSIONS_HIDDEN])

async function readRights({ runtime: { db }, ask }: Look): Promise<Rights> {
  const [row] = await ask(HIDDEN_SESSIONS, null)
  return { ...(await missingRights(db)), hidden: Number(row!.hidden) }
}
