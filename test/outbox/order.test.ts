/** Per-key order, with several relays on one outbox. Each box here is what a process would be. */
import { expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('relay_order', { max: 40 })

test('four relays publish each event once, in the order of its key, through failures', async () => {
  const KEYS = 20
  const TOTAL = 1_000
  const published: { id: string; key: string }[] = []
  const sink = () =>
    recordingSink({
      name: 's',
      fail: async () => {
        if (Math.random() < 0.1) throw new Error('down')
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 10))
      },
      answer: ({ id, key }) => {
        if (Math.random() < 0.02) return { error: new Error('refused'), retry: true }
        published.push({ id, key: key! })
        return undefined
      },
    })
  const first = await server.open()
  const boxes = [first, ...(await Promise.all([1, 2, 3].map(() => server.open({ schema: first.schema }))))]
  for (const box of boxes) box.to(sink(), { batch: 50, retry: { attempts: 50, baseMs: 20, maxMs: 50 } })
  await Promise.all(boxes.map((box) => box.start()))

  // Senders of one key exclude each other, as business transactions do by the row they change.
  await server.pool.query('create table if not exists account (key text primary key, version int not null)')
  const expected = new Map<string, string[]>()
  const sendOne = async (): Promise<void> => {
    const key = `k${Math.floor(Math.random() * KEYS)}`
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      const { rows } = await client.query(
        'insert into account values ($1, 1) on conflict (key) do update set version = account.version + 1 returning version',
        [key],
      )
      const id = `${key}-${rows[0].version}`
      await first.send(client, 'event', null, { id, key })
      if (Math.random() < 0.1) await client.query('rollback')
      else {
        await client.query('commit')
        if (!expected.has(key)) expected.set(key, [])
        expected.get(key)!.push(id)
      }
    } finally {
      client.release()
    }
  }
  let sent = 0
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (sent++ < TOTAL) await sendOne()
    }),
  )
  const count = [...expected.values()].flat().length
  await waitUntil(() => published.length >= count, { timeoutMs: 60_000 })
  await waitUntil(async () => (await server.sql(first.schema, 'select 1 from ob.delivery limit 1')).length === 0)
  for (const [key, ids] of expected) {
    const own = published.filter((one) => one.key === key).map(({ id }) => id)
    // The order of the commits, known here only by the answers, is that of the versions.
    expect(own).toEqual(ids.sort((a, b) => Number(a.split('-')[1]) - Number(b.split('-')[1])))
  }
}, 90_000)
