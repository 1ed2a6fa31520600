import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScratchDatabase } from '../support/postgres.js'
import {
  LANE_PARTIES,
  LANE_STATES,
  LOOSE_PARTIES,
  LOOSE_STATES,
  type Deed,
  type Party,
  type State,
} from './messages.js'
import { MESSAGES, type Snapshot } from './invariants.js'
import { KNOWN_OF_MESSAGES, Marks } from './known.js'
import { meetAll, Room } from './meet.js'
import { boxDatabase, SCHEMA } from './schema.js'
import { namedInVain } from './statements.js'

const ROOMS = 3
let database: ScratchDatabase
let rooms: Room<State, Deed, Snapshot>[]
const marks = new Marks(KNOWN_OF_MESSAGES)
const total = { meetings: 0, waits: 0 }

beforeAll(async () => {
  database = await boxDatabase('interleavings')
  rooms = await Promise.all(Array.from({ length: ROOMS }, () => Room.open(MESSAGES, database.url, SCHEMA)))
})
afterAll(async () => {
  await Promise.all(rooms.map((room) => room.close()))
  await database.close()
  console.info(`${total.meetings} meetings, ${total.waits} with a wait`)
})

const CASES: [string, State, Party[]][] = [
  ...LOOSE_STATES.map((state): [string, State, Party[]] => [state.name, state, LOOSE_PARTIES]),
  ...LANE_STATES.map((state): [string, State, Party[]] => [state.name, state, LANE_PARTIES]),
]

describe('every two parties that meet at a message', () => {
  test.each(CASES)('%s: are told what is so', { timeout: 300_000 }, async (_, state, parties) => {
    const { findings, meetings, waits } = await meetAll(rooms, state, parties)
    total.meetings += meetings
    total.waits += waits
    expect(marks.unknown(findings)).toEqual([])
  })

  test('have no mark of a wrong that is right by now', () => {
    expect(marks.stale()).toEqual([])
  })

  test('run every statement that they name', async () => {
    expect(await namedInVain([...LOOSE_PARTIES, ...LANE_PARTIES])).toEqual([])
  })
})
