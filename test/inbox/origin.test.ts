/** What a source may say: types, keys, and how much it may leave in quarantine. */
import {
  createBox,
  defineMessages,
  unchecked,
  type FromOptions,
  type Incoming,
  type Outcome,
  type Source,
} from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('origin')
const HOUR = 3_600_000

/** A source that delivers what the test hands it, at once. */
class HandSource implements Source {
  #deliver: ((batch: Incoming[]) => Promise<readonly Outcome[]>) | undefined
  readonly push?: boolean
  readonly broker?: boolean
  readonly name?: string

  constructor(about: Partial<Source> = {}) {
    Object.assign(this, about)
  }
  async start(deliver: (batch: Incoming[]) => Promise<readonly Outcome[]>): Promise<void> {
    this.#deliver = deliver
  }
  async stop(): Promise<void> {}
  post(...messages: Incoming[]): Promise<readonly Outcome[]> {
    return this.#deliver!(messages)
  }
}

/** Attached to a started box, so that brokers begin at once. */
async function attach(box: Bench, options: FromOptions = {}, about: Partial<Source> = {}): Promise<HandSource> {
  const source = new HandSource(about)
  box.from<Source>(source, options)
  await box.start()
  return source
}

describe('types', () => {
  const refused = expect.objectContaining({ code: 'OPTION_INVALID' })

  test('a push source has to name them, or say any; a broker need not', async () => {
    await using box = await server.open()
    const push = () => new HandSource({ push: true }) as Source
    expect(() => box.from(push())).toThrow(refused)
    expect(() => box.from(push(), { consumers: ['a'] })).toThrow(/types: \['order.paid'\].*types: 'any'/s)
    expect(() => box.from(push(), { types: ['*'] })).toThrow(/types: 'any'/)
    expect(() => box.from(push(), { types: 'any' })).not.toThrow()
    expect(() => box.from(push(), { types: ['note'] })).not.toThrow()
    expect(() => box.from(new HandSource() as Source)).not.toThrow()
    expect(() => box.from(new HandSource({ push: true, broker: true }) as Source)).not.toThrow()
  })

  test.for<[string, unknown, string]>([
    ['no list', 'note', 'OPTION_INVALID'],
    ['an empty list', [], 'OPTION_INVALID'],
    ['no names', [''], 'OPTION_INVALID'],
    ['a pattern for all', ['*'], 'OPTION_INVALID'],
    ['a pattern', ['note.*'], 'OPTION_INVALID'],
    ['a type that is none of the box', ['nite'], 'MESSAGE_TYPE_UNKNOWN'],
  ])('refused: %s', async ([, types, code]) => {
    await using box = await server.open({ messages: defineMessages({ note: unchecked<unknown>() }) })
    expect(() => box.from(new HandSource(), { types: types as never })).toThrow(expect.objectContaining({ code }))
  })

  test.for(['stored', 'inline', 'direct'] as const)(
    'what is not on the list is quarantined before anything else is asked of it (%s)',
    async (mode) => {
      await using box = await server.open({ maxBytes: 100 })
      let ran = 0
      const identity = (message: { id: string }) => (ran++, message.id)
      box.consumer('a', { '*': () => void ran++ }, mode === 'direct' ? { mode } : { mode, identity })
      const source = await attach(box, { types: ['note'], unrouted: 'skip' })
      const outcomes = await source.post(
        note('1', { type: 'other' }),
        note('2', { type: 'other', data: 'x'.repeat(200) }),
        { id: '3', type: 'other', body: '{"not json' },
        { id: undefined, type: 'other', data: 1 },
      )
      for (const outcome of outcomes) expect(outcome).toMatchObject({ ack: true, reason: 'not-allowed' })
      expect(ran).toBe(0)
      expect((await box.admin.messages({ reason: 'not-allowed' })).entries).toHaveLength(4)
    },
  )
})

