/**
 * A claim whose answer never came may stand all the same. Its worker lives, and gives it back as soon as the database
 * answers: left to its lease it would keep its messages for half a minute, and make them suspects.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { createBox, defineMessages, unchecked, type Logger } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { giveBackUnheard } from '../../src/inbox/unheard.js'
import { bindDatabase, bindTo } from '../../src/postgres/database.js'
import { silent } from '../../src/postgres/errors.js'
import { CLAIM, CLAIMED } from '../../src/postgres/sql/claim.js'
import { ADOPT, ADOPT_NEW } from '../../src/postgres/sql/effects.js'
import { CLAIM_LANES, READ_LANES } from '../../src/postgres/sql/lanes.js'
import { startPostgres } from '../support/postgres.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { cancelling, delaying } from '../support/cancelling.js'
import { note, useServer } from './fixture.js'

const server = useServer('lost_claims')
const messages = defineMessages({ note: unchecked() })
/** Nobody waits that long: whatever is handled before was given back. */
const LEASE_MS = 600_000

/** Keeps count of messages whose lease had to run out. */
function takeovers(): { readonly logger: Logger; readonly count: number } {
  let count = 0
  const ignore = (): void => undefined
  const warn = (about: { messages?: number }, text?: string): void => {
    if (text?.includes('taken over')) count += about.messages ?? 1
  }
  return {
    logger: { debug: ignore, info: ignore, warn, error: ignore },
    get count() {
      return count
    },
  }
}

function exactly(text: string): RegExp {
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
}

const LOST = [
  ['CLAIM', CLAIM, 'none'],
  ['CLAIM_LANES', CLAIM_LANES, 'key'],
  ['READ_LANES', READ_LANES, 'key'],
] as const

test.each(LOST)('what %s claimed is given back if its answer is lost', async (_, statement, order) => {
  await using box = await server.open()
  await using proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
  pool.on('error', () => undefined)
  const { logger } = takeovers()
  const worker = createBox({ db: fromPg(pool), schema: box.schema, messages, logger })
  const handled = new Set<string>()
  const handlers = { note: ({ id }: { id: string }) => void handled.add(id) }
  worker.consumer('a', handlers, { order, leaseMs: LEASE_MS, concurrency: 1 })
  await worker.migrate()
  const ids = Array.from({ length: 20 }, (_, at) => `m${at}`)
  await worker.receive(ids.map((id) => ({ id, type: 'note', key: `k${id}`, data: null })))
  const cut = proxy
    .intercept({ at: 'after', statement: exactly(bindTo(box.schema)(statement)) })
    .then((held) => held.cut())
  try {
    await worker.start()
    await cut
    await waitUntil(() => handled.size === ids.length, { timeoutMs: 60_000, what: 'all to be handled' })
  } finally {
    await worker.stop({ timeoutMs: 5_000 })
    await pool.end()
  }
})

/** A box whose connections go through a proxy, beside one with a clock on the same schema. */
async function behindProxy() {
  const box = await server.open()
  const proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
  pool.on('error', () => undefined)
  const answerOf = (statement: string) =>
    proxy.intercept({ at: 'after', statement: exactly(bindTo(box.schema)(statement)) })
  const open = (db = fromPg(pool)) => createBox({ db, schema: box.schema, messages, logger: takeovers().logger })
  return {
    ...{ box, proxy, pool, open, answerOf },
    async [Symbol.asyncDispose]() {
      await pool.end()
      await proxy.close()
      await box[Symbol.asyncDispose]()
    },
  }
}

type Field = Awaited<ReturnType<typeof behindProxy>>

/** Claims two messages, loses the answer, and has both handled all the same. */
async function handlesWhatItLost(field: Field, db: Parameters<Field['open']>[0]): Promise<void> {
  const worker = field.open(db)
  const handled = new Set<string>()
  worker.consumer('a', { note: ({ id }) => void handled.add(id) }, { leaseMs: LEASE_MS, concurrency: 1 })
  await worker.receive([note('1'), note('2')] as never)
  const lost = field.answerOf(CLAIM)
  try {
    await worker.start()
    ;(await lost).cut()
    await waitUntil(() => handled.size === 2, { timeoutMs: 15_000, what: 'both to be handled' })
  } finally {
    await worker.stop({ timeoutMs: 5_000 })
  }
}

test('a lost claim is found, however late the question for it gets through', async () => {
  await using field = await behindProxy()
  const { box, pool } = field
  // As long as it takes to get a connection to a server that has just come up, with everybody at its door.
  const late = () => box.clock.advance(20_000)
  await handlesWhatItLost(field, delaying(fromPg(pool), bindTo(box.schema)(CLAIMED), late))
})

