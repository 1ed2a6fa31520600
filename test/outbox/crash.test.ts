/** Relays in processes of their own, killed over and over. They run the built library: `npm run build` first. */
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'
import { useServer } from './fixture.js'

const KILLS = Number(process.env['OUTBOX_KILLS'] ?? 20)
const RELAYS = 3
const CHILD = new URL('./relay-child.mjs', import.meta.url)
const server = useServer('relay_crash')

test(`committed events are published and aborted ones never, in the order of their keys, while relays die ${KILLS} times`, async () => {
  const box = await server.open()
  await server.pool.query('create table published (n bigserial primary key, id text not null, key text not null)')
  await server.pool.query('create table business (id text primary key, key text not null, version int not null)')
  await server.pool.query('create table account (key text primary key, version int not null)')
  const env = { DATABASE_URL: server.url, SCHEMA: box.schema }

  let kills = 0
  const keepOneDying = async (): Promise<Child> => {
    for (;;) {
      const child = spawnChild(CHILD, { env })
      await child.next('ready', { timeoutMs: 60_000 })
      if (kills >= KILLS) return child
      kills++
      await new Promise((resolve) => setTimeout(resolve, randomInt(150)))
      await child.kill()
    }
  }
  let sending = true
  const keepSending = async (): Promise<void> => {
    while (sending) {
      const client = await server.pool.connect()
      try {
        await client.query('begin')
        const key = `k${randomInt(12)}`
        const bumped = `insert into account values ($1, 1) on conflict (key) do update set version = account.version + 1`
        const { rows } = await client.query(`${bumped} returning version`, [key])
        const id = `${key}-${rows[0].version}-${randomInt(1e9)}`
        await client.query('insert into business values ($1, $2, $3)', [id, key, rows[0].version])
        await box.send(client, 'event', { id }, { id, key })
        await client.query(Math.random() < 0.3 ? 'rollback' : 'commit')
      } finally {
        client.release()
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const senders = Array.from({ length: 3 }, keepSending)
  const survivors = await Promise.all(Array.from({ length: RELAYS }, keepOneDying))
  sending = false
  await Promise.all(senders)
  const pending = async () => (await server.sql(box.schema, 'select 1 from ob.delivery limit 1')).length
  await waitUntil(async () => (await pending()) === 0, { timeoutMs: 90_000 })
  for (const child of survivors) child.send('stop')
  await Promise.all(survivors.map((child) => child.exited))
  expect(survivors.every(({ events }) => events.at(-1)?.event === 'closed')).toBe(true)

  const { rows: business } = await server.pool.query<{ id: string }>('select id from business order by key, version')
  const { rows: first } = await server.pool.query<{ id: string }>(
    `select id from (select id, key, min(n) n from published group by id, key) f order by key, n`,
  )
  expect(kills).toBe(KILLS)
  expect(business.length).toBeGreaterThan(KILLS)
  expect(first.map(({ id }) => id)).toEqual(business.map(({ id }) => id))
  expect(await server.sql(box.schema, 'select 1 from ob.outbox')).toEqual([])
}, 180_000)