describe('keys', () => {
  const lanes = (box: Bench) => box.sql('select distinct lane from ob.work order by lane')
  const ordered = (box: Bench) =>
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { order: 'key' })

  test('of brokers are shared, unless they are said to be scoped by source', async () => {
    for (const [keys, count] of [
      [undefined, 1],
      ['shared', 1],
      ['source', 2],
    ] as const) {
      await using box = await server.open()
      await box.start()
      const source = new HandSource()
      box.from<Source>(source, keys && { keys })
      await box.admin.pause('a').catch(() => undefined)
      await source.post(note('1', { key: 'k', source: 'one' }), note('1', { key: 'k', source: 'two' }))
      expect(await lanes(box)).toHaveLength(0)
      ordered(box)
      await box.migrate()
      await box.admin.pause('a')
      await source.post(note('2', { key: 'k', source: 'one' }), note('2', { key: 'k', source: 'two' }))
      expect(await lanes(box)).toHaveLength(count)
    }
  })

  test('of one producer and of another never meet, whatever characters they have', async () => {
    await using box = await server.open()
    ordered(box)
    await box.migrate()
    await box.admin.pause('a')
    const scoped = await attach(box, { types: 'any' }, { push: true })
    const shared = new HandSource()
    box.from<Source>(shared)
    const pairs = [
      ['a', 'bc'],
      ['ab', 'c'],
      ['1:a', 'bc'],
      ['', '1:abc'],
    ] as const
    for (const [at, [source, key]] of pairs.entries()) await scoped.post(note(`s${at}`, { source, key }))
    const names = (await lanes(box)).map(({ lane }) => lane as string)
    expect(names).toHaveLength(pairs.length)
    // A shared key that looks like a lane of theirs is another one.
    for (const [at, key] of names.entries()) await shared.post(note(`k${at}`, { key }))
    expect(await lanes(box)).toHaveLength(2 * pairs.length)
    await box.admin.resume('a')
    await box.waitUntilHandled('s0', 's1', 's2', 's3', 'k0', 'k1', 'k2', 'k3')
    expect((await box.admin.messages({ key: 'bc' })).entries.map(({ message }) => message.key)).toEqual(['bc', 'bc'])
  })

  test('that are scoped stay so through quarantine and through a replay', async () => {
    await using box = await server.open()
    const source = await attach(box, { types: 'any' }, { push: true })
    expect(await source.post(note('1', { source: 'one', key: 'k' }))).toMatchObject([{ reason: 'unrouted' }])
    ordered(box)
    await box.migrate()
    await box.waitUntilHandled('1')
    await box.admin.pause('a')
    await box.admin.retry({ id: '1', state: 'handled' })
    await source.post(note('2', { source: 'one', key: 'k' }), note('3', { source: 'two', key: 'k' }))
    expect(await box.sql('select count(distinct lane)::int lanes, count(*)::int n from ob.work')).toEqual([
      { lanes: 2, n: 3 },
    ])
  })
})

