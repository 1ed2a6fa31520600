import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScratchDatabase } from '../support/postgres.js'
import { MESSAGES, type Snapshot } from './invariants.js'
import { meetInTurn, Room } from './meet.js'
import { LOOSE_PARTIES, LOOSE_STATES, type Deed, type Party, type State } from './messages.js'
import { boxDatabase, SCHEMA } from './schema.js'

/** Those that can take a message from each other. */
const CAST = ['MARK', 'FAIL_INLINE count', 'ADOPT', 'ADOPT_NEW', 'CLAIM', 'SETTLE', 'RECEIVE', 'PRUNE']
const STATES = ['new', 'pending', 'failed', 'claimed by A', 'claimed by A, expired', 'handled, old']

const parties = LOOSE_PARTIES.filter(({ name }) => CAST.includes(name))
const states = LOOSE_STATES.filter(({ name }) => STATES.includes(name))

let database: ScratchDatabase
let rooms: Room<State, Deed, Snapshot>[]

beforeAll(async () => {
  database = await boxDatabase('three')
  rooms = await Promise.all([1, 2, 3].map(() => Room.open(MESSAGES, database.url, SCHEMA)))
})
afterAll(async () => {
  await Promise.all(rooms.map((room) => room.close()))
  await database.close()
})

describe('three parties that meet at a message', () => {
  test.each(states)('$name: are told what is so', { timeout: 300_000 }, async (state) => {
    const before = await rooms[0]!.initial(state)
    const present = parties.filter(({ never }) => !never?.(state))
    const firsts: Party[] = []
    for (const party of present) if ((await rooms[0]!.alone(state, party, before)).touches) firsts.push(party)
    const casts = firsts.flatMap((one) => present.flatMap((two) => present.map((three) => [one, two, three])))
    expect(casts.length).toBeGreaterThan(0)
    expect((await meetInTurn(rooms, { state, before, casts })).findings).toEqual([])
  })
})
