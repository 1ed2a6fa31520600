/** The payload tree is printed from the text that is stored. */
import { expect, test } from 'vitest'
import { countInner, isJson, innerOf, rootOf } from '../../ui/src/logic/json-scan.js'
import {
  countRedacted,
  levelOf,
  openAtFirst,
  treeOf,
  type Branch,
  type Leaf,
  type Source,
} from '../../ui/src/logic/payload.js'

const plain = (text: string): Source => ({ text, redacted: false })
const opened = (text: string): ReadonlySet<number> => openAtFirst(plain(text), treeOf(plain(text)))
const leaf = (text: string): Leaf => treeOf(plain(text)) as Leaf
const members = (text: string): Record<string, unknown>[] =>
  levelOf(plain(text), treeOf(plain(text)) as Branch).members.map(({ name, value, isOverruled }) => ({
    name,
    ...(isOverruled && { isOverruled }),
    is: 'text' in value ? value.text : value.size,
  }))

test.each([
  ['9007199254740993', 'exact, above 2⁵³'],
  ['-9007199254740993', 'exact, above 2⁵³'],
  ['18446744073709551615', 'exact, above 2⁵³'],
  ['9007199254740991', undefined],
  ['9007199254740992', undefined],
  ['12', undefined],
  ['1.0', undefined],
  ['1e3', undefined],
  ['0.1', undefined],
  ['-0', 'minus zero'],
  ['-0.0', 'minus zero'],
  ['1e400', 'exact; JavaScript would read Infinity'],
  ['0.12345678901234567890', 'exact; JavaScript would read 0.12345678901234568'],
  ['1e-400', 'exact; JavaScript would read 0'],
])('the number %s is shown as it is written, labelled %s', (text, label) => {
  expect(leaf(text)).toEqual({ kind: 'number', text, ...(label !== undefined && { label }) })
})

test('names that are there twice are all shown, and all but the last are marked', () => {
  expect(members('{"a":1,"b":2,"a":3}')).toEqual([
    { name: 'a', isOverruled: true, is: '1' },
    { name: 'b', is: '2' },
    { name: 'a', is: '3' },
  ])
})

test('a name is a name, whatever it is in JavaScript', () => {
  expect(members('{"__proto__":{"polluted":true},"constructor":null,"":0}')).toEqual([
    { name: '__proto__', is: '1 key' },
    { name: 'constructor', is: 'null' },
    { name: '', is: '0' },
  ])
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
})

test('brackets, quotes and escapes in strings do not mislead it', () => {
  const text = String.raw`{"a]}\"":"[{\\\"","\\":["\\\\"], "u":"é\ud800"}`
  expect(isJson(text)).toBe(true)
  expect(members(text)).toEqual([
    { name: 'a]}"', is: '[{\\"' },
    { name: '\\', is: '1 item' },
    { name: 'u', is: 'é\ud800' },
  ])
})

test('space is allowed wherever JSON allows it', () => {
  expect(members(' {\n "a" : [ ] ,\t"b":{ }\r} ')).toEqual([
    { name: 'a', is: '0 items' },
    { name: 'b', is: '0 keys' },
  ])
})

test('five hundred levels and more are walked without recursion', () => {
  const depth = 2_000
  const text = '['.repeat(depth) + ']'.repeat(depth)
  let node = treeOf(plain(text)) as Branch
  for (let at = 1; at < 500; at += 1) node = levelOf(plain(text), node).members[0]!.value as Branch
  expect(node.size).toBe('1 item')
})

test('of two megabytes a level is read, and no more members than asked for', () => {
  const text = `[${'{"k":"v"},'.repeat(200_000)}0]`
  const source = plain(text)
  const level = levelOf(source, treeOf(source) as Branch, { skip: 199_990, most: 20 })
  expect(level.total).toBe(200_001)
  expect(level.members).toHaveLength(11)
  expect(level.members[0]).toMatchObject({ name: '199990', isIndex: true })
})

test('a string of megabytes with quotes in it has its end found', () => {
  const text = JSON.stringify(`"\\`.repeat(1_000_000))
  expect(rootOf(text)).toEqual({ kind: 'string', from: 0, to: text.length })
})

test('what was redacted is labelled, and looks like a mask elsewhere only where nothing was', () => {
  const text = '{"a":"[redacted]","b":"•••• 4242","c":"***","d":"note"}'
  const source = { text, redacted: true }
  const shown = levelOf(source, treeOf(source) as Branch).members.map(({ value }) => value)
  expect(shown).toEqual([
    { kind: 'redacted', text: '' },
    { kind: 'redacted', text: '4242' },
    { kind: 'redacted', text: '' },
    { kind: 'string', text: 'note' },
  ])
  expect(countRedacted(source)).toBe(3)
  expect(countRedacted(plain(text))).toBe(0)
  expect(members(text)[2]).toEqual({ name: 'c', is: '***' })
})

test('a value that has nothing inside yields nothing', () => {
  expect([...innerOf('12', rootOf('12'))]).toEqual([])
})

test('three levels are open at first, and no more rows than a page can take', () => {
  expect([...opened('{"a":{"b":{"c":{"d":1}}}}')]).toEqual([0, 5, 10])
  const wide = `[${Array.from({ length: 200 }, () => '{"k":[1,2,3]}').join(',')}]`
  expect(opened(wide).size).toBeLessThan(150)
  expect(opened(`[${'0,'.repeat(100_000)}0]`).size).toBe(1)
  expect(opened('12').size).toBe(0)
})

test.each(['{}', '[ ]', '[1]', '{"a,]":[1,2,{"b":3}],"c":","}', '[[],[],[[1,2],3]]', ' [ "\\"," , 2 ] '])(
  'as many are counted in %s as there are',
  (text) => {
    expect(countInner(text, rootOf(text))).toBe([...innerOf(text, rootOf(text))].length)
  },
)
