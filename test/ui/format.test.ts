/** How the interface writes numbers and times. */
import { describe, expect, test } from 'vitest'
import {
  about,
  bytes,
  count,
  duration,
  percent,
  plural,
  rate,
  short,
  shortened,
  span,
} from '../../ui/src/logic/format.js'
import { clockTime, inUtc, minute, moment } from '../../ui/src/logic/when.js'

const plain = (text: string): string => text.replaceAll('\u202f', '_')

test.each([
  ['order-17', 'order-17'],
  ['abcdefgh-12345678', 'abcdefgh-12345678'],
  ['abcdefghij12345678', 'abcdefgh…12345678'],
  ['0193b2c4-7f1e-7c3a-9d55-1a2b3c4d5e6f', '0193b2c4…3c4d5e6f'],
])('of an id that has no room, both ends are shown: %s', (id, text) => expect(shortened(id)).toBe(text))

describe('numbers', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [1_204, '1_204'],
    [1_234_567, '1_234_567'],
    [-41_902, '-41_902'],
  ])('%d is written in groups of three: %s', (n, text) => expect(plain(count(n))).toBe(text))

  test('an estimate says so, and so does a bound', () => {
    expect(plain(about(1_234_567, { estimated: true }))).toBe('≈_1_234_567')
    expect(plain(about(10_000, { atLeast: true }))).toBe('10_000+')
    expect(about(0, { estimated: true })).toBe('0')
  })

  test('one message is not messages', () => {
    expect([plural(1, 'message'), plural(2, 'message'), plain(plural(2_000, 'key'))]).toEqual([
      '1 message',
      '2 messages',
      '2_000 keys',
    ])
  })

  test.each([
    [613.44, '613.4'],
    [0, '0.0'],
    [12_345.6, '12_346'],
  ])('a rate of %d is %s', (n, text) => expect(plain(rate(n))).toBe(text))

  test.each([
    [3, 1_000, '0.3_%'],
    [1, 2, '50_%'],
    [0, 0, '0_%'],
  ])('%d of %d is %s', (part, whole, text) => expect(plain(percent(part, whole))).toBe(text))

  test.each([
    [0, '0'],
    [0.5, '0.5'],
    [600, '600'],
    [9_999, '9_999'],
    [60_835, '61_k'],
    [1_500_000, '1.5_M'],
  ])('on an axis %d is %s', (n, text) => expect(plain(short(n))).toBe(text))

  test('bytes', () => expect([bytes(12), bytes(1_500), bytes(5_000_000)]).toEqual(['12 B', '1.5 kB', '5 MB']))
})

describe('durations', () => {
  test.each([
    [0, '0 s'],
    [42, '42 ms'],
    [400, '0.4 s'],
    [9_960, '10 s'],
    [48_000, '48 s'],
    [59_600, '1 min'],
    [751_000, '12 min 31 s'],
    [5 * 3_600_000, '5 h'],
    [3 * 86_400_000, '3 d'],
  ])('%d ms is %s', (ms, text) => expect(duration(ms)).toBe(text))

  test('how long something has lasted is in one unit', () => {
    expect([span(12_000), span(25 * 60_000), span(47.6 * 3_600_000)]).toEqual(['12 s', '25 min', '2 d'])
  })
})

describe('times', () => {
  const utc = { utc: true }
  const now = Date.parse('2026-11-16T14:32:08.123Z')

  test('of today are times, of before have their day, of another year have it', () => {
    expect(moment('2026-11-16T09:14:05Z', now, utc)).toBe('09:14:05')
    expect(moment('2026-11-15T23:59:05Z', now, utc)).toBe('15 Nov, 23:59')
    expect(moment('2025-11-16T14:32:08Z', now, utc)).toBe('16 Nov 2025')
    expect(minute('2026-11-16T09:14:05Z', now, utc)).toBe('09:14')
    expect(minute('2026-11-15T09:14:05Z', now, utc)).toBe('15 Nov, 09:14')
    expect(clockTime(now, utc)).toBe('14:32:08')
  })

  test('are in UTC on hover, to the millisecond', () => expect(inUtc(now)).toBe('16 Nov 2026, 14:32:08.123 UTC'))

  test('that are none do not break a page', () => {
    expect([moment('x', now, utc), inUtc('x')]).toEqual(['–', ''])
  })
})
