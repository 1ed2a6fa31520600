/**
 * The parties that touch an event of the outbox, its deliveries and the shards of its sinks, and the states in which they
 * find it. The event has the number 1, the id `e`, the type `t`, the key `K` and the shard 0; its sinks are `one` and
 * `two`. `A` leases the shard of `one`, `B` that of `two`; the process of `A` has `one` attached.
 */
import { DISCARD_DELIVERIES, RETRY_DELIVERIES } from '../../src/postgres/sql/bulk.js'
import { MOVE } from '../../src/postgres/sql/link.js'
import { SEND } from '../../src/postgres/sql/outbox.js'
import {
  CLAIM_SHARDS,
  COMPLETE,
  EXTEND_SHARDS,
  FINISH_LEFT,
  FINISH_SHARED,
  RELEASE_SHARDS,
} from '../../src/postgres/sql/shards.js'
import {
  ASSIGN,
  CATCH_UP,
  LOCK_SINKS,
  RECLAIM,
  REGISTER_SINKS,
  REMOVE_DELIVERIES,
  REMOVE_SINK,
  RETIRE_SINKS,
} from '../../src/postgres/sql/sinks.js'
import { PRUNE_GIVEN_UP, PRUNE_PUBLISHED } from '../../src/postgres/sql/retain.js'
import type { Domain, PartyOf, StateOf } from './meet.js'
import { EXTENDED_MS, LEASE_MS } from './messages.js'
import { TOKENS, type Hand } from './stage.js'

export interface EventDeed {
  readonly sent?: boolean
  /** The sink `one` is there, and wants everything. */
  readonly registered?: boolean
  /** The sink `one` is not there any more. */
  readonly removed?: boolean
  /** What was still to be published to `one`, when it was no sink, was deleted. */
  readonly dropped?: boolean
  /** What was to be published to `one`, which is no sink any more, is to find others. */
  readonly reclaimed?: boolean
  readonly leased?: string
  /** Recorded something under this token, and gave the shard back. */
  readonly gaveBack?: string
  /** Gave the shard back, if it was still that of this token. */
  readonly released?: string
  readonly kept?: string
  /** Published to this sink, and recorded. */
  readonly completed?: 'one' | 'two'
  /** It is in the inbox of the receiving box. */
  readonly moved?: boolean
  readonly counted?: number
  readonly again?: boolean
  readonly discarded?: boolean
  readonly pruned?: boolean
}

interface Delivery {
  readonly n: number
  readonly sink: string
  readonly waiting: boolean
  readonly parked: string | null
  readonly attempts: number
}

interface Snapshot {
  readonly events: readonly { readonly n: number; readonly published: boolean }[]
  readonly deliveries: readonly Delivery[]
  readonly sinks: readonly { readonly name: string; readonly wants: boolean; readonly looks: boolean }[]
  readonly shard: { readonly token: string | null; readonly dueMs: number } | null
  readonly received: number
}

export interface EventState extends StateOf {
  readonly sinks: readonly ('one' | 'two')[]
}
export type EventParty = PartyOf<EventState, EventDeed>

const { A, B } = TOKENS
const N = 1
const OLD = `'2020-01-01'`
const RETAIN_MS = 86_400_000
const GONE_MS = 90_000

async function register(hand: Hand, again: 'look again' | 'go on'): Promise<void> {
  await hand.run(LOCK_SINKS, null)
  const who = { process: hand.token, host: 'h', ms: GONE_MS, again: again === 'look again' }
  await hand.run(REGISTER_SINKS, { ...who, s: [{ n: 'one', t: null, k: 0 }] })
}

async function removeSink(hand: Hand): Promise<boolean> {
  await hand.run(LOCK_SINKS, null)
  const [row] = await hand.run(REMOVE_SINK, { sink: 'one', goneMs: GONE_MS })
  return row!['known'] === 'true' && row!['users'] === '[]' && row!['leased'] === 'false'
}

async function removeDeliveries(hand: Hand): Promise<boolean> {
  const rows = await hand.run(REMOVE_DELIVERIES, { sink: 'one', limit: 10, last: String(N) })
  if (rows.length > 0) await hand.run(FINISH_SHARED, rows.map((row) => row['n'])) // prettier-ignore
  return rows.length > 0
}

