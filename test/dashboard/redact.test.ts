/** What `redact` takes out of a message is taken out of other words about it, however they quote it, in one pass. */
import { expect, test } from 'vitest'
import { dataTerm } from '../../src/dashboard/data-term.js'
import { parseExact } from '../../src/dashboard/exact.js'
import { see, type Redactable } from '../../src/dashboard/redact.js'

/** Words about a message of which all data is secret. */
function masked(body: string, text: string): string {
  const row = { id: 'a', source: 's', origin_id: null, origin_source: null, type: 't', key: null, envelope: '{}', result: null, received: '0', attempts: '1', body } // prettier-ignore
  const fail = (error: unknown): never => {
    throw error
  }
  return see(row, (message: Redactable) => ({ ...message, data: null }), fail).mask(text)
}
const of = (...values: unknown[]): string => JSON.stringify(values)

test('what is put in place of a value is not looked through again', () => {
  expect(masked(of('red', 'act', 'ted', 'redacted'), 'a red act, redacted')).toBe('a [redacted] [redacted], [redacted]')
})

test('values that overlap are taken out whole', () => {
  expect(masked(of('abcd', 'cdef'), 'x abcdef y')).toBe('x [redacted] y')
})

test('more values than can be looked for withhold the text', () => {
  const cards = Array.from({ length: 2_500 }, (_, n) => `4111-${String(n).padStart(4, '0')}`)
  expect(masked(of(cards), 'declined 4111-2499')).toBe('[redacted]')
})

test('values that take too long to look for withhold the text', () => {
  const values = Array.from({ length: 1_500 }, (_, n) => 'a'.repeat(3_000) + String(n))
  expect(masked(of(values), 'a'.repeat(4_000))).toBe('[redacted]')
})

test.for<[body: string, text: string]>([
  ['[83920174.0]', 'bad pin 83920174'],
  ['[8.3920174E7]', 'bad pin 83920174'],
  [of('pa"ss\\word'), `bad note ${JSON.stringify('pa"ss\\word')}`],
  [of('pa"ss\\word'), `bad note ${JSON.stringify(JSON.stringify({ note: 'pa"ss\\word' }))}`],
  [of('bob smith@home'), 'GET /?p=bob%20smith%40home'],
  [of('bob smith@home'), 'GET /?p=bob+smith%40home'],
  [of('hunter-swordfish'), `${'y'.repeat(100)} hunter-sw`],
  [of('hunter-swordfish'), `${'y'.repeat(100)} hunter-sw… (12 more characters)`],
])('%s is in %s in another form, or in part at its end', ([body, text]) => {
  expect(masked(body, text)).toContain('[redacted]')
  expect(masked(body, text)).not.toMatch(/83920174|pa.{0,4}ss|bob|hunter/)
})

test('a number of many digits is compared in a time that grows with them', () => {
  const digits = `0.1${'0'.repeat(400_000)}1`
  const node = parseExact(`{"n":${digits}}`)!
  expect(dataTerm('n', [{ text: '0.1', quoted: false }]).fits(node)).toBe(false)
  const same = dataTerm('n', [{ text: '1.50', quoted: false }])
  expect(['15e-1', '1.5', '0.00015E4', '150e-2'].map((n) => same.fits(parseExact(`{"n":${n}}`)!))).toEqual([true, true, true, true]) // prettier-ignore
})
