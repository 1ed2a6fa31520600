/** Wake-ups of other processes, and what a loop makes of them. */
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fromPg } from 'oncebox/pg'
import { bindDatabase } from '../../src/postgres/database.js'
import { createLoop, type Loop } from '../../src/worker/loop.js'
import { createWaker } from '../../src/worker/wake.js'
import { waitUntil } from '../support/wait.js'
import { note, useServer, type Bench } from './fixture.js'

const server = useServer('wake', { max: 20 })

/** When each notification of a box came. */
async function listen(box: Bench): Promise<{ at: number[]; payloads: string[]; close(): Promise<void> }> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const at: number[] = []
  const payloads: string[] = []
  client.on('notification', ({ payload = '' }) => {
    at.push(performance.now())
    payloads.push(payload)
  })
  await client.query(`listen "oncebox_${box.schema}"`)
  return { at, payloads, close: () => client.end() }
}

describe('notifications', () => {
  test('messages that come one by one are told one by one', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const heard = await listen(box)
    try {
      for (let n = 1; n <= 5; n++) {
        await box.receive(note(`n${n}`))
        await waitUntil(() => heard.at.length === n, { everyMs: 1 })
      }
    } finally {
      await heard.close()
    }
  })

  test('of many that come in a moment the first is told of, and one stands for all the others', async () => {
    await using box = await server.open()
    const heard = await listen(box)
    const waker = createWaker(bindDatabase(fromPg(server.pool), box.schema))
    try {
      for (let n = 0; n < 1_000; n++) waker.wake()
      await waitUntil(() => heard.at.length === 2, { everyMs: 1 })
      // Notifications come in the order of their commits: had there been more, they would come before this one.
      await box.sql(`select pg_notify('oncebox_${box.schema}', '')`)
      await waitUntil(() => heard.at.length > 2, { everyMs: 1 })
      expect(heard.at).toHaveLength(3)
    } finally {
      await waker.close()
      await heard.close()
    }
  })

  test('what is still to be told when a box stops is told before', async () => {
    await using box = await server.open()
    const heard = await listen(box)
    const waker = createWaker(bindDatabase(fromPg(server.pool), box.schema))
    try {
      waker.wake()
      // Too soon after the first for a notification of its own.
      waker.wake()
      await waker.close()
      // Notifications come in the order of their commits.
      await box.sql(`select pg_notify('oncebox_${box.schema}', 'last')`)
      await waitUntil(() => heard.payloads.at(-1) === 'last', { everyMs: 1 })
      expect(heard.payloads).toEqual(['', '', 'last'])
    } finally {
      await heard.close()
    }
  })
})

describe('a loop', () => {
  /** Each step is told how to end: nothing to do, or work, with more left or not. */
  function createSteps(slots: number) {
    const steps: { found(more: boolean): void; end(worked: boolean): void }[] = []
    let looks = 0
    const loop: Loop = createLoop({
      slots,
      step: (found) => new Promise((end) => steps.push({ found, end })),
      nextDueMs: () => Promise.resolve(void looks++),
      failed: (error) => expect(error).toBeUndefined(),
      pollMs: 60_000,
    })
    const next = async () => {
      await waitUntil(() => steps.length > 0, { everyMs: 1 })
      return steps.shift()!
    }
    /** All slots have looked once, and sleep; one keeps watch. */
    const settle = async (): Promise<void> => {
      for (let slot = 0; slot < slots; slot++) (await next()).end(false)
      await waitUntil(() => looks === 1, { everyMs: 1 })
    }
    const stop = async (): Promise<void> => {
      const stopped = loop.stop()
      for (const step of steps) step.end(false)
      await stopped
    }
    return { loop, steps, next, settle, stop, looks: () => looks }
  }

  test('leaves the watch alone while there is another slot to rouse, and nobody else for all there was', async () => {
    const { loop, steps, next, settle, stop, looks } = createSteps(3)
    loop.start()
    await settle()
    loop.wake()
    const first = await next()
    first.found(false)
    first.end(true)
    const again = await next()
    again.end(false)
    await new Promise(setImmediate)
    expect(steps).toEqual([])
    expect(looks()).toBe(1)
    await stop()
  })

  test('rouses the next slot if something may be left', async () => {
    const { loop, next, settle, stop } = createSteps(3)
    loop.start()
    await settle()
    loop.wake()
    const first = await next()
    first.found(true)
    const second = await next()
    second.end(false)
    first.end(false)
    await stop()
  })

  test('has somebody else keep watch when the one who did has found something', async () => {
    const { loop, steps, next, settle, stop, looks } = createSteps(2)
    loop.start()
    await settle()
    loop.wake()
    const first = await next()
    loop.wake()
    const watcher = await next()
    first.end(false)
    await waitUntil(() => looks() === 2, { everyMs: 1 })
    watcher.found(false)
    watcher.end(false)
    await new Promise(setImmediate)
    expect(steps).toEqual([])
    await stop()
  })

  test('passes the watch to one that sleeps', async () => {
    const { loop, next, settle, stop, looks } = createSteps(3)
    loop.start()
    await settle()
    // All three are up; two go to sleep behind the third, which keeps watch no more.
    for (let n = 0; n < 3; n++) loop.wake()
    const [one, two, watcher] = [await next(), await next(), await next()]
    one.end(false)
    await waitUntil(() => looks() === 2, { everyMs: 1 })
    two.end(false)
    watcher.found(false)
    watcher.end(false)
    loop.wake()
    const look = await next()
    look.found(false)
    expect(looks()).toBe(2)
    look.end(false)
    await stop()
  })
})