const complete = (name: string, fields: object, deed: EventDeed): EventParty => ({
  name: `COMPLETE ${name}`,
  statements: ['COMPLETE'],
  never: ({ sinks }) => !sinks.includes('one'),
  async act(hand) {
    const [row] = await hand.run(COMPLETE, { sink: 'one', token: A, done: [], failed: [], ...fields })
    return row!['recorded'] === '1' ? { ...deed, gaveBack: A } : {}
  },
})

export const EVENT_PARTIES: EventParty[] = [
  {
    name: 'SEND',
    statements: ['SEND'],
    async act(hand) {
      await hand.run(SEND, { source: 's', sinks: [], events: [{ i: 'e', t: 't', k: 'K', g: 0, b: '1', e: '{}' }] })
      return { sent: true }
    },
  },
  {
    name: 'REGISTER_SINKS',
    statements: ['LOCK_SINKS', 'REGISTER_SINKS'],
    async act(hand) {
      await register(hand, 'go on')
      return { registered: true }
    },
  },
  {
    name: 'REGISTER_SINKS, look again, then CATCH_UP',
    statements: ['LOCK_SINKS', 'REGISTER_SINKS', 'CATCH_UP'],
    onlySecond: true,
    async act(hand) {
      await register(hand, 'look again')
      await hand.next()
      await hand.run(CATCH_UP, { sink: 'one', limit: 10 })
      return { registered: true }
    },
  },
  {
    name: 'CATCH_UP',
    statements: ['CATCH_UP'],
    async act(hand) {
      await hand.run(CATCH_UP, { sink: 'one', limit: 10 })
      return {}
    },
  },
  {
    name: 'RETIRE_SINKS',
    statements: ['RETIRE_SINKS'],
    async act(hand) {
      await hand.run(RETIRE_SINKS, [A])
      return {}
    },
  },
  {
    name: 'REMOVE_SINK',
    statements: ['LOCK_SINKS', 'REMOVE_SINK'],
    async act(hand) {
      return (await removeSink(hand)) ? { removed: true } : {}
    },
  },
  {
    name: 'REMOVE_SINK, then REMOVE_DELIVERIES',
    statements: ['LOCK_SINKS', 'REMOVE_SINK', 'REMOVE_DELIVERIES', 'FINISH_SHARED'],
    onlySecond: true,
    async act(hand) {
      if (!(await removeSink(hand))) return {}
      await hand.next()
      return { removed: true, dropped: await removeDeliveries(hand) }
    },
  },
  {
    // A removal that died halfway is finished.
    name: 'REMOVE_DELIVERIES',
    statements: ['REMOVE_DELIVERIES', 'FINISH_SHARED'],
    async act(hand) {
      return { dropped: await removeDeliveries(hand) }
    },
  },
  {
    name: 'RECLAIM',
    statements: ['RECLAIM'],
    async act(hand) {
      const [row] = await hand.run(RECLAIM, [10])
      return row!['found'] === '0' ? {} : { reclaimed: true }
    },
  },
  {
    name: 'ASSIGN',
    statements: ['ASSIGN'],
    async act(hand) {
      await hand.run(ASSIGN, [10])
      return {}
    },
  },
  {
    name: 'CLAIM_SHARDS',
    statements: ['CLAIM_SHARDS'],
    async act(hand) {
      const [row] = await hand.run(CLAIM_SHARDS, {
        sink: 'one',
        token: hand.token,
        lease: LEASE_MS,
        limit: 32,
      })
      return row!['shards'] === '[]' ? {} : { leased: hand.token }
    },
  },
  complete('done', { done: [[N, 'e']] }, { completed: 'one' }),
  complete('retry', { failed: [{ n: N, id: 'e', delayMs: 60_000, error: '{}' }] }, { counted: 1 }),
  complete('dead', { failed: [{ n: N, id: 'e', delayMs: null, parked: 'dead', error: '{}' }] }, { counted: 1 }),
  {
    name: 'COMPLETE two, then FINISH_SHARED',
    statements: ['COMPLETE', 'FINISH_SHARED'],
    never: ({ sinks }) => !sinks.includes('two'),
    onlySecond: true,
    async act(hand) {
      const [row] = await hand.run(COMPLETE, { sink: 'two', token: B, done: [[N, 'e']], failed: [] })
      await hand.run(FINISH_SHARED, JSON.parse(row!['shared'] as string))
      return row!['recorded'] === '1' ? { completed: 'two' } : {}
    },
  },
  {
    name: 'COMPLETE two',
    statements: ['COMPLETE'],
    never: ({ sinks }) => !sinks.includes('two'),
    async act(hand) {
      const [row] = await hand.run(COMPLETE, { sink: 'two', token: B, done: [[N, 'e']], failed: [] })
      return row!['recorded'] === '1' ? { completed: 'two' } : {}
    },
  },
  {
    name: 'FINISH_SHARED',
    statements: ['FINISH_SHARED'],
    async act(hand) {
      await hand.run(FINISH_SHARED, [N])
      return {}
    },
  },
  {
    name: 'FINISH_LEFT',
    statements: ['FINISH_LEFT'],
    async act(hand) {
      await hand.run(FINISH_LEFT, { after: '0', limit: 10 })
      return {}
    },
  },
  {
    name: 'EXTEND_SHARDS',
    statements: ['EXTEND_SHARDS'],
    async act(hand) {
      const [row] = await hand.run(EXTEND_SHARDS, { sink: 'one', token: A, lease: EXTENDED_MS })
      return row!['extended'] === '1' ? { kept: A } : {}
    },
  },
  {
    name: 'RELEASE_SHARDS',
    statements: ['RELEASE_SHARDS'],
    async act(hand) {
      await hand.run(RELEASE_SHARDS, { sink: 'one', token: A })
      return { released: A }
    },
  },
  {
    name: 'MOVE',
    statements: ['MOVE'],
    never: ({ sinks }) => !sinks.includes('one'),
    async act(hand, { consumer }) {
      const consumers = [{ name: consumer, ordered: true, retainMs: RETAIN_MS, untimed: 'accept', types: ['t'] }]
      const [row] = await hand.run(MOVE, {
        sink: 'one',
        token: A,
        depth: 10,
        limit: 10,
        bytes: 1_000_000,
        wait: '60s',
        consumers,
      })
      const { moved } = JSON.parse(row!['answer'] as string) as { moved: number }
      return moved > 0 ? { completed: 'one', moved: true, gaveBack: A } : { released: A }
    },
  },
  {
    name: 'RETRY_DELIVERIES',
    statements: ['RETRY_DELIVERIES'],
    async act(hand) {
      const rows = await hand.run(RETRY_DELIVERIES, { keys: [[N, 'one']], states: ['dead', 'discarded'] })
      return rows.length > 0 ? { again: true } : {}
    },
  },
  {
    name: 'DISCARD_DELIVERIES',
    statements: ['DISCARD_DELIVERIES'],
    async act(hand) {
      const rows = await hand.run(DISCARD_DELIVERIES, { keys: [[N, 'one']], states: ['dead', 'pending'] })
      return rows.length > 0 ? { discarded: true } : {}
    },
  },
  {
    name: 'PRUNE_PUBLISHED',
    statements: ['PRUNE_PUBLISHED'],
    async act(hand) {
      await hand.run(PRUNE_PUBLISHED, [10])
      return {}
    },
  },
  {
    name: 'PRUNE_GIVEN_UP',
    statements: ['PRUNE_GIVEN_UP'],
    async act(hand) {
      const rows = await hand.run(PRUNE_GIVEN_UP, { limit: 10, retainMs: RETAIN_MS })
      return rows.length > 0 ? { pruned: true } : {}
    },
  },
]

