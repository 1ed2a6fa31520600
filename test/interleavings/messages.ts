/**
 * The parties that touch a message, its lane or its effects, and the states in which they find it. A party is what one
 * process does in one transaction; it reports what it was told, and the invariants compare that with the rows.
 *
 * Each meeting has a consumer of its own, with the message `m` of key `K`, and `m2` of the same key where it says so. `A`
 * is who held the claim at the beginning; `B` is another holder, to whom A is a zombie.
 */
import { DISCARD, REPLAY, RETRY } from '../../src/postgres/sql/bulk.js'
import { CLAIM, EXTEND, EXTEND_ONE } from '../../src/postgres/sql/claim.js'
import { REMOVE_DISCARDED, REMOVE_HANDLED, REMOVE_LANES } from '../../src/postgres/sql/consumers.js'
import {
  ADOPT,
  ADOPT_NEW,
  ANSWER_EFFECT,
  FORGET_EFFECT,
  INTEND,
  RECORD_EFFECT,
  RESUME_RECORDED,
} from '../../src/postgres/sql/effects.js'
import { DROP_MARKS, FAIL_INLINE, LOCK_TIMEOUT, MARK, SETTLE_INLINE, TAKE_OVER } from '../../src/postgres/sql/inline.js'
import {
  CLAIM_LANES,
  EXTEND_LANE,
  EXTEND_LANES,
  FAIL_LANE,
  RELEASE_LANES,
  SETTLE_LANES,
} from '../../src/postgres/sql/lanes.js'
import { MARK_HANDLED, SETTLE_MARKED } from '../../src/postgres/sql/marks.js'
import { ONCE_BEGIN, ONCE_CHECK } from '../../src/postgres/sql/once.js'
import { receiveParam } from '../../src/postgres/sql/receive-param.js'
import { RECEIVE, RECEIVE_ONE, UNPARK_FAILED } from '../../src/postgres/sql/receive.js'
import { PRUNE, PRUNE_LANES } from '../../src/postgres/sql/retain.js'
import { COUNT_ATTEMPT, FAIL, OPEN, SETTLE, SETTLE_ONE, STORE_RESULTS } from '../../src/postgres/sql/settle.js'
import type { PartyOf, SceneOf } from './meet.js'
import { TOKENS, type Hand, type Row } from './stage.js'

/** What a party was told that it did. Nothing: it was told that there was nothing for it to do. */
export interface Deed {
  readonly id?: string
  /** The message is new in the box. */
  readonly stored?: boolean
  /** Its handler's writes and the settlement are in this transaction. */
  readonly handled?: boolean
  /** The message, or its lane, is ours to run from now on, under this token. */
  readonly leased?: string
  /** The holder of this token has given it back, with a verdict or without. */
  readonly gaveBack?: string
  /** The heartbeat of this token was told that it still holds. */
  readonly kept?: string
  /** Attempts that were added. */
  readonly counted?: number
  /** Attempts as their holder has set them. */
  readonly total?: { readonly by: string; readonly is: number }
  /** A person made it pending again: 'replay' a handled one, 'retry' another. Attempts begin anew. */
  readonly again?: 'replay' | 'retry'
  readonly discarded?: boolean
  /** The box goes on with it: its source was told so, and has forgotten it. */
  readonly boxed?: boolean
  readonly pruned?: boolean
  /** Its consumer was removed: nobody knows it any more, or what was replayed is handled as before. */
  readonly removed?: 'whole' | 'replay'
  /** Somebody said that it was handled elsewhere, and it was not handled before. */
  readonly marked?: boolean
  /** The effect: who may call, and what is known of it. */
  readonly intended?: { readonly call: string; readonly before: string | null; readonly parks: boolean }
  readonly recorded?: boolean
  readonly forgotten?: string
  readonly answered?: 'happened' | 'did not'
}

export type Party = PartyOf<State, Deed>

export interface State {
  readonly name: string
  readonly ordered: boolean
  /** Beyond the horizon of retention: copies of it carry this time, and are refused once it is forgotten. */
  readonly sent?: string
  /** Receivers know no horizon, as before an option was changed: they learn it from what retention has written down. */
  readonly forgetsSooner?: boolean
  /** The holder of the lane has read `m2` too. */
  readonly two?: boolean
  /** `m2` is dead and blocks the lane: it stays blocked as long as that is so. */
  readonly behind?: boolean
  /** The holder found nothing in the lane. */
  readonly empty?: boolean
  sql(consumer: string): string
}

