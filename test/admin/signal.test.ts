/** Bulk verbs that are told to stop, and tell how far they are. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { open, range, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('admin_signal')
})
afterAll(() => opened.close())

async function withDead(count: number) {
  const box = opened.box()
  box.consumer('a', { note: () => Promise.reject(new Error('no')) }, { retry: { attempts: 1 } })
  await box.migrate()
  await box.receive(range(count).map((n) => ({ id: `n${n}`, type: 'note', data: n })))
  await box.drain()
  return box
}

test('a retry that is aborted stops between two batches, answers what it changed, and writes that down', async () => {
  const box = await withDead(30)
  const stop = new AbortController()
  const told: number[] = []
  const progress = (count: number): void => {
    told.push(count)
    if (count === 20) stop.abort()
  }
  // Ten at a time, and a tenth of a second apart.
  const options = { perSecond: 100, signal: stop.signal, progress, reason: 'back' }
  expect(await box.admin.retry({ consumer: 'a' }, options)).toBe(20)
  expect(told).toEqual([10, 20])
  const { consumers } = await box.admin.status()
  expect(consumers['a']).toMatchObject({ dead: 10, pending: 20 })
  const { records } = await box.admin.audit()
  expect(records[0]).toMatchObject({ action: 'retry', detail: { count: 20, reason: 'back' } })
})

test('time that a retry has lost is not made up for: batches stay as far apart as perSecond says', async ({
  onTestFinished,
}) => {
  const box = await withDead(30)
  const { now } = performance
  let ahead = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + ahead)
  onTestFinished(() => clock.mockRestore())
  const told: number[] = []
  const progress = (): void => {
    told.push(now.call(performance))
    // The first batch has taken as long as hundred would.
    ahead = 10_000
  }
  expect(await box.admin.retry({ consumer: 'a' }, { perSecond: 100, progress })).toBe(30)
  expect(told[2]! - told[1]!).toBeGreaterThanOrEqual(50)
})

test('a discard that is aborted while it waits for its turn does not wait for it', async () => {
  const box = await withDead(2)
  const stop = new AbortController()
  const progress = (): void => stop.abort()
  // The second would be due in 1 000 s.
  const options = { perSecond: 0.001, signal: stop.signal, progress, reason: 'no use' }
  expect(await box.admin.discard({ consumer: 'a' }, options)).toBe(1)
})

test('what is no signal and no function is refused before anything is changed', async () => {
  const box = await withDead(1)
  for (const wrong of [{ signal: {} }, { progress: 1 }]) {
    await expect(box.admin.retry({ consumer: 'a' }, wrong as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  }
  expect((await box.admin.status()).consumers['a']).toMatchObject({ dead: 1 })
})
