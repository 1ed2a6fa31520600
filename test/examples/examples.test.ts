/** The examples run as their table of contents says, on PGlite and on a server, and print what they should. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { blocksOf, readPage, ROOT } from '../docs/markdown.js'
import { scratchDatabase } from '../support/postgres.js'

const run = promisify(execFile)
/** A first start of PGlite takes seconds, and more on a busy machine. */
const TIMEOUT_MS = 300_000

const PRINTS: Readonly<Record<string, string>> = {
  drizzle: `
received 6, stored 3
cup: 4 reserved
tea: 2 reserved
events: 3`,
  hello: blocksOf(readPage('README.md')).find(({ title }) => title === 'output')!.text,
  idempotency: `
ada order-1: 201 {"charge":1}, replayed
ada order-2: 201 {"charge":2}, replayed
bob order-1: 201 {"charge":3}, replayed
ada order-1 with another amount: 422
requests: 8, charges: ada 500, ada 700, bob 900`,
  'inline-consumer': `
12 orders, handled 12, failed 3 times and were delivered again
duplicates, because their acknowledgement was lost: 5
booked: 12 rows for 12 orders`,
  nats: `
orders sent: 3, messages in the stream: 4
invoices: A-1 500, A-2 700, A-3 900`,
  kysely: `
r-1: handled, 700 left
r-1: duplicate, 700 left
r-2: refused: not enough
r-3: handled, 0 left`,
  kafka: `
orders sent: 3, records in the topic: 4
committed: 4, invoices: A-1 500, A-2 700, A-3 900`,
  knex: `
without an inbox, delivered 3 times: 3 entries
stored, delivered 3 times: 1 entry
on arrival, delivered 3 times: 1 entry
in a transaction of one's own, delivered 3 times: 1 entry`,
  nest: `
orders: handled, handled, dead; A-1 once more: duplicate
stock: cup 2, tea 5
healthy: true`,
  'orders-inventory': `
order 4: nobody drinks that much
order 1: reserved
order 2: reserved
order 3: refused
cup: 98 left
tea: 2 left`,
  'payments-effects': `
worker 1 charges A-1, and is killed by SIGKILL
worker 2 takes A-1 over, charges B-2, and is killed by SIGKILL
worker 3 finds B-2, and exits with 0
due-2 waits for a person: effect-unknown
the person found charge-2, and says so
worker 4 goes on with B-2, and exits with 0
gateway: A-1: calls 2, keys 1, charged as charge-1
gateway: B-2: calls 1, keys 1, charged as charge-2
booked: A-1 charge-1, B-2 charge-2`,
  prisma: `
order A-3: too much at once
handed over: 4 times
order A-1: invoice of 500
order A-2: invoice of 700
deleted by the janitor: 2`,
  scale: `
6 boxes on two servers: 3 and 3
transfers: stored 400; the same again: duplicate 400
booked: 400 out, 400 in, out of order 0; the sum of all accounts is 0
box 3 has moved: 4 and 2
transfers: stored 40; the earlier ones again: duplicate 400
booked: 440 out, 440 in, out of order 0; the sum of all accounts is 0`,
  sequelize: `
delivery 1: handled
delivery 2: duplicate
delivery 3: duplicate
delivery 4: duplicate
delivery 5: duplicate
balance: 500
in the outbox: 1`,
  sqs: `
failed and tried again: 1
customer A: A-1, A-2, A-3
customer B: B-1, B-2`,
  redis: `
entries in the stream: 4
invoices: A-1 500, A-2 700, A-3 900`,
  rabbitmq: `
invoices: A-1 500, A-2 700, A-3 900
in quarantine: no-id`,
  typeorm: `
A-1: stored
A-1: duplicate
A-2: stored
A-3: stored
a worker has begun: processing 3
it was killed: processing 3
its claim has run out: handled 2, dead 1
the dead letter was retried: handled 3
invoices: A-1 500, A-2 700, A-3 900`,
  webhook: `
orders sent: 3, deliveries: 6
a stranger: 401 {"error":"no signature is right"}
invoices: A-1 500, A-2 700, A-3 900`,
}

beforeAll(() => {
  if (!existsSync(path.join(ROOT, 'dist/index.js'))) throw new Error('there is no dist to run: run `npm run build`')
})

test('every example is in the table of contents, and is run here', async () => {
  const entries = await readdir(path.join(ROOT, 'examples'), { withFileTypes: true })
  const examples = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  const listed = [...readPage('examples/README.md').matchAll(/`node examples\/([\w-]+)\/main\.mjs`/g)]
  expect(listed.map(([, name]) => name).sort()).toEqual(examples.sort())
  expect(Object.keys(PRINTS).sort()).toEqual(examples)
})

/** Those whose client speaks to servers alone; scale starts two of its own. */
const ON_SERVERS = new Set(['prisma', 'scale'])

describe.each(Object.keys(PRINTS))('%s', (example) => {
  test.runIf(!ON_SERVERS.has(example))('runs on PGlite', { timeout: TIMEOUT_MS }, async () => {
    expect(await output(example, {})).toBe(PRINTS[example]!.trim())
  })

  test('runs on a server', { timeout: TIMEOUT_MS }, async () => {
    await using database = await scratchDatabase('examples')
    expect(await output(example, { DATABASE_URL: database.url })).toBe(PRINTS[example]!.trim())
  })
})

test('an example can be run again on the same database', { timeout: TIMEOUT_MS }, async () => {
  await using database = await scratchDatabase('examples')
  const env = { DATABASE_URL: database.url }
  expect(await output('orders-inventory', env)).toBe(await output('orders-inventory', env))
})

test('their types are right', { timeout: TIMEOUT_MS }, async () => {
  const directory = path.join(ROOT, 'node_modules/.cache/oncebox-examples')
  await mkdir(directory, { recursive: true })
  const config = {
    extends: '../../../tsconfig.json',
    compilerOptions: { noEmit: true, allowJs: true, checkJs: true },
    include: ['../../../examples/**/*.mjs', '../../../examples/**/*.ts'],
    exclude: [],
  }
  await writeFile(path.join(directory, 'tsconfig.json'), JSON.stringify(config))
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc')
  const compiled = run(process.execPath, [tsc, '-p', directory, '--pretty', 'false'], {
    cwd: ROOT,
    timeout: TIMEOUT_MS,
  })
  const problems = await compiled.then(
    () => [],
    (error: { stdout: string; message: string }) => (error.stdout || error.message).split('\n').filter(Boolean),
  )
  // `npm run check` reports those of the sources. Lines that are indented go on with the one before.
  expect(problems.filter((problem) => !/^src\/|^ /.test(problem))).toEqual([])
})

async function output(example: string, env: Record<string, string>): Promise<string> {
  const { DATABASE_URL: _, ...inherited } = process.env
  const { stdout } = await run(process.execPath, [path.join('examples', example, 'main.mjs')], {
    cwd: ROOT,
    env: { ...inherited, ...env },
    timeout: TIMEOUT_MS,
  })
  return stdout.trim()
}