type Scene = SceneOf<State>

export const LEASE_MS = 60_000
/** What a heartbeat asks for: further than any lease that was there, so that it shows. */
export const EXTENDED_MS = 7_200_000
const RETAIN_MS = 86_400_000
const FOR_EVER_MS = 1_000 * RETAIN_MS * 365
const OLD = '2020-01-01T00:00:00Z'
const { A, B } = TOKENS
const EFFECT = 'pay'
/** When the intent was made that is there at the beginning. Its call has the token of A, and nobody called before. */
const CALLED = '2026-01-01T00:00:00Z'

const copy = (scene: Scene, id: string) => ({
  i: id,
  s: 's',
  t: 't',
  k: 'K',
  b: '1',
  ...(scene.state.sent !== undefined && { at: scene.state.sent }),
})

/** As a receiver has it. */
const retained = ({ state }: Scene) => (state.forgetsSooner ? FOR_EVER_MS : RETAIN_MS)

async function opened(hand: Hand): Promise<{ xid: string; guard: string }> {
  const [row] = await hand.run(OPEN, { lockTimeout: null, idleMs: 600_000 })
  const [xid = '', guard = ''] = String(row!['opened']).split(' ')
  return { xid, guard }
}

/** The number of the message in the journal, which its holder has read with it. */
async function numberOf(hand: Hand, { consumer }: Scene): Promise<string | null> {
  const [row] = await hand.run(NUMBER, [consumer])
  return (row?.['n'] ?? null) as string | null
}
const NUMBER = `select n::text from ob.message where consumer = $1::text::jsonb->>0 and source = 's' and id = 'm'`

const WAYS_IN = { RECEIVE, RECEIVE_ONE }

const receive = (way: keyof typeof WAYS_IN, id = 'm'): Party => ({
  name: id === 'm' ? way : `${way} ${id}`,
  statements: [way],
  async act(hand, scene) {
    const { consumer: name, state } = scene
    const local = {
      name,
      ordered: state.ordered,
      retainMs: retained(scene),
      untimed: 'accept',
      types: ['t'],
      identity: false,
    }
    const { i, s: source, t: type, k: key, b: body, at } = copy(scene, id)
    const param = receiveParam([{ id: i, source, type, key, body, at }], {
      ...{ consumers: [local], only: null, not: [], wait: '60s' },
    })
    const [row] = await hand.run(WAYS_IN[way], param)
    const { rest } = JSON.parse(row!['answer'] as string) as { rest: unknown[] }
    return rest.length === 0 ? { id, stored: true } : {}
  },
})

async function mark(hand: Hand, scene: Scene): Promise<Row | undefined> {
  const horizon = { consumer: scene.consumer, retainMs: retained(scene), untimed: 'accept' }
  const messages = [copy(scene, 'm')]
  const [marked] = await hand.run(MARK, { ...horizon, restore: false, messages })
  if (marked!['all'] !== null) return { n: marked!['all'], attempts: null }
  const rows = await hand.run(TAKE_OVER, { consumer: scene.consumer, restore: false, messages })
  return rows.find((row) => row['id'] === 'm')
}

const failInline = (name: string, fields: object, counted: number): Party => ({
  name: `FAIL_INLINE ${name}`,
  statements: ['FAIL_INLINE'],
  async act(hand, scene) {
    const failure = { attempts: counted, delayMs: 0, history: false, ...fields }
    const row = { consumer: scene.consumer, message: copy(scene, 'm'), ...failure }
    const rows = await hand.run(FAIL_INLINE, row)
    return rows.length > 0 ? { id: 'm', counted } : {}
  },
})

const fail = (name: string, fields: object, attempts: Pick<Deed, 'counted' | 'total'>): Party => ({
  name: `FAIL ${name}`,
  statements: ['FAIL'],
  async act(hand, { consumer }) {
    const { counted = 0, total } = attempts
    const counts = { attempts: counted, total: total?.is }
    const failures = [{ source: 's', id: 'm', ...counts, delayMs: 0, history: false, ...fields }]
    const rows = await hand.run(FAIL, { consumer, token: A, failures })
    return rows.length > 0 ? { id: 'm', gaveBack: A, ...attempts } : {}
  },
})

