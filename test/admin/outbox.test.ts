import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Filter, Message } from 'oncebox'
import { open, range, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('admin_outbox')
})
afterAll(() => opened.close())

let box: ReturnType<Opened['box']>
let published: string[]
let refuses: (sink: string, id: string) => boolean

/** A sink that dead-letters what it refuses. */
const sink = (name: string) => ({
  name,
  publish: async (batch: readonly Message[]) =>
    batch.map(({ id }) => {
      if (refuses(name, id)) return { error: new Error(`${name} refuses ${id}`), retry: false }
      published.push(`${name} ${id}`)
      return undefined
    }),
  close: async () => {},
})

beforeEach(async () => {
  published = []
  refuses = (name, id) => name === 'b' && id < 'e5'
  box = opened.box()
  box.to(sink('a'))
  box.to(sink('b'))
  await box.migrate()
  const client = await opened.pool.connect()
  await client.query('begin')
  for (const n of range(10)) await box.send(client, n % 2 === 0 ? 'even' : 'odd', { n }, { id: `e${n}` })
  await client.query('commit')
  client.release()
})

const listed = async (filter: Filter, limit = 3): Promise<string[]> => {
  const found: string[] = []
  let cursor: string | undefined
  do {
    const page = await box.admin.messages({ box: 'outbox', ...filter }, { limit, cursor })
    found.push(...page.entries.map(({ message, state }) => `${message.id} ${state}`))
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}
const dead = range(5).map((n) => `e${4 - n} dead`)

test('an event is listed once for each sink it is still to be published to', async () => {
  expect(await listed({})).toEqual(range(10).flatMap((n) => [`e${9 - n} pending`, `e${9 - n} pending`]))
  expect((await box.admin.status()).outbox).toMatchObject({ even: { pending: 10, dead: 0 }, odd: { pending: 10 } })
})

test('what a sink refused is dead, with its error, and searched like any other', async () => {
  await box.drain()
  expect(await listed({})).toEqual(dead)
  expect(await listed({ state: 'dead' })).toEqual(dead)
  expect(await listed({ state: 'dead', type: 'odd' })).toEqual(['e3 dead', 'e1 dead'])
  expect(await listed({ error: 'refuses e2' })).toEqual(['e2 dead'])
  expect(await listed({ id: ['e1', 'e9'] })).toEqual(['e1 dead'])
  expect(await listed({ data: { n: 4 } })).toEqual(['e4 dead'])
  expect(await listed({ state: 'pending' })).toEqual([])
  const { entries } = await box.admin.messages({ box: 'outbox', id: 'e1' })
  expect(entries).toMatchObject([{ state: 'dead', error: { message: 'b refuses e1' }, message: { attempt: 1 } }])
  expect((await box.admin.status()).outbox).toMatchObject({ even: { dead: 3, pending: 0 }, odd: { dead: 2 } })
})

test('dead events are published again, to the sink that refused them', async () => {
  await box.drain()
  refuses = () => false
  published = []
  expect(await box.admin.retry({ box: 'outbox' }, { dryRun: true })).toBe(5)
  expect(await box.admin.retry({ box: 'outbox', id: 'e1' })).toBe(1)
  expect(await box.admin.retry({ box: 'outbox' })).toBe(4)
  await box.drain()
  expect(published.sort()).toEqual(range(5).map((n) => `b e${n}`))
  expect((await box.admin.status()).outbox).toEqual({})
})

test('discarding gives up dead events, and pending ones only when it is told to', async () => {
  await box.drain()
  expect(await box.admin.discard({ box: 'outbox', type: 'even' }, { reason: 'test' })).toBe(3)
  expect(await listed({ state: 'discarded' })).toEqual(['e4 discarded', 'e2 discarded', 'e0 discarded'])
  published = []
  refuses = () => false
  expect(await box.admin.retry({ box: 'outbox', state: 'discarded', id: 'e0' })).toBe(1)
  await box.drain()
  expect(published).toEqual(['b e0'])
})

test('what a relay holds is not discarded', async () => {
  const token = '00000000-0000-4000-8000-000000000000'
  const lease = (due: string) =>
    opened.sql(box.schema, `update ob.shard set token = '${token}', due_at = ob.now() + interval '${due}'`)
  await lease('1 hour')
  expect(await box.admin.discard({ box: 'outbox', state: 'pending' }, { reason: 'test' })).toBe(0)
  await lease('-1 hour')
  expect(await box.admin.discard({ box: 'outbox', state: 'pending' }, { reason: 'test' })).toBe(20)
  await box.drain()
  expect(published).toEqual([])
})

test('the inbox’s verbs leave the outbox alone', async () => {
  await box.drain()
  expect(await box.admin.retry('all')).toBe(0)
  expect(await box.admin.discard('all', { reason: 'test' })).toBe(0)
  expect(await listed({})).toEqual(dead)
})
