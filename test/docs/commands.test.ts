/** Every `oncebox …` that a page tells people to type is a command that there is, with options that it takes. */
import { expect, test } from 'vitest'
import { parse } from '../../src/cli/parse.js'
import { COMMANDS } from '../../src/cli/registry.js'
import { blocksOf, pages, readPage, withoutBlocks } from './markdown.js'

interface Typed {
  readonly page: string
  readonly text: string
  /** In a block to be copied, so nothing may be missing; in a sentence a name alone will do. */
  readonly whole: boolean
}

/** Commands that other changes bring: until they are declared, nothing is known of their options. */
const COMING = new Set(['dashboard'])

/** The changelog speaks of what was, and the page of the command line is written from the declarations themselves. */
const UNCHECKED = new Set(['CHANGELOG.md', 'docs/command-line.md'])

const typed: Typed[] = pages()
  .filter((page) => !UNCHECKED.has(page))
  .flatMap((page) => [...inBlocks(page), ...inSentences(page)])

test('the pages have commands', () => {
  expect(typed.length).toBeGreaterThan(40)
})

test.each(typed)('$page: $text', async ({ text, whole }) => {
  const [, ...words] = wordsOf(text)
  if (words[0]?.startsWith('--')) return expect(['--version', '--help']).toContain(words[0])
  const name = [`${words[0]} ${words[1]}`, words[0] ?? ''].find((one) => one in COMMANDS)
  if (name === undefined && COMING.has(words[0] ?? '')) return
  expect(name, `oncebox ${words.join(' ')}`).toBeDefined()
  const rest = words.slice(name!.split(' ').length)
  if (whole || rest.length > 0) parse(await COMMANDS[name!]!(), rest)
})

function inBlocks(page: string): Typed[] {
  const shell = blocksOf(readPage(page).replaceAll(/^ {2,3}/gm, '')).filter(({ language }) => language === 'sh')
  const lines = shell.flatMap(({ text }) => text.replaceAll(/\\\n\s*/g, ' ').split('\n'))
  return lines.flatMap((line) => {
    const [, text] = /^(?:npx )?(oncebox .*)$/.exec(line.trim()) ?? []
    return text === undefined ? [] : [{ page, text, whole: true }]
  })
}

/** Names alone, as in "`oncebox sink rm` removes it", are enough in a sentence. */
function inSentences(page: string): Typed[] {
  const spans = [...withoutBlocks(readPage(page)).matchAll(/`(?:npx )?(oncebox [a-z-][^`]*)`/g)]
  return spans.map(([, text = '']) => ({ page, text: text.replaceAll(/\s+/g, ' '), whole: false }))
}

/** As a shell would split it, up to a pipe, a redirection or a comment. */
function wordsOf(text: string): string[] {
  const words: string[] = []
  for (const [word = ''] of text.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (/^(?:[|>#]|&&|2>)/.test(word)) break
    words.push(word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single: string, double: string) => single ?? double))
  }
  return words
}