/** A message is parked for want of an outcome. Then its worker looks whether the outcome came meanwhile. */
const parks = (party: Party): Party[] => {
  const parking: Party = { ...party, never: (state) => !state.name.includes('intent'), verdictOf: 'A' }
  return [
    { ...parking, onlyFirst: true },
    {
      ...parking,
      name: `${party.name}, then RESUME_RECORDED`,
      statements: [...party.statements, 'RESUME_RECORDED'],
      onlySecond: true,
      async act(hand, scene) {
        const deed = await party.act(hand, scene)
        await hand.next()
        await hand.run(RESUME_RECORDED, { consumer: scene.consumer, source: 's', id: 'm', name: EFFECT })
        return deed
      },
    },
  ]
}

const failLane = (name: string, fields: object, counted: number): Party => ({
  name: `FAIL_LANE ${name}`,
  statements: ['FAIL_LANE'],
  never: ({ empty }) => empty === true,
  async act(hand, { consumer }) {
    const failure = { source: 's', id: 'm', attempts: counted, delayMs: 0, history: false, ...fields }
    const rows = await hand.run(FAIL_LANE, { consumer, token: A, key: 'K', block: false, ...failure })
    return rows.length > 0 ? { id: 'm', gaveBack: A, counted } : {}
  },
})

const settleLanes = (name: string, only: (state: State) => boolean, fields: object): Party => ({
  name: `SETTLE_LANES ${name}`,
  statements: ['SETTLE_LANES'],
  never: (state) => !only(state),
  async act(hand, scene) {
    const done = [['s', 'm', await numberOf(hand, scene)]]
    const claim = { consumer: scene.consumer, token: A, ...(await opened(hand)) }
    await hand.run(SETTLE_LANES, { ...claim, done, release: [], keep: [], ...fields })
    return { id: 'm', handled: true, ...('release' in fields ? { gaveBack: A } : {}) }
  },
})

const releaseLanes = (name: string, only: (state: State) => boolean, fields: object, deed: Deed = {}): Party => ({
  name: `RELEASE_LANES ${name}`,
  statements: ['RELEASE_LANES'],
  never: (state) => !only(state),
  async act(hand, { consumer }) {
    const rows = await hand.run(RELEASE_LANES, { consumer, token: A, release: [['K', 0]], undo: [], ...fields })
    return rows.length > 0 ? { id: 'm', gaveBack: A, ...deed } : {}
  },
})

const about = (consumer: string) => ({ consumer, source: 's', id: 'm', name: EFFECT })

/** By whoever has this claim. Each call has a token of its own. */
const intend = (holder: 'A' | 'B', parks: boolean): Party => ({
  name: `INTEND by ${holder}${parks ? ', or park' : ''}`,
  statements: ['INTEND'],
  async act(hand, { consumer }) {
    const call = hand.token
    const claim = { token: TOKENS[holder], leaseMs: EXTENDED_MS }
    const [row] = await hand.run(INTEND, { ...about(consumer), ...claim, call, park: parks })
    if (!row) return {}
    const kept = { id: 'm', kept: claim.token }
    return row['before'] === 'done'
      ? kept
      : { ...kept, intended: { call, before: row['before'] as string | null, parks } }
  },
})

/** What comes of the call of this one. `B` has made none before. */
const outcome = (caller: 'A' | 'B'): Party[] => [
  {
    name: `RECORD_EFFECT by ${caller}`,
    statements: ['RECORD_EFFECT'],
    // An outcome follows an intent.
    never: (state) => !state.name.includes('intent'),
    verdictOf: caller,
    async act(hand, { consumer }) {
      const rows = await hand.run(RECORD_EFFECT, { ...about(consumer), result: '1' })
      return rows.length > 0 ? { recorded: true } : {}
    },
  },
  forget(caller, CALLED),
]

