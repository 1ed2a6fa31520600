/** `box.receive`: always stores, for every subscribed consumer; answers after the commit, in order. */
import { createBox, Reject, type Entry, type Incoming, type Message, type MessageMap, type Outcome } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, test } from 'vitest'
import { type Bench, gate, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('receive')

function another(box: Bench) {
  return createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
}

describe('outcomes', () => {
  test('a new message is stored for every consumer of its type, and may be acknowledged', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', { note: () => void runs++ })
    box.consumer('b', { note: () => void runs++, other: () => void runs++ })
    box.consumer('c', { other: () => void runs++ })
    const outcome = await box.receive(note('1'))
    expect(outcome).toEqual({
      id: '1',
      ack: true,
      status: 'stored',
      consumers: [
        { consumer: 'a', status: 'stored' },
        { consumer: 'b', status: 'stored' },
      ],
    })
    expect(runs).toBe(0)
    await box.drain()
    expect(runs).toBe(2)
  })

  test('it stores whatever the mode says: mode is for sources', async () => {
    await using box = await server.open()
    let runs = 0
    for (const mode of ['stored', 'inline', 'direct'] as const)
      box.consumer(mode, { note: () => void runs++ }, { mode })
    const outcome = await box.receive(note('1'))
    expect(outcome.consumers.map(({ status }) => status)).toEqual(['stored', 'stored', 'stored'])
    expect(runs).toBe(0)
    await box.drain()
    expect(runs).toBe(3)
  })

  test('a copy is a duplicate while it waits, while it runs, and with its result when it is handled', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    box.consumer('a', {
      async note() {
        started.open()
        await finish.opened
        return 'done'
      },
    })
    await box.receive(note('1'))
    const pending = { id: '1', ack: true, status: 'duplicate', consumers: [{ consumer: 'a', status: 'duplicate' }] }
    expect(await box.receive(note('1'))).toEqual(pending)
    const drained = box.drain()
    await started.opened
    expect(await box.receive(note('1'))).toEqual(pending)
    finish.open()
    await drained
    expect(await box.receive(note('1'))).toEqual({
      ...pending,
      result: 'done',
      consumers: [{ consumer: 'a', status: 'duplicate', result: 'done' }],
    })
  })

  test('a copy of a dead message is dead, with its error, and may be acknowledged', async () => {
    await using box = await server.open()
    box.consumer('a', {
      note() {
        throw new Reject('never')
      },
    })
    await box.receive(note('1'))
    await box.drain()
    expect(await box.receive(note('1'))).toMatchObject({ status: 'dead', ack: true, error: { message: 'never' } })
  })

  test('a discarded message stays discarded: a copy is a duplicate and is not run', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', { note: () => void runs++ })
    await box.receive(note('1'))
    expect(await box.admin.discard({ id: '1', state: 'pending' }, { reason: 'test' })).toBe(1)
    expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate', ack: true })
    await box.drain()
    expect(runs).toBe(0)
  })

  test('outcomes come in order, copies within the batch included; the first copy wins', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message, JSON.stringify(message.data)) })
    const outcomes = await box.receive([
      note('b'),
      note('a', { data: 1 }),
      note('b'),
      { id: '', type: 'note', data: 0 },
      note('a', { data: 2 }),
      note('c', { type: 'nobody' }),
      note('a', { data: 1 }),
    ])
    expect(outcomes.map((outcome) => [outcome.id, outcome.status, 'reason' in outcome && outcome.reason])).toEqual([
      ['b', 'stored', false],
      ['a', 'stored', false],
      ['b', 'duplicate', false],
      ['', 'quarantined', 'no-id'],
      ['a', 'quarantined', 'conflict'],
      ['c', 'quarantined', 'unrouted'],
      ['a', 'duplicate', false],
    ])
    await box.drain()
    expect((await box.effects()).map(({ id, note: text }) => `${id}${text}`).sort()).toEqual(['a1', 'b{"text":"b"}'])
  })

  test('an array gives an array, an empty one an empty one', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    expect(await box.receive([])).toEqual([])
    expect(await box.receive([note('1')])).toHaveLength(1)
  })

  test('thousands in one call are stored, handled once each, and answered in order', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    const all = notes(6_000)
    const outcomes = await box.receive(all)
    expect(outcomes.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['stored']))
    expect(await box.sql('select count(*)::int n from ob.work')).toEqual([{ n: 6_000 }])
  })

  test('a copy of a message that runs inline elsewhere is answered as soon as that is over', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    box.consumer('a', {
      async note(message, { tx }) {
        started.open()
        await finish.opened
        await box.write(tx, 'a', message)
      },
    })
    const handled = box.handle(note('1'))
    await started.opened
    const received = box.receive([note('1'), note('2')])
    finish.open()
    expect(await handled).toMatchObject({ status: 'handled' })
    expect((await received).map(({ status }) => status)).toEqual(['duplicate', 'stored'])
    await box.drain()
    expect(await box.ids()).toEqual(['1', '2'])
  })

  test('concurrent batches that share ids in any order neither deadlock nor double', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    box.consumer('b', { note: () => undefined }, { order: 'key' })
    const all = Array.from({ length: 60 }, (_, at) => note(`${at % 2 ? 'X' : 'x'}${at}`, { key: `k${at % 7}` }))
    const shuffled = (seed: number): Incoming[] => [...all].sort((a, b) => hash(a.id!, seed) - hash(b.id!, seed))
    const batches = await Promise.all(Array.from({ length: 8 }, (_, seed) => box.receive(shuffled(seed))))
    const stored = batches.flat().filter(({ status }) => status === 'stored')
    expect(stored).toHaveLength(60)
    await box.drain()
    expect((await box.ids()).sort()).toEqual(all.map(({ id }) => id).sort())
  })
})

