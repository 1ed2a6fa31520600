/** What a thrown error means: again, and when; or dead; and what is written down about it. */
import { createBox, OnceboxError, Reject, RetryLater, type Entry, type Failure, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bench, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('retry')

// The thrown values and the policies need a consumer each, and no box of their own.
let shared: Bench
beforeAll(async () => {
  shared = await server.open()
})
afterAll(() => shared[Symbol.asyncDispose]())
let names = 0
const freshName = (): string => `c${++names}`

/** Runs `handler` on one message until nothing is due, moving the clock past each delay; answers the delays. */
async function delays(box: Bench, name: string, id: string, most: number): Promise<number[]> {
  const seen: number[] = []
  for (let time = 0; time < most; time++) {
    await box.drain()
    const fate = (await box.fates(id)).find(({ consumer }) => consumer === name)!
    if (fate.state !== 'pending') break
    seen.push(fate.dueInMs!)
    await box.clock.advance(fate.dueInMs! + 1)
  }
  return seen
}

/** A delay that was just recorded: a little of it has passed already. */
function expectDelay(actual: number, wanted: number): void {
  expect(actual).toBeLessThanOrEqual(wanted + 1)
  expect(actual).toBeGreaterThan(wanted - 20_000)
}

describe('the policy', () => {
  test('without jitter the delays are exact: base, doubled each time, up to the maximum', async () => {
    const name = freshName()
    const type = `${name}.type`
    let runs = 0
    shared.consumer(
      name,
      {
        [type]() {
          runs++
          throw new Error('no')
        },
      },
      { retry: { attempts: 7, baseMs: 100_000, maxMs: 900_000, jitter: 'none' } },
    )
    await shared.receive(note(name, { type }))
    const actual = await delays(shared, name, name, 10)
    const wanted = [100_000, 200_000, 400_000, 800_000, 900_000, 900_000]
    expect(actual).toHaveLength(wanted.length)
    actual.forEach((ms, at) => expectDelay(ms, wanted[at]!))
    expect(runs).toBe(7)
    expect(await shared.fate(name)).toMatchObject({ state: 'dead', attempts: 7 })
  })

  test('is not run a moment before its time', async () => {
    const name = freshName()
    const type = `${name}.type`
    let runs = 0
    shared.consumer(
      name,
      {
        [type]() {
          if (++runs === 1) throw new Error('no')
        },
      },
      { retry: { baseMs: 100_000, jitter: 'none' } },
    )
    await shared.receive(note(name, { type }))
    await shared.drain()
    await shared.clock.advance(70_000)
    await shared.drain()
    expect(runs).toBe(1)
    await shared.clock.advance(30_001)
    await shared.drain()
    expect(runs).toBe(2)
  })

  test('full jitter stays between nothing and the exact delay', async () => {
    const name = freshName()
    const type = `${name}.type`
    shared.consumer(
      name,
      {
        [type]() {
          throw new Error('no')
        },
      },
      { retry: { baseMs: 1_000_000, maxMs: 1_000_000 } },
    )
    const ids = Array.from({ length: 20 }, (_, at) => `${name}-${at}`)
    await shared.receive(ids.map((id) => note(id, { type })))
    await shared.drain()
    const all = await Promise.all(ids.map(async (id) => (await shared.fate(id)).dueInMs!))
    for (const ms of all) expect(ms).toBeLessThanOrEqual(1_000_000)
    // Twenty draws: all of them in one half would be a chance of two in a million.
    expect(Math.max(...all)).toBeGreaterThan(500_000 - 20_000)
    expect(Math.min(...all)).toBeLessThan(500_000)
  })

  test.for([1, 2, 3])('%i attempts, the first included', async (attempts) => {
    const name = freshName()
    const type = `${name}.type`
    const seen: number[] = []
    shared.consumer(
      name,
      {
        [type](message, ctx) {
          seen.push(message.attempt)
          expect(ctx.attempt).toBe(message.attempt)
          throw new Error('no')
        },
      },
      { retry: { attempts, baseMs: 0 } },
    )
    await shared.receive(note(name, { type }))
    await shared.drain()
    expect(seen).toEqual(Array.from({ length: attempts }, (_, at) => at + 1))
    expect(await shared.fate(name)).toMatchObject({ state: 'dead', attempts })
  })

  test('what is not given is the default: ten attempts', async () => {
    const name = freshName()
    const type = `${name}.type`
    let runs = 0
    shared.consumer(
      name,
      {
        [type]() {
          runs++
          throw new Error('no')
        },
      },
      { retry: { baseMs: 0 } },
    )
    await shared.receive(note(name, { type }))
    await shared.drain()
    expect(runs).toBe(10)
  })

  test('a function decides by the error itself and the number of the attempt; null is dead', async () => {
    const name = freshName()
    const type = `${name}.type`
    const thrown = new Error('no')
    const asked: [unknown, number][] = []
    shared.consumer(
      name,
      {
        [type]() {
          throw thrown
        },
      },
      {
        retry: (error, attempt) => {
          asked.push([error, attempt])
          return attempt < 3 ? attempt * 100_000 : null
        },
      },
    )
    await shared.receive(note(name, { type }))
    const actual = await delays(shared, name, name, 10)
    expect(actual).toHaveLength(2)
    expectDelay(actual[0]!, 100_000)
    expectDelay(actual[1]!, 200_000)
    expect(asked.map(([error]) => error === thrown)).toEqual([true, true, true])
    expect(asked.map(([, attempt]) => attempt)).toEqual([1, 2, 3])
    expect(await shared.fate(name)).toMatchObject({ state: 'dead', attempts: 3 })
  })

  const table = [50, 100]
  test.for<[name: string, policy: (error: unknown, attempt: number) => unknown, said: string]>([
    ['undefined, beyond the end of a table', (_, attempt) => table[attempt + 1], 'returned undefined'],
    ['NaN', () => NaN, 'returned NaN'],
    ['a negative number', () => -5, 'returned -5'],
    ['a text', () => '60000', 'returned a string'],
    ['a promise', () => Promise.resolve(null), 'returned a promise'],
    ['a promise that fails', () => Promise.reject(new Error('a bug in the policy')), 'returned a promise'],
    ['nothing, for it throws', () => expect.fail('a bug in the policy'), 'threw'],
  ])('a function that answers %s decides nothing: the default policy does', async ([, policy, said]) => {
    const logger = recorder()
    await using box = await server.open({ logger })
    let runs = 0
    box.consumer(
      'a',
      {
        note() {
          runs++
          throw new Error('no')
        },
      },
      { retry: policy as () => null },
    )
    await box.receive(note('1'))
    await delays(box, 'a', '1', 20)
    expect(await box.fate('1')).toMatchObject({ state: 'dead', attempts: 10, error: { message: 'no' } })
    expect(runs).toBe(10)
    const warnings = logger.lines.filter(({ text }) => text?.includes('retry policy'))
    expect(warnings).toMatchObject([{ level: 'warn', about: { of: 'consumer a' } }])
    expect(warnings[0]!.text).toContain(said)
  })

  test('a function that answers Infinity says never again: dead', async () => {
    const name = freshName()
    const type = `${name}.type`
    shared.consumer(name, { [type]: () => Promise.reject(new Error('no')) }, { retry: () => Infinity })
    await shared.receive(note(name, { type }))
    await shared.drain()
    expect(await shared.fate(name)).toMatchObject({ state: 'dead', attempts: 1 })
  })
})

describe('steering', () => {
  test.for<[name: string, later: () => RetryLater, ms: number]>([
    ['afterMs', () => new RetryLater({ afterMs: 100_000 }), 100_000],
    ['at', () => new RetryLater({ at: new Date(Date.now() + 100_000) }), 100_000],
  ])('RetryLater with %s runs again then, and burns no attempt', async ([, later, ms]) => {
    await using box = await server.open()
    const seen: number[] = []
    box.consumer(
      'a',
      {
        note(message) {
          seen.push(message.attempt)
          if (seen.length <= 3) throw later()
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 0 })
    expectDelay((await box.fate('1')).dueInMs!, ms)
    for (let time = 0; time < 3; time++) {
      await box.clock.advance(100_001)
      await box.drain()
    }
    expect(seen).toEqual([1, 1, 1, 1])
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })

  test.for<[name: string, when: unknown]>([
    ['a negative delay', { afterMs: -1 }],
    ['no delay', { afterMs: 0 }],
    ['a date long gone', { at: new Date(0) }],
  ])('RetryLater with %s runs again in the next drain', async ([, when]) => {
    const name = freshName()
    const type = `${name}.type`
    let runs = 0
    shared.consumer(
      name,
      {
        [type]() {
          if (++runs === 1) throw new RetryLater(when as { afterMs: number })
        },
      },
      { retry: { attempts: 1 } },
    )
    await shared.receive(note(name, { type }))
    await shared.drain()
    await shared.drain()
    expect(await shared.fate(name)).toMatchObject({ state: 'handled' })
    expect(runs).toBe(2)
  })

  test.for(['none', 'key'] as const)(
    'RetryLater with a time that is over by the clock of the database waits longer and longer; order: %s',
    async (order) => {
      await using box = await server.open()
      await box.clock.advance(2 * 3_600_000)
      let runs = 0
      const note = (): never => {
        runs++
        throw new RetryLater({ at: new Date(Date.now() + 3_600_000) })
      }
      box.consumer('a', { note }, { order })
      await box.receive({ id: '1', type: 'note', key: 'k', data: 1 })
      for (let times = 1; times <= 12; times++) {
        await box.clock.advance(20_000)
        // The last time it stands still, so that the delay can be read off.
        if (times === 12) {
          await box.sql(`create or replace function ob.now() returns timestamptz language sql stable as
            $$ select timestamptz '2100-01-01' $$`)
        }
        await box.drain()
        expect(runs).toBe(times)
      }
      expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 0, dueInMs: 10_000 })
    },
  )

  test('on arrival, RetryLater with a time means that time, also by another clock', async () => {
    await using box = await server.open()
    await box.clock.advance(1_000_000)
    const later = (): never => {
      throw new RetryLater({ at: new Date(Date.now() + 1_500_000) })
    }
    box.consumer('a', { note: later }, { mode: 'inline', retryBy: 'box' })
    for (let times = 1; times <= 2; times++) {
      await box.handle(note('1'))
      expectDelay((await box.fate('1')).dueInMs!, 500_000)
    }
  })

  test.for<[name: string, when: unknown]>([
    ['a number', 5_000],
    ['nothing', undefined],
    ['null', null],
    ['a string', 'soon'],
    ['NaN', { afterMs: NaN }],
    ['a delay in words', { afterMs: '5s' }],
    ['another name', { ms: 5 }],
    ['no date', { at: new Date(NaN) }],
    ['a time as a number', { at: 5 }],
  ])('RetryLater with %s is refused in plain words', ([, when]) => {
    expect(() => new RetryLater(when as { afterMs: number })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining('afterMs: 5_000') as string }),
    )
  })

  test.for<[name: string, options: { retryBy: 'source' | 'box' }, ack: boolean]>([
    ['the source', { retryBy: 'source' }, false],
    ['the box', { retryBy: 'box' }, true],
  ])('inline, RetryLater waits for %s and burns no attempt', async ([, options, ack]) => {
    await using box = await server.open()
    const seen: number[] = []
    box.consumer(
      'a',
      {
        note(message) {
          seen.push(message.attempt)
          if (seen.length <= 2) throw new RetryLater({ afterMs: 100_000 })
        },
      },
      { mode: 'inline', retry: { attempts: 1 }, ...options },
    )
    const outcome = await box.handle(note('1'))
    expect(outcome).toMatchObject({ status: 'failed', ack, consumers: [{ retryAt: expect.any(Date) }] })
    expect('retryAt' in outcome).toBe(!ack)
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'handled', ack: true })
    expect(seen).toEqual([1, 1, 1])
  })

  test('a source is told the time that was asked for, or that of the policy; not that of a retry which is up to the box', async () => {
    await using box = await server.open()
    const at = new Date(Date.now() + 100_000)
    const later = (): never => {
      throw new RetryLater({ at })
    }
    const fail = (): never => {
      throw new Error('no')
    }
    const untilBoxRetries = { mode: 'inline', retryBy: 'box', retry: { baseMs: 3_600_000, jitter: 'none' } } as const
    box.consumer('box', { later: fail, fail, effect: fail }, untilBoxRetries)
    const untilSourceRetries = { mode: 'inline', retry: { baseMs: 60_000, jitter: 'none' } } as const
    box.consumer('inline', { later, fail, effect: (_, { effect }) => effect('x', later) }, untilSourceRetries)
    box.consumer('direct', { later: fail }, { mode: 'direct' })
    box.consumer('asks-directly', { directly: later }, { mode: 'direct' })
    const retryAt = async (type: string, fields: object = {}) => {
      const outcome = await box.handle(note(type, { type, ...fields }))
      expect(outcome).toMatchObject({ status: 'failed', ack: false })
      return outcome.retryAt
    }
    expect(await retryAt('later')).toEqual(at)
    expect(await retryAt('effect')).toEqual(at)
    expect(await retryAt('directly')).toEqual(at)
    for (const [turn, delayMs] of [60_000, 120_000, 240_000].entries()) {
      const before = Date.now()
      const askedAt = (await retryAt('fail', { redelivered: turn > 0 }))!.getTime()
      expect(askedAt).toBeGreaterThanOrEqual(before + delayMs)
      expect(askedAt).toBeLessThanOrEqual(Date.now() + delayMs)
    }
  })

  test('Reject is dead at once, whatever the policy says, with the rest of the group unharmed', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note(message, { tx }) {
          if (message.id === 'n2') throw new Reject('never')
          return box.write(tx, 'a', message)
        },
      },
      { retry: () => 0 },
    )
    await box.receive(notes(3))
    await box.drain()
    expect(await box.fate('n2')).toMatchObject({
      state: 'dead',
      attempts: 1,
      error: { name: 'Reject', message: 'never' },
    })
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
  })

  test('both are known by their brand, so those of another copy of the package count', async () => {
    await using box = await server.open()
    const reject = Object.assign(new Error('never'), { [Symbol.for('oncebox.reject')]: true })
    const later = Object.assign(new Error('later'), {
      [Symbol.for('oncebox.retry-later')]: true,
      when: { afterMs: 100_000 },
    })
    expect(reject).toBeInstanceOf(Reject)
    expect(later).toBeInstanceOf(RetryLater)
    expect(new Error('x')).not.toBeInstanceOf(Reject)
    expect(undefined).not.toBeInstanceOf(OnceboxError)
    box.consumer('a', {
      note(message) {
        throw message.id === 'n1' ? reject : later
      },
    })
    await box.receive(notes(2))
    await box.drain()
    expect(await box.fate('n1')).toMatchObject({ state: 'dead' })
    expect(await box.fate('n2')).toMatchObject({ state: 'pending', attempts: 0 })
  })

  test('an error of another code that wraps one of them is an error like any other', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note() {
          throw new Error('wrapped', { cause: new Reject('inside') })
        },
      },
      { retry: { attempts: 2, baseMs: 1_000_000 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 1 })
  })
})

