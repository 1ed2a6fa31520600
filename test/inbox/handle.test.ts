/** `box.handle`: always runs now; dedup, run and record in one transaction, answered after the commit. */
import { of } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { batch, OnceboxError, Reject, RetryLater, type ConsumerOutcome, type Message, type Outcome } from 'oncebox'
import { sumUp } from '../../src/inbox/outcome.js'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, useServer } from './fixture.js'

const server = useServer('handle')

function* oneByOne() {
  yield 1
}
async function* oneByOneLater() {
  yield Promise.resolve(1)
}

describe('outcomes', () => {
  test('a handled message answers with its result, and may be acknowledged', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => ({ ok: true }) })
    expect(await box.handle(note('1'))).toEqual({
      id: '1',
      ack: true,
      status: 'handled',
      result: { ok: true },
      consumers: [{ consumer: 'a', status: 'handled', result: { ok: true } }],
    })
  })

  test('a message delivered twice runs its handler once, and the copy gets the stored result', async () => {
    await using box = await server.open()
    box.consumer('a', {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        return { total: 7 }
      },
    })
    await box.handle(note('1'))
    expect(await box.handle(note('1'))).toEqual({
      id: '1',
      ack: true,
      status: 'duplicate',
      result: { total: 7 },
      consumers: [{ consumer: 'a', status: 'duplicate', result: { total: 7 } }],
    })
    expect(await box.ids()).toEqual(['1'])
  })

  test.for<[name: string, result: unknown, json: unknown]>([
    ['nothing', undefined, undefined],
    ['null', null, null],
    ['zero', 0, 0],
    ['an empty string', '', ''],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a nested date and an undefined', { at: new Date(0), none: undefined }, { at: '1970-01-01T00:00:00.000Z' }],
    ['a function', () => 1, undefined],
    ['a symbol', Symbol('s'), undefined],
    ['NaN', NaN, null],
    ['a map', new Map([[1, 2]]), {}],
    ['NUL and a lone surrogate', 'a\0\ud800', 'a\0\ud800'],
    ['a __proto__ key', JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":1}')],
  ])('the result is what JSON makes of it, on the first run and for a duplicate: %s', async ([, result, json]) => {
    await using box = await server.open()
    box.consumer('a', { note: () => result })
    const first = await box.handle(note('1'))
    const second = await box.handle(note('1'))
    expect([first.status, second.status]).toEqual(['handled', 'duplicate'])
    expect((first as { result?: unknown }).result).toEqual(json)
    expect((second as { result?: unknown }).result).toEqual(json)
  })

  test.for<[name: string, result: unknown]>([
    ['a bigint', { n: 1n }],
    ['a cycle', Object.assign([], { toJSON: () => circular() })],
  ])('a result that is no JSON fails its message with RESULT_INVALID: %s', async ([, result]) => {
    await using box = await server.open()
    box.consumer('a', { note: () => result }, { mode: 'inline' })
    const outcome = await box.handle(note('1'))
    expect(outcome).toMatchObject({ status: 'failed', ack: false, error: { code: 'RESULT_INVALID' } })
  })

  test.for<[name: string, error: unknown, words: string]>([
    ['RetryLater', new RetryLater({ afterMs: 1 }), 'returned a RetryLater; throw it'],
    ['Reject', new Reject('never'), 'returned a Reject; throw it'],
    ['an error', new TypeError('oops'), 'returned a TypeError; throw it'],
    ['a generator', oneByOne(), 'returned a generator, of which nothing has run'],
    ['an async generator', oneByOneLater(), 'returned a generator, of which nothing has run'],
    ['an observable', of(1), 'returned an observable, to which nobody subscribes'],
  ])('%s that is returned fails its message: it is nothing that was done', async ([, error, words]) => {
    await using box = await server.open()
    const invalid = { code: 'RESULT_INVALID', message: expect.stringContaining(words) as string }
    const retry = { attempts: 1 }
    box.consumer('inline', { inline: () => error }, { mode: 'inline', retry })
    box.consumer('direct', { direct: () => error }, { mode: 'direct', retry })
    box.consumer('stored', { stored: () => error }, { retry })
    box.consumer('batch', { many: batch(() => error) }, { retry })
    expect(await box.handle({ ...note('1'), type: 'inline' })).toMatchObject({ status: 'dead', error: invalid })
    expect(await box.handle({ ...note('2'), type: 'direct' })).toMatchObject({ status: 'failed', error: invalid })
    await box.receive([
      { ...note('3'), type: 'stored' },
      { ...note('4'), type: 'many' },
    ])
    await box.drain()
    expect(await box.fate('3')).toMatchObject({ state: 'dead', error: invalid })
    expect(await box.fate('4')).toMatchObject({ state: 'dead', error: invalid })
  })

  test('a failure whose source redelivers is not acknowledged, and the redelivery is the next attempt', async () => {
    await using box = await server.open()
    const attempts: number[] = []
    box.consumer(
      'a',
      {
        async note(message, { tx, attempt }) {
          attempts.push(message.attempt, attempt)
          await box.write(tx, 'a', message)
          if (attempts.length < 5) throw new Error('not yet')
        },
      },
      { mode: 'inline' },
    )
    const first = await box.handle(note('1'))
    expect(first).toMatchObject({ status: 'failed', ack: false, error: { name: 'Error', message: 'not yet' } })
    expect(first.retryAt).toEqual(expect.any(Date))
    expect(await box.fate('1')).toMatchObject({ state: 'failed', attempts: 1, dueInMs: null })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: false })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'handled', ack: true })
    expect(attempts).toEqual([1, 1, 2, 2, 3, 3])
    expect(await box.ids()).toEqual(['1'])
  })

  test('a failure that the box retries is acknowledged, says when, and runs from the box', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (++runs === 1) throw new Error('not yet')
        },
      },
      { mode: 'inline', retryBy: 'box', retry: { baseMs: 60_000, jitter: 'none' } },
    )
    const outcome = await box.handle(note('1'))
    expect(outcome).toMatchObject({ status: 'failed', ack: true, consumers: [{ retryAt: expect.any(Date) }] })
    await box.drain()
    expect(runs).toBe(1)
    await box.clock.advance(60_001)
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
    expect(await box.handle(note('1'))).toMatchObject({ status: 'duplicate', ack: true })
  })

  test('the source sees dead and may acknowledge once the attempts are used up', async () => {
    await using box = await server.open()
    const failing = () => {
      throw new Error('no')
    }
    box.consumer('a', { note: failing }, { mode: 'inline', retry: { attempts: 3 } })
    const outcomes: Outcome[] = []
    for (let time = 0; time < 5; time++) outcomes.push(await box.handle(note('1')))
    expect(outcomes.map(({ status, ack }) => [status, ack])).toEqual([
      ['failed', false],
      ['failed', false],
      ['dead', true],
      ['dead', true],
      ['dead', true],
    ])
    expect(outcomes[4]).toMatchObject({ error: { message: 'no' }, consumers: [{ consumer: 'a', status: 'dead' }] })
    expect(await box.fate('1')).toMatchObject({ state: 'dead', attempts: 3 })
  })

  test('Reject is dead at once, with its reason', async () => {
    await using box = await server.open()
    box.consumer('a', {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        throw new Reject('unknown account', { cause: new Error('404') })
      },
    })
    const outcome = await box.handle(note('1'))
    expect(outcome).toMatchObject({
      status: 'dead',
      ack: true,
      error: { name: 'Reject', message: 'unknown account', cause: { message: '404' } },
    })
    expect(await box.effects()).toEqual([])
  })

  test('a copy of a message in flight is busy and not acknowledged; the first one is handled', async () => {
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
    const first = box.handle(note('1'))
    await started.opened
    expect(await box.handle(note('1'))).toEqual({
      id: '1',
      ack: false,
      status: 'busy',
      consumers: [{ consumer: 'a', status: 'busy' }],
    })
    finish.open()
    expect(await first).toMatchObject({ status: 'handled' })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'duplicate', ack: true })
    expect(await box.ids()).toEqual(['1'])
  })

  test('fifty copies at once give one run; the others are duplicates or busy', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', {
      async note(message, { tx }) {
        runs++
        await box.write(tx, 'a', message)
      },
    })
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => box.handle(note('1'))))
    expect(runs).toBe(1)
    expect(await box.ids()).toEqual(['1'])
    const statuses = outcomes.map(({ status }) => status)
    expect(statuses.filter((status) => status === 'handled')).toHaveLength(1)
    for (const status of statuses) expect(['handled', 'duplicate', 'busy']).toContain(status)
    for (const { status, ack } of outcomes) expect(ack).toBe(status !== 'busy')
  })

  test('two bodies under one id at the same instant: one is handled, the other a conflict', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    for (let round = 0; round < 10; round++) {
      const id = `r${round}`
      const outcomes = await Promise.all([1, 2].map((body) => box.handle({ id, type: 'note', data: { body } })))
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['handled', 'quarantined'])
      expect(outcomes.find(({ status }) => status === 'quarantined')).toMatchObject({ reason: 'conflict', ack: true })
    }
    expect(await box.ids()).toHaveLength(10)
  })
})

