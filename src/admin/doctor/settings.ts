/** Settings of the server and of this role's sessions that endanger what oncebox promises, and the clocks. */
import { LOOK_SETTINGS, type SettingsFacts } from '../../postgres/sql/doctor-server.js'
import { takesAllText } from '../../postgres/encoding.js'
import { readJson } from '../../postgres/statement.js'
import { check, family, type Look } from './check.js'
import { identifier, span } from './words.js'

interface Facts extends SettingsFacts {
  /** The database's clock less that of this process. */
  readonly skewMs: number
  /** By how much that may be wrong: half of the trip. */
  readonly tripMs: number
}

/**
 * What changes a setting where it was made, since a narrower place wins over a wider one. Settings are those of the role that has
 * logged in, whichever it has become, and are read when a session begins.
 */
function setting({ sources, login, database }: Facts, name: string, value: string): string {
  const where = sources[name] === 'database user' ? ` in database ${identifier(database)}` : ''
  const change = `alter role ${identifier(login)}${where} set ${name} = ${value};   -- then restart what has sessions of the role`
  if (sources[name] !== 'client' && sources[name] !== 'session') return change
  return `take ${name} out of the options of the connection, or of what your program sets in its sessions, which win over: ${change}`
}

const READ_ONLY = check<Facts>({
  code: 'database-read-only',
  severity: 'serious',
  why: 'Nothing can be stored or handled: the connection leads to a standby, or the server was told to take no writes.',
  find(facts) {
    const { inRecovery, readOnly } = facts
    if (!inRecovery && !readOnly) return []
    const what = inRecovery ? 'the database is a standby' : 'transactions of this role are read-only'
    const fix = inRecovery
      ? 'connect to the primary: target_session_attrs=read-write in the connection string of libpq, or the address of the primary'
      : setting(facts, 'default_transaction_read_only', 'off')
    return [{ what, figures: { inRecovery: String(inRecovery) }, fix }]
  },
})

const FSYNC_OFF = check<Facts>({
  code: 'fsync-off',
  severity: 'serious',
  why: 'A crash of the machine loses what was committed and acknowledged, and may leave the tables damaged.',
  find: ({ fsync, fullPageWrites, embedded }) =>
    (
      [
        ['fsync', fsync],
        ['full_page_writes', fullPageWrites],
      ] as const
    )
      .filter(([, setting]) => setting === 'off' && !embedded)
      .map(([name]) => ({
        what: `${name} is off`,
        figures: { [name]: 'off' },
        fix: `alter system set ${name} = on; select pg_reload_conf();`,
      })),
})

const COMMIT_ASYNCHRONOUS = check<Facts>({
  code: 'synchronous-commit-off',
  severity: 'serious',
  why: 'A message is acknowledged before its commit is on disk: a crash of the server forgets it, and its source does not send it again.',
  find: (facts) =>
    facts.synchronousCommit !== 'off'
      ? []
      : [
          {
            what: `synchronous_commit is off for role ${facts.role}`,
            figures: { synchronous_commit: 'off', role: facts.role },
            fix: setting(facts, 'synchronous_commit', 'on'),
          },
        ],
})

/** Below this, a handler that waits for something else loses its transaction. */
const AMPLE_MS = 30_000

const TIMEOUT_SHORT = check<Facts>({
  code: 'timeout-short',
  severity: 'warning',
  why: 'The server ends transactions of handlers that wait for something else; the message fails, and is tried again.',
  find: (facts) =>
    (
      [
        ['idle_in_transaction_session_timeout', facts.idleInTransactionMs],
        ['transaction_timeout', facts.transactionMs],
      ] as const
    )
      .filter(([, ms]) => ms > 0 && ms < AMPLE_MS)
      .map(([name, ms]) => ({
        what: `${name} of role ${facts.role} is ${ms} ms, less than the ${AMPLE_MS} ms that a handler may take`,
        figures: { [name]: ms, role: facts.role },
        fix: setting(facts, name, `'${AMPLE_MS / 1_000 + 30}s'`),
      })),
})

const ISOLATION = check<Facts>({
  code: 'isolation-default',
  severity: 'note',
  why: 'Statements of oncebox need READ COMMITTED, and ask for it, which costs a trip for each of them.',
  find: (facts) =>
    facts.isolation === 'read committed'
      ? []
      : [
          {
            what: `sessions of role ${facts.role} begin with ${facts.isolation}`,
            figures: { default_transaction_isolation: facts.isolation, role: facts.role },
            fix: setting(facts, 'default_transaction_isolation', `'read committed'`),
          },
        ],
})

const ENCODING = check<Facts>({
  code: 'encoding-narrow',
  severity: 'warning',
  why: 'Text that the encoding of the database lacks, an emoji for one, cannot be written: such a message is refused each time that it comes, with all that came in the same batch.',
  find: ({ encoding, database }) =>
    takesAllText(encoding)
      ? []
      : [
          {
            what: `the encoding of database ${database} is ${encoding}`,
            figures: { encoding, database },
            fix: `create database "${database.replaceAll('"', '""')}_utf8" encoding 'UTF8' template template0;   -- then move the data: pg_dump, pg_restore`,
          },
        ],
})

/** As far as the clocks of senders and servers may be off: see `ob.margin`. */
const MARGIN_MS = 300_000

const CLOCK_SKEW = check<Facts>({
  code: 'clock-skew',
  severity: 'warning',
  why: 'Times of messages that this process sends are its own, and receivers judge their age by the database’s: too far apart, new messages pass for too old, or old ones for new.',
  find({ skewMs, tripMs }, { limits }) {
    const certain = Math.abs(skewMs) - tripMs
    if (certain <= limits.skewMs) return []
    const ahead = skewMs > 0 ? 'behind' : 'ahead of'
    return [
      {
        ...(certain > MARGIN_MS && { severity: 'serious' as const }),
        what: `the clock of this process is ${span(certain)} ${ahead} the database’s`,
        figures: { skewMs: Math.round(skewMs), uncertainMs: Math.round(tripMs) },
        fix: 'timedatectl set-ntp true   # on the machine whose clock is wrong',
      },
    ]
  },
})

const AUTOVACUUM_OFF = check<Facts>({
  code: 'autovacuum-off',
  severity: 'serious',
  why: 'Every handled message leaves dead rows: without autovacuum the tables grow without end, claims become slow, and at last the server refuses to write.',
  find: ({ autovacuum, trackCounts }) =>
    (
      [
        ['autovacuum', autovacuum],
        ['track_counts', trackCounts],
      ] as const
    )
      .filter(([, setting]) => setting === 'off')
      .map(([name]) => ({
        what: `${name} is off on the server`,
        figures: { [name]: 'off' },
        fix: `alter system set ${name} = on; select pg_reload_conf();`,
      })),
})

export const SETTINGS = family('the settings of the server', readSettings, [
  READ_ONLY,
  FSYNC_OFF,
  COMMIT_ASYNCHRONOUS,
  AUTOVACUUM_OFF,
  TIMEOUT_SHORT,
  ISOLATION,
  ENCODING,
  CLOCK_SKEW,
])

async function readSettings({ runtime: { db } }: Look): Promise<Facts> {
  // Outside of a transaction, whose settings drivers may change, and as one trip, whose middle is the best guess.
  await db.run(LOOK_SETTINGS, null)
  const before = Date.now()
  const [row] = await db.run(LOOK_SETTINGS, null)
  const after = Date.now()
  const facts = readJson(row!.facts)
  return { ...facts, skewMs: facts.clockMs - (before + after) / 2, tripMs: (after - before) / 2 }
}