describe('what becomes of the message', () => {
  test('a handler gets all of it, with the time of its receipt', async () => {
    await using box = await server.open()
    let seen: Message | undefined
    box.consumer('a', { note: (message) => void (seen = message) })
    const time = new Date(Date.now() - 1_000)
    await box.receive({
      id: '1',
      source: 'shop',
      type: 'note',
      key: 'k',
      subject: 's',
      time: time.toISOString(),
      headers: { a: '1', correlationid: 'c', causationid: 'p' },
      data: { n: 1 },
    })
    await box.drain()
    expect(seen).toEqual({
      id: '1',
      source: 'shop',
      type: 'note',
      key: 'k',
      subject: 's',
      time,
      headers: { a: '1', correlationid: 'c', causationid: 'p' },
      data: { n: 1 },
      receivedAt: expect.any(Date),
      attempt: 1,
      correlationId: 'c',
      causationId: 'p',
    })
    const [{ now }] = (await box.sql('select ob.now() now')) as [{ now: Date }]
    expect(Math.abs(now.getTime() - seen!.receivedAt.getTime())).toBeLessThan(20_000)
  })

  test('what is not given is not there', async () => {
    await using box = await server.open()
    let seen: Message | undefined
    box.consumer('a', { note: (message) => void (seen = message) })
    await box.receive({ id: '1', type: 'note', data: null })
    await box.drain()
    expect(Object.keys(seen!).sort()).toEqual([
      'attempt',
      'correlationId',
      'data',
      'headers',
      'id',
      'receivedAt',
      'source',
      'type',
    ])
    expect(seen).toMatchObject({ source: '', data: null, headers: {}, correlationId: '1' })
  })

  test.for<[name: string, body: string | Uint8Array, data: unknown]>([
    ['text', '{"a":1}', { a: 1 }],
    ['bytes', Buffer.from('{"a":"ü"}'), { a: 'ü' }],
    ['white space', ' [1 , 2]\n', [1, 2]],
    ['a scalar', '7', 7],
    ['null', 'null', null],
    ['an escaped NUL', '"a\\u0000b"', 'a\0b'],
    ['an escaped lone surrogate', '"\\ud800"', '\ud800'],
    ['duplicate keys: the last', '{"a":1,"a":2}', { a: 2 }],
    ['a number beyond doubles', '1e999', Infinity],
    ['__proto__ as a key like any other', '{"__proto__":{"polluted":1}}', JSON.parse('{"__proto__":{"polluted":1}}')],
  ])('a raw body is decoded, and stored as it came: %s', async ([, body, data]) => {
    await using box = await server.open()
    let seen: { data: unknown } | undefined
    box.consumer('a', { note: (message) => void (seen = message) })
    expect(await box.receive({ id: '1', type: 'note', body })).toMatchObject({ status: 'stored' })
    await box.drain()
    expect(seen!.data).toEqual(data)
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    const [row] = await box.sql('select body from ob.message')
    expect(row!['body']).toBe(typeof body === 'string' ? body : Buffer.from(body).toString())
  })

  test('the same data in another order of keys is the same message', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.receive({ id: '1', type: 'note', body: '{"a":1,"b":{"c":[1,2],"d":2}}' })
    const same = ['{ "b": {"d":2,"c":[1,2]}, "a":1 }', '{"a":1.0,"b":{"c":[1,2],"d":2}}']
    for (const body of same)
      expect(await box.receive({ id: '1', type: 'note', body })).toMatchObject({ status: 'duplicate' })
    expect(await box.receive(note('1', { data: { b: { d: 2, c: [1, 2] }, a: 1 } }))).toMatchObject({
      status: 'duplicate',
    })
    expect(await box.receive({ id: '1', type: 'note', body: '{"a":1,"b":{"c":[2,1],"d":2}}' })).toMatchObject({
      status: 'quarantined',
      reason: 'conflict',
    })
  })

  test('only the body tells two messages of one id apart, not key, headers or time', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.receive(note('1', { key: 'k', headers: { a: '1' }, time: new Date() }))
    expect(await box.receive(note('1', { key: 'l', headers: { a: '2' } }))).toMatchObject({ status: 'duplicate' })
  })
})

