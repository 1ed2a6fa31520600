/** One front door, one source, one webhook, one link in front of many boxes, of which one may be away. */
import { createHmac } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBox, type Deliver, type Incoming, type Outcome, type Source } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { webhook } from 'oncebox/webhook'
import { freePort, scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { spreadLink, spreadReceive, spreadSource } from './example.js'

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
/** The first character of a key is the number of its box, so that tests can see where a message belongs. */
const route = (key: string): number => Number(key[0]) || 0

let database: ScratchDatabase
let pool: pg.Pool
let away: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('spread')
  pool = new pg.Pool({ connectionString: database.url, max: 10 })
  away = new pg.Pool({ connectionString: `postgres://nobody@127.0.0.1:${await freePort()}/nowhere` })
})
afterAll(async () => {
  await Promise.all([pool?.end(), away?.end()])
  await database?.close()
})

/** Three boxes; what they have handled is `${box}:${id}`. */
async function openBoxes(name: string) {
  const handled: string[] = []
  const boxes = [0, 1, 2].map((n) => {
    const box = createBox({ db: fromPg(pool), schema: `${name}_${n}`, logger: SILENT })
    box.consumer('note', { '*': ({ id }) => void handled.push(`${n}:${id}`) }, { order: 'key' })
    return box
  })
  for (const box of boxes) await box.migrate()
  return { boxes, handled }
}

const message = (id: string, key?: string): Incoming => ({ id, type: 'noted', data: {}, ...(key && { key }) })

test('what is handed in goes to the box of its key, or of its id if it has none, and is answered in order', async () => {
  const { boxes, handled } = await openBoxes('receive')
  const receive = spreadReceive(boxes, route)
  const batch = [message('a', '2-x'), message('b', '0-x'), message('1-c'), message('a', '2-x')]
  expect((await receive(batch)).map(({ id, status }) => `${id} ${status}`)).toEqual([
    ...['a stored', 'b stored', '1-c stored', 'a duplicate'],
  ])
  expect((await receive(batch)).every(({ status, ack }) => status === 'duplicate' && ack)).toBe(true)
  for (const box of boxes) await box.drain()
  expect(handled.sort()).toEqual(['0:b', '1:1-c', '2:a'])
})

test('messages for a server that is away are busy, and the others are taken', async () => {
  const { boxes } = await openBoxes('busy')
  const lost = createBox({ db: fromPg(away), schema: 'busy_3', logger: SILENT })
  const outcomes = await spreadReceive([...boxes, lost], route)([message('a', '3-x'), message('b', '1-x')])
  expect(outcomes.map(({ status, ack }) => [status, ack])).toEqual([
    ['busy', false],
    ['stored', true],
  ])
})

test('a source is attached to all boxes, with what `from` says, and stops with its own stop', async () => {
  const { boxes, handled } = await openBoxes('source')
  let deliver: Deliver | undefined
  const queue: Source = {
    name: 'queue',
    start: async (to) => void (deliver = to),
    stop: async () => void (deliver = undefined),
  }
  const intake = spreadSource(boxes, queue, { route, from: { types: ['noted'] } })
  await intake.start()
  const stranger = { id: 'c', type: 'strange', key: '1-x', data: {} }
  const outcomes: readonly Outcome[] = await deliver!([message('a', '1-x'), message('b', '2-x'), stranger])
  expect(outcomes.map(({ status }) => status)).toEqual(['stored', 'stored', 'quarantined'])
  for (const box of boxes) await box.drain()
  expect(handled.sort()).toEqual(['1:a', '2:b'])
  await intake.stop()
  expect(deliver).toBeUndefined()
})

test('a webhook goes to the box of the key that its map gives it, once it is verified', async () => {
  const { boxes, handled } = await openBoxes('webhook')
  const secret = 'a secret that is long enough'
  const source = webhook({
    scheme: 'github',
    secret,
    map: ({ message: from, data }) => ({ ...from, key: keyOf(data) }),
  })
  const intake = spreadSource(boxes, source, { route, from: { types: ['push'] } })
  await intake.start()
  const send = (signedWith: string): Promise<Response> => {
    const body = JSON.stringify({ account: '2-ada' })
    const signature = createHmac('sha256', signedWith).update(body).digest('hex')
    const headers = {
      'x-github-event': 'push',
      'x-github-delivery': 'd-1',
      'x-hub-signature-256': `sha256=${signature}`,
    }
    return source.fetch(new Request('http://localhost/hooks', { method: 'POST', body, headers }))
  }
  expect((await send('a guess that is long enough too')).status).toBe(401)
  expect([(await send(secret)).status, (await send(secret)).status]).toEqual([200, 200])
  for (const box of boxes) await box.drain()
  expect(handled).toEqual(['2:d-1'])
})

test('a link spreads events by key; those for a server that is away wait uncounted, and nobody waits for them', async () => {
  const { boxes, handled } = await openBoxes('link')
  const sender = createBox({ db: fromPg(pool), schema: 'link_sender', logger: SILENT })
  const lost = createBox({ db: fromPg(away), schema: 'link_3', logger: SILENT })
  const link = spreadLink([...boxes, lost], route)
  let tries = 0
  const counted: typeof link = {
    ...link,
    publish: (batch) => {
      if (batch.some(({ key }) => key === '3-x')) tries += 1
      return link.publish(batch)
    },
  }
  sender.to(counted, { retry: { attempts: 2, baseMs: 1, maxMs: 1 } })
  await sender.migrate()
  const client = await pool.connect()
  await client.query('begin')
  for (const key of ['3-x', '0-x', '1-x', '2-x']) await sender.send(client, 'noted', {}, { key, id: key })
  await client.query('commit')
  client.release()

  await sender.start()
  try {
    const left = async (): Promise<unknown[]> =>
      (await pool.query<{ parked: unknown }>('select parked from link_sender.delivery')).rows.map(
        ({ parked }) => parked,
      )
    await waitUntil(async () => (await left()).length === 1)
    for (const box of boxes) await box.drain()
    expect(handled.sort()).toEqual(['0:0-x', '1:1-x', '2:2-x'])
    await waitUntil(() => tries > 3, { what: 'more tries than the policy has attempts' })
    expect(await left()).toEqual([null])
    expect((await sender.health()).reasons?.join()).toContain('boxes')
  } finally {
    await sender.stop()
  }
})

function keyOf(data: unknown): string {
  return (data as { account: string }).account
}
