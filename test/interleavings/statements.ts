/** Which statements of src/postgres/sql the parties run, and why the others have no part in it. */
import { readdirSync } from 'node:fs'
import type { PartyOf } from './meet.js'
import { ran } from './stage.js'

const DISPLAY = 'reads for people to see; nothing is decided by it'
const BOOK = 'writes a book that no statement reads'
const READING =
  'one row of figures that people see; who reads them meets on its lock, see test/metrics/election.test.ts'
const MINUTES =
  'figures for charts; no message is judged by them, and processes add theirs, see test/metrics/minutes.test.ts'
const CHANGES =
  'a row by which people see what RETRY and DISCARD do; they judge each message by themselves, and processes meet on the lock of the row, see test/dashboard/carried.test.ts'
const SESSION = 'changes the session or the transaction alone'
const START = 'asks what the server, the role or the sequences are like; no row is judged by it'
const QUARANTINE = 'a row of the quarantine is no message yet: it has a key of its own, and no state that others share'

/** Why a text is outside that is no statement by itself. */
export const PIECE = 'a piece of other statements'

export const OUTSIDE: Readonly<Record<string, string>> = {
  STATUS: DISPLAY,
  OUTBOX_STATUS: DISPLAY,
  ATTEMPTS: DISPLAY,
  SINKS: DISPLAY,
  HEALTH: DISPLAY,
  LOOK_CONSUMERS: DISPLAY,
  LOOK_PARKED: DISPLAY,
  LOOK_STRAYS: DISPLAY,
  LOOK_SINKS: DISPLAY,
  LOOK_UNWANTED: DISPLAY,
  LOOK_QUARANTINE: DISPLAY,
  LOOK_QUARANTINE_PRODUCERS: DISPLAY,
  LOOK_SETTINGS: DISPLAY,
  LOOK_CONNECTIONS: DISPLAY,
  LOOK_PINS: DISPLAY,
  HIDDEN_SESSIONS: DISPLAY,
  LOOK_TABLES: DISPLAY,
  LOOK_OBJECTS: DISPLAY,
  SENT: DISPLAY,
  JOURNAL: DISPLAY,
  PARKED: DISPLAY,
  BACKLOG: DISPLAY,
  WAITING: DISPLAY,
  BY_ID: DISPLAY,
  OUTBOX: DISPLAY,
  OUTBOX_PARKED: DISPLAY,
  OUTBOX_BY_ID: DISPLAY,
  SEEK_QUARANTINE: DISPLAY,
  QUARANTINED: DISPLAY,
  QUARANTINED_OF: DISPLAY,
  QUARANTINED_BY_ID: DISPLAY,
  READ_QUARANTINED: DISPLAY,
  AUDIT: BOOK,
  READ_AUDIT: DISPLAY,
  SECRET: DISPLAY,
  START_BULK: CHANGES,
  CHANGE_BULK: CHANGES,
  TAKE_BULK: CHANGES,
  LOCK_BULK: CHANGES,
  ADVANCE_BULK: CHANGES,
  FOLLOW_BULK: CHANGES,
  END_BULK: CHANGES,
  LEAVE_BULK: CHANGES,
  PRUNE_BULK: CHANGES,
  LIST_BULK: DISPLAY,
  READ_BULK: DISPLAY,
  ADD_MINUTE: MINUTES,
  PRUNE_MINUTES: MINUTES,
  READ_MINUTES: DISPLAY,
  READ_MINUTE: DISPLAY,
  READ_PUBLISHED: DISPLAY,
  READ_SINCE: DISPLAY,
  ELECT_READER: READING,
  WRITE_READING: READING,
  READ_READING: DISPLAY,
  READ_CONSUMERS: DISPLAY,
  READ_QUARANTINE: DISPLAY,
  READ_SINKS: DISPLAY,
  READ_SIZES: DISPLAY,
  VOCABULARY: DISPLAY,
  FATES: DISPLAY,
  BODIES: DISPLAY,
  EFFECTS_OF: DISPLAY,
  FAILURE_GROUPS: DISPLAY,
  UNGROUPED: DISPLAY,
  BLOCKED: DISPLAY,
  BLOCKED_KEYS: DISPLAY,
  BLOCKED_CONSUMERS: DISPLAY,
  BLOCKING_GROUPS: DISPLAY,
  PARKED_SINCE: DISPLAY,
  READ_SWITCHES: DISPLAY,
  ALIKE: DISPLAY,
  FRONTS: DISPLAY,
  UNMARKED: 'proposes; MARK_FAILURES judges each row again',
  MARK_FAILURES: 'waits for nobody, and changes no column that another statement decides by',
  BEHIND: DISPLAY,
  DEEPEST: DISPLAY,
  HELD_UNTIL: DISPLAY,
  QUARANTINE_REASONS: DISPLAY,
  DELIVERIES: DISPLAY,
  CAUSED: DISPLAY,
  CAUSED_EVENTS: DISPLAY,
  BOUND_READS: SESSION,
  OPEN: SESSION,
  ALIVE: SESSION,
  LOCK_TIMEOUT: SESSION,
  ONCE_BEGIN: SESSION,
  LIMIT_IDLE: SESSION,
  ONCE_TRANSACTION: SESSION,
  SESSION_DEFAULTS: START,
  RIGHTS: START,
  SERVER: START,
  MISSING_ABILITY: START,
  SEARCH_PATH: START,
  ENCODING: START,
  ANY_SINK: DISPLAY,
  MISSING_RIGHTS: START,
  SEQUENCES_BEHIND: START,
  REPAIR_SEQUENCES: 'sets sequences, never back; no row is changed',
  LOCK_SEQUENCES: 'one repair of the sequences at a time',
  CONFIRM: 'writes to the log alone',
  DEAF: 'ends sessions: to the others it is a rollback, which every meeting has',
  NOTIFY: 'wakes; polling finds the same',
  OUTGROWN: 'looks at the sizes of tables',
  TRANSACTION_STATUS: 'asks the server, not a row',
  DRAIN_UNTIL: 'reads the clock',
  WALK_END: 'reads the clock and sequences',
  NEXT_DUE: 'says when to ask again; the claim judges',
  IS_FRESH: 'reads the clock',
  CLASSIFY: 'a statement of its own, in a snapshot of its own: it is right about a moment that has passed',
  STILL_OPEN: 'is asked once the transaction in question has ended',
  CLAIMED: 'finds what a claim holds; FAIL and RELEASE_LANES give it back',
  READ_LANES: 'reads what the caller holds already, in a snapshot taken after the claim',
  MISSED_ATTEMPTS: 'reads the history of a message that the caller holds, which nobody else writes',
  READ_SHARDS: 'reads what the caller holds already, in a snapshot taken after the lease',
  READ_EFFECTS: 'reads outcomes, which do not change; an intent is judged by INTEND',
  PRUNABLE: 'proposes; PRUNE judges each row again',
  PRUNABLE_QUARANTINE: 'proposes; PRUNE_QUARANTINE judges each row again',
  CONSUMERS: 'reads options',
  QUARANTINE_ACCOUNTS: 'reads what triggers have counted',
  KNOWN_CONSUMERS: 'reads names',
  ONCE_OPTIONS: 'reads options',
  OTHER_CONSUMERS: 'reads subscriptions, and options',
  REGISTER: 'writes options and subscriptions',
  RENEW: 'writes options',
  BEGIN_WATERMARKS: 'inserts rows that forget nothing, where there are none',
  SET_PAUSED: 'writes an option',
  REGISTERED: DISPLAY,
  IS_REGISTERED: 'reads names',
  SEEN: 'writes who runs a consumer, for people',
  LEFT: 'writes who runs a consumer, for people',
  REMOVE_CONSUMER: 'has the table of subscriptions alone: test/admin/remove-consumer.test.ts lets receivers meet it',
  UNSETTLED: 'proposes; DISCARD judges each row again',
  REMOVE_QUARANTINE: QUARANTINE,
  REMOVE_HORIZON:
    'forgets, because somebody asked for it, how far back a consumer remembers that is not there any more',
  QUARANTINE,
  QUARANTINE_OF_NOBODY: QUARANTINE,
  QUARANTINE_APART: QUARANTINE,
  QUARANTINE_LONGER: QUARANTINE,
  LOCK_QUARANTINED: 'locks rows of the quarantine; what is done to them meets on that lock',
  DISCARD_QUARANTINED: QUARANTINE,
  REMOVE_QUARANTINED: QUARANTINE,
  PRUNE_QUARANTINE: QUARANTINE,
  UNROUTED: QUARANTINE,
  COMPLETED: 'is asked once COMPLETE has ended',
  MARK_REMOVED: 'ends what REMOVE_DELIVERIES has done',
  CRITERIA: PIECE,
  HELD_BACK: PIECE,
  FREE: PIECE,
  COUNTED: PIECE,
  LOOK: PIECE,
  FINISHED: PIECE,
  AS_IT_CAME: 'pieces of other statements',
  STATE: PIECE,
  EVENT_STATE: PIECE,
  MARKED: 'a word',
  MAX_BIGINT: 'a number',
  COUNTED_TO: 'a number',
}

const FOLDER = new URL('../../src/postgres/sql/', import.meta.url)

/** All constants that the files export, by name. */
export async function exported(): Promise<Map<string, unknown>> {
  const all = new Map<string, unknown>()
  for (const file of readdirSync(FOLDER)) {
    const module = (await import(/* @vite-ignore */ new URL(file, FOLDER).href)) as Record<string, unknown>
    for (const [name, value] of Object.entries(module)) if (typeof value !== 'function') all.set(name, value)
  }
  return all
}

/** Statements that these parties name and did not run in this process. */
export async function namedInVain(parties: readonly PartyOf<never, unknown>[]): Promise<string[]> {
  const texts = await exported()
  return parties.flatMap(({ statements }) => statements).filter((name) => !ran.has(texts.get(name) as string))
}
