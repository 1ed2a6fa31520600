/** A database whose encoding lacks characters: it is said, and what fails or comes of a call is recorded all the same. */
import { randomBytes } from 'node:crypto'
import { createBox, type Sink } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { PgBox } from '../outbox/fixture.js'
import { sharedDatabaseUrl } from '../support/postgres.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder } from './fixture.js'

/** How COMPLETE is told from others. */
const COMPLETES = /given_back as[^]* recorded,/

/** A pool on a database of this encoding, and its URL. */
async function databaseIn(encoding: string): Promise<{ pool: pg.Pool; url: string }> {
  const name = `encoding_${randomBytes(5).toString('hex')}`
  const root = new pg.Client({ connectionString: sharedDatabaseUrl() })
  await root.connect()
  await root.query(`create database ${name} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`)
  const url = new URL(sharedDatabaseUrl())
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href })
  pool.on('error', () => {})
  onTestFinished(async () => {
    await pool.end()
    await root.query(`drop database ${name} with (force)`)
    await root.end()
  })
  return { pool, url: url.href }
}

/** The same, without its URL. */
async function latin(encoding: string): Promise<pg.Pool> {
  return (await databaseIn(encoding)).pool
}

/** A sink that takes all but the event `b`, which is dead, with an error that LATIN1 cannot hold; and what it was given. */
function refusing() {
  const given: string[] = []
  const sink: Sink = {
    publish(batch) {
      given.push(...batch.map(({ id }) => id))
      const error = new Error('kaputt 😀')
      return Promise.resolve(batch.map(({ id }) => (id === 'b' ? { error, retry: false } : undefined)))
    },
    close: async () => {},
  }
  return { sink, given }
}

async function send(pool: pg.Pool, box: { sendMany: PgBox['sendMany'] }, ids: readonly string[]): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await box.sendMany(client, ids.map((id) => ({ type: 'note', data: null, id }))) // prettier-ignore
    await client.query('commit')
  } finally {
    client.release()
  }
}

async function deliveries(pool: pg.Pool): Promise<{ parked: string; error: string }[]> {
  return (await pool.query('select parked, error from oncebox.delivery')).rows
}

test('LATIN1: start and doctor say it, and an error that cannot be written is counted, in ASCII', async () => {
  const pool = await latin('LATIN1')
  const logger = recorder()
  const box = createBox({ db: fromPg(pool), logger })
  box.consumer('a', { note: () => Promise.reject(new Error('kaputt für 😀')) }, { retry: { attempts: 1 } })
  await box.migrate()
  await box.start()
  onTestFinished(() => box.stop())
  expect(logger.lines.filter(({ text }) => text?.includes('LATIN1'))).toMatchObject([{ level: 'warn' }])
  expect((await box.admin.doctor()).map(({ code }) => code)).toContain('encoding-narrow')
  await box.receive(note('1'))
  await waitUntil(async () => (await box.admin.message({ id: '1' }))[0]?.state === 'dead', { what: 'it to be dead' })
  const [entry] = await box.admin.message({ id: '1' })
  expect(entry!.error!.message).toBe(String.raw`kaputt f\u{fc}r \u{1f600}`)
})

test('LATIN1: an error of a sink that cannot be written is counted, in ASCII, and no event is published again', async () => {
  const pool = await latin('LATIN1')
  const box = createBox({ db: fromPg(pool), logger: recorder() })
  const { sink, given } = refusing()
  box.to(sink)
  await box.migrate()
  await send(pool, box, ['a', 'b'])
  await box.drain()
  onTestFinished(() => box.stop())
  expect(given.sort()).toEqual(['a', 'b'])
  const [row, ...others] = await deliveries(pool)
  expect([row?.parked, others]).toEqual(['dead', []])
  expect(JSON.parse(row!.error)).toMatchObject({ message: String.raw`kaputt \u{1f600}` })
})

test('LATIN1: where the answer to such a record is lost, the record is found, and the event is told', async () => {
  const { pool, url } = await databaseIn('LATIN1')
  const proxy = await startProxy(url)
  const ours = new pg.Pool({ connectionString: proxy.url })
  ours.on('error', () => {})
  const logger = recorder()
  const dead: string[] = []
  const box = createBox({ db: fromPg(ours), logger, hooks: { dead: ({ message }) => void dead.push(message.id) } })
  const { sink, given } = refusing()
  box.to(sink)
  await box.migrate()
  onTestFinished(async () => {
    await box.stop()
    await ours.end()
    await proxy.close()
  })
  await send(pool, box, ['a', 'b'])
  const refused = proxy.intercept({ at: 'after', statement: COMPLETES })
  const drained = box.drain()
  const { answer, release } = await refused
  const recorded = proxy.intercept({ at: 'after', statement: COMPLETES })
  release()
  const { cut } = await recorded
  cut()
  await drained
  expect([answer, given.sort(), dead]).toEqual(['22P05', ['a', 'b'], ['b']])
  expect(logger.lines.filter(({ text }) => text?.includes('took over'))).toEqual([])
})

test('LATIN1: an effect whose result cannot be written as it is is called once, and replayed as it was', async () => {
  const pool = await latin('LATIN1')
  const box = createBox({ db: fromPg(pool), logger: recorder() })
  const outcome = { word: 'für 😀', quoted: '"\\u2026 …"' }
  let calls = 0
  const replayed: unknown[] = []
  box.consumer('a', {
    async note(_message, { effect }) {
      replayed.push(await effect('call', () => ((calls += 1), outcome)))
    },
  })
  await box.migrate()
  await box.start()
  onTestFinished(() => box.stop())
  await box.receive(note('1'))
  await waitUntil(() => replayed.length > 0, { timeoutMs: 20_000, what: 'the outcome' })
  expect([replayed, calls]).toEqual([[outcome], 1])
  const { rows } = await pool.query('select result from oncebox.effect')
  expect(JSON.parse(rows[0].result)).toEqual(outcome)
})

test.for(['UTF8', 'SQL_ASCII'])('%s: nothing is said', async (encoding) => {
  const pool = await latin(encoding)
  const logger = recorder()
  const box = createBox({ db: fromPg(pool), logger })
  await box.migrate()
  await box.start()
  onTestFinished(() => box.stop())
  expect(logger.lines.filter(({ text }) => text?.includes('encoding'))).toEqual([])
  expect((await box.admin.doctor()).map(({ code }) => code)).not.toContain('encoding-narrow')
})