describe('what is written down', () => {
  const hostile = {
    get message(): string {
      throw new Error('message')
    },
    get code(): string {
      throw new Error('code')
    },
    get cause(): string {
      throw new Error('cause')
    },
  }
  const cyclic = new Error('cyclic')
  cyclic.cause = cyclic
  const huge = new Error('x'.repeat(10 * 1024 * 1024))
  const NO_ERROR = 'something was thrown that is no error:'
  const { proxy: revoked, revoke } = Proxy.revocable({}, {})
  revoke()

  test.for<[name: string, thrown: unknown, failure: Partial<Failure>]>([
    ['an error', new TypeError('no'), { name: 'TypeError', message: 'no', stack: expect.stringContaining('no') }],
    ['undefined', undefined, { name: 'NonError', message: 'undefined' }],
    ['null', null, { name: 'NonError', message: 'null' }],
    ['a symbol', Symbol('s'), { name: 'NonError', message: `${NO_ERROR} a symbol` }],
    ['a string', 'plain', { name: 'NonError', message: 'plain' }],
    ['a number', 0, { name: 'NonError', message: `${NO_ERROR} a number` }],
    ['a bigint', 1n, { name: 'NonError', message: `${NO_ERROR} a bigint` }],
    ['a function', () => 1, { name: 'NonError' }],
    ['an object', { a: { b: 1 } }, { name: 'NonError', message: `${NO_ERROR} an object` }],
    ['an object without a prototype', Object.create(null), { name: 'NonError' }],
    ['an object with getters that throw', hostile, { message: 'something was thrown that could not be read' }],
    ['a revoked proxy', revoked, { message: 'something was thrown that could not be read' }],
    ['an error that is its own cause', cyclic, { message: 'cyclic' }],
    ['a huge error', huge, { message: expect.stringMatching(/^x{1000,10000}… \(\d+ more characters\)$/) }],
    ['NUL and a lone surrogate', new Error('a\0b\ud800c'), { message: 'a\ufffdb\ufffdc' }],
    ['an error with odd fields', Object.assign(new Error('m'), { name: Symbol('n'), code: 7 }), { code: '7' }],
    ['an error without a message', new Error(), { name: 'Error', message: '' }],
    [
      'a chain of causes',
      new Error('a', { cause: Object.assign(new Error('b'), { code: 'ECONN', cause: 'c' }) }),
      {
        message: 'a',
        cause: expect.objectContaining({ message: 'b', code: 'ECONN', cause: { name: 'NonError', message: 'c' } }),
      },
    ],
  ])('whatever was thrown is recorded, cut and clean, and counts as an attempt: %s', async ([, thrown, failure]) => {
    for (const mode of ['stored', 'inline'] as const) {
      const name = freshName()
      const type = `${name}.type`
      shared.consumer(
        name,
        {
          [type]() {
            throw thrown
          },
        },
        { mode, retry: { attempts: 1 } },
      )
      // With a neighbour, so that it is thrown in a group first.
      const both = [note(name, { type }), note(`${name}-2`, { type })]
      if (mode === 'stored') {
        await shared.receive(both)
        await shared.drain()
      } else {
        const outcomes = await shared.handle(both)
        for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'dead', ack: true, error: failure })
      }
      const fate = await shared.fate(name)
      expect(fate).toMatchObject({ state: 'dead', attempts: 1, error: failure })
      expect(JSON.stringify(fate.error).length).toBeLessThan(100_000)
      const [entry] = await shared.admin.message({ id: name })
      expect(entry).toMatchObject({ state: 'dead', error: failure, attempts: [{ attempt: 1, error: failure }] })
    }
  })

  test('every failed attempt is kept, oldest first', async () => {
    const name = freshName()
    const type = `${name}.type`
    shared.consumer(
      name,
      {
        [type](message) {
          throw new Error(`try ${message.attempt}`)
        },
      },
      { retry: { attempts: 3, baseMs: 0 } },
    )
    await shared.receive(note(name, { type }))
    await shared.drain()
    const [entry] = await shared.admin.message({ id: name })
    expect(entry!.attempts!.map(({ attempt, error }) => [attempt, error.message])).toEqual([
      [1, 'try 1'],
      [2, 'try 2'],
      [3, 'try 3'],
    ])
    expect(entry!.error!.message).toBe('try 3')
  })
})