/** Null: the answer of the INTEND was lost. */
const forget = (caller: 'A' | 'B', called: string | null): Party => ({
  name: `FORGET_EFFECT by ${caller}${called === null ? ', unheard' : ''}`,
  statements: ['FORGET_EFFECT'],
  never: (state) => !state.name.includes('intent'),
  verdictOf: caller,
  async act(hand, { consumer }) {
    const call = TOKENS[caller]
    const rows = await hand.run(FORGET_EFFECT, { ...about(consumer), call, called })
    return rows.length > 0 ? { forgotten: call } : {}
  },
})

const answer = (happened: boolean): Party => ({
  name: happened ? 'ANSWER_EFFECT happened' : 'ANSWER_EFFECT did not',
  statements: ['ANSWER_EFFECT'],
  async act(hand, { consumer }) {
    const asked = { consumer, id: 'm', source: 's', effect: EFFECT, quoted: `effect '${EFFECT}'` }
    const [row] = await hand.run(ANSWER_EFFECT, { ...asked, happened, result: happened ? '2' : null })
    return row?.['answered'] === 'true' ? { id: 'm', answered: happened ? 'happened' : 'did not' } : {}
  },
})

const keys = (consumer: string) => [[consumer, 's', 'm']]

async function markHandled(hand: Hand, scene: Scene): Promise<Deed> {
  const marks = [{ s: 's', i: 'm', t: 't', at: scene.state.sent }]
  const [row] = await hand.run(MARK_HANDLED, {
    consumer: scene.consumer,
    retainMs: retained(scene),
    wait: '60s',
    marks,
  })
  return row!['marked'] === '1' ? { id: 'm', marked: true } : {}
}

async function settleMarked(hand: Hand, { consumer }: Scene): Promise<Deed> {
  const [row] = await hand.run(SETTLE_MARKED, { keys: keys(consumer) })
  return row!['settled'] === '1' ? { id: 'm', marked: true } : {}
}

/** By a person, or by time: of messages with and without a lane. */
const COMMON: Party[] = [
  receive('RECEIVE'),
  receive('RECEIVE_ONE'),
  {
    name: 'COUNT_ATTEMPT',
    statements: ['COUNT_ATTEMPT'],
    async act(hand, { consumer }) {
      const rows = await hand.run(COUNT_ATTEMPT, { consumer, token: A, source: 's', id: 'm', lane: 'K', total: 1 })
      return rows.length > 0 ? { id: 'm', total: { by: A, is: 1 } } : {}
    },
  },
  intend('A', false),
  intend('A', true),
  intend('B', false),
  ...outcome('A'),
  ...outcome('B'),
  forget('A', null),
  answer(true),
  answer(false),
  {
    name: 'RETRY',
    statements: ['RETRY'],
    async act(hand, { consumer }) {
      const rows = await hand.run(RETRY, { keys: keys(consumer), states: ['dead', 'quarantined', 'discarded'] })
      return rows.length > 0 ? { id: 'm', again: 'retry' } : {}
    },
  },
  {
    name: 'REPLAY',
    statements: ['REPLAY'],
    async act(hand, { consumer, state }) {
      const rows = await hand.run(REPLAY, {
        keys: keys(consumer),
        consumers: [{ name: consumer, ordered: state.ordered, types: ['*'] }],
      })
      return rows.length > 0 ? { id: 'm', again: 'replay' } : {}
    },
  },
  {
    name: 'DISCARD',
    statements: ['DISCARD'],
    async act(hand, { consumer }) {
      const rows = await hand.run(DISCARD, { keys: keys(consumer), states: ['dead', 'quarantined', 'pending'] })
      return rows.length > 0 ? { id: 'm', discarded: true } : {}
    },
  },
  {
    name: 'PRUNE',
    statements: ['PRUNE'],
    async act(hand, { consumer }) {
      const [row] = await hand.run(PRUNE, { consumer, retainMs: RETAIN_MS, wait: '0', keys: [['s', 'm']] })
      return row!['gone'] === '1' ? { id: 'm', pruned: true } : {}
    },
  },
  { name: 'MARK_HANDLED', statements: ['MARK_HANDLED'], act: markHandled },
  { name: 'SETTLE_MARKED', statements: ['SETTLE_MARKED'], act: settleMarked },
  {
    name: 'MARK_HANDLED, then SETTLE_MARKED',
    statements: ['MARK_HANDLED', 'SETTLE_MARKED'],
    onlySecond: true,
    async act(hand, scene) {
      const deed = await markHandled(hand, scene)
      if (deed.marked) return deed
      await hand.next()
      return settleMarked(hand, scene)
    },
  },
  {
    name: 'REMOVE_DISCARDED',
    statements: ['REMOVE_DISCARDED'],
    async act(hand, { consumer }) {
      const [row] = await hand.run(REMOVE_DISCARDED, { consumer, seq: '1000000000', limit: 10 })
      if (row!['gone'] === '0') return {}
      return { id: 'm', removed: row!['forgotten'] === '1' ? 'whole' : 'replay' }
    },
  },
  {
    name: 'REMOVE_HANDLED',
    statements: ['REMOVE_HANDLED'],
    async act(hand, { consumer }) {
      const [row] = await hand.run(REMOVE_HANDLED, { consumer, before: '9999-01-01', limit: 10 })
      return row!['gone'] === '1' ? { id: 'm', removed: 'whole' } : {}
    },
  },
]