describe('who gets a message', () => {
  test("'*' takes every type not listed", async () => {
    await using box = await server.open()
    const seen: string[] = []
    box.consumer('a', { note: () => void seen.push('note'), '*': ({ type }) => void seen.push(`*${type}`) })
    const outcomes = await box.receive([note('1'), note('2', { type: 'x' }), note('3', { type: 'constructor' })])
    expect(outcomes.map(({ status }) => status)).toEqual(['stored', 'stored', 'stored'])
    await box.drain()
    expect(seen.sort()).toEqual(['*constructor', '*x', 'note'])
  })

  test('consumers of other processes too: their subscriptions are rows', async () => {
    await using box = await server.open()
    const other = another(box)
    other.consumer('elsewhere', { note: (message, { tx }) => box.write(tx, 'elsewhere', message) })
    await other.migrate()
    box.consumer('here', { note: (message, { tx }) => box.write(tx, 'here', message) })
    const outcome = await box.receive(note('1'))
    expect(outcome.consumers.map(({ consumer }) => consumer).sort()).toEqual(['elsewhere', 'here'])
    await box.drain()
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['here'])
    await other.drain()
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['here', 'elsewhere'])
  })

  test.for(['stored', 'inline', 'direct'] as const)(
    'handle stores for the consumers of other processes, and for types that only the newer version elsewhere takes: %s',
    async (mode) => {
      await using box = await server.open()
      const newer = another(box)
      newer.consumer('a', {
        note: () => undefined,
        newer: (message, { tx }) => box.write(tx, 'newer', message),
      })
      newer.consumer('b', { note: (message, { tx }) => box.write(tx, 'b', message) })
      await newer.migrate()
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode })
      expect(await box.handle(note('1'))).toMatchObject({ status: 'handled', ack: true })
      expect(await box.handle(note('2', { type: 'newer' }))).toMatchObject({
        status: 'stored',
        ack: true,
        consumers: [{ consumer: 'a', status: 'stored' }],
      })
      const both = await box.handle([note('3'), note('4', { type: 'newer' })])
      expect(both.map(({ status }) => status)).toEqual(['handled', 'stored'])
      await newer.drain()
      const effects = (await box.effects()).map(({ consumer, id }) => `${consumer}${id}`).sort()
      expect(effects).toEqual(['a1', 'a3', 'b1', 'b3', 'newer2', 'newer4'])
      expect(await box.quarantine()).toEqual([])
    },
  )

  test('a message that nobody takes is quarantined, and a new subscription releases it', async () => {
    const told: Entry<MessageMap>[] = []
    await using box = await server.open({ hooks: { quarantined: (entry) => void told.push(entry) } })
    box.consumer('a', { other: () => undefined })
    const headers = { h: '1' }
    expect(await box.receive(note('1', { key: 'k', headers }))).toEqual({
      id: '1',
      ack: true,
      status: 'quarantined',
      reason: 'unrouted',
      detail: 'no consumer takes messages of type note',
      consumers: [],
    })
    expect(await box.receive(note('1', { key: 'k', headers }))).toMatchObject({ reason: 'unrouted' })
    expect(await box.quarantine()).toMatchObject([{ consumer: '', id: '1', reason: 'unrouted' }])
    expect(told).toHaveLength(1)
    const { entries } = await box.admin.messages({ state: 'quarantined', reason: 'unrouted' })
    expect(entries).toMatchObject([{ message: { id: '1', data: { text: '1' } }, state: 'quarantined' }])

    const other = another(box)
    let seen: Message | undefined
    other.consumer('b', { note: (message) => void (seen = message) })
    await other.migrate()
    expect(await box.quarantine()).toEqual([])
    await other.drain()
    expect(seen).toMatchObject({ id: '1', key: 'k', headers, data: { text: '1' } })
    expect(await box.receive(note('1', { key: 'k', headers }))).toMatchObject({ status: 'duplicate' })
  })

  test('a consumer added later gets what nobody wanted, unless it is too old, and nothing that others have handled', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.receive([note('1'), note('2', { type: 'other', time: new Date() }), note('3', { type: 'other' })])
    await box.drain()
    await box.clock.advance(60 * 86_400_000)
    await box.receive(note('4', { type: 'other' }))
    const seen: string[] = []
    const late = another(box)
    late.consumer('late', { note: ({ id }) => void seen.push(id), other: ({ id }) => void seen.push(id) })
    await late.migrate()
    await late.drain()
    expect(seen).toEqual(['4'])
    // A person may say that they are new.
    const tooOld = ['2', '3'].map((id) => ({ consumer: 'late', id, reason: 'too-old' }))
    const kept = (await box.quarantine()).toSorted((a, b) => Number(a.id) - Number(b.id))
    expect(kept).toMatchObject(tooOld)
    expect(await late.admin.retry({ reason: 'too-old' })).toBe(2)
    await late.drain()
    expect(seen.sort()).toEqual(['2', '3', '4'])
  })

  test('without any consumer everything is kept', async () => {
    await using box = await server.open()
    for (const door of [box.receive, box.handle]) {
      expect(await door(note('1'))).toMatchObject({ status: 'quarantined', reason: 'unrouted', ack: true })
    }
    expect(await box.quarantine()).toHaveLength(1)
  })

  test.for(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'then'])(
    'a type that sounds like JavaScript is a type like any other: %s',
    async (type) => {
      await using box = await server.open()
      box.consumer('a', { note: () => undefined })
      const statuses = async (): Promise<string[]> => {
        const outcomes: Outcome[] = await box.receive([note('1', { type }), note('2')])
        return outcomes.map(({ status }) => status)
      }
      expect(await statuses()).toEqual(['quarantined', 'stored'])
      expect(await box.handle(note('3', { type }))).toMatchObject({ status: 'quarantined', reason: 'unrouted' })
      const late = another(box)
      const seen: string[] = []
      late.consumer('late', Object.fromEntries([[type, ({ id }: Message) => void seen.push(id)]]))
      await late.migrate()
      await late.drain()
      // They may be claimed one by one, and run side by side.
      expect(seen.sort()).toEqual(['1', '3'])
    },
  )

  test.for(['constructor', '__proto__', "o'brien", '"quoted"', 'a b', 'naïve ☃ 𝒳', 'x'.repeat(200), '*', ''.padEnd(3)])(
    'any name will do for a consumer: %s',
    async (name) => {
      await using box = await server.open()
      const options = { identity: ({ id }: Message) => `i${id}` }
      box.consumer('other', { note: () => undefined }, options)
      box.consumer(name, { note: (message, { tx }) => box.write(tx, name, message) })
      await box.receive([note('1', { key: 'k' }), note('2', { key: 'k' })])
      expect(await box.handle(note('3'))).toMatchObject({ status: 'handled' })
      await box.drain()
      expect((await box.ids()).sort()).toEqual(['1', '2', '3'])
      const { consumers } = await box.admin.status()
      expect(consumers[name]).toMatchObject({ handled: 3 })
    },
  )

  test.for(['', 'a\0b', '\ud800', 'x'.repeat(201)])('a name that cannot be stored is refused: %j', async (name) => {
    await using box = await server.open()
    expect(() => box.consumer(name, { note: () => 1 })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })
})

function hash(text: string, seed: number): number {
  let value = seed + 1
  for (const char of text) value = (value * 31 + char.charCodeAt(0)) % 10_007
  return (value * (seed + 17)) % 10_007
}
