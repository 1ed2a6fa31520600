/**
 * Two copies of the package in one process: its CommonJS modules, as `require` finds them, beside its ES modules. An
 * application that imports oncebox, and has a library or a test runner that requires it, has both.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as mainModule from 'oncebox'
import * as linkModule from 'oncebox/link'
import * as pgModule from 'oncebox/pg'
import * as postgresModule from 'oncebox/postgres'
import * as testingModule from 'oncebox/testing'
import * as webhookModule from 'oncebox/webhook'
import * as codecModule from '../../src/brokers/codec.js'
import * as handoverModule from '../../src/brokers/handover.js'
import * as sendModule from '../../src/brokers/send.js'
import * as bodyModule from '../../src/http/body.js'
import * as errorsModule from '../../src/errors.js'
import * as clientModule from '../../src/postgres/drivers/pg/client.js'
import * as databaseErrorsModule from '../../src/postgres/errors.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const require = createRequire(import.meta.url)
const inner = (file: string): unknown => require(path.join(ROOT, 'dist/cjs', file))

const esm = {
  ...{ main: mainModule, link: linkModule, pg: pgModule, postgres: postgresModule, testing: testingModule },
  ...{ webhook: webhookModule, codec: codecModule, handover: handoverModule, send: sendModule, body: bodyModule },
  ...{ errors: errorsModule, client: clientModule, databaseErrors: databaseErrorsModule },
}
type Copy = typeof esm
const cjs = {
  ...{ main: require('oncebox'), link: require('oncebox/link'), pg: require('oncebox/pg') },
  ...{
    postgres: require('oncebox/postgres'),
    testing: require('oncebox/testing'),
    webhook: require('oncebox/webhook'),
  },
  ...{ codec: inner('brokers/codec.js'), handover: inner('brokers/handover.js'), send: inner('brokers/send.js') },
  ...{ body: inner('http/body.js'), errors: inner('errors.js') },
  ...{ client: inner('postgres/drivers/pg/client.js'), databaseErrors: inner('postgres/errors.js') },
} as Copy

/** The first copy is the box's, the other one that of everything else. */
const BOTH_WAYS: [string, Copy, Copy][] = [
  ['a box of the ES modules', esm, cjs],
  ['a box of the CommonJS modules', cjs, esm],
]

let database: ScratchDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('copies')
  pool = new pg.Pool({ connectionString: database.url, max: 10 })
  await pool.query('create table done (id text, note text)')
})
afterAll(async () => {
  await pool.end()
  await database.close()
})

test('are two', () => {
  expect(cjs.main.createBox).not.toBe(esm.main.createBox)
})