/* ---- states ---- */

const event = (fields: Record<string, string> = {}) => {
  const all = { n: `${N}`, source: `'s'`, id: `'e'`, type: `'t'`, key: `'K'`, body: `'1'`, envelope: `'{}'`, ...fields }
  return `insert into ob.outbox (${Object.keys(all).join(', ')}) overriding system value
    values (${Object.values(all).join(', ')});`
}
const delivery = (sink: string, fields: Record<string, string> = {}) => {
  const all = { n: `${N}`, sink: `'${sink}'`, shard: '0', key: `'K'`, due_at: 'ob.now()', ...fields }
  return `insert into ob.delivery (${Object.keys(all).join(', ')}) values (${Object.values(all).join(', ')});`
}
const sink = (name: string, held: 'free' | 'held' | 'expired', token: string = A, keepMs = 0) =>
  unattached(name, held, token, keepMs) + declared(name)
const declared = (name: string, types = 'null') =>
  `insert into ob.sink_declaration (sink, process, host, types) values ('${name}', '${A}', 'a', ${types});`
const unattached = (name: string, held: 'free' | 'held' | 'expired', token: string = A, keepMs = 0, types = 'null') =>
  `insert into ob.sink (name, types, keep_ms) values ('${name}', ${types}, ${keepMs});
   insert into ob.shard (sink, shard, token, due_at) values ('${name}', 0, ${held === 'free' ? 'null' : `'${token}'`},
     ob.now() ${held === 'held' ? '+' : '-'} interval '1 minute');`

