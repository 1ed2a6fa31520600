/** A sample of what goes into each statement, the indexes that it relies on, and why some read a whole table. */
import type { Statement } from '../../src/postgres/statement.js'
import * as admin from '../../src/postgres/sql/admin.js'
import * as audit from '../../src/postgres/sql/audit.js'
import * as blocked from '../../src/postgres/sql/blocked.js'
import * as bulk from '../../src/postgres/sql/bulk.js'
import * as bulkWork from '../../src/postgres/sql/bulk-work.js'
import * as dashboard from '../../src/postgres/sql/dashboard.js'
import * as claim from '../../src/postgres/sql/claim.js'
import * as consumers from '../../src/postgres/sql/consumers.js'
import * as depth from '../../src/postgres/sql/depth.js'
import * as doctorInbox from '../../src/postgres/sql/doctor-inbox.js'
import * as doctorOutbox from '../../src/postgres/sql/doctor-outbox.js'
import * as doctorServer from '../../src/postgres/sql/doctor-server.js'
import * as effects from '../../src/postgres/sql/effects.js'
import * as failures from '../../src/postgres/sql/failures.js'
import * as inline from '../../src/postgres/sql/inline.js'
import * as lanes from '../../src/postgres/sql/lanes.js'
import * as link from '../../src/postgres/sql/link.js'
import * as marks from '../../src/postgres/sql/marks.js'
import * as minutes from '../../src/postgres/sql/minutes.js'
import * as once from '../../src/postgres/sql/once.js'
import * as outbox from '../../src/postgres/sql/outbox.js'
import * as shards from '../../src/postgres/sql/shards.js'
import * as sinks from '../../src/postgres/sql/sinks.js'
import * as parked from '../../src/postgres/sql/parked.js'
import * as plans from '../../src/postgres/sql/plans.js'
import * as quarantine from '../../src/postgres/sql/quarantine.js'
import * as reading from '../../src/postgres/sql/reading.js'
import { receiveParam } from '../../src/postgres/sql/receive-param.js'
import * as receive from '../../src/postgres/sql/receive.js'
import * as registry from '../../src/postgres/sql/registry.js'
import * as retain from '../../src/postgres/sql/retain.js'
import * as search from '../../src/postgres/sql/search.js'
import * as searchFailures from '../../src/postgres/sql/search-failures.js'
import * as searchOutbox from '../../src/postgres/sql/search-outbox.js'
import * as searchQuarantine from '../../src/postgres/sql/search-quarantine.js'
import * as server from '../../src/postgres/sql/server.js'
import * as session from '../../src/postgres/sql/session.js'
import * as settle from '../../src/postgres/sql/settle.js'
import type { Criteria, Walk } from '../../src/postgres/sql/walk.js'
import { STATES } from '../../src/admin/filter.js'

export interface Sample {
  readonly text: string
  readonly given: unknown
  /** Indexes that the plan must use, whatever the parameter. */
  readonly relies: readonly string[]
  /** Tables that it reads as a whole, or much of, and why it may. */
  readonly whole: Readonly<Record<string, string>>
}

type Whole = Readonly<Record<string, string>>

function sample<In>(text: Statement<In, unknown> | string, given: In, relies: string, whole: Whole = {}): Sample {
  return { text, given, relies: relies.split(' ').filter((index) => index !== ''), whole }
}

/** Both directions of a walk, which have one plan. */
function walk(
  name: string,
  { newest, oldest }: Walk,
  given: Partial<Criteria>,
  relies: string,
  whole: Whole = {},
): [string, Sample][] {
  return [
    [`${name} newest`, sample(newest, { ...CRITERIA, ...given }, relies, whole)],
    [`${name} oldest`, sample(oldest, { ...CRITERIA, ...given }, relies, whole)],
  ]
}

