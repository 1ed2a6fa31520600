/**
 * Random schedules: three connections, each with one transaction at a time, begin, wait, commit and roll back in any
 * order on one message. The same must hold as for two that meet.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScratchDatabase } from '../support/postgres.js'
import { MESSAGES, type Snapshot } from './invariants.js'
import {
  LANE_PARTIES,
  LANE_STATES,
  LOOSE_PARTIES,
  LOOSE_STATES,
  type Deed,
  type Party,
  type State,
} from './messages.js'
import { REFUSALS } from './meet.js'
import { boxDatabase, SCHEMA } from './schema.js'
import { Actor, openTransaction, TOKENS, type Open } from './stage.js'

const RUNS = 120
const STEPS = 14
const SEED = Number(process.env['ONCEBOX_TEST_SEED'] ?? Date.now() % 1_000_000_000)

/** Not those of several transactions: they are told of the first when they have ended the last. */
const LOOSE = LOOSE_PARTIES.filter(({ onlyFirst, onlySecond }) => !onlyFirst && !onlySecond)
/** A holder of a lane says what it read: these are true whatever that was. */
const LANE_NAMES = [
  'RECEIVE',
  'RECEIVE_ONE',
  'RECEIVE m2',
  'RECEIVE_ONE m2',
  'CLAIM_LANES',
  'RELEASE_LANES at once',
  'REPLAY',
  'PRUNE_LANES',
]
const LANE = LANE_PARTIES.filter(({ name }) => LANE_NAMES.includes(name))
const pick = (states: readonly State[], names: readonly string[]): State[] =>
  states.filter(({ name }) => names.includes(name))
const LOOSE_STARTS = pick(LOOSE_STATES, ['new', 'pending', 'failed', 'claimed by A', 'claimed by A, expired', 'dead'])
const LANE_STARTS = pick(LANE_STATES, ['lane new', 'lane asleep', 'lane due', 'lane claimed by A'])

interface Step {
  readonly actor: number
  readonly party: number
  readonly commits: boolean
}

let database: ScratchDatabase
let actors: Actor[]
let watcher: Actor
let scenes = 0

beforeAll(async () => {
  console.info(`ONCEBOX_TEST_SEED=${SEED}`)
  database = await boxDatabase('schedules')
  actors = await Promise.all([1, 2, 3].map((at) => Actor.connect(database.url, SCHEMA, at)))
  watcher = await Actor.connect(database.url, SCHEMA, 4)
})
afterAll(async () => {
  await Promise.all([...actors, watcher].map((actor) => actor.close()))
  await database.close()
})

const schedule = fc.array(fc.record({ actor: fc.nat(2), party: fc.nat(1_000), commits: fc.boolean() }), {
  minLength: 4,
  maxLength: STEPS,
})

describe.each([
  ['loose messages', LOOSE_STARTS, LOOSE],
  ['lanes', LANE_STARTS, LANE],
])('random schedules on %s', (_, states, parties) => {
  test('tell every party what is so', { timeout: 240_000 }, async () => {
    const property = fc.asyncProperty(fc.constantFrom(...states), schedule, async (state, steps) => {
      expect(await play(state, parties, steps)).toEqual([])
    })
    await fc.assert(property, { numRuns: RUNS, seed: SEED })
  })
})

/** What an actor is in the middle of: a statement that may wait, then an open transaction. */
interface Busy {
  readonly opened: Promise<Open<Deed>>
  open: Open<Deed> | undefined
}

async function play(state: State, parties: readonly Party[], steps: readonly Step[]): Promise<string[]> {
  const scene = { consumer: `c${process.pid}_${++scenes}`, state }
  const sql = state.sql(scene.consumer)
  if (sql) await watcher.script(sql)
  const before = await snapshot(scene.consumer)
  const present = parties.filter(({ never }) => !never?.(state))
  const busy = new Map<number, Busy>()
  const deeds: Deed[] = []
  const wrong: string[] = []
  const end = async (at: number, commits: boolean): Promise<void> => {
    const ended = await busy.get(at)!.open!.end(commits ? 'commit' : 'rollback')
    busy.delete(at)
    if (ended.deed) deeds.push(ended.deed)
    if (ended.refused && !REFUSALS.has(ended.refused)) wrong.push(ended.refused)
    await settled(busy)
  }
  for (const { actor, party, commits } of steps) {
    const held = busy.get(actor)
    if (held?.open) await end(actor, commits)
    else if (!held) {
      // The first connection is that of A: what it leases it can settle.
      const own = actors[actor]!
      const hand = { run: own.run.bind(own), next: own.next.bind(own), token: actor === 0 ? TOKENS.A : own.token }
      const started: Busy = {
        opened: openTransaction(own, () => present[party % present.length]!.act(hand, scene)),
        open: undefined,
      }
      void started.opened.then((open) => (started.open = open))
      busy.set(actor, started)
      await settled(busy)
    }
  }
  while (busy.size > 0) {
    const [at] = [...busy].find(([, { open }]) => open) ?? []
    if (at === undefined) await settled(busy)
    else await end(at, true)
  }
  return [...wrong, ...MESSAGES.judge(state, before, await snapshot(scene.consumer), deeds)]
}

/** Until every actor has an open transaction or waits for one of the others. */
async function settled(busy: ReadonlyMap<number, Busy>): Promise<void> {
  for (const [at, one] of busy) {
    for (;;) {
      for (let turn = 0; turn < 3 && !one.open; turn++) await new Promise((resolve) => setImmediate(resolve))
      if (one.open || (await watcher.sees(actors[at]!, actors))) break
    }
  }
}

async function snapshot(consumer: string): Promise<Snapshot> {
  const [row] = await watcher.run(MESSAGES.snapshot, [consumer])
  return JSON.parse(row!['snapshot'] as string) as Snapshot
}
