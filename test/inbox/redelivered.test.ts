/** Messages that come again, or are stored and handed over at once: who has them, and what counts. */
import { describe, expect, test } from 'vitest'
import type { Message, Outcome } from 'oncebox'
import type { PgClient } from 'oncebox/pg'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, useServer } from './fixture.js'

const server = useServer('redelivered', { max: 20 })
const DAY = 86_400_000

describe('redelivered on arrival', () => {
  test('a message beyond the horizon does not run again', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', { note: () => void runs++ }, { mode: 'inline', retainMs: DAY })
    const message = note('1', { time: new Date() })
    expect(await box.handle(message)).toMatchObject({ status: 'handled' })
    await box.clock.advance(3 * DAY)
    expect(await box.admin.prune()).toBe(1)
    expect(await box.handle({ ...message, redelivered: true } as never)).toMatchObject({
      status: 'quarantined',
      reason: 'too-old',
    })
    expect(runs).toBe(1)
  })

  test('another body under the id burns no attempt of the first', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note() {
          throw new Error('not yet')
        },
      },
      { mode: 'inline' },
    )
    await box.handle(note('1'))
    expect(await box.handle(note('1', { data: { other: true }, redelivered: true }))).toMatchObject({
      reason: 'conflict',
    })
    expect(await box.fate('1')).toMatchObject({ state: 'failed', attempts: 1 })
  })

  test('a handler with an effect is counted once', async () => {
    await using box = await server.open()
    const attempts: number[] = []
    box.consumer(
      'a',
      {
        async note(message, { effect }) {
          attempts.push(message.attempt)
          await effect('call', () => 1)
          throw new Error('not yet')
        },
      },
      { mode: 'inline', retry: { attempts: 3, baseMs: 0 } },
    )
    const again = note('1', { redelivered: true })
    expect(await box.handle(again)).toMatchObject({ status: 'failed' })
    expect(await box.fate('1')).toMatchObject({ attempts: 1 })
    expect(await box.handle(again)).toMatchObject({ status: 'failed' })
    expect(await box.fate('1')).toMatchObject({ attempts: 2 })
    expect(await box.handle(again)).toMatchObject({ status: 'dead' })
  })
})

describe('several redelivered on arrival', () => {
  const again = (count: number) => notes(count, { redelivered: true })
  const statuses = (outcomes: readonly Outcome[]) => outcomes.map(({ status }) => status)

  test('that nobody knows share a transaction', async () => {
    await using box = await server.open()
    const transactions = new Set<unknown>()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          transactions.add((await tx.query('select pg_current_xact_id()::text xid', [])).rows[0].xid)
          return message.id
        },
      },
      { mode: 'inline', group: { ms: 60_000 } },
    )
    const outcomes = await box.handle(again(5))
    expect(outcomes).toMatchObject(again(5).map(({ id }) => ({ status: 'handled', result: id })))
    expect(transactions.size).toBe(1)
    expect(await box.ids()).toEqual(again(5).map(({ id }) => id))
    expect((await box.handle(again(5))).every(({ status }) => status === 'duplicate')).toBe(true)
  })

  test('run in order where one of them is known, and waits', async () => {
    await using box = await server.open()
    let fails = true
    const handler = (message: Message, { tx }: { tx: PgClient }): Promise<void> => {
      if (fails) throw new Error('not yet')
      return box.write(tx, 'a', message)
    }
    box.consumer('a', { note: handler }, { mode: 'inline', retry: { baseMs: 0 } })
    await box.handle(note('n3'))
    fails = false
    expect(statuses(await box.handle(again(5)))).toEqual(again(5).map(() => 'handled'))
    expect(await box.ids()).toEqual(again(5).map(({ id }) => id))
  })

  test('of which one fails: it is told, and waits for its source; the others are handled', async () => {
    await using box = await server.open()
    const handler = (message: Message, { tx }: { tx: PgClient }): Promise<void> => {
      if (message.id === 'n3') throw new Error('no')
      return box.write(tx, 'a', message)
    }
    box.consumer('a', { note: handler }, { mode: 'inline' })
    const outcomes = await box.handle(again(5))
    expect(outcomes.map(({ status, ack }) => [status, ack])).toEqual(
      again(5).map(({ id }) => (id === 'n3' ? ['failed', false] : ['handled', true])),
    )
    expect(await box.fate('n3')).toMatchObject({ state: 'failed', attempts: 1 })
    expect(await box.ids()).toEqual(['n1', 'n2', 'n4', 'n5'])
  })

  test('of which one is too old, or another body of a known id: each is judged, and the others are handled', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode: 'inline', retainMs: DAY })
    await box.handle(note('n2'))
    const old = new Date(Date.now() - 3 * DAY)
    const outcomes = await box.handle([
      note('n1', { redelivered: true }),
      note('n2', { redelivered: true, data: { other: true } }),
      note('n3', { redelivered: true }),
      note('n4', { redelivered: true, time: old }),
      note('n5', { redelivered: true }),
    ])
    expect(outcomes.map((outcome) => ('reason' in outcome ? outcome.reason : outcome.status))).toEqual([
      'handled',
      'conflict',
      'handled',
      'too-old',
      'handled',
    ])
  })

  test('of which a worker died are suspects: each runs by itself, its attempt counted', async () => {
    await using box = await server.open()
    const transactions = new Set<unknown>()
    let dies = true
    const handler = async (message: Message, { tx }: { tx: PgClient }): Promise<void> => {
      if (dies && message.id === 'n3') box.crashAt('handled')
      if (!dies) transactions.add((await tx.query('select pg_current_xact_id()::text xid', [])).rows[0].xid)
    }
    // On a busy machine too, the first of them commit with the one that dies, or not at all.
    box.consumer('a', { note: handler }, { mode: 'inline', group: { ms: 10_000 } })
    await box.handle(again(5)).catch(() => undefined)
    dies = false
    await box.clock.advance(31_000)
    expect(statuses(await box.handle(again(5)))).toEqual(again(5).map(() => 'handled'))
    expect(transactions.size).toBe(5)
  })
})

