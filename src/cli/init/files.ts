/** The files that `oncebox init` writes. Names of what is in them are for their readers: they are the user's from then on. */
import path from 'node:path'
import type { Project } from './look.js'
import { openingOf } from './open.js'

export interface File {
  /** From the project. */
  readonly name: string
  readonly text: string
}

export function filesOf(project: Project): File[] {
  const { folder } = project
  const extension = extensionOf(project)
  const inFolder = (name: string): string => `${folder}/${name}.${extension}`
  return [
    { name: `oncebox.config.${extension}`, text: config(project) },
    { name: inFolder('messages'), text: messages(project) },
    { name: inFolder('greet'), text: consumer(project) },
    { name: inFolder('greet.test'), text: test(project) },
    { name: inFolder('box'), text: box(project) },
  ]
}

/**
 * In a package of CommonJS a file of ES modules says so by its name; TypeScript is compiled to whatever it has to be, if it
 * may.
 */
export function extensionOf({ typescript, type, verbatim }: Project): string {
  if (type === 'module') return typescript ? 'ts' : 'js'
  return typescript ? (verbatim ? 'mts' : 'ts') : 'mjs'
}

/** How a file of ours is imported. */
function imported(project: Project, name: string): string {
  const extension = extensionOf(project)
  return `'${name}.${project.importsTs ? extension : extension.replace('ts', 'js')}'`
}

function config(project: Project): string {
  return `import { randomUUID } from 'node:crypto'
import { defineConfig } from 'oncebox/config'
import { openBox } from ${imported(project, `./${project.folder}/box`)}

export default defineConfig({
  box: openBox,
  url: process.env['DATABASE_URL'],
  // What \`oncebox dev\` tries the box with. Take it out when messages of your own arrive.
  example: () => ({ id: randomUUID(), type: 'greeting.asked', data: { name: 'Ada' } }),
})
`
}

function messages({ typescript, has }: Project): string {
  const zod = has('zod')
  const entry = (field: string): string =>
    zod
      ? `z.object({ ${field}: z.string() })`
      : typescript
        ? `unchecked<{ ${field}: string }>()`
        : `/** @type {typeof unchecked<{ ${field}: string }>} */ (unchecked)()`
  return `/** The messages that this service takes and sends: a name, and what its data is like. */
${zod ? `import { defineMessages } from 'oncebox'\nimport { z } from 'zod'` : `import { defineMessages, unchecked } from 'oncebox'`}

export const messages = defineMessages({
  'greeting.asked': ${entry('name')},
  'greeting.sent': ${entry('text')},
})
`
}

function consumer(project: Project): string {
  const { typescript } = project
  const types = typescript
    ? `import type { Handlers } from 'oncebox'\nimport type { messages } from ${imported(project, './messages')}\n\n`
    : ''
  const typed = typescript ? ` satisfies Handlers<typeof messages, unknown>` : ''
  const doc = typescript ? '' : `/** @satisfies {import('oncebox').Handlers<typeof import(${imported(project, './messages')}).messages, unknown>} */\n` // prettier-ignore
  return `${types}/**
 * Each message is handled once, however often it is delivered. What a handler sends, and what it writes with \`tx\`, its
 * second argument's transaction, is committed together with that fact, or not at all.
 */
${doc}export const greet = {
  'greeting.asked': async ({ data }, { send }) => {
    const text = \`Hello, \${data.name}!\`
    console.log(text)
    await send('greeting.sent', { text })
  },
}${typed}
`
}

function test(project: Project): string {
  const { runner } = project
  const equal = runner === 'node' ? ['assert.deepEqual(', ', ', ')'] : ['expect(', ').toEqual(', ')']
  const imports = {
    node: `import assert from 'node:assert/strict'\nimport { test } from 'node:test'\n`,
    vitest: `import { expect, test } from 'vitest'\n`,
    jest: project.has('@jest/globals') || !project.typescript ? `import { expect, test } from '@jest/globals'\n` : '',
  }[runner]
  return `${imports}import { createTestBox } from 'oncebox/testing'
import { greet } from ${imported(project, './greet')}
import { messages } from ${imported(project, './messages')}

test('a greeting that is asked for three times is sent once', async () => {
  const box = await createTestBox({ messages })
  try {
    box.consumer('greet', greet)
    await box.deliver({ id: '1', type: 'greeting.asked', data: { name: 'Ada' } }, { times: 3 })
    await box.drain()
    const sent = await box.sent()
    ${equal[0]}sent.map(({ data }) => data)${equal[1]}[{ text: 'Hello, Ada!' }]${equal[2]}
  } finally {
    await box[Symbol.asyncDispose]()
  }
})
`
}

function box(project: Project): string {
  const { imports, code } = openingOf(project)
  const broker = project.brokers[0]
  const advice = broker
    ? `  // Messages come from a broker by box.from(${broker}({ … })) of 'oncebox/${broker}'. What handlers\n  // send stays in the outbox until box.to(…) publishes it.\n`
    : `  // box.from(…) takes messages from a broker. What handlers send stays in the outbox until box.to(…) publishes it.\n`
  const own = [`import { greet } from ${imported(project, './greet')}`, `import { messages } from ${imported(project, './messages')}`] // prettier-ignore
  const isLocal = (line: string): boolean => line.includes(`from '.`)
  const packages = [...imports.filter((line) => !isLocal(line)), `import { createBox } from 'oncebox'`]
  const lines = code.map((line) => `  ${line}`).join('\n')
  return `${[...packages.sort(byModule), ...imports.filter(isLocal), ...own].join('\n')}

/** The box of this service, on its database. The command line and your program call it. */
export async function openBox() {
${lines}
  const box = createBox({ db, messages, source: '${serviceName(project)}' })
  box.consumer('greet', greet)
${advice}  return box
}
`
}

function byModule(a: string, b: string): number {
  const module = (line: string): string => /from '([^']+)'/.exec(line)![1]!
  return module(a) < module(b) ? -1 : 1
}

function serviceName({ directory }: Project): string {
  return path.basename(directory).toLowerCase().replaceAll(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'service' // prettier-ignore
}
