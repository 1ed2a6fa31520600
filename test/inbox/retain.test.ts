import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Reject, type Entry, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createRuntime } from '../../src/box-options.js'
import { createJanitor } from '../../src/inbox/retain.js'
import { open, range, type Opened } from '../admin/open.js'
import { waitUntil } from '../support/wait.js'
import { gate } from './fixture.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('retain')
})
afterAll(() => opened.close())

let box: ReturnType<Opened['box']>
beforeEach(() => {
  box = opened.box()
})

const DAY = 86_400_000
const HOUR = 3_600_000
const message = (n: number | string, more: object = {}) => ({
  id: `m${n}`,
  type: 't',
  source: 's',
  data: { n },
  ...more,
})
const handler = ({ data }: { data: unknown }) => {
  if (data === 'broken') throw new Reject('broken')
}
const counts = async (consumer = 'c') => (await box.admin.status()).consumers[consumer]!
const rows = async (table: string) =>
  Number((await opened.sql(box.schema, `select count(*) from ob.${table}`))[0]!['count'])

describe('retention', () => {
  test('deletes what was handled longer ago than it is retained, and a margin', async () => {
    box.consumer('c', { t: handler }, { retainMs: HOUR })
    await box.migrate()
    await box.receive(range(5).map((n) => message(n)))
    await box.drain()
    const margin = 300_000
    await opened.setClock(box.schema, HOUR + margin - 60_000)
    expect(await box.admin.prune()).toBe(0)
    await opened.setClock(box.schema, HOUR + margin + 60_000)
    expect(await box.admin.prune()).toBe(5)
    expect(await counts()).toMatchObject({ handled: 0 })
    expect(await box.admin.prune()).toBe(0)
  })

  test('goes by each consumer’s own horizon, and 30 days where nobody has set one', async () => {
    box.consumer('short', { t: handler }, { retainMs: HOUR })
    box.consumer('long', { t: handler }, { retainMs: 365 * DAY })
    await box.migrate()
    await box.receive(message(1))
    await box.drain()
    const client = await opened.pool.connect()
    await client.query('begin')
    await box.once(client, 'by-hand', { id: 'x' }, () => 1)
    await client.query('commit')
    client.release()
    // Another process, which has declared none of them, goes by what they wrote down.
    const other = opened.box({ schema: box.schema })
    await opened.setClock(box.schema, 2 * HOUR)
    expect(await other.admin.prune()).toBe(1)
    await opened.setClock(box.schema, 31 * DAY)
    expect(await other.admin.prune()).toBe(1)
    expect((await box.admin.messages()).entries.map(({ consumer }) => consumer)).toEqual(['long'])
  })

  test('never deletes what is dead, quarantined or pending, and deletes what was discarded', async () => {
    const refusing = { t: handler, later: () => Promise.reject(new Error('later')) }
    box.consumer('c', refusing, { retry: { baseMs: 365 * DAY, maxMs: 365 * DAY, jitter: 'none' } })
    box.consumer('inline', { t: () => Promise.reject(new Error('no')) }, { mode: 'inline' })
    await box.migrate()
    await box.receive([message('dead', { data: 'broken' }), message('gone', { data: 'broken' }), message('ok')])
    await box.receive(message('ok', { data: 'other' }))
    await box.receive({ id: 'later', type: 'later', data: 1 })
    await box.receive([
      { id: undefined, type: 't', data: 1 },
      { id: undefined, type: 't', data: 2 },
    ])
    await box.drain()
    await box.handle(message('inline'))
    await box.admin.pause('c')
    await box.receive(message('new'))
    expect(await box.admin.discard({ id: 'mgone', consumer: 'c' }, { reason: 'test' })).toBe(1)
    expect(
      await box.admin
        .discard({ reason: 'no-id', data: {} as never, error: 'id' } as never, { reason: 'x' })
        .catch(() => 0),
    ).toBe(0)
    expect(await box.admin.discard({ reason: 'no-id' }, { reason: 'test', limit: 1 })).toBe(1)
    const before = (await box.admin.messages()).entries
    expect(await rows('attempt')).toBeGreaterThan(0)

    await opened.setClock(box.schema, 40 * DAY)
    const pruned = await box.admin.prune()

    const after = (await box.admin.messages()).entries
    const goes = before.filter(({ state }) => state === 'handled' || state === 'discarded')
    expect(pruned).toBe(goes.length)
    expect(goes.length).toBeGreaterThanOrEqual(3)
    const name = (entry: Entry<MessageMap>) => `${entry.consumer} ${entry.message.id} ${entry.state}`
    expect(after.map(name).sort()).toEqual(
      before
        .filter((entry) => !goes.includes(entry))
        .map(name)
        .sort(),
    )
    expect(new Set(after.map(({ state }) => state))).toEqual(new Set(['dead', 'quarantined', 'pending']))
    expect(await opened.sql(box.schema, `select * from ob.attempt where id = 'mgone' and consumer = 'c'`)).toEqual([])
    expect(await opened.sql(box.schema, `select * from ob.work where parked = 'discarded'`)).toEqual([])
  })

  test('passes over thousands that have to stay', async () => {
    box.consumer('c', { t: handler })
    await box.migrate()
    await opened.sql(
      box.schema,
      `with m as (insert into ob.message (consumer, source, id, type, body)
         select 'c', 's', 'm' || n, 't', '1' from generate_series(1, 5000) n returning id)
       insert into ob.work (consumer, source, id, due_at, parked)
       select 'c', 's', id, 'infinity', 'dead' from m where substr(id, 2)::int <= 2500`,
    )
    await opened.setClock(box.schema, 40 * DAY)
    expect(await box.admin.prune()).toBe(2_500)
    expect(await counts()).toMatchObject({ dead: 2_500, handled: 0 })
  })

  test('several at once delete each message once', async () => {
    box.consumer('c', { t: handler })
    await box.migrate()
    await opened.sql(
      box.schema,
      `insert into ob.message (consumer, source, id, type, body)
       select 'c', 's', 'm' || n, 't', '1' from generate_series(1, 4000) n`,
    )
    await opened.setClock(box.schema, 40 * DAY)
    const pruned = await Promise.all(range(4).map(() => box.admin.prune()))
    expect(pruned.reduce((sum, n) => sum + n)).toBeLessThanOrEqual(4_000)
    expect(pruned.reduce((sum, n) => sum + n) + (await box.admin.prune())).toBe(4_000)
    expect(await rows('message')).toBe(0)
  })

  test('a message that is replayed while it is judged stays', async () => {
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(range(2).map((n) => message(n)))
    await box.drain()
    await opened.setClock(box.schema, 40 * DAY)
    const archived: string[] = []
    const pruning = opened.box({
      schema: box.schema,
      hooks: {
        async archive(entries) {
          archived.push(...entries.map((entry) => entry.message.id))
          await box.admin.retry({ id: 'm0', state: 'handled' })
        },
      },
    })
    expect(await pruning.admin.prune()).toBe(1)
    expect(archived.sort()).toEqual(['m0', 'm1'])
    expect(await counts()).toMatchObject({ pending: 1, handled: 0 })
    await box.drain()
    expect(await counts()).toMatchObject({ pending: 0, handled: 1 })
  })

  test('replays at the same time leave no work without its message', async () => {
    box.consumer('c', { t: handler })
    await box.migrate()
    await opened.setClock(box.schema, 40 * DAY)
    let replayed = 0
    for (const round of range(20)) {
      await opened.sql(
        box.schema,
        `insert into ob.message (consumer, source, id, type, body, received_at)
         select 'c', 's', 'r${round}.' || n, 't', '1', statement_timestamp() from generate_series(1, 50) n`,
      )
      const replays = range(2).map(() => box.admin.retry({ state: 'handled' }))
      const pruned = range(2).map(() => box.admin.prune())
      replayed += (await Promise.all(replays)).reduce((sum, n) => sum + n)
      await Promise.all(pruned)
    }
    const orphans = await opened.sql(
      box.schema,
      `select w.id from ob.work w left join ob.message m using (consumer, source, id) where m.id is null`,
    )
    expect(orphans).toEqual([])
    expect(await rows('work')).toBe(replayed)
  })

  test('a message whose replay commits while retention waits for nobody stays', async () => {
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(message(1))
    await box.drain()
    await opened.setClock(box.schema, 40 * DAY)
    const client = await opened.pool.connect()
    await client.query('begin')
    await client.query(`update "${box.schema}".message set result = null`)
    expect(await box.admin.prune()).toBe(0)
    await client.query('rollback')
    client.release()
    expect(await box.admin.prune()).toBe(1)
  })
})

