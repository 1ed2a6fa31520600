/**
 * A sink that is added while a relay runs, by processes that start together and are killed over and over, on a role whose
 * statements may take a second. They run the built library: `npm run build` first. The long form:
 * `ADDED_EVENTS=300000 ADDED_KILLS=100 npx vitest run test/outbox/added-crash.test.ts`.
 */
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'
import { recordingSink, useServer } from './fixture.js'

const EVENTS = Number(process.env['ADDED_EVENTS'] ?? 4_000)
const KILLS = Number(process.env['ADDED_KILLS'] ?? 12)
const KEYS = 40
const TIMEOUT_MS = 240_000 + 10 * EVENTS + 5_000 * KILLS
const CHILD = new URL('./relay-child.mjs', import.meta.url)
const server = useServer('sink_added_crash')

test(
  `every event put aside reaches a sink that is added, in the order of its key, while its relays die ${KILLS} times`,
  async () => {
    const box = await server.open()
    await server.pool.query('create table late (n bigserial primary key, id text not null, key text not null)')
    box.to(recordingSink({ name: 'other' }), { types: ['other'] as never })
    await box.start()
    let sent = 0
    const sendSome = async (count: number): Promise<void> => {
      const events = Array.from({ length: count }, () => ({ id: String(++sent), key: `k${sent % KEYS}` }))
      await server.send(box, ...events)
    }
    while (sent < EVENTS) await sendSome(Math.min(1_000, EVENTS - sent))

    const url = new URL(server.url)
    url.searchParams.set('options', '-c statement_timeout=1s')
    const env = { DATABASE_URL: url.href, SCHEMA: box.schema, SINK: 'late', TABLE: 'late' }
    let kills = 0
    const keepOneDying = async (): Promise<Child> => {
      for (;;) {
        const child = spawnChild(CHILD, { env })
        if (kills >= KILLS) {
          await child.next('ready', { timeoutMs: 60_000 })
          return child
        }
        kills++
        // Before it is ready, too: a start may die between any two statements.
        await new Promise((resolve) => setTimeout(resolve, 200 + randomInt(800)))
        await child.kill()
      }
    }
    let sending = true
    const keepSending = async (): Promise<void> => {
      while (sending) {
        await sendSome(5)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    const sender = keepSending()
    const survivors = await Promise.all([keepOneDying(), keepOneDying()])
    sending = false
    await sender
    // However slow the machine is: it fails when nothing has arrived for a minute.
    const left = async () => server.sql(box.schema, `select 1 from ob.delivery where parked is null limit 1`)
    let arrived = -1
    while ((await left()).length > 0) {
      const before = arrived
      await waitUntil(
        async () => {
          const { rows } = await server.pool.query<{ n: string }>('select count(*) n from late')
          arrived = Number(rows[0]!.n)
          return arrived > before || (await left()).length === 0
        },
        { timeoutMs: 60_000, everyMs: 500, what: `more than ${before} of ${sent} events` },
      )
    }
    for (const child of survivors) child.send('stop')
    await Promise.all(survivors.map((child) => child.exited))

    const { rows } = await server.pool.query<{ key: string; ids: number[] }>(
      `select key, array_agg(id::int order by n) ids from (select id, key, min(n) n from late group by id, key) f group by key`,
    )
    expect(rows.reduce((sum, { ids }) => sum + ids.length, 0)).toBe(sent)
    for (const { ids } of rows) expect(ids).toEqual([...ids].sort((a, b) => a - b))
  },
  TIMEOUT_MS,
)
