/** Addresses, shortcuts and sparklines: what the shell works out without a browser. */
import { describe, expect, test } from 'vitest'
import { chordOf } from '../../ui/src/logic/chords.js'
import { PAGES, readPlace, writePlace } from '../../ui/src/logic/place.js'
import { sparkPath } from '../../ui/src/logic/spark.js'
import { PAGES as SERVED } from '../../src/dashboard/handlers/interface.js'

describe.each(['', '/ops/inbox'])('an address below %j', (base) => {
  test.each([
    ['/', { page: 'overview', query: {} }],
    ['/messages/pay%2Fments', { page: 'messages', box: 'pay/ments', query: {} }],
    ['/settings', { page: 'settings', query: {} }],
  ])('%s is a place', (path, place) => expect(readPlace(base, base + path, '')).toEqual(place))

  test('that is written is read as it was', () => {
    const place = { page: 'messages', box: 'päy ments', query: { q: 'state:dead error:"a & b=c" ?' } } as const
    const url = new URL(writePlace(base, place), 'http://x')
    expect(readPlace(base, url.pathname, url.search)).toEqual(place)
  })

  test.each(['/nowhere', '/messages/a/b', '/api/v1/session'])('%s is none', (path) => {
    expect(readPlace(base, base + path, '')).toBeUndefined()
  })
})

test('a path that only begins like the base is elsewhere', () => {
  expect(readPlace('/ops', '/opsis/messages', '')).toBeUndefined()
})

test('a box whose name is not well escaped is taken as it is written', () => {
  expect(readPlace('', '/messages/%E0%A4%A', '')?.box).toBe('%E0%A4%A')
})

test('the server serves the pages that the interface has', () => expect([...SERVED].sort()).toEqual([...PAGES].sort()))

describe('a key', () => {
  const key = { key: 'd', shift: false, modified: false, typing: false }
  test.each([
    ['alone', key, '', 'd'],
    ['with shift', { ...key, key: 'D', shift: true }, '', 'Shift+d'],
    ['that needs shift anyway', { ...key, key: '?', shift: true }, '', '?'],
    ['after g', { ...key, key: 'o' }, 'g', 'g o'],
    ['while typing', { ...key, typing: true }, '', undefined],
    ['of the browser', { ...key, modified: true }, '', undefined],
    ['that only changes others', { ...key, key: 'Shift', shift: true }, 'g', undefined],
  ])('%s', (_, pressed, before, chord) => expect(chordOf(pressed, before)).toBe(chord))
})

describe('a sparkline', () => {
  test('has a gap where nothing is known', () => {
    expect(sparkPath([1, 1, null, 1, 1], 80, 20).line.match(/M/g)).toHaveLength(2)
  })
  test('ends in a point, unless nothing is known at the end', () => {
    expect(sparkPath([1, 2], 80, 20).last?.x).toBe(80)
    expect(sparkPath([1], 80, 20).last?.x).toBe(80)
    expect(sparkPath([1, null], 80, 20).last).toBeUndefined()
  })
  test('of nothing is nothing', () => expect(sparkPath([null], 80, 20)).toEqual({ line: '', area: '' }))
})