describe('one in, one out', () => {
  test('a message gives an outcome, an array an array, an empty one an empty one', async () => {
    await using box = await server.open()
    box.consumer('a', { note: ({ id }) => id })
    expect(await box.handle(note('1'))).toMatchObject({ id: '1', result: '1' })
    expect(await box.handle([])).toEqual([])
    const outcomes = await box.handle(notes(3))
    expect(outcomes.map((outcome) => [outcome.id, outcome.status])).toEqual([
      ['n1', 'handled'],
      ['n2', 'handled'],
      ['n3', 'handled'],
    ])
  })

  test('outcomes come in the order of the messages, whatever each of them becomes', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'bad') throw new Error('no')
          if (message.id === 'worse') throw new Reject('never')
          return message.id
        },
      },
      { mode: 'inline' },
    )
    await box.handle(note('known'))
    const outcomes = await box.handle([
      note('1'),
      note('bad'),
      note('known'),
      note('2', { type: 'nobody' }),
      { id: undefined, type: 'note', data: 1 },
      note('1'),
      note('worse'),
      note('1', { data: 'other' }),
      { id: '3', type: 'note', body: '{' },
      note('4'),
    ])
    expect(outcomes.map(({ id, status, ack }) => [id, status, ack])).toEqual([
      ['1', 'handled', true],
      ['bad', 'failed', false],
      ['known', 'duplicate', true],
      ['2', 'quarantined', true],
      [undefined, 'quarantined', true],
      ['1', 'duplicate', true],
      ['worse', 'dead', true],
      ['1', 'quarantined', true],
      ['3', 'quarantined', true],
      ['4', 'handled', true],
    ])
    expect((await box.ids()).sort()).toEqual(['1', '4', 'known'])
  })

  test('hundreds at once are handled once each', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    const all = notes(300)
    const outcomes = await box.handle(all)
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['handled']))
    expect(await box.ids()).toEqual(all.map(({ id }) => id))
  })
})

