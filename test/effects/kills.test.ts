/** Effects: the process is killed, with SIGKILL, after the gateway has charged and before that is on record. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase } from '../support/postgres.js'
import { spawnChild, waitUntil } from '../support/processes.js'

const KILLS = Number(process.env['ONCEBOX_EFFECT_KILLS'] ?? 40)
const PAYERS = 4
const CHILD = new URL('./payer-child.mjs', import.meta.url)

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Charges once per idempotency key. Whoever calls about a message for the first time is killed before the answer. */
async function deadlyGateway() {
  const calls: { id: string; idempotencyKey: string }[] = []
  const ledger = new Map<string, string>()
  let kills = 0
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { id, idempotencyKey, pid } = JSON.parse(body) as { id: string; idempotencyKey: string; pid: number }
      const isFirst = !calls.some((call) => call.id === id)
      calls.push({ id, idempotencyKey })
      if (!ledger.has(idempotencyKey)) ledger.set(idempotencyKey, id)
      if (!isFirst) return response.end(JSON.stringify({ id: ledger.get(idempotencyKey) }))
      kills++
      process.kill(pid, 'SIGKILL')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    ledger,
    get kills() {
      return kills
    },
  }
}

async function open(onUnknown: 'retry' | 'park') {
  const database = await scratchDatabase(`effect_kills_${onUnknown}`)
  const pool = new pg.Pool({ connectionString: database.url })
  closing.push(() => pool.end().then(() => database.close()))
  const box = createBox({ db: fromPg(pool) })
  box.consumer('pay', { order: () => {} })
  await box.migrate()
  await pool.query('create table paid (id text not null, charge text)')
  const ids = Array.from({ length: KILLS }, (_, at) => `order-${at}`)
  await box.receive(ids.map((id) => ({ id, source: 'shop', type: 'order', data: null })))
  const gateway = await deadlyGateway()

  const env = { DATABASE: database.url, GATEWAY: gateway.url, ON_UNKNOWN: onUnknown }
  let over = false
  const keepPaying = async (): Promise<void> => {
    while (!over) {
      const child = spawnChild(CHILD, { env })
      await Promise.race([child.exited, waitUntil(() => over, { timeoutMs: 240_000, everyMs: 50 })])
      if (over) child.send('stop')
      const { signal, code } = await child.exited
      if (signal !== 'SIGKILL' && code !== 0) throw new Error(`a payer ended with ${signal ?? code}: ${child.output}`)
    }
  }
  const paying = Promise.all(Array.from({ length: PAYERS }, keepPaying))
  const status = async () => (await box.admin.status()).consumers['pay']!
  return {
    box,
    ids,
    gateway,
    status,
    paid: async () => (await pool.query<{ id: string; charge: string }>('select id, charge from paid')).rows,
    async until(reached: (now: Awaited<ReturnType<typeof status>>) => boolean) {
      await Promise.race([waitUntil(async () => reached(await status()), { timeoutMs: 240_000, everyMs: 200 }), paying])
    },
    async end() {
      over = true
      await paying
    },
  }
}

test(`retry: ${KILLS} kills between call and record, one key and one charge for each message`, async () => {
  const shop = await open('retry')
  await shop.until(({ handled }) => handled === KILLS)
  await shop.end()
  const { gateway, ids } = shop
  expect(gateway.kills).toBe(KILLS)
  expect([...gateway.ledger.values()].sort()).toEqual([...ids].sort())
  expect(new Set(gateway.calls.map(({ id, idempotencyKey }) => `${id} ${idempotencyKey}`)).size).toBe(KILLS)
  expect((await shop.paid()).map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect(await shop.status()).toMatchObject({ handled: KILLS, pending: 0, dead: 0, quarantined: 0 })
}, 300_000)

test(`park: ${KILLS} kills between call and record, nothing called twice, all parked, answered and handled`, async () => {
  const shop = await open('park')
  const { box, gateway, ids } = shop
  await shop.until(({ quarantined }) => quarantined === KILLS)
  expect(gateway.kills).toBe(KILLS)
  expect(gateway.calls.map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect(await shop.paid()).toEqual([])

  const happened = (at: number): boolean => at % 2 === 0
  for (const [at, id] of ids.entries()) {
    const answer = happened(at) ? { happened: true as const, result: { id: 'told' } } : { happened: false as const }
    await box.admin.answer({ consumer: 'pay', source: 'shop', id, effect: 'charge' }, answer)
  }
  await shop.until(({ handled }) => handled === KILLS)
  await shop.end()
  expect((await shop.paid()).map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect((await shop.paid()).filter(({ charge }) => charge === 'told')).toHaveLength(KILLS / 2)
  // Those that a person says have not happened were called again, once.
  expect(gateway.calls.map(({ id }) => id).sort()).toEqual([...ids, ...ids.filter((_, at) => !happened(at))].sort())
}, 300_000)