export const LOOSE_PARTIES: Party[] = [
  ...COMMON,
  {
    name: 'MARK',
    statements: ['MARK', 'TAKE_OVER', 'SETTLE_INLINE'],
    async act(hand, scene) {
      const open = await opened(hand)
      const ours = await mark(hand, scene)
      await hand.run(SETTLE_INLINE, { ...open, handled: ours ? ours['n'] : '' })
      return ours ? { id: 'm', handled: true } : {}
    },
  },
  {
    name: 'MARK, ONCE_CHECK',
    statements: ['MARK', 'TAKE_OVER', 'ONCE_CHECK'],
    async act(hand, scene) {
      const [row] = await hand.run(ONCE_BEGIN, { consumer: scene.consumer, idleMs: null })
      // It would wait for a tenth of a second, which may be too short for who looks whether it waits.
      await hand.run(LOCK_TIMEOUT, { lockTimeout: '60s' })
      const ours = await mark(hand, scene)
      await hand.run(ONCE_CHECK, { xid: row!['xid'], n: ours?.['n'] ?? null })
      return ours ? { id: 'm', handled: true } : {}
    },
  },
  {
    name: 'MARK, DROP_MARKS',
    statements: ['MARK', 'TAKE_OVER', 'DROP_MARKS'],
    async act(hand, scene) {
      const open = await opened(hand)
      const ours = await mark(hand, scene)
      // What is known is not dropped: its transaction is rolled back.
      if (ours && ours['attempts'] !== null) throw new Error('abandoned')
      if (ours) await hand.run(DROP_MARKS, { consumer: scene.consumer, drop: [['s', 'm']] })
      await hand.run(SETTLE_INLINE, { ...open, handled: '' })
      return {}
    },
  },
  failInline('count', { parked: 'failed' }, 1),
  failInline('retry by the box', { error: '{}' }, 1),
  failInline('dead', { parked: 'dead', error: '{}', history: true }, 1),
  {
    name: 'ADOPT',
    statements: ['ADOPT'],
    async act(hand, scene) {
      const claim = { consumer: scene.consumer, token: hand.token, leaseMs: LEASE_MS, lockTimeout: '60s', reason: null }
      const rows = await hand.run(ADOPT, { ...claim, message: copy(scene, 'm') })
      return rows.length > 0 ? { id: 'm', leased: hand.token } : {}
    },
  },
  {
    name: 'ADOPT_NEW',
    statements: ['ADOPT_NEW'],
    async act(hand, scene) {
      const claim = { token: hand.token, leaseMs: LEASE_MS, lockTimeout: '60s', reason: null }
      const horizon = { consumer: scene.consumer, retainMs: RETAIN_MS, untimed: 'accept' }
      const rows = await hand.run(ADOPT_NEW, { ...claim, ...horizon, messages: [copy(scene, 'm')] })
      return rows.length > 0 ? { id: 'm', leased: hand.token } : {}
    },
  },
  {
    name: 'CLAIM',
    statements: ['CLAIM'],
    async act(hand, { consumer }) {
      const rows = await hand.run(CLAIM, { consumer, token: hand.token, leaseMs: LEASE_MS, limit: 10, bytes: 1_000 })
      return rows.length > 0 ? { id: 'm', leased: hand.token } : {}
    },
  },
  {
    name: 'EXTEND',
    statements: ['EXTEND', 'EXTEND_ONE'],
    async act(hand, { consumer }) {
      const who = { consumer, token: A, leaseMs: EXTENDED_MS }
      const [row] = await hand.run(EXTEND, { ...who, messages: [['s', 'm']] })
      if (!row) return {}
      const extended =
        row['extended'] === 'true' ||
        (await hand.run(EXTEND_ONE, { ...who, source: 's', id: 'm', waitMs: 60_000 })).length > 0
      return extended ? { id: 'm', kept: A } : {}
    },
  },
  {
    name: 'SETTLE',
    statements: ['SETTLE', 'STORE_RESULTS'],
    async act(hand, scene) {
      const { consumer } = scene
      const n = await numberOf(hand, scene)
      const open = await opened(hand)
      await hand.run(STORE_RESULTS, { consumer, results: [['s', 'm', '1']] })
      await hand.run(SETTLE, { consumer, token: A, ...open, done: [['s', 'm', n]] })
      return { id: 'm', handled: true, gaveBack: A }
    },
  },
  {
    name: 'SETTLE_ONE',
    statements: ['SETTLE_ONE'],
    async act(hand, scene) {
      const n = await numberOf(hand, scene)
      const { xid: x, guard: g } = await opened(hand)
      await hand.run(SETTLE_ONE, { c: scene.consumer, k: A, x, g, s: 's', i: 'm', n })
      return { id: 'm', handled: true, gaveBack: A }
    },
  },
  fail('retry', { error: '{}', history: true }, { counted: 1 }),
  fail('dead', { parked: 'dead', error: '{}' }, { counted: 1 }),
  fail('release', {}, {}),
  fail('to its source', { parked: 'failed' }, {}),
  fail('undo', {}, { total: { by: A, is: 0 } }),
  ...parks(fail('unknown', { parked: 'quarantined', reason: 'effect-unknown' }, {})),
  {
    name: 'UNPARK_FAILED',
    statements: ['UNPARK_FAILED'],
    async act(hand, { consumer }) {
      const rows = await hand.run(UNPARK_FAILED, keys(consumer))
      return rows.length > 0 ? { id: 'm', boxed: true } : {}
    },
  },
]

