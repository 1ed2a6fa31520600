import { describe, expect, test } from 'vitest'
import { EVENT_PARTIES } from './events.js'
import { LANE_PARTIES, LOOSE_PARTIES } from './messages.js'
import { exported, OUTSIDE } from './statements.js'

describe('the table of parties', () => {
  const inside = [...LOOSE_PARTIES, ...LANE_PARTIES, ...EVENT_PARTIES].flatMap(({ statements }) => statements)

  test('has every statement that there is, or says why it is outside', async () => {
    const known = new Set([...inside, ...Object.keys(OUTSIDE)])
    expect([...(await exported()).keys()].filter((name) => !known.has(name))).toEqual([])
  })

  test('names no statement that there is not, and none as both', async () => {
    const names = [...(await exported()).keys()]
    expect([...inside, ...Object.keys(OUTSIDE)].filter((name) => !names.includes(name))).toEqual([])
    expect(inside.filter((name) => name in OUTSIDE)).toEqual([])
  })
})
