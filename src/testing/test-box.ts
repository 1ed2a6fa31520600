/** A box for tests: on PGlite by default, or in a scratch schema on your own driver. */
import { randomUUID } from 'node:crypto'
import { validate } from '../body.js'
import { createBox, type Box } from '../box.js'
import { BOX, type BoxOptions } from '../box-options.js'
import { STATES } from '../admin/filter.js'
import { checkOneOf } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { plainWords, wordsOf } from '../failure.js'
import type { Entry } from '../hooks.js'
import { integer, number, resolve, checkNames } from '../options.js'
import {
  toMessage,
  type Incoming,
  type Message,
  type MessageMap,
  type MessageOf,
  type Outcome,
  type State,
} from '../message.js'
import { statement } from '../postgres/statement.js'
import { bindDatabase, type Database } from '../postgres/database.js'
import type { Driver } from '../postgres/driver.js'
import { fromPglite } from '../postgres/drivers/pglite.js'
import { SENT } from '../postgres/sql/outbox.js'
import { crashIn, type Failpoint } from './crash.js'
import type { PgliteTx } from './pglite.js'

export interface TestBox<M extends MessageMap, Tx, TxIn = Tx> extends Box<M, Tx, TxIn> {
  /** The driver the box runs on, for set-up and assertions of your own. */
  readonly db: Driver<Tx, TxIn>
  readonly schema: string
  readonly clock: {
    /** Moves the database's clock, as oncebox sees it: leases run out, retries fall due, messages grow old. */
    advance(ms: number): Promise<void>
  }
  /** Delivers a message, several times if you like, and answers every outcome. It is stored; `drain` runs it. */
  deliver(message: Incoming, options?: { times?: number | undefined }): Promise<Outcome[]>
  /** What handlers sent, in order. */
  sent(): Promise<MessageOf<M>[]>
  /** Runs what is due until the message has this state, for every consumer that has it. Throws after a while. */
  waitFor(id: string, state: State, options?: { timeoutMs?: number | undefined }): Promise<void>
  /** Crashes the flow of this box at a named point. */
  crashAt(point: Failpoint, options?: { times?: number | undefined }): () => void
  [Symbol.asyncDispose](): Promise<void>
}

export interface TestBoxOptions<M extends MessageMap, Tx, TxIn> extends Omit<BoxOptions<M, Tx, TxIn>, 'db' | 'schema'> {
  db?: Driver<Tx, TxIn> | undefined
}

/** What it takes is what a box takes, but for the schema, which is thrown away. */
const { schema: _, ...TEST_BOX } = BOX
const DELIVER = { times: integer({ least: 0, fallback: 1 }) }
const WAIT = { timeoutMs: number({ least: 0, fallback: 10_000 }) }

const INSTALL_CLOCK = `
create table ob.test_clock (offset_ms double precision primary key);
insert into ob.test_clock values (0);
create or replace function ob.now() returns timestamptz language sql stable
  as 'select pg_catalog.statement_timestamp() + (select offset_ms from ob.test_clock) * interval ''1 ms'''`
const ADVANCE_CLOCK = statement<{ ms: number }>(
  `update ob.test_clock set offset_ms = offset_ms + ($1::text::jsonb->>'ms')::float8`,
)