const state = (name: string, sinks: EventState['sinks'], sql: string): EventState => ({ name, sinks, sql: () => sql })
const marked = `insert into ob.removed_sink (sink, n) values ('one', ${N});`
const LATER = `ob.now() + interval '1 minute'`
const ELSE = `'{x}'`
const catchUp = (holds: boolean) => `insert into ob.catch_up (sink, holds) values ('one', ${holds});`
const aside = delivery('', { waiting: 'true' })
const failed = (due: string) => ({ waiting: 'true', attempts: '1', due_at: due })

export const EVENT_STATES: EventState[] = [
  state('new, no sink', [], ''),
  state('new', ['one'], sink('one', 'free')),
  state('unassigned, no sink', [], event() + delivery('')),
  state('unassigned', ['one'], event() + delivery('') + sink('one', 'free')),
  state('unassigned, unwanted', ['one'], event() + delivery('') + unattached('one', 'free', A, 0, ELSE)),
  state('unassigned, two sinks', ['one', 'two'], event() + delivery('') + sink('one', 'free') + sink('two', 'free', B)),
  state('put aside, no sink', [], event() + aside),
  state(
    'put aside, unwanted',
    ['one'],
    event() + aside + unattached('one', 'free', A, 0, ELSE) + declared('one', ELSE),
  ),
  state('put aside, sink holds', ['one'], event() + aside + sink('one', 'free') + catchUp(true)),
  state('put aside, sink looks', ['one'], event() + aside + sink('one', 'free') + catchUp(false)),
  state('put aside, sink unattached', ['one'], event() + aside + unattached('one', 'free') + catchUp(true)),
  state('unattached', ['one'], event() + delivery('one') + unattached('one', 'free')),
  state('unattached, leased by A', ['one'], event() + delivery('one') + unattached('one', 'held')),
  state('unattached, leased by A, expired', ['one'], event() + delivery('one') + unattached('one', 'expired')),
  state('removed, delivery left', ['one'], event() + delivery('one')),
  state(
    'removed, delivery left, two sinks',
    ['one', 'two'],
    event() + delivery('one') + delivery('two') + sink('two', 'held', B),
  ),
  state('removed, committed late', ['one'], event() + delivery('one') + marked),
  state('removed, committed late, unassigned', ['one'], event() + delivery('one') + delivery('') + marked),
  state('removed, committed late, put aside', ['one'], event() + delivery('one') + aside + marked),
  state(
    'removed, committed late, unassigned, two sinks',
    ['one', 'two'],
    event() + delivery('one') + delivery('') + marked + sink('two', 'free', B),
  ),
  state(
    'removed, committed late, unassigned, unwanted',
    ['one', 'two'],
    event() + delivery('one') + delivery('') + marked + unattached('two', 'free', B, 0, ELSE),
  ),
  state(
    'two sinks, one unattached',
    ['one', 'two'],
    event() + delivery('one') + delivery('two') + unattached('one', 'free') + sink('two', 'held', B),
  ),
  state('live', ['one'], event() + delivery('one') + sink('one', 'free')),
  state('leased by A', ['one'], event() + delivery('one') + sink('one', 'held')),
  state('leased by A, expired', ['one'], event() + delivery('one') + sink('one', 'expired')),
  state('leased by B', ['one'], event() + delivery('one') + sink('one', 'held', B)),
  state('failed', ['one'], event() + delivery('one', failed(LATER)) + sink('one', 'free')),
  state('failed, due', ['one'], event() + delivery('one', failed('ob.now()')) + sink('one', 'free')),
  state('failed, leased by A', ['one'], event() + delivery('one', failed('ob.now()')) + sink('one', 'held')),
  state('dead', ['one'], event() + delivery('one', { parked: `'dead'`, attempts: '3' }) + sink('one', 'free')),
  state('dead, leased by A', ['one'], event() + delivery('one', { parked: `'dead'` }) + sink('one', 'held')),
  state('discarded', ['one'], event() + delivery('one', { parked: `'discarded'` }) + sink('one', 'free')),
  state(
    'discarded, old',
    ['one'],
    event({ created_at: OLD }) + delivery('one', { parked: `'discarded'` }) + sink('one', 'free'),
  ),
  state(
    'two sinks, leased',
    ['one', 'two'],
    event() + delivery('one') + delivery('two') + sink('one', 'held') + sink('two', 'held', B),
  ),
  state(
    'two sinks, one discarded, old',
    ['one', 'two'],
    event({ created_at: OLD }) +
      delivery('one', { parked: `'discarded'` }) +
      delivery('two') +
      sink('one', 'free') +
      sink('two', 'held', B),
  ),
  state('two sinks, left', ['one', 'two'], event() + sink('one', 'free') + sink('two', 'free')),
  state('published, kept too long', ['one'], event({ published_at: OLD }) + sink('one', 'free', A, 1_000)),
]