export const LANE_PARTIES: Party[] = [
  ...COMMON,
  receive('RECEIVE', 'm2'),
  receive('RECEIVE_ONE', 'm2'),
  {
    name: 'CLAIM_LANES',
    statements: ['CLAIM_LANES'],
    async act(hand, { consumer }) {
      const rows = await hand.run(CLAIM_LANES, { consumer, token: hand.token, leaseMs: LEASE_MS, limit: 10 })
      return rows.length > 0 ? { leased: hand.token } : {}
    },
  },
  settleLanes('through', ({ two, empty }) => !two && !empty, { release: [['K', false]] }),
  settleLanes('keep', ({ two }) => two === true, { keep: ['K'] }),
  releaseLanes('empty', ({ empty }) => empty === true, { release: [['K', null]] }),
  releaseLanes('at once', ({ empty }) => !empty, {}),
  releaseLanes('undo', ({ empty }) => !empty, { undo: [['s', 'm', 0]] }, { total: { by: A, is: 0 } }),
  failLane('retry', { error: '{}', history: true }, 1),
  failLane('dead, block', { parked: 'dead', error: '{}', block: true }, 1),
  failLane('dead, skip', { parked: 'dead', error: '{}' }, 1),
  ...parks(failLane('unknown', { parked: 'quarantined', reason: 'effect-unknown', block: true }, 0)),
  {
    name: 'EXTEND_LANES',
    statements: ['EXTEND_LANES', 'EXTEND_LANE'],
    async act(hand, { consumer }) {
      const who = { consumer, token: A, leaseMs: EXTENDED_MS }
      const [row] = await hand.run(EXTEND_LANES, { ...who, lanes: ['K'] })
      if (!row) return {}
      const extended =
        row['extended'] === 'true' || (await hand.run(EXTEND_LANE, { ...who, key: 'K', waitMs: 60_000 })).length > 0
      return extended ? { id: 'm', kept: A } : {}
    },
  },
  {
    name: 'PRUNE_LANES',
    statements: ['PRUNE_LANES'],
    async act(hand, { consumer }) {
      await hand.run(PRUNE_LANES, { consumer, after: '', limit: 10 })
      return {}
    },
  },
  {
    name: 'REMOVE_LANES',
    statements: ['REMOVE_LANES'],
    // What is dead has been discarded by then.
    never: ({ behind }) => behind === true,
    async act(hand, { consumer }) {
      await hand.run(REMOVE_LANES, { consumer, limit: 10 })
      return {}
    },
  },
]