describe('an unrouted message', () => {
  const take = async (box: Bench, retainMs = HOUR, untimed: 'accept' | 'quarantine' = 'accept') => {
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { retainMs, untimed })
    await box.migrate()
    await box.drain()
    return box.ids()
  }

  test('that leaves quarantine because a consumer appears is in the audit', async () => {
    await using box = await server.open()
    await box.receive([note('1'), note('2'), note('3', { type: 'other' })])
    expect(await take(box)).toEqual(['1', '2'])
    const [row, ...more] = await box.sql('select action, detail from ob.audit')
    expect(more).toEqual([])
    expect(row!['action']).toBe('release')
    const detail = JSON.parse(row!['detail'] as string) as object
    expect(detail).toEqual({ by: 'start', reason: 'unrouted', types: ['note'], consumers: ['a'], count: 2 })
  })

  test.for<[string, Partial<Incoming>]>([
    ['without a time', {}],
    ['from the future', { time: '2999-01-01T00:00:00Z' }],
  ])('that has waited longer than its consumer remembers does not run by itself: %s', async ([, more]) => {
    await using box = await server.open()
    await box.receive(note('1', more))
    await box.clock.advance(2 * HOUR)
    await box.receive(note('2', more))
    expect(await take(box)).toEqual(['2'])
    expect(await box.quarantine()).toMatchObject([{ consumer: 'a', id: '1', reason: 'too-old' }])
    expect(await box.admin.retry({ id: '1' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['2', '1'])
  })

  test('without a time is still too old for a consumer that accepts none', async () => {
    await using box = await server.open()
    await box.receive(note('1'))
    expect(await take(box, HOUR, 'quarantine')).toEqual([])
    expect(await box.quarantine()).toMatchObject([{ consumer: 'a', id: '1', reason: 'too-old' }])
  })
})

describe('a full quarantine', () => {
  const bad = (id: string): Incoming => ({ id, type: 'note', body: '{"not json' })
  const refuseToTell = (): never => {
    throw new Error('not to be looked at')
  }

  test('takes what fits of a batch, and the rest stays with its broker; what is good passes', async () => {
    const log = recorder()
    await using box = await server.open({ logger: log })
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    const source = await attach(box, { quarantine: { maxRows: 2 } }, { name: 'orders' })
    const outcomes = await source.post(bad('1'), note('good'), bad('2'), bad('3'), bad('1'))
    expect(outcomes.map(({ status, ack }) => [status, ack])).toEqual([
      ['quarantined', true],
      ['stored', true],
      ['quarantined', true],
      ['busy', false],
      ['quarantined', true],
    ])
    expect(outcomes[3]!.retryAt).toBeInstanceOf(Date)
    expect(log.lines.filter(({ text }) => text?.includes('quarantine of source orders'))).toHaveLength(1)
    await box.admin.discard({ id: '1' }, { reason: 'junk' })
    expect(await source.post(bad('3'))).toMatchObject([{ status: 'quarantined' }])
    expect(await source.post(bad('4'))).toMatchObject([{ status: 'busy' }])
    await box.waitUntilHandled('good')
  })

  test('keeps the order of a key: behind a message that is busy the others of its key are, too', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { order: 'key' })
    const source = await attach(box, { quarantine: { maxRows: 1 } })
    await source.post(note('k1', { key: 'k' }))
    const client = await server.pool.connect()
    await client.query('begin')
    // Somebody else is storing a copy of it.
    await client.query(
      `insert into ${box.schema}.message (consumer, source, id, type, body)
       select consumer, source, 'k2', type, body from ${box.schema}.message where id = 'k1'`,
    )
    const batch = [bad('1'), bad('2'), note('k2', { key: 'k' }), note('l1', { key: 'l' }), note('k3', { key: 'k' })]
    const statuses = async () => (await source.post(...batch)).map(({ id, status }) => `${id} ${status}`)
    const refused = ['1 quarantined', '2 busy']
    try {
      expect(await statuses()).toEqual([...refused, 'k2 busy', 'l1 stored', 'k3 busy'])
    } finally {
      await client.query('rollback')
      client.release()
    }
    expect(await statuses()).toEqual([...refused, 'k2 stored', 'l1 duplicate', 'k3 stored'])
    await box.waitUntilHandled('k2', 'k3')
    expect((await box.ids()).filter((id) => id.startsWith('k'))).toEqual(['k1', 'k2', 'k3'])
  })

  test('keeps the order of a key also for a consumer that is busy where another one has failed', async () => {
    await using box = await server.open()
    box.consumer('now', { note: () => Promise.reject(new Error('no')) }, { mode: 'inline', retryBy: 'box' })
    box.consumer('later', { note: (message, { tx }) => box.write(tx, 'later', message) }, { order: 'key' })
    const source = await attach(box, { quarantine: { maxRows: 1 } })
    await source.post(note('k1', { key: 'k' }))
    const client = await server.pool.connect()
    await client.query('begin')
    // Somebody else is storing a copy of it, for the consumer that keeps the order.
    await client.query(
      `insert into ${box.schema}.message (consumer, source, id, type, body)
       select consumer, source, 'k2', type, body from ${box.schema}.message where id = 'k1' and consumer = 'later'`,
    )
    const batch = [bad('1'), bad('2'), note('k2', { key: 'k' }), note('k3', { key: 'k' })]
    try {
      const statuses = (await source.post(...batch)).map(({ id, status }) => `${id} ${status}`)
      expect(statuses).toEqual(['1 quarantined', '2 busy', 'k2 failed', 'k3 busy'])
    } finally {
      await client.query('rollback')
      client.release()
    }
    await source.post(...batch)
    await waitUntil(async () => (await box.drain(), (await box.ids()).length === 3), { what: 'all to be handled' })
    expect(await box.ids()).toEqual(['k1', 'k2', 'k3'])
  })

  test.for<[string, unknown]>([
    ['null', null],
    ['undefined', undefined],
    ['text', 'text'],
    ['what cannot be looked at', new Proxy({}, { get: refuseToTell })],
  ])('takes what comes behind something that is no message: %s', async ([, thing]) => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    const source = await attach(box, { quarantine: { maxRows: 1 } })
    await source.post(bad('1'))
    const outcomes = await source.post(thing as Incoming, note('good'))
    expect(outcomes).toMatchObject([
      { id: undefined, status: 'busy', ack: false },
      { id: 'good', status: 'stored', ack: true },
    ])
    await box.waitUntilHandled('good')
  })

  test('is full by its bytes as well', async () => {
    await using box = await server.open()
    const source = await attach(box, { quarantine: { maxBytes: 250 } })
    const sized = (id: string, size: number): Incoming => ({ id, type: 'note', body: 'x'.repeat(size) })
    expect(await source.post(sized('1', 200))).toMatchObject([{ status: 'quarantined' }])
    expect(await source.post(sized('2', 51), sized('3', 50))).toMatchObject([
      { status: 'busy' },
      { status: 'quarantined' },
    ])
  })

  test('is counted once by two processes that fill it together', async () => {
    await using box = await server.open()
    const sources = [0, 1].map(() => {
      const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
      return other.from(new HandSource({ push: true, name: 'same' }) as HandSource & { push: true }, {
        types: 'any',
        quarantine: { maxRows: 10 },
      })
    })
    const posts = Array.from({ length: 30 }, (_, at) => sources[at % 2]!.post(bad(`${at}`)))
    const outcomes = (await Promise.all(posts)).flat()
    expect(outcomes.filter(({ ack }) => ack)).toHaveLength(10)
    expect(await box.quarantine()).toHaveLength(10)
  })

  test('keeps a message for as long as any of those that brought it wants', async () => {
    await using box = await server.open()
    const keep = (name: string, quarantine: FromOptions['quarantine']): HandSource => {
      const source = new HandSource({ push: true, name })
      box.from<Source>(source, { types: 'any', quarantine })
      return source
    }
    const brief = keep('brief', { retainMs: HOUR })
    const long = keep('long', { retainMs: 5 * HOUR })
    const forEver = keep('for ever', {})
    const left = async () => (await box.quarantine()).map(({ id }) => id).sort()
    await brief.post(bad('1'), bad('2'), bad('3'))
    await long.post(bad('1'), bad('1'))
    await forEver.post(bad('2'), bad('4'))
    await brief.post(bad('2'), bad('4'))
    await box.clock.advance(2 * HOUR)
    expect(await box.admin.prune()).toBe(1)
    expect(await left()).toEqual(['1', '2', '4'])
    await box.clock.advance(4 * HOUR)
    expect(await box.admin.prune()).toBe(1)
    expect(await left()).toEqual(['2', '4'])
  })

  test('has room again for what was released, discarded or has expired', async () => {
    await using box = await server.open()
    const source = new HandSource({ push: true })
    box.from<Source>(source, { types: 'any', quarantine: { maxRows: 3, retainMs: HOUR } })
    const count = async () => (await box.sql('select messages::int n, bytes::int b from ob.quarantine_account'))[0]
    await source.post(note('1'), note('2'), note('3'))
    await box.admin.discard({ id: '2' }, { reason: 'junk' })
    box.consumer('a', { note: () => undefined })
    expect(await box.admin.retry({ id: '1' })).toBe(1)
    expect(await count()).toMatchObject({ n: 1 })
    expect(await box.admin.retry({ id: '2' })).toBe(1)
    await box.clock.advance(2 * HOUR)
    expect(await box.admin.prune()).toBe(1)
    expect(await count()).toEqual({ n: 0, b: 0 })
  })
})

