/** The project's own lint configuration, run on text as if it were in the file named. */
import { ESLint } from 'eslint'
import tseslint from 'typescript-eslint'
import { describe, expect, test } from 'vitest'

// These files do not exist, so typed rules have no program to look at.
const untyped = new ESLint({ overrideConfig: [tseslint.configs.disableTypeChecked] })
const typed = new ESLint()

async function rulesBroken(eslint: ESLint, file: string, text: string): Promise<(string | null)[]> {
  const results = await eslint.lintText(text, { filePath: file })
  return results.flatMap(({ messages }) => messages.map(({ ruleId }) => ruleId))
}

const NEEDED = [
  ['src/inbox/handle.ts', '../errors.js'],
  ['src/inbox/handle.ts', '../postgres/driver.js'],
  ['src/inbox/handle.ts', '../worker/lease.js'],
  ['src/inbox/handle.ts', '../outbox/send.js'],
  ['src/inbox/handle.ts', '../runtime.js'],
  ['src/inbox/handle.ts', './settle.js'],
  ['src/outbox/relay.ts', '../brokers/sink.js'],
  ['src/runtime.ts', './postgres/database.js'],
  ['src/hooks.ts', './brokers/source.js'],
  ['src/postgres/drivers/pg.ts', '../../errors.js'],
  ['src/postgres/drivers/pg.ts', '../driver.js'],
  ['src/worker/loop.ts', 'node:timers/promises'],
  ['src/worker/sources.ts', '../brokers/source.js'],
  ['src/brokers/kafka/index.ts', '../source.js'],
  ['src/brokers/kafka/index.ts', '../../message.js'],
  ['src/brokers/kafka/index.ts', './offsets.js'],
  ['src/admin/retry.ts', '../inbox/claim.js'],
  ['src/inbox/handle.ts', '../outbox/send.js'],
  ['src/inbox/handle.ts', '../effects/journal.js'],
  ['src/testing/index.ts', '../index.js'],
  ['src/box.ts', './admin/status.js'],
  ['src/index.ts', './box.js'],
] as const

const WRONG = [
  ['src/errors.ts', './postgres/driver.js'],
  ['src/message.ts', './inbox/receive.js'],
  ['src/message.ts', './runtime.js'],
  ['src/message.ts', './box.js'],
  ['src/runtime.ts', './inbox/receive.js'],
  ['src/worker/loop.ts', '../inbox/claim.js'],
  ['src/worker/loop.ts', '../runtime.js'],
  ['src/postgres/migrate.ts', '../admin/doctor.js'],
  ['src/postgres/drivers/pg.ts', '../../outbox/send.js'],
  ['src/inbox/handle.ts', '../admin/status.js'],
  ['src/inbox/handle.ts', '../box.js'],
  ['src/inbox/handle.ts', '../brokers/kafka/index.js'],
  ['src/outbox/relay.ts', '../index.js'],
  ['src/outbox/relay.ts', '../inbox/receive.js'],
  ['src/effects/journal.ts', '../inbox/claim.js'],
  ['src/effects/journal.ts', '../outbox/send.js'],
  ['src/outbox/relay.ts', '../admin/status.js'],
  ['src/brokers/kafka/index.ts', '../../inbox/receive.js'],
  ['src/brokers/kafka/index.ts', '../../postgres/driver.js'],
  ['src/brokers/kafka/index.ts', '../../worker/loop.js'],
  ['src/brokers/kafka/index.ts', '../nats/index.js'],
  ['src/brokers/source.ts', './kafka/index.js'],
  ['src/box.ts', './testing/index.js'],
  ['src/inbox/handle.ts', '../testing/failpoints.js'],
  ['src/inbox/handle.ts', '../../test/support/postgres.js'],
  ['src/index.ts', 'pg'],
  ['src/inbox/handle.ts', 'zod'],
] as const

describe('imports point one way', () => {
  // Other rules may have their say: where the files exist, a wrong way is often a cycle too.
  const pointsWrongWay = async (file: string, specifier: string) => {
    const text = `import { x } from '${specifier}'\nexport const y = x\n`
    return (await rulesBroken(untyped, file, text)).includes('oncebox/one-way')
  }

  test.each(NEEDED)('%s may import %s', async (file, specifier) => {
    expect(await pointsWrongWay(file, specifier)).toBe(false)
  })

  test.each(WRONG)('%s must not import %s', async (file, specifier) => {
    expect(await pointsWrongWay(file, specifier)).toBe(true)
  })

  test.each([
    `import type { X } from '../inbox/claim.js'\nexport type Y = X\n`,
    `export { x } from '../inbox/claim.js'\n`,
    `export * from '../inbox/claim.js'\n`,
    `export type * from '../inbox/claim.js'\n`,
    `export const x = () => import('../inbox/claim.js')\n`,
    `import '../inbox/claim.js'\n`,
  ])('however it is written: %j', async (text) => {
    expect(await rulesBroken(untyped, 'src/worker/loop.ts', text)).toContain('oncebox/one-way')
  })

  test('a driver may name the types of its client, and not load it', async () => {
    const types = `import type { Pool } from 'pg'\nexport type P = Pool\n`
    expect(await rulesBroken(untyped, 'src/postgres/drivers/pg.ts', types)).toEqual([])
    const values = `import { Pool } from 'pg'\nexport const p = Pool\n`
    expect(await rulesBroken(untyped, 'src/postgres/drivers/pg.ts', values)).toEqual(['oncebox/one-way'])
  })

  test('a cycle of files is one too, within one part', async () => {
    const text = `export { checkKnown } from './check-options.js'\n`
    expect(await rulesBroken(untyped, 'src/errors.ts', text)).toContain('import-x/no-cycle')
  })

  test('a new folder has to say what it may import', async () => {
    expect(await rulesBroken(untyped, 'src/novel/thing.ts', 'export const x = 1\n')).toEqual(['oncebox/one-way'])
  })
})

describe('what the compiler lets through', () => {
  // A file that exists, so that it is in the program; only its text is another.
  const FILE = 'src/errors.ts'

  test.each([
    ['@typescript-eslint/no-floating-promises', `export function f(p: Promise<void>) {\n  p\n}\n`],
    ['@typescript-eslint/no-misused-promises', `export const f = (p: Promise<boolean>) => (p ? 1 : 2)\n`],
    ['@typescript-eslint/await-thenable', `export const f = async (n: number) => await n\n`],
    ['@typescript-eslint/no-explicit-any', `export type X = any\n`],
    ['@typescript-eslint/consistent-type-imports', `import { Stats } from 'node:fs'\nexport type X = Stats\n`],
    ['no-console', `console.log('x')\nexport {}\n`],
  ])('%s', { timeout: 600_000 }, async (rule, text) => {
    // The first of them builds the whole program.
    expect(await rulesBroken(typed, FILE, text)).toContain(rule)
  })

  test('plain scripts are linted without types', async () => {
    expect(await rulesBroken(typed, 'scripts/new.mjs', `console.log(missing)\n`)).toEqual(['no-undef'])
    expect(await rulesBroken(typed, 'bench/run.mjs', `console.log(process.argv)\n`)).toEqual([])
  })

  test('a TypeScript file that no tsconfig includes is no error', async () => {
    expect(await rulesBroken(typed, 'examples/shop/server.ts', `export const x = 1\n`)).toEqual([])
  })
})
