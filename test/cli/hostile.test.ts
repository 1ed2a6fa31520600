/** Ids, types, keys and errors of a stranger, in every place that prints them: no byte that a terminal obeys gets through. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { CONSOLE } from '../../src/console.js'
import { escape, escapedJson } from '../../src/escape.js'
import { cut, widthOf } from '../../src/cli/output/width.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { cli, seed } from './fixture.js'

/** Colours, a cursor that moves, a title, the clipboard, a link; a line that is overwritten; C1; directions; what is invisible. */
const CORPUS = [
  ...['\u001b[31mred', '\u001b[2J\u001b[H', '\u001b]0;title\u0007', '\u001b]52;c;ZXZpbA==\u0007'],
  ...[
    '\u001b]8;;https://evil.example\u001b\\click\u001b]8;;\u001b\\',
    'good\rbad',
    'two\nlines',
    'a\tb',
    '\u0008\u0008',
  ],
  ...[
    '\u009b31m',
    '\u009d0;x\u009c',
    '\u202egnp.exe',
    '\u2066\u2069',
    '\u200f\u061c',
    '\u2028\u2029',
    '\ufeff\u200b',
    '\u{e0041}',
  ],
]
const HOSTILE = CORPUS.join('|')

/** Everything that must not be there, but for line breaks, which are ours. */
function unsafe(text: string): string[] {
  return [...text].filter((character) => {
    const code = character.codePointAt(0)!
    if (character === '\n') return false
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true
    return /[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/.test(character) || code >= 0xe0000
  })
}

let database: ScratchDatabase
beforeAll(async () => {
  database = await scratchDatabase('cli_hostile')
  await seed(database.url, 'oncebox', (name) => `${HOSTILE} ${name}`)
  await cli(['consumer', 'pause', 'pay', '--reason', HOSTILE, '--by', HOSTILE], { env: { DATABASE_URL: database.url } })
})
afterAll(() => database.close())

const READS = [
  ...[
    ['messages', 'ls'],
    ['messages', 'show', `${HOSTILE} bad-1`, '--data', '--stack'],
    ['dead', 'ls'],
    ['quarantine', 'ls'],
  ],
  ...[['outbox', 'ls'], ['consumer', 'ls'], ['sink', 'ls'], ['status'], ['audit', 'ls']],
]

describe.each(READS.map((argv) => ({ name: argv.slice(0, 2).join(' '), argv })))('$name', ({ argv }) => {
  test('prints nothing that a terminal obeys, in a pipe, on a terminal and as JSON', async () => {
    const env = { DATABASE_URL: database.url, NO_COLOR: '1' }
    for (const [how, options] of [
      [[], {}],
      [[], { columns: 100 }],
      [['--json'], {}],
    ] as const) {
      const { code, stdout, stderr } = await cli([...argv, ...how], { env, ...options })
      expect({ code, stderr: stderr.replace(/there are more.*\n/, '') }).toEqual({
        code: 0,
        stderr: '',
      })
      expect(unsafe(stdout)).toEqual([])
      if (options.columns) {
        for (const line of stdout.split('\n'))
          if (!argv.includes('show')) expect(widthOf(line)).toBeLessThanOrEqual(100)
      }
      // One line for each row: nothing has broken one in two.
      if (how.length > 0)
        for (const line of stdout.trimEnd().split('\n')) expect(() => JSON.parse(line) as unknown).not.toThrow()
    }
  })
})

test('JSON means what was sent, escaped or not, and --raw prints it as it is', async () => {
  const env = { DATABASE_URL: database.url }
  const { documents } = await cli(['dead', 'ls', '--json'], { env })
  expect(documents.map(({ id }) => id)).toContain(`${HOSTILE} bad-1`)
  const raw = await cli(['dead', 'ls', '--raw'], { env })
  expect(raw.stdout).toContain('\u001b]52;c;ZXZpbA==\u0007')
})

test('what is not found, and what the library says of it, is escaped too', async () => {
  const env = { DATABASE_URL: database.url, NO_COLOR: '1' }
  for (const argv of [
    ['messages', 'show', HOSTILE],
    ['consumer', 'pause', HOSTILE],
    ['sink', 'rm', HOSTILE, '--yes'],
    ['effects', 'answer', HOSTILE, '--consumer', HOSTILE, '--id', HOSTILE, '--happened'],
    ['dead', 'retry', '--consumer', HOSTILE, '--yes'],
    [HOSTILE],
    ['dead', HOSTILE],
    ['status', `--${HOSTILE}`],
    ['status', '--schema', HOSTILE.slice(0, 20)],
  ]) {
    const { code, stdout, stderr } = await cli(argv, { env })
    expect(code, argv.join(' ')).toBeGreaterThan(0)
    expect(unsafe(stdout + stderr)).toEqual([])
  }
})

test.each(CORPUS)(
  '%j in a message, a name or a value is escaped by the logger of a box that was given none',
  (text) => {
    const said: string[] = []
    for (const level of ['warn', 'error'] as const) {
      using _ = vi.spyOn(console, level).mockImplementation((line: string) => void said.push(line))
      CONSOLE[level]({ id: text, error: `with blanks: ${text}`, about: { [text]: text }, [text]: 1 }, `refused ${text}`)
    }
    expect(said).toHaveLength(2)
    expect(said.flatMap((line) => [...unsafe(line), ...(line.match(/\n/g) ?? [])])).toEqual([])
  },
)

test.each(CORPUS)('%j is written so that one can tell what it was', (text) => {
  expect(unsafe(escape(text))).toEqual([])
  expect(JSON.parse(escapedJson(text))).toBe(text)
  expect(unsafe(escapedJson(text))).toEqual([])
})

test('what is harmless stays as it is, and half a character is shown as such', () => {
  for (const text of ['order-4711', 'naïve café', '注文', '👩‍🚀', 'a\\b', 'עברית']) expect(escape(text)).toBe(text)
  expect(escape('a\ud800b')).toBe('a\\ud800b')
})

test('text is cut to columns, not to characters', () => {
  expect(widthOf('注文')).toBe(4)
  expect(cut('注文番号', 5)).toBe('注文…')
  expect(cut('e\u0301te\u0301', 3)).toBe('e\u0301te\u0301')
  expect(cut('abcdef', 4)).toBe('abc…')
})
