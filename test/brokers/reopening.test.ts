import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createReopening, LASTING_MS } from '../../src/brokers/reopening.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

const lived = (reopening: ReturnType<typeof createReopening>, ms: number): number => {
  reopening.opened()
  vi.advanceTimersByTime(ms)
  reopening.lost()
  return reopening.waitMs()
}

test('a connection that does not last is opened again later each time', () => {
  const reopening = createReopening(100, 5_000)
  const waits = Array.from({ length: 10 }, () => lived(reopening, LASTING_MS - 1))
  waits.forEach((ms, at) => {
    const ceiling = Math.min(5_000, 100 * 2 ** at)
    expect(ms).toBeGreaterThanOrEqual(ceiling / 2)
    expect(ms).toBeLessThanOrEqual(ceiling)
  })
})

test('after one that lasted the next is opened soon', () => {
  const reopening = createReopening(100, 5_000)
  for (let n = 0; n < 10; n++) lived(reopening, 0)
  expect(lived(reopening, LASTING_MS)).toBeLessThanOrEqual(100)
})

test('what could not be opened has not lasted, however long that took', () => {
  const reopening = createReopening(100, 5_000)
  lived(reopening, LASTING_MS)
  for (let n = 0; n < 9; n++) {
    vi.advanceTimersByTime(LASTING_MS)
    reopening.lost()
    reopening.waitMs()
  }
  expect(reopening.waitMs()).toBeGreaterThanOrEqual(2_500)
})