/* ---- what must hold ---- */

const SNAPSHOT = `
with p as materialized (select $1::text::jsonb->>0 consumer)
select jsonb_build_object(
  'events', coalesce((select jsonb_agg(jsonb_build_object('n', o.n, 'published', o.published_at is not null)) from ob.outbox o), '[]'),
  'deliveries', coalesce((select jsonb_agg(jsonb_build_object('n', d.n, 'sink', d.sink, 'waiting', d.waiting,
    'parked', d.parked, 'attempts', d.attempts)) from ob.delivery d), '[]'),
  'sinks', coalesce((select jsonb_agg(jsonb_build_object('name', s.name, 'wants', s.types is null,
    'looks', exists (select 1 from ob.catch_up c where c.sink = s.name))) from ob.sink s), '[]'),
  'shard', (select jsonb_build_object('token', h.token, 'dueMs', extract(epoch from h.due_at - ob.now()) * 1000)
    from ob.shard h where h.sink = 'one' and h.shard = 0),
  'received', (select count(*) from ob.message m, p where m.consumer = p.consumer))::text snapshot`

function judge(at: EventState, before: Snapshot, after: Snapshot, deeds: readonly EventDeed[]): string[] {
  return [
    ...judgeDeliveries(before, after, deeds),
    ...judgeEvents(at, after, deeds),
    ...judgeSinks(before, after, deeds),
    ...judgeShard(before, after, deeds),
    ...judgeAttempts(before, after, deeds),
  ]
}

/** A delivery goes when it was published, given to the sinks that want it, or given up by a person and old. */
function judgeDeliveries(before: Snapshot, after: Snapshot, deeds: readonly EventDeed[]): string[] {
  const wrong: string[] = []
  const has = (snapshot: Snapshot, sink: string): Delivery | undefined =>
    snapshot.deliveries.find((one) => one.n === N && one.sink === sink)
  for (const sink of ['one', 'two'] as const) {
    const times = deeds.filter(({ completed }) => completed === sink).length
    if (times > 1) wrong.push(`it was completed for ${sink} twice`)
    if (times > 0 && has(after, sink)) wrong.push(`it was completed for ${sink} and is still to be published`)
    const gone = has(before, sink) && !has(after, sink)
    const given = deeds.some(
      ({ pruned, dropped, reclaimed }) => (pruned ?? false) || (sink === 'one' && (dropped ?? reclaimed)),
    )
    if (gone && times === 0 && !given) wrong.push(`its delivery to ${sink} is lost`)
    const assigned = has(before, '') && !has(after, '')
    const asked =
      before.sinks.some(({ name, wants }) => name === sink && wants) && after.sinks.some(({ name }) => name === sink)
    if (assigned && asked && times === 0 && !has(after, sink)) wrong.push(`it was assigned, and not to ${sink}`)
  }
  const dropped = deeds.some((deed) => deed.dropped)
  const completed = deeds.some((deed) => deed.completed)
  if (deeds.some(({ reclaimed }) => reclaimed) && !dropped && !completed && after.deliveries.length === 0) {
    wrong.push('it was reclaimed, and is lost')
  }
  if (has(before, '') && !has(after, '') && !has(after, 'one') && !has(after, 'two') && !dropped) {
    wrong.push('it was assigned to nobody')
  }
  const both = (snapshot: Snapshot): boolean => has(snapshot, '') !== undefined && has(snapshot, 'one') !== undefined
  if (both(after) && !both(before)) wrong.push('it is assigned and unassigned')
  if (has(after, '')?.waiting && after.sinks.some(({ wants, looks }) => wants && !looks)) {
    wrong.push('it is put aside, and a sink that wants it does not look')
  }
  const discarded = deeds.findLast((deed) => deed.discarded ?? deed.again ?? deed.pruned ?? deed.dropped)?.discarded
  if (discarded && has(after, 'one')?.parked !== 'discarded') wrong.push('it was discarded and is not')
  return wrong
}

