/** A database whose encoding lacks characters: it is said, and a failure is counted all the same. */
import { randomBytes } from 'node:crypto'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { sharedDatabaseUrl } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder } from './fixture.js'

async function latin(encoding: string): Promise<pg.Pool> {
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
  return pool
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