describe('an archive', () => {
  test('sees every row before it goes, bodies included', async () => {
    const archived: Entry<MessageMap>[] = []
    box = opened.box({
      hooks: {
        async archive(entries) {
          archived.push(...entries)
          expect(await rows('message')).toBeGreaterThan(0)
        },
      },
    })
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(range(450).map((n) => message(n, { key: 'k', headers: { h: 'v' } })))
    await box.receive(message('broken', { data: 'broken' }))
    await box.drain()
    await box.admin.discard('all', { reason: 'test' })
    await opened.setClock(box.schema, 40 * DAY)
    expect(await box.admin.prune()).toBe(451)
    expect(archived).toHaveLength(451)
    const one = archived.find((entry) => entry.message.id === 'm7')
    expect(one).toMatchObject({
      consumer: 'c',
      state: 'handled',
      message: { data: { n: 7 }, key: 'k', headers: { h: 'v' } },
    })
    const discarded = archived.find((entry) => entry.message.id === 'mbroken')
    expect(discarded).toMatchObject({ state: 'discarded', error: { message: 'broken' } })
  })

  test('that fails keeps the rows, is reported, and sees them again', async () => {
    let broken = true
    const seen: number[] = []
    const errors: unknown[] = []
    box = opened.box({
      hooks: {
        async archive(entries) {
          seen.push(entries.length)
          if (broken) throw new Error('the disk is full')
        },
        error: (error) => errors.push(error.message),
      },
    })
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive(range(3).map((n) => message(n)))
    await box.drain()
    await opened.setClock(box.schema, 40 * DAY)
    await expect(box.admin.prune()).rejects.toThrow('the disk is full')
    expect(await rows('message')).toBe(3)
    expect(errors).toEqual(['the disk is full'])
    broken = false
    expect(await box.admin.prune()).toBe(3)
    expect(seen).toEqual([3, 3])
  })
})

