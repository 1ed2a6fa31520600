import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { EVENT_PARTIES } from './events.js'
import { LANE_PARTIES, LOOSE_PARTIES } from './messages.js'
import { OUTSIDE } from './statements.js'

const FOLDER = new URL('../../src/postgres/sql/', import.meta.url)

/** All constants that the files export; what is no text and no walk of two texts is no statement. */
async function exported(): Promise<string[]> {
  const names: string[] = []
  for (const file of readdirSync(FOLDER)) {
    const module = (await import(/* @vite-ignore */ new URL(file, FOLDER).href)) as Record<string, unknown>
    for (const [name, value] of Object.entries(module)) if (typeof value !== 'function') names.push(name)
  }
  return names.sort()
}

describe('the table of parties', () => {
  const inside = [...LOOSE_PARTIES, ...LANE_PARTIES, ...EVENT_PARTIES].flatMap(({ statements }) => statements)

  test('has every statement that there is, or says why it is outside', async () => {
    const known = new Set([...inside, ...Object.keys(OUTSIDE)])
    expect((await exported()).filter((name) => !known.has(name))).toEqual([])
  })

  test('names no statement that there is not, and none as both', async () => {
    const names = await exported()
    expect([...inside, ...Object.keys(OUTSIDE)].filter((name) => !names.includes(name))).toEqual([])
    expect(inside.filter((name) => name in OUTSIDE)).toEqual([])
  })
})
