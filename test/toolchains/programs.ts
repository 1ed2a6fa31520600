/** What runs in the projects: one program in TypeScript and in both formats, and two tests for Jest. */

const BODY = `
async function main() {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
  const messages = defineMessages({ 'order.placed': unchecked(), 'order.refused': unchecked() })
  const box = createBox({ db: fromPg(pool), messages, schema: process.env.SCHEMA })
  let calls = 0
  box.consumer('count', {
    'order.placed': async (message, { tx }) => {
      calls++
      await tx.query('select $1::text', [message.id])
    },
    'order.refused': () => Promise.reject(new Reject('no')),
  })
  await box.migrate()
  const order = { id: 'o-1', type: 'order.placed', data: {} }
  const outcomes = [await box.handle(order), await box.handle(order)]
  outcomes.push(await box.handle({ id: 'o-2', type: 'order.refused', data: {} }))
  console.log(outcomes.map(({ status }) => status).join(' '), calls)
  await box.stop()
  await pool.end()
}
`
/** What the program prints: the second delivery is known, and no handler ran for it. */
export const PRINTED = 'handled duplicate dead 1'

const CALL = `main().catch((error) => {\n  console.error(error)\n  process.exitCode = 1\n})\n`

const IMPORTS = `import pg from 'pg'
import { createBox, defineMessages, Reject, unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
`
const REQUIRES = `const pg = require('pg')
const { createBox, defineMessages, Reject, unchecked } = require('oncebox')
const { fromPg } = require('oncebox/pg')
`

export const ES_MODULE = IMPORTS + BODY + CALL
export const COMMONJS = REQUIRES + BODY + CALL
export const TYPESCRIPT = ES_MODULE.replaceAll('unchecked()', 'unchecked<object>()')

/** A test as it is written in CommonJS: real PostgreSQL, and the box of the test kit. */
export const JEST_POSTGRES = `${REQUIRES.replace('createBox, defineMessages, Reject, unchecked', 'OnceboxError, Reject')}
const { createTestBox } = require('oncebox/testing')

test('a message that comes twice is handled once', async () => {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
  const box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  box.consumer('count', {
    placed: async (message, { tx }) => {
      calls++
      await tx.query('select 1')
    },
    lost: async (message, { tx }) => {
      if (message.attempt === 1 && calls++ < 2) await tx.query('select pg_terminate_backend(pg_backend_pid())')
    },
    refused: () => Promise.reject(new Reject('no')),
  })
  const outcomes = await box.deliver({ id: 'p-1', type: 'placed', data: {} }, { times: 2 })
  expect(outcomes.map(({ status }) => status)).toEqual(['stored', 'duplicate'])
  await box.waitFor('p-1', 'handled')
  expect(calls).toBe(1)
  await box.deliver({ id: 'p-2', type: 'refused', data: {} })
  await box.waitFor('p-2', 'dead')
  await expect(box.send(pool, 'x', {})).rejects.toThrow(OnceboxError)
  // A worker whose connection is lost under its handler takes the message again.
  await box.deliver({ id: 'p-3', type: 'lost', data: {} })
  await box.start()
  for (;;) {
    const [entry] = await box.admin.message({ id: 'p-3' })
    if (entry.state === 'handled') break
    expect(entry.state).not.toBe('dead')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await box[Symbol.asyncDispose]()
  await pool.end()
}, 120_000)
`

/** The same on PGlite, which the test kit loads when it is given no driver. */
export const JEST_PGLITE = `const { createTestBox } = require('oncebox/testing')

test('a message that comes twice is handled once', async () => {
  const box = await createTestBox()
  let calls = 0
  box.consumer('count', { placed: () => void calls++ })
  await box.deliver({ id: 'p-1', type: 'placed', data: {} }, { times: 2 })
  await box.waitFor('p-1', 'handled')
  expect(calls).toBe(1)
  await box[Symbol.asyncDispose]()
}, 120_000)
`

export const VITEST = JEST_POSTGRES.replaceAll(/^const (.*) = require\((.*)\)$/gm, 'import $1 from $2').replace(
  /^/,
  `import { expect, test } from 'vitest'\n`,
)

/** What a service compiles against: its types, and what must not compile. */
export const TYPED = `${IMPORTS.replace('Reject, unchecked', 'unchecked')}
import type { BoxOf, Handlers, IncomingOf, OutcomeOf } from 'oncebox'

const messages = defineMessages({ 'order.placed': unchecked<{ total: number }>(), 'order.paid': unchecked<string>() })
const pool = new pg.Pool()
const db = fromPg(pool)

const handlers = {
  'order.placed': async (message, { tx }) => {
    await tx.query('select 1')
    // @ts-expect-error there is no such field
    void message.data.sum
    return { total: message.data.total, at: new Date() }
  },
} satisfies Handlers<typeof messages, pg.PoolClient>

export class Orders {
  constructor(readonly box: BoxOf<typeof messages, pg.PoolClient>) {}

  async place(total: number): Promise<string | undefined> {
    const order = { id: 'o-1', type: 'order.placed', data: { total } } as const satisfies IncomingOf<typeof messages, 'order.placed'>
    const outcome: OutcomeOf<typeof handlers, 'order.placed'> = await this.box.handle(order)
    // @ts-expect-error there is no such message
    await this.box.handle({ id: 'o-1', type: 'order.plaecd', data: { total } })
    // @ts-expect-error not its data
    await this.box.receive({ id: 'o-1', type: 'order.placed', data: { sum: total } })
    return outcome.status === 'handled' ? outcome.result.at : undefined
  }
}

const box = createBox({ db, messages })
box.consumer('orders', handlers)
export const orders = [new Orders(box), new Orders(box as BoxOf<typeof messages, typeof db>)]
`

/** Every path that the package has. A framework's own path may need its framework, which is not here. */
const ALL = `
const { exports: paths, peerDependencies } = require('oncebox/package.json')
const peers = Object.keys(peerDependencies)
const absent = (error) => peers.some((peer) => new RegExp(\`Cannot find (module|package) '\${peer}\`).test(error))
const names = Object.keys(paths).filter((key) => key !== './package.json').map((key) => 'oncebox' + key.slice(1))
`
export const IMPORT_ALL = `import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)${ALL}
for (const name of names) await import(name).catch((error) => { if (!absent(error)) throw error })
`
export const REQUIRE_ALL = `${ALL}
for (const name of names) try { require(name) } catch (error) { if (!absent(error)) throw error }
`