export async function createTestBox<Tx, TxIn = Tx, const M extends MessageMap = MessageMap>(
  options: TestBoxOptions<M, Tx, TxIn> & { db: Driver<Tx, TxIn> },
): Promise<TestBox<M, Tx, TxIn>>
export async function createTestBox<const M extends MessageMap = MessageMap>(
  options?: Omit<TestBoxOptions<M, PgliteTx, PgliteTx>, 'db'> & { db?: undefined },
): Promise<TestBox<M, PgliteTx>>
export async function createTestBox<Tx, TxIn, M extends MessageMap>(
  options: TestBoxOptions<M, Tx, TxIn> = {},
): Promise<TestBox<M, Tx, TxIn>> {
  checkNames('createTestBox', options, TEST_BOX)
  const { db: given, ...rest } = options
  const pglite = given ? undefined : await openPglite()
  const db = given ?? (fromPglite(pglite!) as unknown as Driver<Tx, TxIn>)
  const schema = `oncebox_test_${randomUUID().slice(0, 8)}`
  const box = createBox<Tx, TxIn, M>({ logger: SILENT, ...rest, db, schema })
  const bound = bindDatabase(db, schema) as Database
  await box.migrate()
  await db.query(bound.bind(INSTALL_CLOCK), [])
  const disarm: (() => void)[] = []

  const dispose = async (): Promise<void> => {
    for (const one of disarm) one()
    await box.stop({ timeoutMs: 5_000 })
    if (pglite) await pglite.close()
    else await db.query(`drop schema if exists "${schema}" cascade`, [])
  }
  const test: Omit<TestBox<M, Tx, TxIn>, keyof Box<M, Tx, TxIn>> = {
    db,
    schema,
    clock: {
      async advance(ms) {
        if (!Number.isFinite(ms))
          throw new OnceboxError('OPTION_INVALID', `advance takes milliseconds; got ${String(ms)}`)
        await bound.run(ADVANCE_CLOCK, { ms })
      },
    },
    async deliver(message, deliverOptions = {}) {
      const { times } = resolve('deliver', deliverOptions, DELIVER)
      const outcomes: Outcome[] = []
      for (let time = 0; time < times; time++) outcomes.push(await box.receive(message))
      return outcomes
    },
    async sent() {
      const sent: Message[] = []
      for (const row of await bound.run(SENT, null)) {
        const { type, body, received } = row
        const envelope = { ...row, key: row.key ?? undefined, receivedMs: Number(received), attempts: 0 }
        const data: unknown = JSON.parse(body)
        const { messages } = options
        const schema = messages && Object.hasOwn(messages, type) ? messages[type] : undefined
        // As its consumer will get it. Sent it was with this schema, so it passes.
        sent.push(toMessage(envelope, (await validate(schema, data)).data))
      }
      return sent
    },
    async waitFor(id, state, waitOptions = {}) {
      const { timeoutMs } = resolve('waitFor', waitOptions, WAIT)
      checkOneOf('waitFor: state', state, STATES)
      const end = performance.now() + timeoutMs
      for (;;) {
        await box.drain()
        const entries = await box.admin.message({ id })
        if (entries.length > 0 && entries.every((entry) => entry.state === state)) return
        if (performance.now() > end) {
          const states = entries.map(stateOf).join(', ') || 'unknown'
          throw new OnceboxError(
            'NOT_FOUND',
            `message ${id} did not become ${state} in ${timeoutMs} ms; it is ${states}`,
          )
        }
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    crashAt(point, crashOptions) {
      const off = crashIn(schema, point, crashOptions)
      disarm.push(off)
      return off
    },
    [Symbol.asyncDispose]: dispose,
  }
  return Object.assign(box, test)
}

/** With why, where it failed or was refused. */
function stateOf({
  consumer,
  state,
  reason,
  detail,
  error,
  attempts = [],
}: Omit<Entry<MessageMap>, 'message'>): string {
  const last = error ?? attempts.at(-1)?.error
  const why = [reason, detail, last && `${last.name}: ${wordsOf(last)}`].filter((one) => one !== undefined)
  const where = consumer === '' ? 'no consumer' : consumer
  return [`${where}: ${state}`, ...(why.length > 0 ? [`(${why.join(': ')})`] : [])].join(' ')
}

async function openPglite() {
  await checkImports()
  const { PGlite } = await import('@electric-sql/pglite').catch((error: unknown): never => {
    throw new OnceboxError(
      'OPTION_INVALID',
      'createTestBox runs on PGlite by default: npm install --save-dev @electric-sql/pglite, or pass your own driver as db',
      { cause: error },
    )
  })
  return PGlite.create().catch((error: unknown): never => {
    throw new OnceboxError(
      'OPTION_INVALID',
      `createTestBox runs on PGlite by default, which is installed and could not be opened (${plainWords(error)}); pass your own driver as db`,
      { cause: error },
    )
  })
}

/**
 * PGlite imports its own files. Jest refuses that unless Node.js runs with a flag, and as nobody waits for those imports, the
 * refusal would end the process before anybody could read what is wrong.
 */
async function checkImports(): Promise<void> {
  if (process.env['JEST_WORKER_ID'] === undefined) return
  try {
    // Not written as an import, which would become a `require` in CommonJS.
    // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call
    await new Function(`return import('node:path')`)()
  } catch (error) {
    throw new OnceboxError(
      'OPTION_INVALID',
      'createTestBox runs on PGlite by default, which Jest cannot load without NODE_OPTIONS=--experimental-vm-modules; ' +
        'set that, or pass your own driver as db',
      { cause: error },
    )
  }
}

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
