/** Processes that start at once on an empty database, and boxes that share one. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBox, type Incoming } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { spawnChild, waitUntil } from '../support/processes.js'
import { misses, openArena } from './arena.js'

const MIGRATE = new URL('./children/migrate.mjs', import.meta.url)
const PROCESSES = 10

let database: ScratchDatabase
let tries = 0
beforeAll(async () => {
  database = await scratchDatabase('migrate')
})
afterAll(() => database?.close())

test(`${PROCESSES} processes that migrate an empty database at once all succeed`, { timeout: 240_000 }, async () => {
  const env = { ARENA: JSON.stringify({ url: database.url, schema: `busy_${++tries}` }) }
  const children = Array.from({ length: PROCESSES }, () => spawnChild(MIGRATE, { env }))
  await Promise.all(children.map((child) => child.next('ready', { timeoutMs: 60_000 })))
  for (const child of children) child.send('migrate')
  const moved = await Promise.all(children.map((child) => child.next('migrated', { timeoutMs: 60_000 })))
  const version = moved[0]!['to'] as number
  expect(moved.every(({ to }) => to === version)).toBe(true)
  expect(moved.filter(({ from }) => from === 0)).toHaveLength(1)
  const received = await Promise.all(children.map((child) => child.next('received', { timeoutMs: 60_000 })))
  expect(received.map(({ status }) => status).sort()).toEqual([...Array(PROCESSES - 1).fill('duplicate'), 'stored'])
  const ends = await Promise.all(children.map(({ exited }) => exited))
  expect(ends.every(({ code }) => code === 0)).toBe(true)
})

test('two boxes in one database do not disturb each other', { timeout: 240_000 }, async () => {
  const arena = await openArena('neighbours')
  try {
    const schemas = ['oncebox', 'Nächste "Box"']
    const pool = new pg.Pool({ connectionString: arena.url, max: 4 })
    const boxes = schemas.map((schema) => createBox({ db: fromPg(pool), schema }))
    const consumer = { name: 'orders', options: { order: 'key' as const } }
    for (const box of boxes) box.consumer('orders', { orders: () => {} }, consumer.options)
    await Promise.all(boxes.map((box) => box.migrate()))
    const workers = await Promise.all(schemas.map((schema) => arena.worker({ schema, consumers: [consumer] })))

    const ids = Array.from({ length: 50 }, (_, seq) => `m-${seq}`)
    const messages = ids.map((id, seq): Incoming => ({ id, type: 'orders', key: `key-${seq % 5}`, data: { seq } }))
    const outcomes = await Promise.all(boxes.map((box) => box.receive(messages)))
    expect(outcomes.flat().every(({ status }) => status === 'stored')).toBe(true)
    await waitUntil(async () => (await arena.effects()).length >= 2 * ids.length, { what: 'both to be done' })
    const effects = await arena.effects()
    for (const { pid } of workers) {
      expect(
        misses(
          effects.filter((effect) => effect.pid === pid),
          ids,
        ),
      ).toEqual({ doubled: [], lost: [] })
    }
    expect(effects).toHaveLength(2 * ids.length)
    await pool.end()
  } finally {
    await arena.close()
  }
})
