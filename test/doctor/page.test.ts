/** docs/doctor.md and the declarations agree, and so do the options. */
import { expect, test } from 'vitest'
import { FAILED, FAMILIES } from '../../src/admin/doctor/index.js'
import { literal, quoted, span } from '../../src/admin/doctor/words.js'
import { readPage } from '../docs/markdown.js'

const page = readPage('docs/doctor.md')
const declared = [...FAMILIES.flatMap(({ checks }) => checks), FAILED]

test('every code is declared once', () => {
  const codes = declared.map(({ code }) => code)
  expect(codes).toEqual([...new Set(codes)])
  expect(codes.every((code) => /^[a-z]+(-[a-z]+)+$/.test(code))).toBe(true)
})

test('the page has an entry for every code, in the order of the declarations, and no other', () => {
  const entries = [...page.matchAll(/^#### ([a-z-]+)$/gm)].map(([, code]) => code)
  expect(entries).toEqual(declared.map(({ code }) => code))
})

test.each(declared.map((one) => [one.code, one] as const))(
  'the page says of %s how severe it is, why, and what to do',
  (code, { severity, why }) => {
    const [, entry = ''] = page.split(`#### ${code}\n`)
    const [text = '', remedy = ''] = entry.trim().split(/\n\n/)
    expect(text).toBe(`${severity}. ${why}`)
    expect(remedy.length).toBeGreaterThan(10)
  },
)

test('what comes from messages stays a string in calls and statements, on one line', () => {
  expect(quoted(`it's "x"\n\u2028\u202e\u001b[31m`)).toBe(String.raw`'it\'s "x"\n\u2028\u202e\u001b[31m'`)
  expect(literal(`it's`)).toBe(`'it''s'`)
  expect([500, 1_000, 90_000, 5_400_000, 200_000_000].map(span)).toEqual(['500 ms', '1 s', '1 min 30 s', '1 h 30 min', '2 d 7 h']) // prettier-ignore
})