describe('stored and run on arrival', () => {
  test('what the box has acknowledged stays with the box when a run on arrival fails', async () => {
    await using box = await server.open()
    let fails = true
    box.consumer(
      'a',
      {
        note() {
          if (fails) throw new Error('not yet')
        },
      },
      { mode: 'inline', retry: { baseMs: 0 } },
    )
    expect(await box.receive(note('1'))).toMatchObject({ status: 'stored', ack: true })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed' })
    expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 1 })
    fails = false
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })

  test('receive that waits for a failing run on arrival is not undone by it', async () => {
    await using box = await server.open()
    const begun = gate()
    const goOn = gate()
    let runs = 0
    box.consumer(
      'a',
      {
        async note() {
          if (++runs === 2) {
            begun.open()
            await goOn.opened
          }
          if (runs <= 2) throw new Error('not yet')
        },
      },
      { mode: 'inline', retry: { baseMs: 0 } },
    )
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: false })
    const second = box.handle(note('1'))
    await begun.opened
    const stored = box.receive(note('1'))
    await waitUntil(async () => {
      const waiting = await box.sql(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return waiting.length > 0
    })
    goOn.open()
    expect(await second).toMatchObject({ status: 'failed' })
    expect(await stored).toMatchObject({ ack: true })
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })
})

test('what the box has acknowledged stays with the box when a run on arrival fails after an effect', async () => {
  await using box = await server.open()
  let fails = true
  box.consumer(
    'a',
    {
      async note(_message, { effect }) {
        await effect('call', () => 1)
        if (fails) throw new Error('not yet')
      },
    },
    { mode: 'inline', retry: { baseMs: 0 } },
  )
  await box.receive(note('1'))
  expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: true })
  expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 1 })
  fails = false
  await box.drain()
  expect(await box.fate('1')).toMatchObject({ state: 'handled' })
})

test('a redelivery after its row was pruned does not run again', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { retainMs: 3_600_000 })
  const time = new Date()
  await box.handle(note('1', { time }))
  await box.clock.advance(4 * 3_600_000)
  const [pruned, outcome] = await Promise.all([box.admin.prune(), box.handle(note('1', { time }))])
  expect(pruned).toBe(1)
  expect(outcome.status === 'duplicate' || (outcome.status === 'quarantined' && outcome.reason === 'too-old')).toBe(
    true,
  )
  expect(await box.handle(note('1', { time }))).toMatchObject({ reason: 'too-old', ack: true })
  expect(await box.ids()).toEqual(['1'])
})

test.for([true, false])(
  'what a worker died of on arrival still belongs to its source, redelivered: %s',
  async (redelivered) => {
    const told: unknown[] = []
    await using box = await server.open({ hooks: { failed: (_, { retryBy }) => void told.push(retryBy) } })
    let dies = true
    const handler = (): void => {
      if (!dies) throw new Error('no')
      box.crashAt('handled')
    }
    box.consumer('a', { note: handler }, { mode: 'inline' })
    await box.handle(note('1', { redelivered: true })).catch(() => undefined)
    dies = false
    await box.clock.advance(31_000)
    expect(await box.handle(note('1', { redelivered }))).toMatchObject({ status: 'failed', ack: false })
    expect(told).toEqual(['source'])
    expect(await box.fate('1')).toMatchObject({ state: 'failed' })
  },
)

test.for([true, false])(
  'what a worker died of on arrival is the box’s once it has acknowledged a copy, redelivered: %s',
  async (redelivered) => {
    await using box = await server.open()
    let dies = true
    const handler = (): void => {
      if (!dies) throw new Error('no')
      box.crashAt('handled')
    }
    box.consumer('a', { note: handler }, { mode: 'inline' })
    await box.handle(note('1', { redelivered: true })).catch(() => undefined)
    dies = false
    await box.clock.advance(31_000)
    expect(await box.receive(note('1'))).toMatchObject({ ack: true })
    expect(await box.handle(note('1', { redelivered }))).toMatchObject({ status: 'failed' })
    expect(await box.fate('1')).toMatchObject({ state: 'pending' })
  },
)
