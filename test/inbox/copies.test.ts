/**
 * Copies of one message at the same moment, on arrival: whatever was known of it before, its handler commits once.
 * `test/crash/copies.test.ts` has the same over several processes.
 */
import { describe, expect, test } from 'vitest'
import { batch, RetryLater, type Incoming, type Outcome } from 'oncebox'
import type { PgClient } from 'oncebox/pg'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, useServer, type Bench } from './fixture.js'

const server = useServer('copies', { max: 16 })

/** The long form: `ONCEBOX_COPIES=10000 npx vitest run test/inbox/copies.test.ts`. */
const MESSAGES = Number(process.env['ONCEBOX_COPIES'] ?? 120)
const WAVE = 12
const TIMEOUT_MS = 300_000 + 150 * MESSAGES

type Door = 'handle' | 'source' | 'once' | 'effects' | 'batch'
type Past = 'plain' | 'redelivered' | 'failed before'

const cases = (['handle', 'source', 'once', 'effects', 'batch'] as Door[]).flatMap((door) =>
  (['plain', 'redelivered', 'failed before'] as Past[]).flatMap((past) =>
    [2, 5].map((copies): [Door, Past, number] => [door, past, copies]),
  ),
)

test.for(cases)(
  'by %s, %s, %i copies at once: one effect each',
  { timeout: TIMEOUT_MS },
  async ([door, past, copies]) => {
    await using box = await server.open({ logger: SILENT })
    const failing = new Set<string>()
    const deliver = doorOf(box, door, failing)
    for (let at = 0; at < MESSAGES; at += WAVE) {
      const ids = Array.from({ length: Math.min(WAVE, MESSAGES - at) }, (_, index) => `m${at + index}`)
      if (past === 'failed before') {
        for (const id of ids) failing.add(id)
        await Promise.all(ids.map((id) => deliver(note(id)).catch(() => undefined)))
      }
      // One more failure among the copies: it is recorded while the others run.
      const again = new Set(past === 'failed before' ? ids : [])
      for (const id of ids) if (!again.has(id)) failing.delete(id)
      const message = (id: string): Incoming => note(id, past === 'redelivered' ? { redelivered: true } : {})
      await Promise.all(ids.flatMap((id) => Array.from({ length: copies }, () => untilAcked(deliver, message(id)))))
    }
    const counts = new Map<string, number>()
    for (const id of await box.ids()) counts.set(id, (counts.get(id) ?? 0) + 1)
    expect([...counts].filter(([, count]) => count > 1)).toEqual([])
    expect(counts.size).toBe(MESSAGES)
    expect(await box.sql('select id, parked, attempts from ob.work')).toEqual([])
  },
)

/** A sender: delivers until it may forget the message. While another copy runs it waits a moment, as brokers do. */
async function untilAcked(deliver: (message: Incoming) => Promise<boolean>, message: Incoming): Promise<void> {
  const isAcked = (): Promise<boolean> => deliver(message).catch(() => false)
  await waitUntil(isAcked, { timeoutMs: 60_000, everyMs: 2, what: `the acknowledgement of ${message.id}` })
}

