/** `batch(handler)`: many messages of one type in one call; if it throws, the bad one is found and stands alone. */
import { batch, Reject, type BatchContext, type Message, type MessageMap } from 'oncebox'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { type Bench, note, notes, useServer } from './fixture.js'

const server = useServer('batch')

const MODES = ['stored', 'inline'] as const

async function run(box: Bench, mode: (typeof MODES)[number], messages: ReturnType<typeof notes>): Promise<void> {
  if (mode === 'stored') {
    await box.receive(messages)
    await box.drain()
  } else await box.handle(messages)
}

/** A batch handler that writes them all, and notes the sizes of its calls. */
function writer(box: Bench, calls: string[][], fail: (message: Message) => unknown = () => undefined) {
  return batch<Message, MessageMap, pg.PoolClient>(async (messages, { tx }) => {
    calls.push(messages.map(({ id }) => id))
    for (const message of messages) {
      await box.write(tx, 'a', message)
      await fail(message)
    }
  })
}

describe.for(MODES)('%s', (mode) => {
  test('one call gets them all, in order, and settles them together', async () => {
    await using box = await server.open()
    const calls: string[][] = []
    // Two slots that claim at the same moment would share them.
    box.consumer('a', { note: writer(box, calls) }, { mode, concurrency: 1 })
    await run(box, mode, notes(20))
    expect(calls).toEqual([notes(20).map(({ id }) => id)])
    expect(await box.ids()).toEqual(notes(20).map(({ id }) => id))
    const again = await box.handle(notes(20))
    expect(new Set(again.map(({ status }) => status))).toEqual(new Set(['duplicate']))
    expect(calls).toHaveLength(1)
  })

  test('one bad of 64 is found in few calls; the others are handled once', async () => {
    await using box = await server.open()
    const calls: string[][] = []
    const bad = writer(box, calls, ({ id }) => {
      if (id === 'n37') throw new Error('no')
    })
    box.consumer('a', { note: bad }, { mode, retry: { attempts: 1 } })
    await run(box, mode, notes(64))
    const others = notes(64)
      .map(({ id }) => id!)
      .filter((id) => id !== 'n37')
    expect((await box.ids()).sort()).toEqual(others.sort())
    expect(await box.fate('n37')).toMatchObject({ state: 'dead', attempts: 1, error: { message: 'no' } })
    // One call for all, then two for each of six halvings, and perhaps one more to be sure.
    expect(calls.length).toBeLessThanOrEqual(14)
  })

  test('several bad ones, next to each other and at both ends', async () => {
    await using box = await server.open()
    const wrong = new Set(['n1', 'n2', 'n8', 'n16'])
    const calls: string[][] = []
    const bad = writer(box, calls, ({ id }) => {
      if (wrong.has(id)) throw new Reject(id)
    })
    box.consumer('a', { note: bad }, { mode })
    await run(box, mode, notes(16))
    expect((await box.ids()).sort()).toEqual(
      notes(16)
        .map(({ id }) => id!)
        .filter((id) => !wrong.has(id))
        .sort(),
    )
    for (const id of wrong) expect(await box.fate(id)).toMatchObject({ state: 'dead', error: { message: id } })
  })

  test('a constraint that fails at COMMIT is blamed on the right one', async () => {
    await using box = await server.open()
    await box.sql('create table ob.name (name text unique deferrable initially deferred)')
    await box.sql(`insert into ob.name values ('n5')`)
    const insert = batch<Message, MessageMap, pg.PoolClient>(async (messages, { tx }) => {
      for (const { id } of messages) await tx.query(`insert into ${box.schema}.name values ($1)`, [id])
    })
    box.consumer('a', { note: insert }, { mode, retry: { attempts: 1 } })
    await run(box, mode, notes(8))
    expect(await box.fate('n5')).toMatchObject({ state: 'dead', error: { code: '23505' } })
    for (const id of ['n1', 'n4', 'n6', 'n8']) expect(await box.fate(id)).toMatchObject({ state: 'handled' })
  })

  test('a swallowed SQL error and an own COMMIT are found out', async () => {
    await using box = await server.open()
    const calls: string[][] = []
    const misuse = batch<Message, MessageMap, pg.PoolClient>(async (messages, { tx }) => {
      calls.push(messages.map(({ id }) => id))
      for (const message of messages) {
        if (message.id === 'n2') await tx.query('select 1/0').catch(() => undefined)
        else if (message.id === 'n3') await tx.query('select 1; commit')
        else await box.write(tx, 'a', message)
      }
    })
    box.consumer('a', { note: misuse }, { mode, retry: { attempts: 1 } })
    await run(box, mode, notes(4))
    expect((await box.ids()).sort()).toEqual(['n1', 'n4'])
    expect(await box.fate('n2')).toMatchObject({ state: 'dead', error: { code: 'TRANSACTION_ABORTED' } })
    expect(await box.fate('n3')).toMatchObject({ state: 'dead', error: { code: 'HANDLER_COMMITTED' } })
  })

  test('a deadline that only one message breaks is blamed on it', async () => {
    await using box = await server.open()
    const calls: string[][] = []
    const slow = writer(box, calls, ({ id }) => (id === 'n3' ? new Promise(() => {}) : undefined))
    box.consumer('a', { note: slow }, { mode, timeoutMs: 500, retry: { attempts: 1 } })
    await run(box, mode, notes(4))
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n4'])
    expect(await box.fate('n3')).toMatchObject({ state: 'dead', error: { code: 'HANDLER_TIMEOUT' } })
  })

  test('a call has messages of one type only, also of a handler for every type', async () => {
    await using box = await server.open()
    const calls: string[] = []
    const types = batch<Message, MessageMap, pg.PoolClient>((messages) => {
      calls.push([...new Set(messages.map(({ type }) => type))].join())
    })
    box.consumer('a', { note: types, '*': types }, { mode, concurrency: 1 })
    await run(box, mode, [
      note('1'),
      note('2', { type: 'x' }),
      note('3', { type: 'y' }),
      note('4'),
      note('5', { type: 'x' }),
    ])
    expect(calls.sort()).toEqual(['note', 'x', 'y'])
  })

  test('beside plain handlers, and never more than group.messages at once', async () => {
    await using box = await server.open()
    const calls: string[][] = []
    box.consumer(
      'a',
      { note: writer(box, calls), plain: (message, { tx }) => box.write(tx, 'a', message) },
      { mode, group: { messages: 4 }, concurrency: 1 },
    )
    const mixed = notes(10).flatMap((one, at) => [one, note(`p${at + 1}`, { type: 'plain' })])
    await run(box, mode, mixed)
    expect((await box.ids()).sort()).toEqual(mixed.map(({ id }) => id!).sort())
    for (const call of calls) expect(call.length).toBeLessThanOrEqual(4)
    expect(calls.flat().sort()).toEqual(
      notes(10)
        .map(({ id }) => id!)
        .sort(),
    )
  })

  test('its result is not stored: which message would it belong to', async () => {
    await using box = await server.open()
    box.consumer('a', { note: batch(() => 'a result') }, { mode })
    await run(box, mode, notes(2))
    const [outcome] = await box.handle(notes(1))
    expect(outcome).toMatchObject({ status: 'duplicate' })
    expect((outcome as { result?: unknown }).result).toBeUndefined()
  })

  test('what it sends commits with it', async () => {
    await using box = await server.open()
    const seen: string[] = []
    const sender = batch<Message, MessageMap, pg.PoolClient>(async (messages, ctx) => {
      seen.push(...Object.keys(ctx).concat('signal' in ctx ? ['signal'] : []))
      for (const { id } of messages) await ctx.send('sent', { id })
      if (messages.length > 2) throw new Error('too many')
    })
    box.consumer('a', { note: sender }, { mode, retry: { attempts: 1 } })
    await run(box, mode, notes(4))
    expect((await box.sent()).map(({ data }) => (data as { id: string }).id).sort()).toEqual(['n1', 'n2', 'n3', 'n4'])
  })
})