describe('another type under a known id', () => {
  test.for(['stored', 'inline'] as const)('is a conflict, however equal the data (%s)', async (mode) => {
    await using box = await server.open()
    box.consumer('a', { '*': (message, { tx }) => box.write(tx, 'a', message, message.type) }, { mode })
    const door = mode === 'inline' ? box.handle : box.receive
    await door(note('1', { data: 1 }))
    expect(await door(note('1', { data: 1, type: 'other' }))).toMatchObject({ reason: 'conflict' })
    expect(await door(note('1', { data: 1 }))).toMatchObject({ status: 'duplicate' })
    await box.drain()
    expect((await box.effects()).map(({ note }) => note)).toEqual(['note'])
  })

  test.for(['together', 'one by one'])('is kept for each type, and once: they come %s', async (how) => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined, b: () => undefined, c: () => undefined })
    await box.receive(note('1', { data: 1 }))
    const others = ['b', 'c', 'd', 'e'].map((type) => note('1', { data: 1, type }))
    for (const times of [1, 2]) {
      const outcomes = how === 'together' ? await box.receive(others) : []
      if (how !== 'together') for (const one of others) outcomes.push(...(await box.receive([one])))
      const reasons = ['conflict', 'conflict', 'unrouted', 'unrouted']
      expect([times, outcomes]).toMatchObject([times, reasons.map((reason) => ({ status: 'quarantined', reason }))])
    }
    expect((await box.quarantine()).map(({ type, reason }) => `${reason} ${type}`).sort()).toEqual(
      ['conflict b', 'conflict c', 'unrouted d', 'unrouted e'], // prettier-ignore
    )
    // A second one has a key of its own, and leaves with the fingerprint of its data.
    box.consumer('late', { d: () => undefined, e: () => undefined })
    await box.sql(`delete from ob.quarantine where type = 'd'`)
    await box.migrate()
    expect(await box.receive(note('1', { data: 1, type: 'e' }))).toMatchObject({ status: 'duplicate' })
  })

  test.for([{}, { redelivered: true }])('does not run what waits under it for its source: %o', async (more) => {
    await using box = await server.open()
    let fails = true
    const handler = (message: { type: string }) => {
      if (fails) throw new Error('not yet')
      return message.type
    }
    box.consumer('a', { '*': handler }, { mode: 'inline', retry: { baseMs: 0 } })
    expect(await box.handle(note('1', { data: 1 }))).toMatchObject({ status: 'failed' })
    fails = false
    const other = note('1', { data: 1, type: 'other', ...more })
    expect(await box.handle(other)).toMatchObject({ reason: 'conflict' })
    expect(await box.handle(note('1', { data: 1, ...more }))).toMatchObject({ status: 'handled', result: 'note' })
  })

  test('is none for once, where its caller names no type', async () => {
    await using box = await server.open()
    box.consumer('a', { '*': () => 'x' }, { mode: 'inline' })
    await box.handle(note('1', { data: 1 }))
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      const ask = (message: object) => box.once(client, 'a', { id: '1', ...message }, () => 'ran')
      expect(await ask({ data: 1 })).toMatchObject({ status: 'duplicate' })
      expect(await ask({})).toMatchObject({ status: 'duplicate' })
      expect(await ask({ type: 'note', data: 1 })).toMatchObject({ status: 'duplicate' })
      expect(await ask({ type: 'other', data: 1 })).toMatchObject({ reason: 'conflict' })
      await client.query('commit')
    } finally {
      client.release()
    }
  })
})