const TOKEN = '00000000-0000-4000-8000-000000000001'
const OTHER = '00000000-0000-4000-8000-000000000002'
const DAY = 86_400_000
const CARRIED = { id: TOKEN, token: OTHER }
const NOW = new Date().toISOString()
const CRITERIA = { limit: 100, lean: false, states: STATES }
/** Messages of the sample tables: one that waits, one that is handled, one that is parked. */
const PENDING = ['orders', 's1', '1'] as const
const HANDLED = ['orders', 's1', '100001'] as const
const PARKED = ['mail', 's1', '29'] as const
const MESSAGE = { id: 'new', source: 's1', type: 't1', key: 'k1', body: '{}', hash: 'ab', envelope: '{}', at: NOW }
const LOCAL = { name: 'orders', ordered: false, retainMs: DAY, untimed: 'accept', types: ['t1'], identity: false }
const ARRIVED = { s: 's1', i: 'new', t: 't1', b: '{}', h: 'ab', e: '{}', at: NOW }
const HORIZON = { consumer: 'orders', retainMs: DAY, untimed: 'accept' }
const CLAIM_OF = { consumer: 'orders', token: TOKEN }
const LANE_OF = { consumer: 'ledger', token: TOKEN }
const OPENED = { xid: '1', guard: '(0,1)' }
const DUE = { until: undefined, calm: false }
const QUARANTINED = {
  ...{
    consumer: 'orders',
    source: 's1',
    id: 'new',
    type: 't1',
    key: undefined,
    reason: 'conflict',
    fingerprint: undefined,
    detail: 'why',
    body: '{}',
  },
  ...{ bytes: undefined, hash: 'ab', envelope: '{}', account: 'topic', keepMs: undefined, meant: undefined },
}
const CALL = { consumer: 'orders', source: 's3', id: '15', name: 'charge' }
const ROOM = { account: 'topic', rows: 1e6, bytes: 1e9, size: 2 }
const SHARDS = { sink: 'broker', token: TOKEN }
const COUNTED = 'counts up to 10 000 rows'
const SAMPLED = 'looks at a sample of 10 000 rows'
const SWITCHED = 'once, after a switch-over'

