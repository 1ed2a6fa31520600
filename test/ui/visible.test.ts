/** What comes from a message is shown so that nothing of it is hidden, and nothing of it changes how the rest reads. */
import { expect, test } from 'vitest'
import { partsOf, visible } from '../../ui/src/logic/visible.js'

test.each([
  ['a bidirectional override', 'a\u202eb', 'a[U+202E]b'],
  ['an escape sequence of a terminal', '\u001b[31mred\u001b[0m', '[U+001B][31mred[U+001B][0m'],
  ['what has no width', 'ad\u200bmin', 'ad[U+200B]min'],
  ['a lone surrogate', 'x\ud800y', 'x[U+D800]y'],
  ['NUL and delete', '\0\x7f', '[U+0000][U+007F]'],
  ['a carriage return', 'real\rfake', 'real[U+000D]fake'],
  ['a tag character', 'a\u{e0041}b', 'a[U+E0041]b'],
  ['a line separator', 'a\u2028b', 'a[U+2028]b'],
])('%s is a mark with its number', (_, text, shown) => {
  expect(visible(text)).toBe(shown)
})

test.each(['Zoë Müller 東京 🧾', '<script>alert(1)</script>', 'two\nlines\tand a tab', '👩‍👩‍👧 is one', 'שלום'])(
  'what can be read is left alone: %s',
  (text) => {
    expect(partsOf(text)).toEqual([{ kind: 'text', text }])
  },
)

test('a mark says what it is in words', () => {
  expect(partsOf('\u202e')).toEqual([{ kind: 'mark', text: 'U+202E', words: 'right-to-left override' }])
  expect(partsOf('\udc00')).toMatchObject([{ words: 'half of a character' }])
})

test('a megabyte of hidden characters is looked at once', () => {
  expect(partsOf('\u202e'.repeat(100_000))).toHaveLength(100_000)
})