/** A consumer behind one of the doors, and how to deliver to it. Ids in `failing` fail once, then are taken out of it. */
function doorOf(box: Bench, door: Door, failing: Set<string>): (message: Incoming) => Promise<boolean> {
  const run = async (message: { id: string }, tx: PgClient): Promise<void> => {
    // The effect first: a failure must take it back.
    await box.write(tx, 'a', message)
    if (failing.delete(message.id)) throw new RetryLater({ afterMs: 1 })
  }
  const options = { mode: 'inline', retry: { attempts: 1_000, baseMs: 1 } } as const
  if (door === 'once') {
    return async (message) => {
      const client = await server.pool.connect()
      try {
        await client.query('begin')
        const { status } = await box.once(client, 'a', message as { id: string }, () => run(message as never, client))
        await client.query('commit')
        return status === 'handled' || status === 'duplicate'
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    }
  }
  if (door === 'batch') {
    const all = batch(async (messages: readonly { id: string }[], { tx }: { tx: PgClient }) => {
      for (const message of messages) await run(message, tx)
    })
    box.consumer('a', { note: all }, options)
  } else {
    box.consumer(
      'a',
      {
        async note(message, { tx, effect }) {
          if (door === 'effects') await effect('call', () => message.id)
          await run(message, tx)
        },
      },
      options,
    )
  }
  if (door !== 'source') return async (message) => (await box.handle(message)).ack
  let push: (batch: readonly Incoming[]) => Promise<readonly Outcome[]> = () => Promise.reject(new Error('not started'))
  const source = {
    push: true as const,
    start(deliver: typeof push) {
      push = deliver
      return Promise.resolve()
    },
    stop: () => Promise.resolve(),
  }
  box.from(source, { types: 'any' })
  return async (message) => (await push([message]))[0]!.ack
}

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

test.for(['fails', 'is stopped'] as const)(
  'a copy that is stored while another runs on arrival is not acknowledged, in case that one %s',
  { timeout: 120_000 },
  async (end) => {
    await using box = await server.open({ logger: SILENT })
    const started = gate()
    const finish = gate()
    let calls = 0
    box.consumer(
      'a',
      {
        async note(message, { tx, signal }) {
          if (calls++ === 0) {
            started.open()
            await Promise.race([finish.opened, new Promise((resolve) => signal.addEventListener('abort', resolve))])
            throw new Error('not this time')
          }
          await box.write(tx, 'a', message)
        },
      },
      { mode: 'inline' },
    )
    const first = box.handle(note('m', { redelivered: true })).catch(() => ({ ack: false }))
    await started.opened
    const copy = await box.receive(note('m'))
    expect(copy).toMatchObject({ status: 'busy', ack: false })
    if (end === 'fails') finish.open()
    else await box.stop({ timeoutMs: 0 })
    expect((await first).ack).toBe(false)
    // Its sender still has it, and brings it again.
    expect(await box.receive(note('m'))).toMatchObject({ ack: true })
    await box.waitUntilHandled('m')
    expect(await box.ids()).toEqual(['m'])
  },
)

test(
  'a message whose worker died fails on arrival like any other, up to its last attempt',
  { timeout: 120_000 },
  async () => {
    await using box = await server.open({ logger: SILENT })
    box.consumer(
      'a',
      {
        note() {
          throw new Error('always')
        },
      },
      { mode: 'inline', retry: { attempts: 3, baseMs: 1, maxMs: 1 } },
    )
    await box.receive(note('m'))
    // What a worker that died leaves behind.
    await box.sql(`update ob.work set token = gen_random_uuid(), due_at = ob.now() - interval '1 s'`)
    const statuses: string[] = []
    for (let times = 0; times < 3; times++) statuses.push((await box.handle(note('m'))).status)
    expect(statuses).toEqual(['failed', 'failed', 'dead'])
    expect(await box.fate('m')).toMatchObject({ state: 'dead', attempts: 3 })
  },
)

test('the copy of a message in flight waits for a bounded time, holds no connection for long, and is busy', async () => {
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
  // More copies than there are connections in the pool.
  const copies = Promise.all(Array.from({ length: 60 }, () => box.handle(note('1'))))
  const other = box.handle(note('2', { type: 'other' }))
  expect(await other).toMatchObject({ reason: 'unrouted' })
  for (const { status, ack } of await copies) expect([status, ack]).toEqual(['busy', false])
  finish.open()
  expect(await first).toMatchObject({ status: 'handled' })
  expect(await box.ids()).toEqual(['1'])
})

test('receive does not wait for a message that is being handled on arrival either, and stores the others', async () => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer('a', {
    async note(message, { tx }) {
      if (message.id === 'n2') {
        started.open()
        await finish.opened
      }
      await box.write(tx, 'a', message)
    },
  })
  const handling = box.handle(note('n2'))
  await started.opened
  const outcomes = await box.receive(notes(3))
  expect(outcomes).toMatchObject([
    { id: 'n1', status: 'stored', ack: true },
    { id: 'n2', status: 'busy', ack: false, consumers: [{ consumer: 'a', status: 'busy' }] },
    { id: 'n3', status: 'stored', ack: true },
  ])
  finish.open()
  expect(await handling).toMatchObject({ status: 'handled' })
  expect(await box.receive(note('n2'))).toMatchObject({ status: 'duplicate', ack: true })
  await box.drain()
  expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
})