function judgeEvents(at: EventState, after: Snapshot, deeds: readonly EventDeed[]): string[] {
  const wrong: string[] = []
  for (const { n, published } of after.events) {
    const open = after.deliveries.filter((one) => one.n === n)
    if (published && open.length > 0) wrong.push('it passes for published and is not')
    // With several sinks FINISH_LEFT finds it; nobody else looks for it.
    if (!published && open.length === 0 && at.sinks.length < 2) wrong.push('nothing is left to publish, and it stays')
  }
  for (const { n } of after.deliveries) {
    if (!after.events.some((one) => one.n === n)) wrong.push('a delivery has no event')
  }
  if (deeds.some(({ sent }) => sent) && after.events.length > 1) wrong.push('one id was sent as two events')
  const moved = deeds.filter((deed) => deed.moved).length
  if (after.received !== moved) wrong.push(`${after.received} in the inbox, ${moved} moved there`)
  return wrong
}

/** A sink is there from its registration to its removal. */
function judgeSinks(before: Snapshot, after: Snapshot, deeds: readonly EventDeed[]): string[] {
  const has = ({ sinks }: Snapshot): boolean => sinks.some(({ name }) => name === 'one')
  let expected = has(before)
  for (const { registered, removed } of deeds) expected = registered ?? (removed ? false : expected)
  if (expected && !has(after)) return ['a sink is registered and gone']
  return !expected && has(after) ? ['a sink was removed and is there'] : []
}

function judgeShard(before: Snapshot, after: Snapshot, deeds: readonly EventDeed[]): string[] {
  const wrong: string[] = []
  let owner = before.shard?.token && before.shard.dueMs > 0 ? before.shard.token : undefined
  for (const deed of deeds) {
    if (deed.leased !== undefined) {
      if (owner !== undefined) wrong.push('two relays were told that the shard is theirs')
      owner = deed.leased
    }
    if (deed.gaveBack !== undefined) {
      if (owner !== undefined && owner !== deed.gaveBack) wrong.push('a relay recorded in a shard of another')
      owner = undefined
    }
    if (deed.released === owner) owner = undefined
    if (deed.kept !== undefined) {
      if (owner !== undefined && owner !== deed.kept) wrong.push('a relay was told that it keeps a shard of another')
      owner = deed.kept
    }
    if (deed.removed && owner !== undefined) wrong.push('a sink was removed that a relay holds')
    // A relay does not read what is dead.
    const isDead = before.deliveries.some(({ parked }) => parked === 'dead')
    if (deed.discarded && owner !== undefined && !isDead) wrong.push('a person took what a relay holds')
  }
  const kept = deeds.find((deed) => deed.kept !== undefined)?.kept
  if (kept !== undefined && after.shard?.token === kept && after.shard.dueMs <= 2 * LEASE_MS) {
    wrong.push('a heartbeat was told that it holds, and extended nothing')
  }
  if (owner !== undefined && owner !== A && after.shard?.token !== owner)
    wrong.push('the holder is not the one on the shard')
  return wrong
}

function judgeAttempts(before: Snapshot, after: Snapshot, deeds: readonly EventDeed[]): string[] {
  const attempts = ({ deliveries }: Snapshot): number | undefined =>
    deliveries.find((one) => one.n === N && one.sink === 'one')?.attempts
  const end = attempts(after)
  if (end === undefined) return []
  let expected = attempts(before) ?? 0
  for (const { again, counted = 0 } of deeds) expected = again ? 0 : expected + counted
  return end === expected ? [] : [`${end} attempts instead of ${expected}`]
}

export const EVENTS: Domain<EventState, EventDeed, Snapshot> = {
  snapshot: SNAPSHOT,
  judge,
  clear: `delete from ob.delivery; delete from ob.outbox; delete from ob.sink; delete from ob.shard;
    delete from ob.sink_declaration; delete from ob.catch_up; delete from ob.removed_sink;`,
}