describe('a person who prunes', () => {
  const old = async (...consumers: string[]): Promise<void> => {
    for (const name of consumers) box.consumer(name, { t: handler })
    await box.migrate()
    await box.receive(range(3).map((n) => message(n)))
    await box.drain()
    await opened.setClock(box.schema, 40 * DAY)
  }
  const written = async () => (await box.admin.audit()).records.find(({ action }) => action === 'prune')?.detail

  test('is told by an error that the archive failed, and the audit has what was deleted before', async () => {
    box = opened.box({
      hooks: {
        archive: async ([entry]) => {
          if (entry!.consumer === 'b') throw new Error('the disk is full')
        },
      },
    })
    await old('a', 'b')
    await expect(box.admin.prune({ reason: 'tidy' })).rejects.toThrow('the disk is full')
    expect(await written()).toEqual({ count: 3, reason: 'tidy' })
    expect(await rows('message')).toBe(3)
  })

  test('leaves in the audit what was deleted before the database refused', async () => {
    await old('a', 'b')
    await opened.sql(
      box.schema,
      `create function ob.refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
       create trigger refuse before delete on ob.message for each row when (old.consumer = 'b') execute function ob.refuse()`,
    )
    await expect(box.admin.prune()).rejects.toThrow('not this one')
    expect(await written()).toEqual({ count: 3 })
  })

  test('is told of a consumer of which something is left, because somebody holds its watermark', async () => {
    const warned: object[] = []
    const log = { debug() {}, info() {}, error() {}, warn: (about: object) => void warned.push(about) }
    box = opened.box({ logger: log })
    await old('a', 'b')
    const client = await opened.pool.connect()
    await client.query('begin')
    await client.query(`select 1 from "${box.schema}".forgotten where consumer = 'b' for share`)
    const held: string[] = []
    try {
      expect(await box.admin.prune({ held: (consumer) => held.push(consumer) })).toBe(3)
      expect(await box.admin.prune()).toBe(0)
    } finally {
      await client.query('rollback')
      client.release()
    }
    expect(held).toEqual(['b'])
    expect(warned).toContainEqual({ consumer: 'b' })
    expect(await box.admin.prune({ held: (consumer) => held.push(consumer) })).toBe(3)
    expect(held).toEqual(['b'])
  })

  test('stops it between two batches, and the audit has what was deleted', async () => {
    const stop = new AbortController()
    box = opened.box({ hooks: { archive: async () => stop.abort() } })
    await old('a', 'b')
    expect(await box.admin.prune({ signal: stop.signal })).toBe(3)
    expect(await written()).toEqual({ count: 3 })
    expect(await rows('message')).toBe(3)
  })
})