describe('several consumers', () => {
  const ORDER = ['failed', 'busy', 'quarantined', 'dead', 'handled', 'stored', 'duplicate'] as const
  const pairs = ORDER.flatMap((first, at) => ORDER.slice(at + 1).map((second) => [first, second] as const))

  test.for(pairs)('%s comes before %s, in either order', ([first, second]) => {
    const one = { consumer: 'a', status: first } as ConsumerOutcome
    const other = { consumer: 'b', status: second } as ConsumerOutcome
    for (const consumers of [
      [one, other],
      [other, one],
    ]) {
      const outcome = sumUp(
        'x',
        consumers.map((each) => ({ outcome: each })),
      )
      expect(outcome).toMatchObject({ status: first, consumers })
    }
  })

  test('each has its own fate, and the message has the first of them; one that is not safe keeps the ack back', async () => {
    await using box = await server.open()
    box.consumer('works', { note: () => 'fine' })
    box.consumer('rejects', {
      note() {
        throw new Reject('never')
      },
    })
    expect(await box.handle(note('1'))).toEqual({
      id: '1',
      ack: true,
      status: 'dead',
      error: expect.objectContaining({ message: 'never' }),
      consumers: [
        { consumer: 'works', status: 'handled', result: 'fine' },
        { consumer: 'rejects', status: 'dead', error: expect.objectContaining({ message: 'never' }) },
      ],
    })
    let fails = true
    box.consumer(
      'fails',
      {
        note() {
          if (fails) throw new Error('not yet')
        },
      },
      { mode: 'inline' },
    )
    expect(await box.handle(note('1'))).toMatchObject({
      ack: false,
      status: 'failed',
      consumers: [{ status: 'duplicate', result: 'fine' }, { status: 'dead' }, { status: 'failed' }],
    })
    fails = false
    expect(await box.handle(note('1'))).toMatchObject({
      ack: true,
      status: 'dead',
      consumers: [{ status: 'duplicate' }, { status: 'dead' }, { status: 'handled' }],
    })
  })

  test('a conflict for one consumer is none for another that has not seen the id', async () => {
    await using box = await server.open()
    box.consumer('early', { note: () => 'e' })
    await box.handle(note('1', { data: 1 }))
    box.consumer('late', { note: () => 'l' })
    expect(await box.handle(note('1', { data: 2 }))).toMatchObject({
      status: 'quarantined',
      reason: 'conflict',
      ack: true,
      consumers: [
        { consumer: 'early', status: 'quarantined', reason: 'conflict' },
        { consumer: 'late', status: 'handled', result: 'l' },
      ],
    })
  })

  test('what an ordered consumer gets is stored, so that nothing overtakes, and the others run', async () => {
    await using box = await server.open()
    box.consumer('now', { note: (message, { tx }) => box.write(tx, 'now', message) })
    box.consumer('ordered', { note: (message, { tx }) => box.write(tx, 'ordered', message) }, { order: 'key' })
    expect(await box.handle(note('1', { key: 'k' }))).toMatchObject({
      status: 'handled',
      ack: true,
      consumers: [
        { consumer: 'ordered', status: 'stored' },
        { consumer: 'now', status: 'handled' },
      ],
    })
    expect(await box.effects()).toHaveLength(1)
    await box.drain()
    expect(await box.effects()).toHaveLength(2)
  })
})