/* ---- states ---- */

const message = (consumer: string, id = 'm', received = 'ob.now()') =>
  `insert into ob.message (consumer, source, id, type, key, body, received_at)
     values ('${consumer}', 's', '${id}', 't', 'K', '1', ${received});`

const work = (consumer: string, fields: Record<string, string>, id = 'm') => {
  const all = {
    consumer: `'${consumer}'`,
    source: `'s'`,
    id: `'${id}'`,
    due_at: `ob.now() - interval '1 ms'`,
    ...fields,
  }
  return `insert into ob.work (${Object.keys(all).join(', ')}) values (${Object.values(all).join(', ')});`
}

const lane = (consumer: string, fields: Record<string, string>) => {
  const all = { consumer: `'${consumer}'`, key: `'K'`, due_at: `'infinity'`, ...fields }
  return `insert into ob.lane (${Object.keys(all).join(', ')}) values (${Object.values(all).join(', ')});`
}

const effect = (consumer: string, state: 'intent' | 'done') =>
  `insert into ob.effect (consumer, source, id, name, state, result, token, called_at)
     values ('${consumer}', 's', 'm', '${EFFECT}', '${state}', ${state === 'done' ? `'0'` : 'null'}, '${A}', '${CALLED}');`

const LATER = `ob.now() + interval '1 minute'`
const AGO = `ob.now() - interval '1 second'`
const held = (token: string, due = LATER) => ({ token: `'${token}'`, due_at: due })
const parked = (as: string, attempts: number) => ({ parked: `'${as}'`, due_at: `'infinity'`, attempts: `${attempts}` })
/** It failed after what was recorded without a time. */
const LAST = { failed_at: 'ob.now()' }
const UNKNOWN = { ...parked('quarantined', 1), reason: `'effect-unknown'` }

const loose = (name: string, sql: (consumer: string) => string, rest: Partial<State> = {}): State => ({
  name,
  ordered: false,
  sql,
  ...rest,
})

export const LOOSE_STATES: State[] = [
  loose('new', () => ''),
  loose('pending', (c) => message(c) + work(c, {})),
  loose('delayed', (c) => message(c) + work(c, { due_at: LATER, attempts: '1' })),
  loose('claimed by A', (c) => message(c) + work(c, held(A))),
  loose('claimed by A, expired', (c) => message(c) + work(c, held(A, AGO))),
  loose('claimed by A on arrival, expired', (c) => message(c) + work(c, { ...held(A, AGO), reason: `'arrival'` })),
  loose('claimed by B', (c) => message(c) + work(c, held(B))),
  loose('failed', (c) => message(c) + work(c, parked('failed', 1))),
  loose('dead', (c) => message(c) + work(c, parked('dead', 3))),
  loose('discarded', (c) => message(c) + work(c, parked('discarded', 3))),
  loose('handled', (c) => message(c)),
  loose('handled, old', (c) => message(c, 'm', `'${OLD}'`), { sent: OLD }),
  loose('handled, forgotten sooner', (c) => message(c, 'm', `'${OLD}'`), { sent: OLD, forgetsSooner: true }),
  loose('discarded, old', (c) => message(c, 'm', `'${OLD}'`) + work(c, parked('discarded', 3)), { sent: OLD }),
  loose(
    'discarded, old, intent',
    (c) => message(c, 'm', `'${OLD}'`) + work(c, parked('discarded', 3)) + effect(c, 'intent'),
    { sent: OLD },
  ),
  loose('claimed by A, intent', (c) => message(c) + work(c, held(A)) + effect(c, 'intent')),
  loose('claimed by A, expired, intent', (c) => message(c) + work(c, held(A, AGO)) + effect(c, 'intent')),
  loose('claimed by B, intent', (c) => message(c) + work(c, held(B)) + effect(c, 'intent')),
  loose('claimed by A, done', (c) => message(c) + work(c, held(A)) + effect(c, 'done')),
  loose('unknown, intent', (c) => message(c) + work(c, UNKNOWN) + effect(c, 'intent')),
]

