export interface FencedBlock {
  language: string
  /** From the info string: ```ts title="hello.ts" */
  title: string | undefined
  text: string
}

export function fencedBlocks(markdown: string): FencedBlock[] {
  const blocks = markdown.matchAll(/^```(\w+)([^\n]*)\n(.*?)^```\s*$/gms)
  return [...blocks].map(([, language = '', info = '', text = '']) => ({
    language,
    title: /title="([^"]*)"/.exec(info)?.[1],
    text,
  }))
}

export interface HelloWorld {
  program: string
  /** The tables that it needs: ```sql title="hello.sql" */
  sql: string | undefined
  /** What it prints: ```text title="output" */
  output: string | undefined
}

/** The README's first program: the block titled hello.ts, or the first TypeScript block. */
export function helloWorld(markdown: string): HelloWorld {
  const blocks = fencedBlocks(markdown)
  const titled = (title: string) => blocks.find((block) => block.title === title)?.text
  const program = titled('hello.ts') ?? blocks.find(({ language }) => language === 'ts')?.text
  if (program === undefined) throw new Error('the README has no TypeScript block to run')
  return { program, sql: titled('hello.sql'), output: titled('output') }
}
