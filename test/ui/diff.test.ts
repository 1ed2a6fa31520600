/** The difference of two bodies: exact, folded, and quick. */
import { expect, test } from 'vitest'
import { diffBodies, diffing, type DiffRow, type Difference } from '../../ui/src/logic/diff/index.js'
import { atOnce, inSlices } from '../../ui/src/logic/sliced.js'

/** A row in one line, as a person would write it down. */
function said(row: DiffRow): string {
  const text = ({ before, mark, after }: { before: string; mark: string; after: string }): string =>
    mark === '' ? before : `${before}«${mark}»${after}`
  if (row.kind === 'fold') return `⋯ ${row.lines}: ${row.names.join(', ')}${row.more > 0 ? ` +${row.more}` : ''}`
  if (row.kind === 'cut') return `${row.side} … ${row.lines}`
  if (row.kind === 'removed') return `${row.left.line} − ${text(row.left)}`
  if (row.kind === 'added') return `${row.right.line} + ${text(row.right)}`
  if (row.kind === 'same') return `${row.left.line}|${row.right.line} ${text(row.left)}`
  return `${row.left.line} − ${text(row.left)} | ${row.right.line} + ${text(row.right)}`
}

function diff(left: string, right: string): Difference {
  return atOnce(diffing(left, right))!
}
const rows = (left: string, right: string): string[] => diff(left, right).rows.map(said)

test('values that differ stand side by side, and runs that are equal are folded', () => {
  const body = (account: string, cents: string): string =>
    `{"invoice":"INV-1","account":"${account}","cents":${cents},"currency":"EUR","dueOn":"x","lines":[1,2],"note":"n","zero":0}`
  expect(rows(body('acct_1', '9007199254740993'), body('acct_9', '9007199254740992'))).toEqual([
    '1|1 {',
    '2 −   "account": "«acct_1»", | 2 +   "account": "«acct_9»",',
    '3 −   "cents": «9007199254740993», | 3 +   "cents": «9007199254740992»,',
    '4|4   "currency": "EUR",',
    '⋯ 8: dueOn, invoice, lines +2',
    '13|13 }',
  ])
})

test('the order of members, white space and escapes make no difference', () => {
  const { values, rows } = diff(
    '{"a":1,"b":{"c":[1,2],"d":"\\u0041"}}',
    ' { "b" : {"d":"A", "c" : [1, 2]}, "a" : 1.0 } ',
  )
  expect([values, rows.map(({ kind }) => kind)]).toEqual([0, ['fold']])
})

test('a number that JavaScript would round differs by its last digit', () => {
  expect(diff('[12345678901234567890]', '[12345678901234567891]').values).toBe(1)
  expect(diff('1e400', '1e401').values).toBe(1)
  expect(diff('0.1', '0.10000000000000000555').values).toBe(1)
})

test('an element that was put in between does not make all behind it differ', () => {
  expect(rows('[{"n":1},{"n":2},{"n":3},4]', '[{"n":1},{"n":9},{"n":2},{"n":3},4]')).toEqual([
    '1|1 [',
    '⋯ 3: ',
    '5 +   «{»',
    '6 +     «"n": 9»',
    '7 +   «},»',
    '⋯ 7: ',
    '12|15 ]',
  ].map((line) => expect.stringContaining(line.slice(line.indexOf(' '))))) // prettier-ignore
})

test.each([
  ['{"a":1}', '{"b":1}', 2],
  ['{"a":{"b":{"c":1}}}', '{"a":{"b":{"c":2}}}', 1],
  ['[]', '{}', 1],
  ['{}', '{"a":[1,2,3]}', 1],
  ['null', '"null"', 1],
  ['[1,2,3]', '[1,3]', 1],
  ['{"__proto__":1,"constructor":2}', '{"__proto__":2,"constructor":2}', 1],
  ['{"a":1,"a":2}', '{"a":2}', 0],
  ['""', '"\\u0000"', 1],
])('%s and %s: %i values differ', (left, right, values) => {
  expect(diff(left, right).values).toBe(values)
})

test.each([
  '',
  '{',
  '[1,]',
  '{"a"}',
  '{"a":1,}',
  'nul',
  '01',
  '"\\x"',
  '[1 2]',
  '{} {}',
  `${'['.repeat(501)}${']'.repeat(501)}`,
])('what is no JSON, or nested too deep, is not compared: %s', (text) => {
  expect(atOnce(diffing(text, '{}'))).toBeUndefined()
})

test('characters that nobody sees, or that turn a line around, are shown by their numbers', () => {
  const [row] = rows('"a\u202eb"', '"a\u0000\u200bb"'.replace('\u0000', '\\u0000'))
  expect(row).toBe('1 − "«a\\u202eb»" | 1 + "«a\\u0000\\u200bb»"')
})

test('a long text is shown around what differs', () => {
  const [row] = rows(`"${'x'.repeat(5_000)}old${'y'.repeat(5_000)}"`, `"${'x'.repeat(5_000)}new${'y'.repeat(5_000)}"`)
  expect(row).toBe(`1 − …${'x'.repeat(40)}«old»${'y'.repeat(40)}… | 1 + …${'x'.repeat(40)}«new»${'y'.repeat(40)}…`)
})

test('what only one of them has is shown to a bound, and bodies that have nothing in common are counted to one', () => {
  const many = (from: number): string => `[${Array.from({ length: 20_000 }, (_, at) => from + at).join(',')}]`
  const removed = diff(`{"a":${many(0)}}`, '{}')
  expect(removed.values).toBe(1)
  expect(removed.rows.some((row) => row.kind === 'cut')).toBe(true)
  const others = diff(many(0), many(1_000_000))
  expect(others).toMatchObject({ values: 10_000, atLeast: true, isCut: true })
  expect(others.rows.length).toBeLessThanOrEqual(300)
})

test('bodies of five megabytes are compared in slices, and the page runs between them', async () => {
  const order = (at: number): string => `{"id":${9007199254740993n + BigInt(at)},"name":"order ${at}","lines":[1,2,3]}`
  const body = (last: string): string => `[${Array.from({ length: 90_000 }, (_, at) => order(at)).join(',')},${last}]`
  const [left, right] = [body('"a"'), body('"b"').replace('"order 45000"', '"order xxxxx"')]
  expect(left.length).toBeGreaterThan(5_000_000)
  let rests = 0
  const rest = async (): Promise<void> => void (rests += 1)
  const found = await diffBodies(left, right, { rest })
  expect(found).toMatchObject({ values: 2, isCut: false })
  expect(rests).toBeGreaterThan(5)
  expect(found!.rows.length).toBeLessThan(20)
})

test('a comparison that nobody waits for any more is given up', async () => {
  const giveUp = new AbortController()
  const work = (function* () {
    for (const end = performance.now() + 60_000; performance.now() < end;) yield
    return 'done'
  })()
  const rest = async (): Promise<void> => giveUp.abort()
  expect(await inSlices(work, { rest, signal: giveUp.signal })).toBeUndefined()
})
