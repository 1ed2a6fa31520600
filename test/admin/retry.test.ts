import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Reject, type MessageMap } from 'oncebox'
import { z } from 'zod'
import { open, range, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('admin_retry')
})
afterAll(() => opened.close())

let box: ReturnType<Opened['box']>
let ran: string[]
let broken: (id: string) => boolean
beforeEach(() => {
  box = opened.box()
  ran = []
  broken = () => true
})

/** A handler that notes what it ran and dead-letters what is broken. */
const handler = (message: { id: string }) => {
  ran.push(message.id)
  if (broken(message.id)) throw new Reject(`${message.id} is broken`)
  return { ok: message.id }
}
const message = (n: number | string, more: object = {}) => ({
  id: `m${n}`,
  type: 't',
  source: 's',
  data: { n },
  ...more,
})
const counts = async (consumer = 'c') => (await box.admin.status()).consumers[consumer]!

describe('redriving', () => {
  beforeEach(async () => {
    // One at a time: on a busy machine several groups would run beside each other, and the order is theirs.
    box.consumer('c', { t: handler }, { concurrency: 1 })
    await box.migrate()
    await box.receive(range(10).map((n) => message(n)))
    await box.drain()
    broken = () => false
    ran = []
  })

  test('one dead message runs it again, with all its attempts', async () => {
    expect(await box.admin.retry({ id: 'm3' })).toBe(1)
    expect((await box.admin.message({ id: 'm3' }))[0]).toMatchObject({ state: 'pending', message: { attempt: 1 } })
    await box.drain()
    expect(ran).toEqual(['m3'])
    expect(await counts()).toMatchObject({ dead: 9, handled: 1, pending: 0 })
  })

  test('all dead messages runs them again, oldest first', async () => {
    expect(await box.admin.retry('all')).toBe(10)
    await box.drain()
    expect(ran).toEqual(range(10).map((n) => `m${n}`))
    expect(await counts()).toMatchObject({ dead: 0, handled: 10 })
  })

  test('those that match, by error and data', async () => {
    expect(await box.admin.retry({ error: 'm3 is' })).toBe(1)
    expect(await box.admin.retry({ data: { n: 4 } })).toBe(1)
    expect(await box.admin.retry({ error: 'm3 is' })).toBe(0)
  })

  test('never more than the limit, also when it is 0', async () => {
    expect(await box.admin.retry('all', { limit: 0 })).toBe(0)
    expect(await box.admin.retry('all', { limit: 4 })).toBe(4)
    expect(await counts()).toMatchObject({ dead: 6, pending: 4 })
    await box.drain()
    expect(ran).toEqual(['m0', 'm1', 'm2', 'm3'])
  })

  test('a dry run counts and changes nothing', async () => {
    expect(await box.admin.retry('all', { dryRun: true })).toBe(10)
    expect(await box.admin.retry('all', { dryRun: true, limit: 3 })).toBe(3)
    expect(await counts()).toMatchObject({ dead: 10, pending: 0 })
    expect(await opened.sql(box.schema, 'select * from ob.audit')).toEqual([])
  })

  test('no faster than so many per second', async () => {
    const started = performance.now()
    expect(await box.admin.retry('all', { perSecond: 50 })).toBe(10)
    expect(performance.now() - started).toBeGreaterThanOrEqual(95)
  })

  test('leaves a note of what was done', async () => {
    await box.admin.retry({ consumer: 'c', state: 'dead' }, { limit: 2 })
    const [note] = await opened.sql(box.schema, 'select action, detail from ob.audit')
    expect(note!['action']).toBe('retry')
    expect(JSON.parse(note!['detail'] as string)).toEqual({
      filter: { consumer: 'c', state: 'dead' },
      count: 2,
      limit: 2,
    })
  })

  test('leaves what is pending or handled alone', async () => {
    await box.admin.retry({ id: 'm0' })
    await box.drain()
    await box.receive(message('new'))
    ran = []
    expect(await box.admin.retry({ id: ['m0', 'mnew'] })).toBe(0)
    expect(await box.admin.retry({ state: ['pending', 'processing'] })).toBe(0)
    await box.drain()
    expect(ran).toEqual(['mnew'])
  })

  test('a discarded message brings it back', async () => {
    expect(await box.admin.discard({ id: 'm1' }, { reason: 'test' })).toBe(1)
    expect(await box.admin.retry({ id: 'm1' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m1'])
  })

  test('twice at once counts each message once', async () => {
    const both = await Promise.all([box.admin.retry('all'), box.admin.retry('all')])
    expect(both[0] + both[1]).toBe(10)
    await box.drain()
    expect(ran).toHaveLength(10)
  })

  test('wakes a worker that runs', async () => {
    await box.start()
    await box.admin.retry('all')
    await expect.poll(() => ran.length, { timeout: 5_000 }).toBe(10)
    await box.stop()
  })
})

test('more messages than fit in one batch are all taken', async () => {
  box.consumer('c', { t: handler })
  await box.migrate()
  await opened.sql(
    box.schema,
    `with m as (insert into ob.message (consumer, source, id, type, body)
       select 'c', 's', 'm' || n, 't', '{}' from generate_series(1, 2700) n returning id)
     insert into ob.work (consumer, source, id, due_at, parked) select 'c', 's', id, 'infinity', 'dead' from m`,
  )
  expect(await box.admin.retry({ consumer: 'c' })).toBe(2_700)
  expect(await counts()).toMatchObject({ dead: 0, pending: 2_700 })
})

describe('replaying', () => {
  test('a handled message runs its handler again and forgets the old result', async () => {
    broken = () => false
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.handle(message(1))
    expect(await box.admin.retry({ id: 'm1' })).toBe(0)
    expect(await box.admin.retry({ id: 'm1', state: 'handled' })).toBe(1)
    expect(await box.receive(message(1))).toMatchObject({ status: 'duplicate', consumers: [{ status: 'duplicate' }] })
    expect((await box.receive(message(1))).consumers[0]).not.toHaveProperty('result')
    await box.drain()
    expect(ran).toEqual(['m1', 'm1'])
    expect(await box.receive(message(1))).toMatchObject({ status: 'duplicate', result: { ok: 'm1' } })
  })

  test('only what matches, and each once', async () => {
    broken = () => false
    box.consumer('c', { t: handler })
    box.consumer('d', { t: handler })
    await box.migrate()
    await box.receive(range(30).map((n) => message(n)))
    await box.drain()
    ran = []
    expect(await box.admin.retry({ state: 'handled', consumer: 'c', data: { n: 7 } })).toBe(1)
    expect(await box.admin.retry({ state: 'handled', consumer: 'c' })).toBe(29)
    await box.drain()
    expect(ran.sort()).toEqual(
      range(30)
        .map((n) => `m${n}`)
        .sort(),
    )
  })

  test('keeps the order of arrival within a key', async () => {
    broken = () => false
    box.consumer('c', { t: handler }, { order: 'key', group: { messages: 1 } })
    await box.migrate()
    for (const n of range(12)) {
      await opened.setClock(box.schema, n - 1_000)
      await box.receive(message(n, { key: `k${n % 2}` }))
    }
    await opened.setClock(box.schema, 0)
    await box.drain()
    ran = []
    expect(await box.admin.retry({ state: 'handled' })).toBe(12)
    await box.drain()
    const even = ran.filter((id) => Number(id.slice(1)) % 2 === 0)
    expect(even).toEqual(['m0', 'm2', 'm4', 'm6', 'm8', 'm10'])
    expect(ran).toHaveLength(12)
  })
})

describe('in a lane', () => {
  const lane = (n: number) => message(n, { key: 'k' })

  test('a dead message that blocks runs first when it is retried, and the rest follows in order', async () => {
    broken = (id) => id === 'm1'
    box.consumer('c', { t: handler }, { order: 'key', group: { messages: 1 } })
    await box.migrate()
    await box.receive(range(4).map(lane))
    await box.drain()
    expect(ran).toEqual(['m0', 'm1'])
    await box.receive(lane(4))
    await box.drain()
    expect(ran).toEqual(['m0', 'm1'])

    broken = () => false
    expect(await box.admin.retry({ key: 'k', state: 'dead' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m0', 'm1', 'm1', 'm2', 'm3', 'm4'])
  })

  test('a discarded message that comes back waits behind the dead one that blocks', async () => {
    broken = (id) => id === 'm0' || id === 'm1'
    box.consumer('c', { t: handler }, { order: 'key', group: { messages: 1 } })
    await box.migrate()
    await box.receive(range(3).map(lane))
    await box.drain()
    expect(await box.admin.discard({ id: 'm0' }, { reason: 'test' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m0', 'm1'])
    expect(await box.admin.retry({ id: 'm0' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m0', 'm1'])
    broken = () => false
    expect(await box.admin.retry({ id: 'm1' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m0', 'm1', 'm0', 'm1', 'm2'])
  })

  test('a dead message that was skipped runs again, even if its lane is gone', async () => {
    broken = (id) => id === 'm0'
    box.consumer('c', { t: handler }, { order: 'key', onDead: 'skip', group: { messages: 1 } })
    await box.migrate()
    await box.receive(range(2).map(lane))
    await box.drain()
    expect(ran).toEqual(['m0', 'm1'])
    await box.admin.prune()
    expect(await opened.sql(box.schema, 'select * from ob.lane')).toEqual([])
    broken = () => false
    expect(await box.admin.retry('all')).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m0', 'm1', 'm0'])
  })
})

describe('releasing from quarantine', () => {
  const strict = { t: z.object({ n: z.number() }) } as unknown as MessageMap
  const lax = { t: z.object({ n: z.any() }) } as unknown as MessageMap

  test('a message that its schema refused runs once the schema is fixed', async () => {
    broken = () => false
    const old = opened.box({ messages: strict })
    old.consumer('c', { t: handler })
    await old.migrate()
    expect(await old.receive(message('x', { headers: { h: '1' } }))).toMatchObject({
      status: 'quarantined',
      reason: 'invalid',
    })
    expect(await old.admin.retry({ state: 'quarantined' })).toBe(0)
    expect((await old.admin.messages({ state: 'quarantined' })).entries).toHaveLength(1)

    box = opened.box({ messages: lax, schema: old.schema })
    box.consumer('c', { t: handler })
    expect(await box.admin.retry({ state: 'quarantined', reason: 'invalid' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['mx'])
    const entries = (await box.admin.messages()).entries
    expect(entries).toMatchObject([{ state: 'handled', consumer: 'c', message: { id: 'mx', headers: { h: '1' } } }])
  })

  test('a stored message that its schema refused when it ran is released, too', async () => {
    broken = () => false
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(message('x'))
    const next = opened.box({ messages: strict, schema: box.schema })
    next.consumer('c', { t: handler })
    await next.drain()
    expect(await counts()).toMatchObject({ quarantined: 1, pending: 0 })
    expect(await box.admin.retry({ reason: 'invalid' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['mx'])
    expect(await counts()).toMatchObject({ quarantined: 0, handled: 1 })
  })

  test('a message that is too old runs when it is released, and only for its consumer', async () => {
    broken = () => false
    const retainMs = 3_600_000
    box.consumer('c', { t: handler }, { retainMs })
    box.consumer('d', { t: () => ran.push('d') })
    await box.migrate()
    const old = message('old', { time: new Date(Date.now() - 2 * retainMs) })
    await box.receive(old)
    await box.drain()
    expect(ran).toEqual(['d'])
    expect(await box.admin.retry({ reason: 'too-old' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['d', 'mold'])
    expect(await counts()).toMatchObject({ quarantined: 0, handled: 1 })
  })

  test('a message that is too large is let through', async () => {
    broken = () => false
    box = opened.box({ maxBytes: 100 })
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(message('large', { data: 'x'.repeat(200) }))
    expect(await box.admin.retry({ id: 'mlarge' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['mlarge'])
  })

  test('another body under a known id stays and does not count', async () => {
    broken = () => false
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(message(1))
    await box.receive(message(1, { data: 'other' }))
    await box.receive({ id: undefined, type: 't', data: 1 })
    await box.receive({ id: 'bytes', type: 't', body: new Uint8Array([0xff]) })
    await box.receive({ id: 'nobody', type: 'unheard-of', data: 1 })
    expect(await box.admin.retry('all')).toBe(0)
    expect(await box.admin.retry('all')).toBe(0)
    const { entries } = await box.admin.messages({ state: 'quarantined' })
    expect(entries.map(({ reason }) => reason).sort()).toEqual(['conflict', 'no-id', 'undecodable', 'unrouted'])
    expect((await box.admin.status()).consumers['']).toMatchObject({ quarantined: 3 })
  })

  test('a copy that is stored by now leaves, and does not count', async () => {
    broken = () => false
    box.consumer('c', { t: handler }, { retainMs: 3_600_000 })
    await box.migrate()
    const old = message('old', { time: new Date(Date.now() - 7_200_000) })
    await box.receive(old)
    await opened.setClock(box.schema, -7_200_000)
    await box.receive(old)
    await opened.setClock(box.schema, 0)
    expect(await box.admin.retry({ state: 'quarantined' })).toBe(0)
    expect((await box.admin.messages({ state: 'quarantined' })).entries).toEqual([])
    await box.drain()
    expect(ran).toEqual(['mold'])
  })

  test('twice at once runs it once', async () => {
    broken = () => false
    box = opened.box({ maxBytes: 20 })
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(range(20).map((n) => message(n, { data: 'x'.repeat(100) })))
    await Promise.all([box.admin.retry('all'), box.admin.retry('all')])
    await box.drain()
    expect(ran.sort()).toEqual(
      range(20)
        .map((n) => `m${n}`)
        .sort(),
    )
    expect((await box.admin.messages({ state: 'quarantined' })).entries).toEqual([])
  })

  test('a message that was discarded in quarantine can be released', async () => {
    broken = () => false
    box = opened.box({ maxBytes: 20 })
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(message('large', { data: 'x'.repeat(100) }))
    expect(await box.admin.discard('all', { reason: 'test' })).toBe(1)
    expect(await box.admin.retry({ state: 'discarded' })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['mlarge'])
  })
})
