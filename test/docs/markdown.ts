/** Reads the documentation the way its tests need it: blocks of code with their place, headings, links. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface Block {
  readonly language: string
  /** From the info string: ```ts title="box.ts" */
  readonly title: string | undefined
  readonly text: string
  /** The line of its first line of code, counted from 1. */
  readonly line: number
  /** Code that the block needs and the reader does not: the comment `<!-- given … -->` right before it. */
  readonly given: string | undefined
}

export interface Link {
  readonly target: string
  readonly line: number
}

/** The pages whose examples and links are checked, relative to the root. */
export function pages(): string[] {
  const inDocs = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  const inExamples = readdirSync(path.join(ROOT, 'examples'), { recursive: true, encoding: 'utf8' })
  return [
    ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'],
    ...inDocs.filter(isPage).map((page) => path.join('docs', page)),
    ...inExamples.filter(isPage).map((page) => path.join('examples', page)),
  ].sort()
}

function isPage(file: string): boolean {
  return file.endsWith('.md') && !file.includes('node_modules')
}

export function readPage(page: string): string {
  return readFileSync(path.join(ROOT, page), 'utf8')
}

export function blocksOf(markdown: string): Block[] {
  const found = markdown.matchAll(/(?:^<!-- given\n(.*?)^-->\n+)?^```(\w+)([^\n]*)\n(.*?)^```\s*$/gms)
  return [...found].map(({ 0: whole, 1: given, 2: language = '', 3: info = '', 4: text = '', index }) => ({
    language,
    title: /title="([^"]*)"/.exec(info)?.[1],
    text,
    given,
    line: lineAt(markdown, index + whole.lastIndexOf(`\`\`\`${language}`)) + 1,
  }))
}

/** Anchors as GitHub makes them: lower case, without punctuation, spaces as hyphens, repeated ones numbered. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of withoutBlocks(markdown).matchAll(/^#{1,6} +(.+)$/gm)) {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').trim()
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    let anchor = slug
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`
    anchors.add(anchor)
  }
  return anchors
}

export function linksOf(markdown: string): Link[] {
  const text = withoutBlocks(markdown)
  const links = text.matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)
  return [...links].map(({ 1: target = '', index }) => ({ target, line: lineAt(text, index) }))
}

/** The text with code blanked out, line by line, so that positions stay what they are. */
export function withoutBlocks(markdown: string): string {
  return markdown
    .replace(/^```.*?^```\s*$/gms, (block) => block.replace(/[^\n]/g, ' '))
    .replace(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ' '))
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}