const inLane = { lane: `'K'` }
const ordered = (name: string, sql: (consumer: string) => string, rest: Partial<State> = {}): State => ({
  name: `lane ${name}`,
  ordered: true,
  sql,
  ...rest,
})
const pair = (c: string, first: Record<string, string>, second: Record<string, string> = {}) =>
  message(c) + message(c, 'm2') + work(c, { ...inLane, ...first }) + work(c, { ...inLane, ...second }, 'm2')

export const LANE_STATES: State[] = [
  ordered('new', () => ''),
  ordered('asleep', (c) => message(c) + lane(c, {})),
  ordered('asleep, forgotten', (c) => message(c)),
  ordered('asleep, old', (c) => message(c, 'm', `'${OLD}'`) + lane(c, {}), { sent: OLD }),
  ordered('asleep, forgotten sooner', (c) => message(c, 'm', `'${OLD}'`) + lane(c, {}), {
    sent: OLD,
    forgetsSooner: true,
  }),
  ordered('due', (c) => message(c) + work(c, inLane) + lane(c, { due_at: AGO })),
  ordered('delayed', (c) => message(c) + work(c, { ...inLane, attempts: '1' }) + lane(c, { due_at: LATER })),
  ordered('delayed, two', (c) => pair(c, { attempts: '1' }) + lane(c, { due_at: LATER }), { two: true }),
  ordered('claimed by A', (c) => message(c) + work(c, inLane) + lane(c, held(A))),
  ordered('claimed by A, dirty', (c) => message(c) + work(c, inLane) + lane(c, { ...held(A), dirty: 'true' })),
  ordered('claimed by A, two', (c) => pair(c, {}) + lane(c, held(A)), { two: true }),
  ordered('claimed by A, empty', (c) => message(c) + lane(c, held(A)), { empty: true }),
  ordered('claimed by A, expired', (c) => message(c) + work(c, inLane) + lane(c, held(A, AGO))),
  ordered('claimed by B', (c) => message(c) + work(c, inLane) + lane(c, held(B))),
  ordered('blocked', (c) => pair(c, parked('dead', 3)) + lane(c, { blocked: 'true' }), { two: true }),
  ...Object.entries({ dead: parked('dead', 3), discarded: parked('discarded', 3), unknown: UNKNOWN }).map(
    ([name, first]) =>
      ordered(
        `${name} and blocked by m2, intent`,
        (c) => pair(c, first, { ...parked('dead', 3), ...LAST }) + lane(c, { blocked: 'true' }) + effect(c, 'intent'),
        { behind: true },
      ),
  ),
  ordered('dead, skipped', (c) => message(c) + work(c, { ...inLane, ...parked('dead', 3) }) + lane(c, {})),
  ordered('discarded', (c) => message(c) + work(c, { ...inLane, ...parked('discarded', 3) }) + lane(c, {})),
  ordered('discarded, forgotten', (c) => message(c) + work(c, { ...inLane, ...parked('discarded', 3) })),
  ordered(
    'discarded, old',
    (c) => message(c, 'm', `'${OLD}'`) + work(c, { ...inLane, ...parked('discarded', 3) }) + lane(c, {}),
    { sent: OLD },
  ),
  ordered('claimed by A, intent', (c) => message(c) + work(c, inLane) + lane(c, held(A)) + effect(c, 'intent')),
  ordered('claimed by B, intent', (c) => message(c) + work(c, inLane) + lane(c, held(B)) + effect(c, 'intent')),
  ordered('unknown, intent', (c) => pair(c, UNKNOWN) + lane(c, { blocked: 'true' }) + effect(c, 'intent'), {
    two: true,
  }),
]
