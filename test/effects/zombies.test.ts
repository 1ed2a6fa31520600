/** Effects of a worker that has lost its message, at every step of a call, beside the worker that has it now. */
import { describe, expect, test } from 'vitest'
import { createBox, type EffectOptions } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { gate, note, useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('effect_zombies')
const LEASE_MS = 30_000
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const refused = new Error('refused')
const DEFINITE = { isDefinite: (error: unknown) => error === refused }

interface Behaviour {
  /** Before the effect. */
  before?: () => unknown
  call: () => unknown
  /** After it. */
  after?: () => unknown
  options?: EffectOptions
  leaseMs?: number
}

/** Two workers on one schema, in the order of their turns; `calls` has who called, and `results` what handlers got. */
async function twoWorkers(first: Behaviour, second: Behaviour, order: 'none' | 'key' = 'none') {
  const box = await server.open()
  const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: SILENT })
  const calls: string[] = []
  const results: unknown[] = []
  const declare = (to: Pick<Bench, 'consumer'>, who: string, { before, call, after, options, leaseMs }: Behaviour) =>
    to.consumer(
      'pay',
      {
        async note(_message, { effect }) {
          await before?.()
          const run = () => (calls.push(who), call())
          const result = await effect('charge', run, options)
          await after?.()
          results.push(result)
        },
      },
      { order, concurrency: 1, leaseMs: leaseMs ?? LEASE_MS, retry: { attempts: 20, baseMs: 1_000, jitter: 'none' } },
    )
  declare(box, 'first', first)
  declare(other, 'second', second)
  await box.receive(note('1', { key: 'k' }))
  return {
    box,
    other,
    calls,
    results,
    takeOver: () => box.clock.advance(LEASE_MS + 1_000),
    /** Runs what is due, also what is due only after a retry's delay. */
    async finish() {
      await box.clock.advance(LEASE_MS + 60_000)
      await other.drain()
    },
    parked: async () => (await box.fate('1')).reason === 'effect-unknown',
    recorded: async () => (await box.sql(`select 1 from ob.effect where state = 'done'`)).length > 0,
    async [Symbol.asyncDispose]() {
      await other.stop({ timeoutMs: 5_000 })
      await box[Symbol.asyncDispose]()
    },
  }
}

describe.for<'none' | 'key'>(['none', 'key'])('with order %s', (order) => {
  test('a worker that lost its message does not take back the intent of the new holder', async () => {
    const [calledFirst, failFirst, calledSecond, answerSecond] = [gate(), gate(), gate(), gate()]
    let failures = 1
    await using pair = await twoWorkers(
      {
        async call() {
          calledFirst.open()
          await failFirst.opened
          throw refused
        },
        options: DEFINITE,
      },
      {
        async call() {
          calledSecond.open()
          await answerSecond.opened
          return 'second'
        },
        after() {
          if (failures-- > 0) throw new Error('after the effect')
        },
      },
      order,
    )
    const { box, other, calls, results } = pair
    const zombie = box.drain()
    await calledFirst.opened
    await pair.takeOver()
    const holder = other.drain()
    await calledSecond.opened
    failFirst.open()
    await zombie
    answerSecond.open()
    await holder
    await pair.finish()
    expect(calls).toEqual(['first', 'second'])
    expect(results).toEqual(['second'])
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })

  test('a message that was parked for a call which certainly did not happen runs again', async () => {
    const [called, fail] = [gate(), gate()]
    let failures = 1
    await using pair = await twoWorkers(
      {
        async call() {
          called.open()
          await fail.opened
          if (failures-- > 0) throw refused
          return 'first'
        },
        options: { onUnknown: 'park', ...DEFINITE },
      },
      { call: () => 'second', options: { onUnknown: 'park' } },
      order,
    )
    const zombie = pair.box.drain()
    await called.opened
    await pair.takeOver()
    await pair.other.drain()
    expect(await pair.parked()).toBe(true)
    fail.open()
    await zombie
    await pair.other.drain()
    expect(pair.calls).toHaveLength(2)
    expect(await pair.box.fate('1')).toMatchObject({ state: 'handled' })
  })

  test('an outcome that arrives after the lease was lost is recorded, and the parked message runs on', async () => {
    const [called, answer] = [gate(), gate()]
    await using pair = await twoWorkers(
      {
        async call() {
          called.open()
          await answer.opened
          return 'first'
        },
        options: { onUnknown: 'park' },
        leaseMs: 1_000,
      },
      { call: () => 'second', options: { onUnknown: 'park' } },
      order,
    )
    const zombie = pair.box.drain()
    await called.opened
    await pair.takeOver()
    await waitUntil(async () => {
      await pair.other.drain()
      return pair.parked()
    })
    // Its heartbeat has found out, and the worker has gone on.
    await zombie
    answer.open()
    await waitUntil(() => pair.recorded(), { what: 'the late outcome to be recorded' })
    await pair.other.drain()
    expect(pair.calls).toEqual(['first'])
    expect(pair.results).toEqual(['first'])
    expect(await pair.box.fate('1')).toMatchObject({ state: 'handled' })
  })

  test.for<[step: string, at: 'before' | 'call' | 'after', onUnknown: 'retry' | 'park', calls: string[]]>([
    ['before it intends', 'before', 'retry', ['second']],
    ['before it intends', 'before', 'park', ['second']],
    ['in the call', 'call', 'retry', ['first', 'second']],
    ['in the call', 'call', 'park', ['first']],
    ['after the record', 'after', 'retry', ['first']],
    ['after the record', 'after', 'park', ['first']],
  ])('a worker that comes to %s (%s, %s): no call after a recorded outcome', async ([, at, onUnknown, expected]) => {
    const [reached, wake] = [gate(), gate()]
    let waits = true
    const freeze = async (): Promise<void> => {
      if (!waits) return
      waits = false
      reached.open()
      await wake.opened
    }
    await using pair = await twoWorkers(
      {
        ...(at === 'before' && { before: freeze }),
        ...(at === 'after' && { after: freeze }),
        async call() {
          if (at === 'call') await freeze()
          return 'first'
        },
        options: { onUnknown },
      },
      { call: () => 'second', options: { onUnknown } },
      order,
    )
    const zombie = pair.box.drain()
    await reached.opened
    await pair.takeOver()
    await pair.other.drain()
    wake.open()
    await zombie
    await pair.finish()
    expect(pair.calls).toEqual(expected)
    expect(await pair.box.fate('1')).toMatchObject({ state: 'handled' })
    expect(pair.results.length).toBeGreaterThan(0)
    expect(new Set(pair.results).size).toBe(1)
  })
})

