import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScratchDatabase } from '../support/postgres.js'
import { EVENT_PARTIES, EVENT_STATES, EVENTS } from './events.js'
import { KNOWN_OF_EVENTS, Marks } from './known.js'
import { meetAll, Room } from './meet.js'
import { boxDatabase, SCHEMA } from './schema.js'
import { namedInVain } from './statements.js'

/** One room in each: events without a sink are seen by everybody. */
let databases: ScratchDatabase[]
let rooms: Awaited<ReturnType<typeof openRoom>>[]
const marks = new Marks(KNOWN_OF_EVENTS)
const total = { meetings: 0, waits: 0 }
const openRoom = (database: ScratchDatabase) => Room.open(EVENTS, database.url, SCHEMA)

beforeAll(async () => {
  databases = await Promise.all(['events_one', 'events_two'].map(boxDatabase))
  rooms = await Promise.all(databases.map(openRoom))
})
afterAll(async () => {
  await Promise.all(rooms.map((room) => room.close()))
  await Promise.all(databases.map((database) => database.close()))
  console.info(`${total.meetings} meetings, ${total.waits} with a wait`)
})

describe('every two parties that meet at an event', () => {
  test.each(EVENT_STATES)('$name: are told what is so', { timeout: 300_000 }, async (state) => {
    const { findings, meetings, waits } = await meetAll(rooms, state, EVENT_PARTIES)
    total.meetings += meetings
    total.waits += waits
    expect(marks.unknown(findings)).toEqual([])
  })

  test('have no mark of a wrong that is right by now', () => {
    expect(marks.stale()).toEqual([])
  })

  test('run every statement that they name', async () => {
    expect(await namedInVain(EVENT_PARTIES)).toEqual([])
  })
})