describe('hooks', () => {
  test.for(['stored', 'inline'] as const)(
    'dead is told once, after the commit, with the message, the consumer and the error: %s',
    async (mode) => {
      const told: Entry<MessageMap>[] = []
      const states: string[] = []
      await using box = await server.open({
        hooks: {
          async dead(entry) {
            told.push(entry)
            states.push((await box.fate(entry.message.id)).state)
          },
        },
      })
      box.consumer(
        'a',
        {
          note() {
            throw new Error('no')
          },
        },
        { mode, retry: { attempts: 2, baseMs: 0 } },
      )
      for (let time = 0; time < 3; time++) {
        if (mode === 'stored') {
          await box.receive(note('1', { key: 'k' }))
          await box.drain()
        } else await box.handle(note('1', { key: 'k' }))
      }
      expect(told).toHaveLength(1)
      expect(told[0]).toMatchObject({
        consumer: 'a',
        state: 'dead',
        error: { message: 'no' },
        message: { id: '1', type: 'note', key: 'k', data: { text: '1' }, attempt: 2 },
      })
      await expect.poll(() => states).toEqual(['dead'])
    },
  )

  test.for<[name: string, hook: () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('a bug in the hook')
      },
    ],
    ['rejects', () => Promise.reject(new Error('a bug in the hook'))],
  ])('a hook that %s changes nothing, and is logged', async ([, hook]) => {
    const logger = recorder()
    await using box = await server.open({ logger, hooks: { dead: hook, quarantined: hook } })
    box.consumer('a', {
      note() {
        throw new Reject('no')
      },
    })
    await box.receive([note('1'), { id: undefined, type: 'note', data: 1 }])
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'dead' })
    await expect.poll(() => logger.lines.filter(({ text }) => text === 'a hook failed')).toHaveLength(2)
  })
})