export const SAMPLES: ReadonlyMap<string, Sample> = new Map<string, Sample>([
  ['STATUS', sample(admin.STATUS, ['orders'], 'message_received work_due work_lane work_parked', {
    ...{ message: 'counts', work: 'counts', quarantine: 'counts' },
  })],
  ['OUTBOX_STATUS', sample(admin.OUTBOX_STATUS, null, 'delivery_pkey outbox_pkey outbox_published', { outbox: 'counts', delivery: 'counts' })],
  ['ATTEMPTS', sample(admin.ATTEMPTS, [PENDING], 'attempt_pkey')],
  ['SINKS', sample(admin.SINKS, { goneMs: 90_000 }, '')],
  ['SET_PAUSED', sample(admin.SET_PAUSED, { name: 'orders', paused: true }, '')],
  ['AUDIT', sample(audit.AUDIT, { action: 'retry', detail: '{}', actor: null }, '')],
  ['SECRET', sample(dashboard.SECRET, { name: 'fingerprints' }, '')],
  ['READ_AUDIT', sample(audit.READ_AUDIT, { before: '1000', limit: 10 }, 'audit_pkey')],
  ['READ_SWITCHES', sample(audit.READ_SWITCHES, { limit: 100 }, 'audit_pkey')],

  ['WALK_END', sample(bulk.WALK_END, null, 'quarantine_pkey outbox_pkey')],
  ['RETRY', sample(bulk.RETRY, { keys: [PARKED], states: ['dead'] }, 'work_pkey work_lane')],
  ['REPLAY', sample(bulk.REPLAY, { keys: [HANDLED], consumers: [LOCAL] }, 'message_pkey work_pkey')],
  ['DISCARD', sample(bulk.DISCARD, { keys: [PENDING, PARKED], states: ['dead', 'pending'] }, 'work_pkey work_lane')],
  ['DISCARD_QUARANTINED', sample(bulk.DISCARD_QUARANTINED, { rows: ['1', '2'], reason: 'no use' }, 'quarantine_pkey')],
  ['READ_QUARANTINED', sample(bulk.READ_QUARANTINED, { rows: ['1', '2'], bytes: 1e6 }, 'quarantine_pkey')],
  ['LOCK_QUARANTINED', sample(bulk.LOCK_QUARANTINED, { rows: [['1', 'quarantined']], wait: '1s' }, 'quarantine_pkey')],
  ['REMOVE_QUARANTINED', sample(bulk.REMOVE_QUARANTINED, ['1'], 'quarantine_pkey')],
  ['RETRY_DELIVERIES', sample(bulk.RETRY_DELIVERIES, { keys: [['10070', 'broker']], states: ['dead'] }, 'delivery_pkey')],
  ['DISCARD_DELIVERIES', sample(bulk.DISCARD_DELIVERIES, { keys: [['10070', 'broker']], states: ['dead'] }, 'delivery_pkey')],

  ['START_BULK', sample(bulkWork.START_BULK, { ...CARRIED, verb: 'retry', query: '', zone: 0, readAt: 0, counted: '{}', secret: false, total: 1, most: 1, pace: undefined, actor: undefined, reason: undefined, leaseMs: 1_000, mostRunning: 4 }, '')],
  ['LIST_BULK', sample(bulkWork.LIST_BULK, { keptMs: 1_000, limit: 50 }, '')],
  ['READ_BULK', sample(bulkWork.READ_BULK, { id: TOKEN }, '')],
  ['CHANGE_BULK', sample(bulkWork.CHANGE_BULK, { id: TOKEN, verb: 'retry', cancel: true, pace: 1 }, '')],
  ['TAKE_BULK', sample(bulkWork.TAKE_BULK, { token: TOKEN, leaseMs: 1_000 }, '')],
  ['LOCK_BULK', sample(bulkWork.LOCK_BULK, CARRIED, '')],
  ['ADVANCE_BULK', sample(bulkWork.ADVANCE_BULK, { id: TOKEN, done: 1, skipped: 0, plan: '{}', keys: [PENDING], mostFollowed: 100, leaseMs: 1_000 }, '')],
  ['FOLLOW_BULK', sample(bulkWork.FOLLOW_BULK, { ...CARRIED, after: '0', limit: 500, leaseMs: 1_000 }, 'work_pkey')],
  ['END_BULK', sample(bulkWork.END_BULK, { ...CARRIED, state: 'done', problem: undefined, followMs: 1_000 }, '')],
  ['LEAVE_BULK', sample(bulkWork.LEAVE_BULK, { ...CARRIED, seen: true }, '')],
  ['PRUNE_BULK', sample(bulkWork.PRUNE_BULK, { keepMs: DAY }, '')],

  ['CLAIM', sample(claim.CLAIM, { ...CLAIM_OF, ...DUE, leaseMs: 1_000, limit: 100, bytes: 1e6, low: undefined }, 'work_due message_pkey')],
  ['CLAIMED', sample(claim.CLAIMED, { ...CLAIM_OF, leaseMs: 1_000, sinceMs: 1_000, skewMs: 1_000 }, 'work_due lane_due')],
  ['EXTEND', sample(claim.EXTEND, { ...CLAIM_OF, leaseMs: 1_000, messages: [['s3', '15']] }, 'work_pkey')],
  ['EXTEND_ONE', sample(claim.EXTEND_ONE, { ...CLAIM_OF, leaseMs: 1_000, source: 's3', id: '15', waitMs: 1_000 }, 'work_pkey')],
  ['DRAIN_UNTIL', sample(claim.DRAIN_UNTIL, null, '')],
  ['NEXT_DUE', sample(claim.NEXT_DUE, { consumer: 'orders' }, 'work_due lane_due')],

  ['LOOK_CONSUMERS', sample(doctorInbox.LOOK_CONSUMERS, { goneMs: 90_000 }, 'work_due lane_due message_received work_pkey handled_pkey', { work: COUNTED, message: COUNTED })],
  ['LOOK_PARKED', sample(doctorInbox.LOOK_PARKED, null, 'work_parked message_pkey', { work: COUNTED, message: COUNTED })],
  ['LOOK_STRAYS', sample(doctorInbox.LOOK_STRAYS, null, 'message_pkey lane_pkey', { work: SAMPLED, message: SAMPLED })],
  ['LOOK_SINKS', sample(doctorOutbox.LOOK_SINKS, { goneMs: 1_000 }, 'delivery_live delivery_waiting delivery_parked outbox_pkey', { delivery: COUNTED, outbox: COUNTED })],
  ['LOOK_UNWANTED', sample(doctorOutbox.LOOK_UNWANTED, null, 'delivery_waiting delivery_unassigned outbox_pkey', { delivery: COUNTED })],
  ['LOOK_QUARANTINE', sample(doctorInbox.LOOK_QUARANTINE, null, 'quarantine_reason', { quarantine: COUNTED })],
  ['LOOK_QUARANTINE_PRODUCERS', sample(doctorInbox.LOOK_QUARANTINE_PRODUCERS, { accounts: ['topic'], most: 5 }, 'quarantine_reason', { quarantine: COUNTED })], // prettier-ignore
  ['LOOK_SETTINGS', sample(doctorServer.LOOK_SETTINGS, null, '')],
  ['LOOK_CONNECTIONS', sample(doctorServer.LOOK_CONNECTIONS, null, '')],
  ['LOOK_PINS', sample(doctorServer.LOOK_PINS, null, '')],
  ['HIDDEN_SESSIONS', sample(doctorServer.HIDDEN_SESSIONS, null, '')],
  ['LOOK_TABLES', sample(doctorServer.LOOK_TABLES, null, '')],
  ['LOOK_OBJECTS', sample(doctorServer.LOOK_OBJECTS, { own: '"box".' }, '')],
  ['BOUND_READS', sample(session.BOUND_READS, { ms: '5000' }, '')],
  ['VOCABULARY', sample(dashboard.VOCABULARY, null, '')],
  ['FATES', sample(dashboard.FATES, [PENDING, HANDLED, PARKED], 'message_pkey work_pkey')],
  ['BODIES', sample(dashboard.BODIES, [PENDING, HANDLED], 'message_pkey')],
  ['EFFECTS_OF', sample(dashboard.EFFECTS_OF, [PENDING], 'effect_pkey')],
  ['HELD_UNTIL', sample(dashboard.HELD_UNTIL, ['7', '8'], 'quarantine_pkey')],
  ['BEHIND', sample(dashboard.BEHIND, { lanes: [['ledger', 'k7'], ['ledger', 'k9']], limit: 11 }, 'work_lane message_pkey')],
  ['QUARANTINE_REASONS', sample(dashboard.QUARANTINE_REASONS, { limit: 500 }, 'quarantine_reason work_parked')],
  ['PARKED_SINCE', sample(parked.PARKED_SINCE, { limit: 100 }, 'work_parked quarantine_reason')],
  ['DELIVERIES', sample(dashboard.DELIVERIES, { limit: 500, goneMs: 1_000 }, 'delivery_live delivery_waiting delivery_parked delivery_failed')],
  ['CAUSED_EVENTS', sample(dashboard.CAUSED_EVENTS, { id: '1', from: Date.now() - 60_000, limit: 500 }, 'outbox_pkey')],
  ['CAUSED', sample(dashboard.CAUSED, { ids: ['1'], from: Date.now() - 60_000, limit: 500 }, 'message_received')],

  ['FAILURE_GROUPS', sample(failures.FAILURE_GROUPS, { consumer: null, minutes: null, groups: 100, limit: 10_000, shown: 50, skipped: 0 }, 'work_failure message_pkey')],
  ['UNGROUPED', sample(failures.UNGROUPED, { consumer: null, limit: 1_000 }, 'work_failure message_pkey attempt_pkey')],
  ['UNMARKED', sample(failures.UNMARKED, { consumer: 'mail', limit: 500 }, 'work_failure')],
  ['MARK_FAILURES', sample(failures.MARK_FAILURES, { consumer: 'mail', rows: [['s3', '39', '0123456789ab', '1']] }, 'work_pkey')],
  ['DEEPEST', sample(depth.DEEPEST, { consumer: null, pages: 10, most: 100, limit: 10 }, 'work_lane lane_pkey message_pkey')],
  ['BLOCKED', sample(blocked.BLOCKED, { consumer: null, position: null, limit: 100 }, 'lane_blocked work_front work_lane message_pkey attempt_pkey')],
  ['BLOCKED_KEYS', sample(blocked.BLOCKED_KEYS, { consumer: null, limit: 100 }, 'lane_blocked')],
  ['BLOCKED_CONSUMERS', sample(blocked.BLOCKED_CONSUMERS, { keys: 100, waiting: 1_000 }, 'lane_blocked work_front work_lane')],
  ['BLOCKING_GROUPS', sample(blocked.BLOCKING_GROUPS, { consumer: null, limit: 100 }, 'lane_blocked work_front')],

  ['READ_EFFECTS', sample(effects.READ_EFFECTS, { consumer: 'orders', source: 's1', id: '1' }, 'effect_pkey')],
  ['INTEND', sample(effects.INTEND, { ...CALL, token: TOKEN, call: OTHER, leaseMs: 1_000, park: false }, 'work_pkey')],
  ['RECORD_EFFECT', sample(effects.RECORD_EFFECT, { ...CALL, result: '1' }, 'work_pkey message_pkey')],
  ['FORGET_EFFECT', sample(effects.FORGET_EFFECT, { ...CALL, call: TOKEN, called: NOW }, 'work_pkey effect_pkey')],
  ['RESUME_RECORDED', sample(effects.RESUME_RECORDED, CALL, 'effect_pkey')],
  ['ANSWER_EFFECT', sample(effects.ANSWER_EFFECT, {
    ...{ consumer: 'mail', id: '39', source: null, effect: 'charge', quoted: 'charge', happened: true, result: null },
    by: 'me',
  }, 'work_parked message_pkey')],
  ['ADOPT', sample(effects.ADOPT, { ...CLAIM_OF, message: ARRIVED, leaseMs: 1_000, lockTimeout: '1s', reason: 'arrival' }, 'work_pkey message_pkey')],
  ['ADOPT_NEW', sample(effects.ADOPT_NEW, {
    ...CLAIM_OF, ...HORIZON, messages: [ARRIVED, { ...ARRIVED, i: '1' }], leaseMs: 1_000, lockTimeout: '1s', reason: 'arrival',
  }, 'message_pkey')],

  ['MARK', sample(inline.MARK, {
    ...HORIZON, restore: false, messages: [ARRIVED, { ...ARRIVED, i: '1' }],
    others: { types: ['t1', '*'], covered: [{ consumer: 'orders', type: 't1' }], only: ['mail'], keyless: ['orders'], unordered: [] },
  }, '')],
  ['TAKE_OVER', sample(inline.TAKE_OVER, { consumer: 'orders', restore: false, messages: [ARRIVED, { ...ARRIVED, i: '1' }] }, 'work_pkey message_pkey')],
  ['IS_FRESH', sample(inline.IS_FRESH, { ...HORIZON, at: NOW }, '')],
  ['SETTLE_INLINE', sample(inline.SETTLE_INLINE, { ...OPENED, handled: '1' }, '')],
  ['DROP_MARKS', sample(inline.DROP_MARKS, { consumer: 'orders', drop: [['s1', '100001']] }, 'message_pkey')],
  ['FAIL_INLINE', sample(inline.FAIL_INLINE, { consumer: 'orders', message: ARRIVED, attempts: 1, delayMs: 10, parked: 'failed', error: '{}', history: true }, 'work_pkey')],
  ['LOCK_TIMEOUT', sample(inline.LOCK_TIMEOUT, { lockTimeout: '1s' }, '')],

  ['CLAIM_LANES', sample(lanes.CLAIM_LANES, { ...LANE_OF, ...DUE, leaseMs: 1_000, limit: 100, low: undefined }, 'lane_due')],
  ['READ_LANES', sample(lanes.READ_LANES, { consumer: 'ledger', lanes: ['k6', 'k7'], depth: 10, bytes: 1e6 }, 'work_lane message_pkey')],
  ['SETTLE_LANES', sample(lanes.SETTLE_LANES, { ...LANE_OF, ...OPENED, done: [['s3', '7', '7']], release: [['k7', false]], keep: [] }, 'work_pkey')],
  ['RELEASE_LANES', sample(lanes.RELEASE_LANES, { ...LANE_OF, release: [['k7', null]], undo: [] }, 'work_pkey')],
  ['FAIL_LANE', sample(lanes.FAIL_LANE, { ...LANE_OF, key: 'k7', source: 's3', id: '7', attempts: 1, delayMs: 10, history: false, block: false }, 'work_pkey')],
  ['EXTEND_LANES', sample(lanes.EXTEND_LANES, { ...LANE_OF, leaseMs: 1_000, lanes: ['k7'] }, '')],
  ['EXTEND_LANE', sample(lanes.EXTEND_LANE, { ...LANE_OF, leaseMs: 1_000, key: 'k7', waitMs: 1_000 }, '')],

  ['MOVE', sample(link.MOVE, { ...SHARDS, shards: [], depth: 50, limit: 100, bytes: 1e6, wait: '1s', consumers: [LOCAL] }, 'delivery_live outbox_pkey delivery_pkey')],

  ['ONCE_BEGIN', sample(once.ONCE_BEGIN, { consumer: 'orders', idleMs: 35_000 }, '')],
  ['LIMIT_IDLE', sample(once.LIMIT_IDLE, { idleMs: 35_000 }, '')],
  ['ONCE_TRANSACTION', sample(once.ONCE_TRANSACTION, null, '')],
  ['ONCE_OPTIONS', sample(once.ONCE_OPTIONS, { consumer: 'orders' }, '')],
  ['ONCE_CHECK', sample(once.ONCE_CHECK, { xid: '1', n: '1' }, '')],

  ['SEND', sample(outbox.SEND, { source: 'box', sinks: [], events: [{ i: 'new', t: 't1', k: 'k1', g: 1, b: '{}', h: 'ab', e: '{}', at: undefined }] }, '')],
  ['SENT', sample(outbox.SENT, null, '', { outbox: 'tests read all that was sent' })],
  ['ANY_SINK', sample(sinks.ANY_SINK, null, '')],
  ['LOCK_SINKS', sample(sinks.LOCK_SINKS, null, '')],
  ['REGISTER_SINKS', sample(sinks.REGISTER_SINKS, { process: OTHER, host: 'here', ms: 1_000, again: false, s: [{ n: 'broker', t: null, k: 0 }] }, '')],
  ['RETIRE_SINKS', sample(sinks.RETIRE_SINKS, [OTHER], '')],
  ['CATCH_UP', sample(sinks.CATCH_UP, { sink: 'search', limit: 100 }, 'delivery_waiting outbox_pkey delivery_pkey')],
  ['ASSIGN', sample(sinks.ASSIGN, [100], 'delivery_unassigned outbox_pkey delivery_pkey')],
  ['CLAIM_SHARDS', sample(shards.CLAIM_SHARDS, { ...SHARDS, lease: 1_000, limit: 8 }, 'delivery_live delivery_waiting delivery_failed delivery_unassigned')],
  ['READ_SHARDS', sample(shards.READ_SHARDS, { sink: 'broker', shards: [1, 2], depth: 50, limit: 100, bytes: 1e6 }, 'delivery_live outbox_pkey')],
  ['COMPLETE', sample(shards.COMPLETE, { ...SHARDS, done: [['32001', '32001']], failed: [{ n: '32002', id: '32002', delayMs: 10, error: '{}' }] }, 'delivery_pkey outbox_pkey')],
  ['COMPLETED', sample(shards.COMPLETED, { ...SHARDS, done: [['32001', '32001']], failed: [{ n: '32002', id: '32002', delayMs: 10, error: '{}' }] }, 'delivery_pkey outbox_pkey')],
  ['FINISH_SHARED', sample(shards.FINISH_SHARED, ['1'], 'outbox_pkey')],
  ['FINISH_LEFT', sample(shards.FINISH_LEFT, { after: '0', limit: 100 }, 'outbox_pkey delivery_pkey')],
  ['EXTEND_SHARDS', sample(shards.EXTEND_SHARDS, { ...SHARDS, lease: 1_000 }, '')],
  ['RELEASE_SHARDS', sample(shards.RELEASE_SHARDS, SHARDS, '')],
  ['REMOVE_SINK', sample(sinks.REMOVE_SINK, { sink: 'old', goneMs: 1_000 }, 'delivery_live delivery_waiting delivery_parked')],
  ['REMOVE_DELIVERIES', sample(sinks.REMOVE_DELIVERIES, { sink: 'old', limit: 100, last: '50000' }, 'delivery_live delivery_waiting delivery_parked')],
  ['MARK_REMOVED', sample(sinks.MARK_REMOVED, { sink: 'old', last: '50000' }, 'delivery_live delivery_waiting delivery_parked')],
  ['RECLAIM', sample(sinks.RECLAIM, [100], 'delivery_live delivery_waiting')],

  ['OUTGROWN', sample(plans.OUTGROWN, [['message', 'ob.message']], '')],

  ['QUARANTINE', sample(quarantine.QUARANTINE, { messages: [QUARANTINED], limit: ROOM }, 'quarantine_once')],
  ['QUARANTINE_OF_NOBODY', sample(quarantine.QUARANTINE_OF_NOBODY, { messages: [{ ...QUARANTINED, consumer: '' }], limit: ROOM }, 'quarantine_once')],
  ['QUARANTINE_APART', sample(quarantine.QUARANTINE_APART, { messages: [{ ...QUARANTINED, untyped: 'cd' }], limit: ROOM }, 'quarantine_once')],
  ['QUARANTINE_LONGER', sample(quarantine.QUARANTINE_LONGER, [{ ...QUARANTINED, untyped: 'cd' }], 'quarantine_once quarantine_pkey')],
  ['QUARANTINE_ACCOUNTS', sample(quarantine.QUARANTINE_ACCOUNTS, ['topic'], '')],

  ['ELECT_READER', sample(reading.ELECT_READER, null, '')],
  ['WRITE_READING', sample(reading.WRITE_READING, { figures: '[]', everyMs: 1_000 }, '')],
  ['ADD_MINUTE', sample(minutes.ADD_MINUTE, { agoMs: 30_000, consumers: [['orders', 1, 1, 0, 0, 2, 3, 0, 0]], sinks: [['broker', 1]] }, '')],
  ['READ_MINUTES', sample(minutes.READ_MINUTES, { from: Math.floor(Date.now() / 60_000) - 60, step: 1, count: 60, limit: 100 }, 'minute_at')],
  ['READ_MINUTE', sample(minutes.READ_MINUTE, { minute: Math.floor(Date.now() / 60_000) - 2 }, 'minute_at')],
  ['READ_PUBLISHED', sample(minutes.READ_PUBLISHED, { minute: Math.floor(Date.now() / 60_000) - 2 }, 'sink_minute_at minute_pkey')],
  ['READ_SINCE', sample(minutes.READ_SINCE, { consumers: ['orders'], limitMs: 120_000 }, 'minute_pkey')],
  ['PRUNE_MINUTES', sample(minutes.PRUNE_MINUTES, { keepMs: 7 * DAY, limit: 1_000 }, 'minute_at sink_minute_at')],
  ['READ_READING', sample(reading.READ_READING, null, '')],
  ['READ_CONSUMERS', sample(reading.READ_CONSUMERS, [500], 'work_due work_lane work_parked lane_due message_pkey')],
  ['READ_QUARANTINE', sample(reading.READ_QUARANTINE, [500], 'quarantine_reason')],
  ['READ_SINKS', sample(reading.READ_SINKS, [500], 'delivery_live delivery_waiting delivery_parked')],
  ['READ_SIZES', sample(reading.READ_SIZES, null, '')],

  ['RECEIVE', sample(receive.RECEIVE, receiveParam([MESSAGE, { ...MESSAGE, id: '1' }], { consumers: [LOCAL], only: null, not: [], wait: '1s' }), '')],
  ['RECEIVE_ONE', sample(receive.RECEIVE_ONE, receiveParam([MESSAGE], { consumers: [LOCAL], only: null, not: [], wait: '1s' }), '')],
  ['CLASSIFY', sample(receive.CLASSIFY, [[...PENDING, 'ab', 'ab', null, null, 't1'], [...HANDLED, null]], 'message_pkey work_pkey')],
  ['CONFIRM', sample(receive.CONFIRM, 'known', '')],
  ['UNPARK_FAILED', sample(receive.UNPARK_FAILED, [['mail', 's3', '39']], 'work_pkey')],
  ['OTHER_CONSUMERS', sample(receive.OTHER_CONSUMERS, { types: ['t1'], not: [], keyless: [], unordered: [] }, '')],
  ['NOTIFY', sample(receive.NOTIFY, ['oncebox'], '')],

  ['REGISTER', sample(registry.REGISTER, [{ ...LOCAL, declared: '{}' }], '')],
  ['RENEW', sample(registry.RENEW, [LOCAL], '')],
  ['UNROUTED', sample(registry.UNROUTED, { types: ['u3'], after: '0' }, 'quarantine_type quarantine_pkey')],
  ['KNOWN_CONSUMERS', sample(registry.KNOWN_CONSUMERS, ['strange', 'orders'], 'message_received quarantine_reason')],
  ['HEALTH', sample(registry.HEALTH, { consumers: ['orders'], sinks: ['broker'] }, 'work_due lane_due work_lane message_pkey delivery_live delivery_waiting')],

  ['SEEN', sample(consumers.SEEN, { process: TOKEN, host: 'here', consumers: ['orders'], goneMs: 1_000 }, '')],
  ['LEFT', sample(consumers.LEFT, { process: TOKEN, consumers: ['orders'] }, '')],
  ['REGISTERED', sample(consumers.REGISTERED, { goneMs: 1_000 }, '')],
  ['REMOVE_CONSUMER', sample(consumers.REMOVE_CONSUMER, { consumer: 'quiet', discard: true, goneMs: 1_000, wait: '1s' }, '')],
  ['IS_REGISTERED', sample(consumers.IS_REGISTERED, { consumer: 'orders' }, '')],
  ['UNSETTLED', sample(consumers.UNSETTLED, { consumer: 'orders', seq: '1000000', after: ['s1', '1'], limit: 100 }, 'work_pkey')],
  ['REMOVE_DISCARDED', sample(consumers.REMOVE_DISCARDED, { consumer: 'gone', seq: '1000000', limit: 100 }, 'work_parked message_pkey handled_pkey attempt_pkey effect_pkey')],
  ['REMOVE_QUARANTINE', sample(consumers.REMOVE_QUARANTINE, { consumer: 'gone', before: NOW, limit: 100 }, 'quarantine_reason quarantine_pkey')],
  ['REMOVE_LANES', sample(consumers.REMOVE_LANES, { consumer: 'gone', limit: 100 }, '')],
  ['REMOVE_HANDLED', sample(consumers.REMOVE_HANDLED, { consumer: 'gone', before: NOW, low: undefined, limit: 100 }, 'message_received work_pkey handled_pkey attempt_pkey effect_pkey')],
  ['REMOVE_HORIZON', sample(consumers.REMOVE_HORIZON, { consumer: 'gone' }, '')],

  ['MARK_HANDLED', sample(marks.MARK_HANDLED, { consumer: 'orders', retainMs: DAY, wait: '1s', marks: [{ s: 's', i: 'x', t: '', at: NOW }] }, '')],
  ['SETTLE_MARKED', sample(marks.SETTLE_MARKED, { keys: [PENDING, HANDLED] }, 'work_pkey work_lane message_pkey')],

  ['CONSUMERS', sample(retain.CONSUMERS, null, '')],
  ['PRUNABLE', sample(retain.PRUNABLE, { consumer: 'orders', retainMs: DAY, limit: 100, lean: false, low: undefined }, 'message_received work_pkey handled_pkey')],
  ['BEGIN_WATERMARKS', sample(retain.BEGIN_WATERMARKS, { consumers: ['orders'], wait: '1s' }, '')],
  ['PRUNE', sample(retain.PRUNE, { consumer: 'orders', retainMs: DAY, wait: '1s', keys: [['s1', '199981']] }, 'message_pkey work_pkey handled_pkey attempt_pkey effect_pkey')],
  ['PRUNE_LANES', sample(retain.PRUNE_LANES, { consumer: 'ledger', after: '', limit: 100 }, 'lane_pkey work_lane')],
  ['PRUNABLE_QUARANTINE', sample(retain.PRUNABLE_QUARANTINE, { limit: 100, after: undefined, retainMs: { orders: DAY }, defaultMs: DAY, leastMs: DAY }, 'quarantine_pkey')],
  ['PRUNE_QUARANTINE', sample(retain.PRUNE_QUARANTINE, ['5', '6'], 'quarantine_pkey')],
  ['PRUNE_PUBLISHED', sample(retain.PRUNE_PUBLISHED, [100], 'outbox_published outbox_pkey')],
  ['PRUNE_GIVEN_UP', sample(retain.PRUNE_GIVEN_UP, { limit: 100, retainMs: 1_000 }, 'delivery_parked outbox_pkey delivery_pkey')],

  ...walk('JOURNAL', search.JOURNAL, { consumer: 'orders' }, 'message_received work_pkey'),
  ...walk('PARKED', search.PARKED, {}, 'work_parked message_pkey'),
  ['BACKLOG', sample(search.BACKLOG, { consumer: 'orders', limit: 100 }, 'work_due work_lane')],
  ...walk('WAITING', search.WAITING, {}, 'message_pkey', { work: 'sorts a backlog that is known to be small' }),
  ...walk('ALIKE', searchFailures.ALIKE, { fingerprints: ['0123456789ab'] }, 'work_failure message_pkey'),
  ...walk('FRONTS', searchFailures.FRONTS, { blocking: true }, 'lane_blocked work_front message_pkey'),
  ...walk('BY_ID', search.BY_ID, { ids: ['1', 'o9'] }, 'message_pkey message_origin work_pkey'),
  ...walk('OUTBOX', searchOutbox.OUTBOX, {}, 'outbox_pkey delivery_pkey'),
  ...walk('OUTBOX_PARKED', searchOutbox.OUTBOX_PARKED, {}, 'delivery_parked outbox_pkey'),
  ...walk('OUTBOX_BY_ID', searchOutbox.OUTBOX_BY_ID, { ids: ['1'] }, 'outbox_source_id_key'),
  ['SEEK_QUARANTINE', sample(searchQuarantine.SEEK_QUARANTINE, { time: NOW }, 'quarantine_pkey')],
  ...walk('QUARANTINED', searchQuarantine.QUARANTINED, {}, 'quarantine_pkey'),
  ...walk('QUARANTINED_OF', searchQuarantine.QUARANTINED_OF, { consumer: 'orders' }, 'quarantine_reason'),
  ...walk('QUARANTINED_BY_ID', searchQuarantine.QUARANTINED_BY_ID, { ids: ['1'] }, 'quarantine_once'),

  ['SEARCH_PATH', sample(server.SEARCH_PATH, null, '')],
  ['ENCODING', sample(server.ENCODING, null, '')],
  ['MISSING_RIGHTS', sample(server.MISSING_RIGHTS, { tables: { message: ['select'] }, functions: ['now'] }, '')],
  ['MISSING_ABILITY', sample(server.MISSING_ABILITY, null, '')],
  ['SEQUENCES_BEHIND', sample(server.SEQUENCES_BEHIND, null, 'handled_pkey outbox_pkey quarantine_pkey', { work: SAMPLED, attempt: SAMPLED })],
  ['LOCK_SEQUENCES', sample(server.LOCK_SEQUENCES, null, '')],
  ['REPAIR_SEQUENCES', sample(server.REPAIR_SEQUENCES, null, 'handled_pkey outbox_pkey quarantine_pkey', { work: SWITCHED, attempt: SWITCHED })],
  ['SESSION_DEFAULTS', sample(session.SESSION_DEFAULTS, null, '')],
  ['DEAF', sample(session.DEAF, { ms: 1_000, transactions: [] }, '')],

  ['OPEN', sample(settle.OPEN, { lockTimeout: null, idleMs: 1_000 }, '')],
  ['ALIVE', sample(settle.ALIVE, null, '')],
  ['RIGHTS', sample(settle.RIGHTS, null, '')],
  ['SERVER', sample(settle.SERVER, null, '')],
  ['SETTLE', sample(settle.SETTLE, { ...CLAIM_OF, ...OPENED, done: [['s3', '15', '15']] }, 'work_pkey')],
  ['SETTLE_ONE', sample(settle.SETTLE_ONE, { c: 'orders', k: TOKEN, x: '1', g: '(0,1)', s: 's3', i: '15', n: '15' }, '')],
  ['STORE_RESULTS', sample(settle.STORE_RESULTS, { consumer: 'orders', results: [['s1', '1', '1']] }, 'message_pkey')],
  ['STILL_OPEN', sample(settle.STILL_OPEN, { consumer: 'orders', messages: [['s3', '15']] }, 'work_pkey message_pkey')],
  ['TRANSACTION_STATUS', sample(settle.TRANSACTION_STATUS, { xid: '1' }, '')],
  ['FAIL', sample(settle.FAIL, { ...CLAIM_OF, failures: [{ source: 's3', id: '15', attempts: 1, delayMs: 10, error: '{}', history: true }] }, 'work_pkey')],
  ['COUNT_ATTEMPT', sample(settle.COUNT_ATTEMPT, { ...CLAIM_OF, source: 's3', id: '15', lane: undefined, total: 1 }, 'work_pkey')],
  ['MISSED_ATTEMPTS', sample(settle.MISSED_ATTEMPTS, { consumer: 'orders', source: 's1', id: '1', attempts: 1 }, 'attempt_pkey')],
]) // prettier-ignore