describe('what is stored already', () => {
  test('a stored message that waits is run now, and not again by its loop', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await box.receive(note('1'))
    expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
    expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate', ack: true })
  })

  test('a stored message that a worker runs right now is busy', async () => {
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
    await box.receive(note('1'))
    const drained = box.drain()
    await started.opened
    expect(await box.handle(note('1'))).toMatchObject({ status: 'busy', ack: false })
    finish.open()
    await drained
    expect(await box.handle(note('1'))).toMatchObject({ status: 'duplicate' })
    expect(await box.ids()).toEqual(['1'])
  })

  test('stored messages of a group that commits early survive a crash before their turn', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          await tx.query('select pg_sleep(0.02)')
        },
      },
      { group: { ms: 1 } },
    )
    await box.receive(notes(3))
    box.crashAt('committed')
    await expect(box.handle(notes(3))).rejects.toThrow('simulated crash')
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
  })

  test('a failure that waits for its source is handed to the box by receive', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        note() {
          if (++runs === 1) throw new Error('not yet')
        },
      },
      { mode: 'inline' },
    )
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: false })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'stored', ack: true })
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })
})

describe('neighbours in one call', () => {
  test('one that throws is alone to blame: the others are handled once each', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'n2') throw new Error('no')
        },
      },
      { mode: 'inline' },
    )
    const outcomes = await box.handle(notes(4))
    expect(outcomes.map(({ status }) => status)).toEqual(['handled', 'failed', 'handled', 'handled'])
    expect((await box.ids()).sort()).toEqual(['n1', 'n3', 'n4'])
    expect(await box.fate('n2')).toMatchObject({ attempts: 1 })
  })

  test('a redelivery that killed its worker runs alone with its attempt counted first, and dies of its own attempts', async () => {
    await using box = await server.open()
    const attempts: number[] = []
    box.consumer(
      'a',
      {
        note(message) {
          attempts.push(message.attempt)
          // As if the process died in the handler: nothing is recorded after it.
          box.crashAt('handled')
        },
      },
      { mode: 'inline', retry: { attempts: 3 } },
    )
    await expect(box.handle(note('1'))).rejects.toThrow('simulated crash')
    // Once claimed, which blames nobody, and once for each attempt; whoever comes before the lease is over is told to wait.
    for (let time = 0; time < 4; time++) {
      await expect(box.handle(note('1', { redelivered: true }))).rejects.toThrow('simulated crash')
      if (time === 0) expect(await box.handle(note('1', { redelivered: true }))).toMatchObject({ status: 'busy' })
      await box.clock.advance(31_000)
    }
    expect(await box.handle(note('1', { redelivered: true }))).toMatchObject({
      status: 'dead',
      ack: true,
      error: { code: 'WORKER_DIED' },
    })
    expect(attempts).toEqual([1, 1, 1, 2, 3])
  })

  test('a deadlock or a lock timeout burns no attempt', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (++runs <= 2) await tx.query(`do $$ begin raise exception using errcode = '40P01'; end $$`)
        },
      },
      { mode: 'inline', retry: { attempts: 1 } },
    )
    expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
    expect(runs).toBe(3)
    expect(await box.ids()).toEqual(['1'])
  })
})