describe('without a handler', () => {
  test('a type that this process does not know is retried, then dead, never handled; a retry runs it', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined, newer: (message, { tx }) => box.write(tx, 'a', message) })
    await box.receive([note('1', { type: 'newer' }), note('2')])
    const old = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    // Within a drain nothing falls due again, however slow the machine is.
    const retry = { baseMs: 3_600_000, jitter: 'none' } as const
    old.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { retry })
    await old.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 1, error: { code: 'HANDLER_MISSING' } })
    for (let time = 0; time < 12; time++) {
      await box.clock.advance(3_600_000)
      await old.drain()
    }
    expect(await box.fate('1')).toMatchObject({ state: 'dead', attempts: 10, error: { code: 'HANDLER_MISSING' } })
    expect(await box.ids()).toEqual(['2'])
    expect(await box.admin.retry({ id: '1' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['2', '1'])
  })
})

describe('several consumers of one event', () => {
  test('each retries, dies and succeeds on its own', async () => {
    await using box = await server.open()
    const seen: string[] = []
    const failing = (name: string, times: number) => ({
      note(message: { attempt: number }) {
        seen.push(`${name}${message.attempt}`)
        if (message.attempt <= times) throw new Error(name)
      },
    })
    box.consumer('fine', failing('fine', 0))
    box.consumer('later', failing('later', 2), { retry: { baseMs: 1_000, jitter: 'none' } })
    box.consumer('never', failing('never', 9), { retry: { attempts: 2, baseMs: 1_000, jitter: 'none' } })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'stored', consumers: [{}, {}, {}] })
    for (let time = 0; time < 4; time++) {
      await box.drain()
      await box.clock.advance(10_000)
    }
    expect(seen.sort()).toEqual(['fine1', 'later1', 'later2', 'later3', 'never1', 'never2'])
    expect((await box.fates('1')).map(({ consumer, state }) => [consumer, state])).toEqual([
      ['fine', 'handled'],
      ['later', 'handled'],
      ['never', 'dead'],
    ])
    const outcome = await box.receive(note('1'))
    expect(outcome).toMatchObject({ status: 'dead', ack: true })
    expect(outcome.consumers.map(({ consumer, status }) => [consumer, status]).sort()).toEqual([
      ['fine', 'duplicate'],
      ['later', 'duplicate'],
      ['never', 'dead'],
    ])
  })
})

describe('a handler that asks to be run at an impossible time', () => {
  test.each([
    ['after for ever', { afterMs: Infinity }],
    ['after longer than an interval holds', { afterMs: 1e300 }],
    ['beyond the calendar', { at: new Date(8.64e15) }],
    ['before the calendar', { at: new Date(-8.64e15) }],
  ])('%s', async (_name, when) => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', {
      note() {
        if (++runs === 1) throw new RetryLater(when)
      },
    })
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ attempts: 0, state: 'at' in when && runs > 1 ? 'handled' : 'pending' })
  })
})