describe.each(BOTH_WAYS)('%s, and the rest from the other copy', (_, own, other) => {
  test('runs handlers that throw the errors of the other copy, and batches of it', async () => {
    await using box = await own.testing.createTestBox({ db: other.pg.fromPg(pool) })
    let postponed = 0
    box.consumer('one', {
      rejected: () => Promise.reject(new other.main.Reject('never')),
      later: () => (postponed++ === 0 ? Promise.reject(new other.main.RetryLater({ afterMs: 0 })) : undefined),
      written: async ({ id }, { tx }) => void (await tx.query(`insert into done values ($1, 'handler')`, [id])),
      many: other.main.batch(async (messages, { tx }) => {
        for (const { id } of messages) {
          await tx.query(`insert into done values ($1, 'batch')`, [id])
        }
      }),
    })
    const types = ['rejected', 'later', 'written', 'many']
    for (const type of types) await box.deliver({ id: type, type, data: {} }, { times: 2 })
    await box.waitFor('rejected', 'dead')
    await Promise.all(types.slice(1).map((id) => box.waitFor(id, 'handled')))
    const { rows } = await pool.query(`delete from done returning id`)
    expect(rows.map(({ id }: { id: string }) => id).sort()).toEqual(['many', 'written'])
  })

  test('recognises errors by their class, whoever made them', () => {
    const error = new other.main.OnceboxError('BUSY', 'x')
    expect(error).toBeInstanceOf(own.main.OnceboxError)
    expect(new other.main.Reject('x')).toBeInstanceOf(own.main.Reject)
    expect(new other.main.RetryLater({ afterMs: 1 })).toBeInstanceOf(own.main.RetryLater)
    expect(new other.testing.SimulatedCrash('claimed')).toBeInstanceOf(own.testing.SimulatedCrash)
    expect(error).not.toBeInstanceOf(own.main.Reject)
  })

  test('crashes where the test kit of the other copy says, and recovers', async () => {
    await using box = await own.testing.createTestBox({ db: other.pg.fromPg(pool) })
    let calls = 0
    box.consumer('crashed', { crash: () => void calls++ })
    await box.deliver({ id: 'crash-1', type: 'crash', data: {} })
    const disarm = other.testing.crashAt('handled')
    await box.drain()
    disarm()
    const [entry] = await box.admin.message({ id: 'crash-1' })
    // Somebody who died says nothing: neither that it failed, nor that anybody else may have it.
    expect(entry).toMatchObject({ state: 'processing', attempts: [] })
    await box.clock.advance(3_600_000)
    await box.waitFor('crash-1', 'handled')
    expect(calls).toBe(2)
  })

  test('keeps a message whose connection was lost under its handler, and burns no attempt', async () => {
    await using box = await own.testing.createTestBox({ db: other.pg.fromPg(pool) })
    let calls = 0
    box.consumer('lost', {
      lose: async (_message, { tx }) => {
        if (++calls === 1) await tx.query('select pg_terminate_backend(pg_backend_pid())')
      },
    }, { retry: { attempts: 1 } }) // prettier-ignore
    await box.deliver({ id: 'lost-1', type: 'lose', data: {} })
    await box.start()
    const state = async () => (await box.admin.message({ id: 'lost-1' }))[0]?.state
    await waitUntil(async () => (await state()) === 'handled', { what: 'the message to be handled' })
    expect(calls).toBe(2)
  })

  test('sends and guards in the transaction that a handler of the other copy was lent', async () => {
    await using handling = await own.testing.createTestBox({ db: own.pg.fromPg(pool) })
    await using sending = await other.testing.createTestBox({ db: other.pg.fromPg(pool) })
    let lent: pg.PoolClient | undefined
    handling.consumer('sends', {
      ask: async ({ id }, { tx }) => {
        lent = tx
        await sending.send(tx, 'told', {}, { id })
        await sending.once(tx, 'guard', { id }, () => undefined)
        if (id === 'ask-2') throw new own.main.Reject('take it back')
      },
    })
    for (const id of ['ask-1', 'ask-2']) await handling.deliver({ id, type: 'ask', data: {} })
    await handling.waitFor('ask-1', 'handled')
    await handling.waitFor('ask-2', 'dead')
    expect((await sending.sent()).map(({ id }) => id)).toEqual(['ask-1'])
    // What was given back is refused by either copy in the same words.
    const late = sending.send(lent!, 'told', {}, { id: 'late' })
    await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_CLOSED' })
  })

  test('does the same with postgres.js', async () => {
    const sql = postgres(database.url, { max: 4, onnotice: () => {} })
    try {
      await using handling = await own.testing.createTestBox({ db: own.postgres.fromPostgres(sql) })
      await using sending = await other.testing.createTestBox({ db: other.postgres.fromPostgres(sql) })
      let lent: postgres.TransactionSql | undefined
      handling.consumer('sends', {
        ask: async ({ id }, { tx }) => {
          lent = tx
          await sending.send(tx, 'told', {}, { id })
        },
      })
      await handling.deliver({ id: 'ask-1', type: 'ask', data: {} })
      await handling.waitFor('ask-1', 'handled')
      expect((await sending.sent()).map(({ id }) => id)).toEqual(['ask-1'])
      const late = sending.send(lent!, 'told', {}, { id: 'late' })
      await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
    } finally {
      await sql.end({ timeout: 1 })
    }
  })

  test('is linked to a box of the other copy', async () => {
    const db = own.pg.fromPg(pool)
    await using from = await own.testing.createTestBox({ db, source: 'shop' })
    await using to = await other.testing.createTestBox({ db, source: 'billing' })
    const seen: string[] = []
    to.consumer('c', { placed: ({ id }) => void seen.push(id) })
    from.to(other.link.link({ to }))
    await from.db.transaction((tx) => from.send(tx, 'placed', {}, { id: 'o-1' }))
    await waitUntil(async () => (await from.drain(), await to.drain(), seen.length > 0), {
      what: 'the event to arrive',
    })
    expect(seen).toEqual(['o-1'])
  })

  test('does not share a source with a box of the other copy', async () => {
    await using one = await own.testing.createTestBox({ db: own.pg.fromPg(pool) })
    await using two = await other.testing.createTestBox({ db: other.pg.fromPg(pool) })
    const source = { start: () => Promise.resolve(), stop: () => Promise.resolve() }
    one.from(source)
    expect(() => two.from(source)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })
})

describe.each(BOTH_WAYS)('%s finds what the other copy has noted', (_, own, other) => {
  test('of where an error came from', () => {
    expect(own.databaseErrors.isFromTheDatabase(other.databaseErrors.fromTheDatabase(new Error('x')))).toBe(true)
    const foreign = Object.assign(new Error('x'), { code: 'ECONNRESET' })
    expect(own.databaseErrors.isConnectionLoss(other.databaseErrors.notTheDatabase(foreign))).toBe(false)
    expect(own.errors.isOwnError(other.errors.ownError('CLAIM_LOST', 'x'), 'CLAIM_LOST')).toBe(true)
    const down = new Error('down')
    expect(() => other.send.fromTheDestination(down)).toThrow(down)
    expect(own.send.isOfTheDestination(down)).toBe(true)
  })

  test('of bodies', async () => {
    const message = { data: { spaced: true } } as unknown as mainModule.Message
    other.handover.rememberBody(message, '{ "spaced": true }')
    expect(own.handover.bodyOf(message)).toBe('{ "spaced": true }')

    const codec = { contentType: 'x', encode: () => new Uint8Array(), decode: () => Promise.reject(new Error('x')) }
    const incoming = { id: '1', type: 't', body: Buffer.from('x') }
    other.codec.decodeWith(codec, incoming)
    expect(own.codec.codecProblem(incoming)).toContain('async')

    const request = new Request('http://here/')
    const flow: bodyModule.Flow = () => () => {}
    other.body.rememberFlow(request, () => flow)
    expect(own.body.flowOf(request)).toBe(flow)
  })

  test('of connections', async () => {
    const client = await pool.connect()
    const moment = performance.now()
    other.client.heardFrom(client as unknown as clientModule.Client)
    expect(own.client.isSilentSince(client as unknown as clientModule.Client, moment)).toBe(false)
    client.release()
  })

  test('of pools, which get one set of listeners', () => {
    const fresh = new pg.Pool({ connectionString: database.url })
    own.pg.fromPg(fresh)
    const before = fresh.listenerCount('connect')
    other.pg.fromPg(fresh)
    expect(fresh.listenerCount('connect')).toBe(before)
  })

  test('of pools of postgres.js, which have room for the transactions of all boxes together', async () => {
    const sql = postgres(database.url, { max: 2, onnotice: () => {} })
    try {
      const drivers = [own.postgres.fromPostgres(sql), other.postgres.fromPostgres(sql)]
      const order: string[] = []
      const running = drivers.map((driver, at) =>
        driver.transaction(async (tx) => {
          order.push(`${at} begins`)
          await driver.query('select pg_sleep(0.05)', [], tx)
          order.push(`${at} ends`)
        }),
      )
      await Promise.all(running)
      expect(order).toEqual(['0 begins', '0 ends', '1 begins', '1 ends'])
    } finally {
      await sql.end({ timeout: 1 })
    }
  })
})

/** State of a module that concerns nobody but objects of the same copy. */
const OF_ONE_COPY = [
  'src/backoff.ts: told',
  'src/inbox/spins.ts: spins',
  'src/postgres/drivers/pg/named.ts: known',
  'src/postgres/drivers/watch.ts: harmless',
  'src/cli/main.ts: closed',
  'src/brokers/rabbitmq/sink.ts: OPEN',
  'src/clients/drizzle/unsent.ts: UNSENT',
  'src/clients/knex/transaction.ts: LENT',
  'src/clients/knex/transaction.ts: models',
  'src/clients/kysely/unsent.ts: UNSENT',
  'src/clients/typeorm/heeding.ts: WITHIN',
  'src/clients/typeorm/heeding.ts: prototypes',
  'src/http/respond.ts: LATER',
]

test('no module keeps state of its own that another copy would have to know', () => {
  const files = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  const found = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const text = readFileSync(path.join(ROOT, 'src', file), 'utf8')
      const kept =
        /^(?:export )?(?:let (\w+)|const (\w+)[^=\n]* = (?:Symbol\(|new (?:WeakMap|WeakSet|AsyncLocalStorage|Map|Set)(?:<.*>)?\(\)))/gm
      return [...text.matchAll(kept)].map(([, variable, constant]) => `src/${file}: ${variable ?? constant}`)
    })
  // `sharedByCopies` in src/copies.ts is how a module shares it.
  expect(found.sort()).toEqual(OF_ONE_COPY.sort())
})