describe('lanes', () => {
  test('go when nothing waits in them', async () => {
    box.consumer('c', { t: handler }, { order: 'key' })
    await box.migrate()
    await box.receive(range(50).map((n) => message(n, { key: `k${n}` })))
    await box.receive([message('bad', { key: 'blocked', data: 'broken' }), message('behind', { key: 'blocked' })])
    await box.drain()
    await box.admin.pause('c')
    await box.receive(message('waits', { key: 'waiting' }))
    expect(await rows('lane')).toBe(52)
    await box.admin.prune()
    expect((await opened.sql(box.schema, 'select key from ob.lane order by key')).map((row) => row['key'])).toEqual([
      'blocked',
      'waiting',
    ])
  })

  test('and retention never lose a message that arrives meanwhile', async () => {
    const ran: string[] = []
    box.consumer('c', { t: ({ id }) => void ran.push(id) }, { order: 'key', retainMs: DAY })
    await box.migrate()
    await box.start()
    let receiving = true
    const janitor = (async () => {
      while (receiving) await box.admin.prune()
    })()
    const senders = range(4).map(async (sender) => {
      for (const n of range(60)) {
        await box.receive(range(3).map((k) => message(`${sender}.${n}.${k}`, { key: `k${k}` })))
      }
    })
    await Promise.all(senders)
    receiving = false
    await janitor
    await waitUntil(async () => (await counts()).handled === 720, { what: 'all messages to be handled' })
    await box.stop()
    expect(new Set(ran).size).toBe(720)
    // Within a key, each sender's messages ran in the order it sent them.
    for (const sender of range(4)) {
      for (const k of range(3)) {
        const own = ran.filter((id) => id.startsWith(`m${sender}.`) && id.endsWith(`.${k}`))
        expect([...new Set(own)]).toEqual(range(60).map((n) => `m${sender}.${n}.${k}`))
      }
    }
  })

  test('a lane that a receiver has in hand stays', async () => {
    box.consumer('c', { t: handler }, { order: 'key' })
    await box.migrate()
    await box.receive(message(1, { key: 'k' }))
    await box.drain()
    const client = await opened.pool.connect()
    await client.query('begin')
    await client.query(`update "${box.schema}".lane set dirty = true, due_at = "${box.schema}".now()`)
    await box.admin.prune()
    await client.query('commit')
    client.release()
    expect(await rows('lane')).toBe(1)
  })
})

test.for(['receive', 'handle'] as const)('a message from the future is told so where untimed ones are refused, by %s', async (door) => {
  box.consumer('c', { t: handler }, { mode: door === 'handle' ? 'inline' : 'stored', untimed: 'quarantine' })
  await box.migrate()
  // By the clock of the database, which is behind.
  await opened.setClock(box.schema, -DAY)
  expect(await box[door](message('ahead', { time: new Date() }))).toMatchObject({ reason: 'too-old' })
  expect(await box[door](message('old', { time: new Date(0) }))).toMatchObject({ reason: 'too-old' })
  const found = await opened.sql(box.schema, 'select detail from ob.quarantine order by n')
  expect(found).toMatchObject([{ detail: expect.stringContaining('future') }, { detail: expect.stringContaining('horizon') }])
}) // prettier-ignore