test('a handler gets the whole message', async () => {
  await using box = await server.open()
  let seen: Message | undefined
  box.consumer('a', { note: (message) => void (seen = message) })
  const before = Date.now()
  await box.handle({
    id: '1',
    source: 'shop',
    type: 'note',
    key: 'k',
    subject: 's',
    time: new Date(before),
    headers: { correlationid: 'c', causationid: 'b', other: 'o' },
    data: { a: 1 },
  })
  expect(seen).toEqual({
    id: '1',
    source: 'shop',
    type: 'note',
    key: 'k',
    subject: 's',
    time: new Date(before),
    headers: { correlationid: 'c', causationid: 'b', other: 'o' },
    data: { a: 1 },
    receivedAt: expect.any(Date),
    attempt: 1,
    correlationId: 'c',
    causationId: 'b',
  })
})

test('ids are unique within a source: the same id of two sources is two messages', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message, message.source) })
  await box.handle([note('1', { source: 'x' }), note('1', { source: 'y' }), note('1'), note('1', { source: 'x' })])
  expect((await box.effects()).map((effect) => effect.note).sort()).toEqual(['', 'x', 'y'])
})

test('a message that is no object is a mistake of the caller, told as MESSAGE_INVALID', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  for (const wrong of [undefined, null, 'text', 7]) {
    await expect(box.handle(wrong as never)).rejects.toSatisfy(isCode('MESSAGE_INVALID'))
  }
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  await expect(box.handle(note('1', { data: cyclic }))).rejects.toSatisfy(isCode('MESSAGE_INVALID'))
})

test('handlers of one call run one after the other, in the order of the messages', async () => {
  await using box = await server.open()
  let running = 0
  const order: string[] = []
  box.consumer('a', {
    async note(message, { tx }) {
      expect(++running).toBe(1)
      await tx.query('select 1')
      order.push(message.id)
      running--
    },
  })
  await box.handle(notes(20))
  expect(order).toEqual(notes(20).map(({ id }) => id))
  await waitUntil(() => running === 0)
})

test('an array whose bodies are too large for one statement is handled some at a time', async () => {
  await using box = await server.open()
  const transactions = new Set<unknown>()
  box.consumer(
    'a',
    {
      async note(_, { tx }) {
        const { rows } = await tx.query<{ xid: string }>('select pg_current_xact_id()::text as xid')
        transactions.add(rows[0]!.xid)
      },
    },
    { mode: 'inline', group: { messages: 500, ms: 60_000 } },
  )
  const large = Array.from({ length: 20 }, (_, n) => ({ id: `large-${n}`, type: 'note', data: 'x'.repeat(900_000) }))
  const outcomes = await box.handle(large)
  expect(outcomes.map(({ status }) => status)).toEqual(large.map(() => 'handled'))
  // Eight megabytes each.
  expect(transactions.size).toBe(3)
})

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof OnceboxError && error.code === code
}

function circular(): unknown {
  const list: unknown[] = []
  list.push(list)
  return list
}
