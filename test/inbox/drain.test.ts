/** Drains: where they end, and who ends them. */
import { describe, expect, test } from 'vitest'
import { RetryLater } from 'oncebox'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, useServer } from './fixture.js'

const server = useServer('drain')

describe('a stop ends a drain in flight', () => {
  test.for(['box', 'consumer'] as const)('no handler starts after the stop of the %s has resolved', async (whose) => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    let stopped = false
    const late: string[] = []
    const consumer = box.consumer(
      'a',
      {
        async note({ id }) {
          if (stopped) late.push(id)
          started.open()
          await finish.opened
        },
      },
      { concurrency: 1, group: { messages: 1 } },
    )
    await box.receive(notes(3))
    const draining = (whose === 'box' ? box : consumer).drain()
    await started.opened
    const stopping = (whose === 'box' ? box : consumer).stop().then(() => (stopped = true))
    finish.open()
    await Promise.all([stopping, draining])
    expect(late).toEqual([])
    // What was not begun is left to whoever comes next.
    await box.drain()
    expect(late).toHaveLength(2)
    for (const id of ['n1', 'n2', 'n3']) expect(await box.fate(id)).toMatchObject({ state: 'handled', attempts: 0 })
  })

  test('a stop waits for the handler that a drain has started, and ends it when its time is up', async () => {
    await using box = await server.open()
    const started = gate()
    let reason: unknown
    box.consumer('a', {
      note: (_message, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject((reason = signal.reason) as Error))
          started.open()
        }),
    })
    await box.receive(note('1'))
    const draining = box.drain()
    await started.opened
    await box.stop({ timeoutMs: 0 })
    expect(reason).toMatchObject({ code: 'STOPPED' })
    await draining
    expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 0 })
  })

  test('a drain that is called while the box stops begins when it has stopped', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    let running = 0
    box.consumer(
      'a',
      {
        async note() {
          running++
          started.open()
          await finish.opened
        },
      },
      { concurrency: 1, group: { messages: 1 } },
    )
    await box.receive(notes(2))
    await box.start()
    await started.opened
    let stopped = false
    const stopping = box.stop().then(() => (stopped = true))
    const draining = box.drain().then(() => stopped)
    expect(running).toBe(1)
    finish.open()
    await stopping
    expect(await draining).toBe(true)
    expect(running).toBe(2)
  })
})

describe('messages that ask to be run later', () => {
  test.for<[what: string, when: { afterMs: number } | { at: Date }, order: 'none' | 'key']>([
    ['at once', { afterMs: 0 }, 'none'],
    ['at once, in order', { afterMs: 0 }, 'key'],
    ['at a time long gone', { at: new Date(0) }, 'none'],
    ['at a time long gone, in order', { at: new Date(0) }, 'key'],
  ])('do not keep a drain: %s', async ([, when, order]) => {
    await using box = await server.open()
    const runs: string[] = []
    box.consumer(
      'a',
      {
        note({ id }) {
          runs.push(id)
          if (runs.length < 1_000 && id !== 'n3') throw new RetryLater(when)
        },
      },
      { order, concurrency: 2, group: { messages: 1 } },
    )
    await box.receive(notes(2).map((one) => ({ ...one, key: one.id })))
    await box.drain()
    expect(runs.sort()).toEqual(['n1', 'n2'])
    expect(await box.fate('n1')).toMatchObject({ state: 'pending', attempts: 0 })
    // Each of them has another turn when anything else gets on.
    await box.receive(note('n3', { key: 'n3' }))
    await box.drain()
    expect(runs.filter((id) => id === 'n3')).toEqual(['n3'])
    expect(await box.fate('n3')).toMatchObject({ state: 'handled' })
    expect(runs.length).toBeLessThanOrEqual(7)
  })

  test('run again in the next drain, and in the same one when another message has got on', async () => {
    await using box = await server.open()
    let ready = false
    const runs: string[] = []
    box.consumer(
      'a',
      {
        note({ id }) {
          runs.push(id)
          if (id === 'n2') ready = true
          else if (!ready) throw new RetryLater({ afterMs: 0 })
        },
      },
      { concurrency: 1, group: { messages: 1 } },
    )
    await box.receive(notes(2))
    await box.drain()
    expect(runs).toEqual(['n1', 'n2', 'n1'])
    expect(await box.fate('n1')).toMatchObject({ state: 'handled' })
  })
})

test('failed attempts without a delay run on in the same drain, until they are used up', async () => {
  await using box = await server.open()
  let runs = 0
  box.consumer(
    'a',
    {
      note() {
        runs++
        throw new Error('again')
      },
    },
    { retry: (_error, attempt) => (attempt < 5 ? 0 : null) },
  )
  await box.receive(note('1'))
  await box.drain()
  expect(runs).toBe(5)
  await waitUntil(async () => (await box.fate('1')).state === 'dead')
})

test('a handler that awaits the drain of its own box is told that it waits for itself', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => box.drain() }, { timeoutMs: 200, retry: { attempts: 1 } })
  await box.start()
  await box.receive(note('1'))
  await waitUntil(async () => (await box.fate('1')).state === 'dead', { what: 'it to be dead' })
  const { error } = await box.fate('1')
  expect(error).toMatchObject({ code: 'HANDLER_TIMEOUT' })
  expect(error!.message).toContain('waits for itself')
})

test('a drain that fails leaves nothing running behind it', async () => {
  await using box = await server.open()
  const begun = gate()
  const cut = gate()
  const finish = gate()
  let running = 0
  box.consumer(
    'a',
    {
      async note({ id }, { tx }) {
        if (id === 'n1') {
          await begun.opened
          cut.open()
          await tx.query('select pg_terminate_backend(pg_backend_pid())')
        }
        running++
        begun.open()
        await finish.opened
        running--
      },
    },
    { concurrency: 2, group: { messages: 1 } },
  )
  await box.receive(notes(2))
  const left = box.drain().then(
    () => 'it did not fail',
    () => running,
  )
  await cut.opened
  await waitUntil(async () => (await box.sql("select 1 from ob.work where id = 'n1' and token is null")).length > 0)
  finish.open()
  expect(await left).toBe(0)
})