test('a lost claim is asked for again if somebody cancels the question', async () => {
  await using field = await behindProxy()
  await handlesWhatItLost(field, cancelling(fromPg(field.pool), bindTo(field.box.schema)(CLAIMED)))
})

test('the question for a lost claim is given up after a lease if it is met with silence', async () => {
  const consumer = { name: 'a', options: { leaseMs: 1_000 } }
  const after = (ms: number, error: Error) =>
    giveBackUnheard({
      ...{ runtime: { db: { run: () => Promise.reject(error) } }, consumer, token: randomUUID() },
      asked: performance.now() - ms,
    } as never)
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  await expect(after(0, silent(500))).rejects.toMatchObject({ code: 'CONNECTION_SILENT' })
  await expect(after(1_500, silent(500))).resolves.toBeUndefined()
  // The database is away, and nothing else could be claimed either.
  await expect(after(1_500, refused)).rejects.toBe(refused)
})

test('the question for a lost claim does not read what is delayed beyond its lease', async () => {
  await using box = await server.open()
  const token = randomUUID()
  await box.migrate()
  const due = `ob.now() + interval '1 ms' *`
  await box.sql(
    `insert into ob.work (consumer, source, id, due_at, token) values
       ('a', 's', 'of the lease', ${due} 600000, $1), ('a', 's', 'beyond', ${due} 900000, $1)`,
    [token],
  )
  const db = bindDatabase(fromPg(server.pool), box.schema)
  const asked = { consumer: 'a', token, leaseMs: LEASE_MS, sinceMs: LEASE_MS, skewMs: 1_000 }
  expect((await db.run(CLAIMED, asked)).map(({ id }) => id)).toEqual(['of the lease'])
})

const ADOPTED = [
  ['ADOPT', ADOPT, ['1']],
  ['ADOPT_NEW', ADOPT_NEW, ['1', '2']],
] as const

test.each(ADOPTED)('what %s took in on arrival is given back if its answer is lost', async (_, statement, ids) => {
  await using field = await behindProxy()
  const { box } = field
  const receiver = field.open()
  const runs: string[] = []
  const run = ({ id, attempt }: { id: string; attempt: number }): void => void runs.push(`${id}/${attempt}`)
  receiver.consumer('a', { note: run }, { mode: 'inline', leaseMs: LEASE_MS })
  const redelivered = ids.map((id) => note(id, { redelivered: true }))
  const deliver = () => receiver.handle(redelivered as never) as unknown as Promise<{ status: string }[]>
  const lost = field.answerOf(statement)
  try {
    const first = deliver().catch((error: unknown) => error)
    ;(await lost).cut()
    expect(await first).toBeInstanceOf(Error)
    // Given back to its source, not to the box.
    await waitUntil(async () => (await box.fate(ids[0])).state !== 'processing', {
      timeoutMs: 15_000,
      what: 'it to be given back',
    })
    expect(await box.fate(ids[0])).toMatchObject({ state: 'failed', attempts: 0 })
    expect(await deliver()).toMatchObject(ids.map(() => ({ status: 'handled' })))
    expect(runs).toEqual(ids.map((id) => `${id}/1`))
  } finally {
    await receiver.stop({ timeoutMs: 5_000 })
  }
})

test('a server that is restarted at once under load takes no message from a worker that lives', async () => {
  await using own = await startPostgres()
  const pool = new pg.Pool({ connectionString: own.url, max: 10 })
  pool.on('error', () => undefined)
  const told = takeovers()
  const box = createBox({ db: fromPg(pool), messages, logger: told.logger })
  await box.migrate()
  const handled = new Set<string>()
  const handle = ({ id }: { id: string }): void => void handled.add(id)
  box.consumer('loose', { note: handle }, { leaseMs: LEASE_MS })
  box.consumer('keyed', { note: handle }, { leaseMs: LEASE_MS, order: 'key' })
  await box.start()
  const left = async (): Promise<boolean> => (await pool.query('select from oncebox.work limit 1')).rows.length > 0
  try {
    for (let round = 0; round < 3; round++) {
      const ids = Array.from({ length: 2_000 }, (_, at) => `r${round}-${at}`)
      await box.receive(ids.map((id, at) => ({ id, type: 'note', key: `k${at % 50}`, data: null })))
      await waitUntil(() => ids.some((id) => handled.has(id)), { timeoutMs: 60_000, what: 'some to be handled' })
      await own.kill('SIGQUIT')
      await own.restart()
      await waitUntil(
        () =>
          left().then(
            (some) => !some,
            () => false,
          ),
        { timeoutMs: 60_000, what: 'all to be handled' },
      )
    }
    expect(told.count).toBe(0)
  } finally {
    await box.stop({ timeoutMs: 5_000 })
    await pool.end()
  }
}, 300_000)