describe('a redelivery while retention deletes', () => {
  test('is too old, never new', async () => {
    const ran: string[] = []
    box.consumer('c', { t: ({ id }) => void ran.push(id) }, { retainMs: HOUR })
    await box.migrate()
    const time = new Date()
    await box.receive(range(20).map((n) => message(n, { time })))
    await box.drain()
    await opened.setClock(box.schema, 2 * HOUR)
    const [, ...outcomes] = await Promise.all([
      box.admin.prune(),
      ...range(20).map((n) => box.receive(message(n, { time }))),
    ])
    await box.admin.prune()
    const late = await box.receive(range(20).map((n) => message(n, { time })))
    for (const { status } of [...outcomes, ...late]) expect(['duplicate', 'quarantined']).toContain(status)
    await box.drain()
    expect(ran).toHaveLength(20)
  })
})

describe('the outbox', () => {
  const send = async (count: number) => {
    const client = await opened.pool.connect()
    await client.query('begin')
    for (const n of range(count)) await box.send(client, 't', { n }, { id: `e${n}` })
    await client.query('commit')
    client.release()
  }

  test('loses what was published once no sink keeps it, and what was given up', async () => {
    const sink = {
      publish: async (batch: readonly { id: string }[]) =>
        batch.map(({ id }) => (id === 'e0' ? { error: new Error('refused'), retry: false } : undefined)),
      close: async () => {},
    }
    box.to(sink, { keepMs: HOUR })
    await box.migrate()
    await send(4)
    await box.drain()
    expect((await box.admin.status()).outbox).toMatchObject({ t: { handled: 3, dead: 1, pending: 0 } })
    await opened.setClock(box.schema, 2 * HOUR)
    expect(await box.admin.prune()).toBe(0)
    expect((await box.admin.status()).outbox).toMatchObject({ t: { handled: 0, dead: 1 } })
    await opened.setClock(box.schema, 40 * DAY)
    await box.admin.prune()
    expect(await rows('outbox')).toBe(1)
    expect(await box.admin.discard({ box: 'outbox', state: 'dead' }, { reason: 'test' })).toBe(1)
    await box.admin.prune()
    expect(await rows('outbox')).toBe(0)
    expect(await rows('delivery')).toBe(0)
  })
})

test('the janitor comes by itself, comes again after a failure, and stops with the box', async () => {
  const errors: string[] = []
  let broken = true
  box = opened.box({
    hooks: {
      archive: async () => {
        if (broken) throw new Error('not yet')
      },
      error: (error) => errors.push(error.message),
    },
  })
  box.consumer('c', { t: handler })
  await box.migrate()
  await box.handle(message(1))
  await opened.setClock(box.schema, 40 * DAY)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  /** Minutes go by, as far as timers can tell. */
  const until = async (condition: () => boolean | Promise<boolean>) => {
    const end = Date.now() + 20_000
    while (!(await condition())) {
      expect(Date.now()).toBeLessThan(end)
      await vi.advanceTimersByTimeAsync(60_000)
      // What the server has to answer takes real time.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  try {
    await box.start()
    await until(() => errors.includes('not yet'))
    expect(await rows('message')).toBe(1)
    broken = false
    await until(async () => (await rows('message')) === 0)
    await box.stop()
    await box.handle(message(2))
    await opened.setClock(box.schema, 80 * DAY)
    await vi.advanceTimersByTimeAsync(600_000)
    expect(await rows('message')).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

test('a janitor that is started again, while a pass of before is still at it, is one janitor', async () => {
  const schema = box.schema
  box.consumer('c', { t: handler })
  await box.migrate()
  await box.handle(message(1))
  await opened.setClock(schema, 40 * DAY)
  const archiving = gate()
  const archived = gate()
  const archive = async (): Promise<void> => {
    archiving.open()
    await archived.opened
  }
  const runtime = createRuntime({ db: fromPg(opened.pool), schema, hooks: { archive } })
  const ended = vi.spyOn(runtime.metrics, 'retentionPassed')
  let passes = 0
  const janitor = createJanitor(runtime, () => {
    passes++
    return []
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  onTestFinished(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })
  const minute = (): Promise<unknown> => vi.advanceTimersByTimeAsync(60_000)
  janitor.start()
  await minute()
  await archiving.opened
  const stopping = janitor.stop(1)
  await vi.advanceTimersByTimeAsync(1)
  await stopping
  janitor.start()
  archived.open()
  while (ended.mock.calls.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
  const before = passes
  await minute()
  expect(passes - before).toBe(1)
  await Promise.all([janitor.stop(60_000), minute()])
})
