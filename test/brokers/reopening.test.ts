import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createReopening } from '../../src/brokers/reopening.js'

const PAUSES = { firstMs: 100, mostMs: 5_000, lastingMs: 1_000 }

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

const lived = (reopening: ReturnType<typeof createReopening>, ms: number): number => {
  reopening.opened()
  vi.advanceTimersByTime(ms)
  reopening.lost()
  return reopening.waitMs()
}

test('a connection that does not last is opened again later each time', () => {
  const reopening = createReopening(PAUSES)
  const waits = Array.from({ length: 10 }, () => lived(reopening, PAUSES.lastingMs - 1))
  waits.forEach((ms, at) => {
    const ceiling = Math.min(5_000, 100 * 2 ** at)
    expect(ms).toBeGreaterThanOrEqual(ceiling / 2)
    expect(ms).toBeLessThanOrEqual(ceiling)
  })
})

test('after one that lasted the next is opened soon', () => {
  const reopening = createReopening(PAUSES)
  for (let n = 0; n < 10; n++) lived(reopening, 0)
  expect(lived(reopening, PAUSES.lastingMs)).toBeLessThanOrEqual(100)
})

test('what could not be opened has not lasted, however long that took', () => {
  const reopening = createReopening(PAUSES)
  lived(reopening, PAUSES.lastingMs)
  for (let n = 0; n < 9; n++) {
    vi.advanceTimersByTime(PAUSES.lastingMs)
    reopening.lost()
    reopening.waitMs()
  }
  expect(reopening.waitMs()).toBeGreaterThanOrEqual(2_500)
})
