/** A short life of a whole box: what a version that is too old would trip over, in whichever part of the library. */
import { expect } from 'vitest'
import type { Driver, Message, Sink } from 'oncebox'
import { createTestBox } from 'oncebox/testing'
import { waitUntil } from '../support/wait.js'

export async function liveOnce<Tx, TxIn>(db: Driver<Tx, TxIn>): Promise<void> {
  await using box = await createTestBox({ db })
  await db.query(`create table ${box.schema}.seen (n bigserial, consumer text, id text)`, [])
  const write = (tx: Tx, consumer: string, id: string) =>
    db.query(`insert into ${box.schema}.seen (consumer, id) values ($1::text, $2::text)`, [consumer, id], tx)
  const seen = async (consumer: string) => {
    const rows = await db.query(`select id from ${box.schema}.seen where consumer = $1::text order by n`, [consumer])
    return rows.map(({ id }) => id)
  }

  let broken = true
  box.consumer('stored', {
    order: async ({ id }, { tx, send, effect }) => {
      await write(tx, 'stored', await effect('call', () => Promise.resolve(id)))
      await send('event', { of: id }, { key: 'k' })
    },
  })
  box.consumer('ordered', { order: ({ id }, { tx }) => write(tx, 'ordered', id).then(() => {}) }, { order: 'key' })
  box.consumer('inline', { request: ({ id }, { tx }) => write(tx, 'inline', id).then(() => {}) }, { mode: 'inline' })
  box.consumer(
    'failing',
    {
      order: async ({ id }, { tx }) => {
        await write(tx, 'failing', id)
        if (broken) throw new Error('broken')
      },
    },
    { retry: { attempts: 2, baseMs: 10, jitter: 'none' } },
  )
  const published: Message[] = []
  const sink: Sink = {
    publish: async (batch) => {
      published.push(...batch)
      return batch.map(() => undefined)
    },
    close: async () => {},
  }
  box.to(sink, { name: 'recorder' })
  await box.migrate()

  const orders = ['a', 'b', 'c'].map((id) => ({ id, type: 'order', key: 'k', data: { id } }))
  await box.receive(orders)
  const again = await box.receive(orders)
  expect(again.flatMap(({ consumers }) => consumers.map(({ status }) => status))).not.toContain('stored')
  await box.drain()
  expect([...(await seen('stored'))].sort()).toEqual(['a', 'b', 'c'])
  expect(await seen('ordered')).toEqual(['a', 'b', 'c'])

  await box.clock.advance(60_000)
  await box.drain()
  expect(await seen('failing')).toEqual([])
  expect((await box.admin.messages({ consumer: 'failing', state: 'dead' })).entries).toHaveLength(3)
  broken = false
  await box.admin.discard({ consumer: 'failing', id: 'c' }, { reason: 'given up' })
  await box.admin.retry({ consumer: 'failing', state: 'dead' })
  await box.drain()
  expect([...(await seen('failing'))].sort()).toEqual(['a', 'b'])
  expect(published.map(({ type }) => type)).toEqual(['event', 'event', 'event'])

  const request = { id: 'r', type: 'request', data: {} }
  await box.handle(request)
  await box.handle(request)
  expect(await seen('inline')).toEqual(['r'])

  const once = () =>
    db.transaction((tx) =>
      box.once(tx as unknown as TxIn, 'inline', { ...request, id: 'o' }, () => write(tx, 'inline', 'o').then(() => 1)),
    )
  await once()
  await once()
  expect(await seen('inline')).toEqual(['r', 'o'])

  await box.start()
  await box.receive({ ...orders[0]!, id: 'd' })
  await db.transaction((tx) => box.send(tx as unknown as TxIn, 'event', {}))
  await waitUntil(async () => (await seen('ordered')).includes('d') && published.length === 5)
  await waitUntil(async () => (await box.health()).ok)
  await box.admin.pause('stored')
  expect((await box.admin.status()).consumers['stored']?.paused).toBe(true)
  await box.admin.resume('stored')
  await box.stop()
  await box.clock.advance(400 * 86_400_000)
  await box.admin.prune()
}