describe('within one statement a row that was waited for is invisible', () => {
  test.for(['receive', 'handle'] as const)(
    'two bodies under one id at one instant: one is new, the other a conflict: %s',
    async (door) => {
      await using box = await server.open()
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
      for (let round = 0; round < 10; round++) {
        const both = await Promise.all([1, 2].map((data) => box[door](note(`r${round}`, { data }))))
        expect(both.map(({ status }) => status).sort()).toEqual(
          ['quarantined', door === 'receive' ? 'stored' : 'handled'].sort(),
        )
      }
      await box.drain()
      expect(await box.ids()).toHaveLength(10)
    },
  )

  test('a failure recorded while a copy waited is not taken for a duplicate', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (++runs > 1) return box.write(tx, 'a', message)
          started.open()
          await finish.opened
          throw new Error('no')
        },
      },
      { mode: 'inline' },
    )
    const first = box.handle(note('1'))
    await started.opened
    const received = box.receive(note('1'))
    finish.open()
    // If the copy is stored before the failure is recorded, there is nothing left to say but that it is under way.
    const { status, ack } = await first
    expect(['failed', 'busy']).toContain(status)
    expect(ack).toBe(false)
    // It was told that it may forget the message, so the box has it now, and runs it: at once, or after a backoff.
    expect(await received).toMatchObject({ ack: true })
    await waitUntil(async () => {
      await box.drain()
      return (await box.ids()).length > 0
    })
    expect(await box.ids()).toEqual(['1'])
  })
})

test('a copy of an uncommitted message is never taken for a new one', async () => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
  const client = await server.pool.connect()
  await client.query('begin')
  const once = box.once(client, 'a', { id: '1', type: 'note', data: { text: '1' } }, async () => {
    started.open()
    await finish.opened
    await box.write(client, 'once', { id: '1' })
  })
  await started.opened
  expect(await box.handle(note('1'))).toMatchObject({ status: 'busy' })
  finish.open()
  await once
  expect(await box.handle(note('1'))).toMatchObject({ status: 'busy' })
  await client.query('commit')
  client.release()
  expect(await box.handle(note('1'))).toMatchObject({ status: 'duplicate' })
  expect(await box.effects()).toHaveLength(1)
})

test('one contended id fails no batch, and batches in any order do not deadlock', async () => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer('a', {
    async note(message, { tx }) {
      if (message.id === 'held') {
        started.open()
        await finish.opened
      }
      await box.write(tx, 'a', message)
    },
  })
  const held = box.handle(note('held'))
  await started.opened
  const all = notes(30)
  const batches = await Promise.all([
    box.handle([...all.slice(0, 15), note('held'), ...all.slice(15)]),
    box.handle([...all].reverse()),
    box.handle(all),
  ])
  expect(batches[0][15]).toMatchObject({ id: 'held', status: 'busy', ack: false })
  for (const outcome of batches.flat()) {
    if (outcome.id !== 'held') expect(['handled', 'duplicate', 'busy']).toContain(outcome.status)
  }
  finish.open()
  expect(await held).toMatchObject({ status: 'handled' })
  const rest = await box.handle(all)
  expect(rest.every(({ status }) => status === 'handled' || status === 'duplicate')).toBe(true)
  expect((await box.ids()).sort()).toEqual([...all.map(({ id }) => id!), 'held'].sort())
})