test('stored: attempts count per message', async () => {
  await using box = await server.open()
  const attempts: Record<string, number[]> = {}
  const counter = batch<Message, MessageMap, pg.PoolClient>((messages) => {
    if (messages.length === 1) (attempts[messages[0]!.id] ??= []).push(messages[0]!.attempt)
    if (messages.some(({ id }) => id === 'n2')) throw new Error('no')
  })
  box.consumer('a', { note: counter }, { retry: { attempts: 3, baseMs: 0 } })
  await box.receive(notes(3))
  await box.drain()
  expect(attempts['n2']).toEqual([1, 2, 3])
  expect(await box.fate('n2')).toMatchObject({ state: 'dead', attempts: 3 })
  expect(await box.fate('n1')).toMatchObject({ state: 'handled' })
})

test('inline: outcomes in order, whatever is known already is left out of the call', async () => {
  await using box = await server.open()
  const calls: string[][] = []
  box.consumer('a', { note: writer(box, calls) }, { mode: 'inline' })
  await box.handle(notes(2))
  const outcomes = await box.handle([note('n4'), note('n1'), note('n3'), note('n4'), note('n2', { data: 'other' })])
  expect(outcomes.map(({ id, status }) => [id, status])).toEqual([
    ['n4', 'handled'],
    ['n1', 'duplicate'],
    ['n3', 'handled'],
    ['n4', 'duplicate'],
    ['n2', 'quarantined'],
  ])
  expect(calls).toEqual([
    ['n1', 'n2'],
    ['n4', 'n3'],
  ])
})

test('a worker that dies in a batch: each message is a suspect, runs alone, and only the killer dies', async () => {
  await using box = await server.open()
  const killer = batch<Message, MessageMap, pg.PoolClient>(async (messages, { tx }) => {
    for (const message of messages) {
      if (message.id === 'n2') box.crashAt('handled')
      await box.write(tx, 'a', message)
    }
  })
  box.consumer('a', { note: killer }, { retry: { attempts: 2 } })
  await box.receive(notes(4))
  for (let time = 0; time < 6; time++) {
    await box.drain()
    await box.clock.advance(31_000)
  }
  expect((await box.ids()).sort()).toEqual(['n1', 'n3', 'n4'])
  expect(await box.fate('n2')).toMatchObject({ state: 'dead', error: { code: 'WORKER_DIED' } })
})

test('the mark is an opaque object, so that plain handlers keep their inference', () => {
  const marked = batch((_messages: readonly Message[], _ctx: BatchContext<MessageMap, unknown>) => undefined)
  expect(typeof marked).toBe('object')
})