test('two workers that intend at once: the second one knows of the first', async () => {
  const options = { onUnknown: 'park' } as const
  await using pair = await twoWorkers({ call: () => 'first', options }, { call: () => 'second', options })
  const { box, other } = pair
  const waiting = async (): Promise<number> => {
    const [row] = await box.sql(`select count(*)::int n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`)
    return row!['n'] as number
  }
  const blocker = await server.pool.connect()
  try {
    await blocker.query('begin')
    await blocker.query(`insert into ${box.schema}.effect (consumer, source, id, name, state)
      select consumer, source, id, 'charge', 'intent' from ${box.schema}.work`)
    const first = box.drain()
    await waitUntil(async () => (await waiting()) === 1)
    await pair.takeOver()
    const second = other.drain()
    await Promise.race([second, waitUntil(async () => (await waiting()) === 2)])
    await blocker.query('rollback')
    await Promise.all([first, second])
  } finally {
    blocker.release()
  }
  await pair.finish()
  expect(pair.calls).toHaveLength(1)
})

test('an outcome that arrives after the box has stopped is recorded, and the call is not cut off', async () => {
  const [called, answer] = [gate(), gate()]
  let signal: AbortSignal | undefined
  await using box = await server.open()
  const results: unknown[] = []
  let calls = 0
  box.consumer('pay', {
    async note(_message, { effect }) {
      const call = async (given: { signal: AbortSignal }) => {
        calls++
        signal = given.signal
        called.open()
        await answer.opened
        return 'late'
      }
      results.push(await effect('charge', call))
    },
  })
  await box.receive(note('1'))
  await box.start()
  await called.opened
  await box.stop({ timeoutMs: 0 })
  expect(signal!.aborted).toBe(false)
  answer.open()
  await waitUntil(async () => (await box.sql(`select 1 from ob.effect where state = 'done'`)).length > 0)
  await box.drain()
  expect(calls).toBe(1)
  expect(results).toEqual(['late'])
})

/** Its outcome is recorded while the second worker parks the message for want of it; `meanwhile`, before it has. */
async function recordWhileParking(meanwhile: (box: Bench) => Promise<unknown>) {
  const options = { onUnknown: 'park' } as const
  const [called, answer] = [gate(), gate()]
  const pair = await twoWorkers(
    {
      async call() {
        called.open()
        await answer.opened
        return 'first'
      },
      options,
    },
    { call: () => 'second', options },
  )
  const { box, other } = pair
  const zombie = box.drain()
  await called.opened
  await pair.takeOver()
  // The second worker has seen the intent, and waits for this row before it parks the message.
  const blocker = await server.pool.connect()
  try {
    await blocker.query('begin')
    await blocker.query(`lock table ${box.schema}.attempt in share mode`)
    const parking = other.drain()
    await waitUntil(async () => {
      const [row] = await box.sql(`select count(*)::int n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`)
      return row!['n'] === 1
    })
    answer.open()
    await waitUntil(() => pair.recorded(), { what: 'the outcome to be recorded' })
    await meanwhile(box)
    await blocker.query('commit')
    return { ...pair, over: Promise.all([parking, zombie]) }
  } finally {
    blocker.release()
  }
}

test('an outcome that is recorded while its message is being parked releases the message', async () => {
  await using pair = await recordWhileParking(() => Promise.resolve())
  await pair.over
  await pair.other.drain()
  expect(pair.calls).toEqual(['first'])
  expect(await pair.box.fate('1')).toMatchObject({ state: 'handled' })
})

test('it releases the message also where the database refuses that at first', async () => {
  const resumes = `'ob.resume_parked(text, text, text)'::regprocedure`
  let original = ''
  await using pair = await recordWhileParking(async (box) => {
    const [row] = await box.sql(`select pg_get_functiondef(${resumes}) as it`)
    original = row!['it'] as string
    await box.sql('create sequence ob.refusals')
    await box.sql(`create or replace function ob.resume_parked(of_consumer text, of_source text, of_id text) returns boolean
      language plpgsql as $$ begin perform nextval('ob.refusals'); raise exception using errcode = '53100'; end $$`)
  })
  const { box, other, calls, over } = pair
  await waitUntil(async () => (await box.sql('select is_called from ob.refusals'))[0]!['is_called'], {
    what: 'a refusal',
  })
  await box.sql(original)
  await over
  await other.drain()
  expect(calls).toEqual(['first'])
  expect(await box.fate('1')).toMatchObject({ state: 'handled' })
})
