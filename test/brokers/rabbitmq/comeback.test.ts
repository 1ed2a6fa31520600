/** How long what a lost channel had is waited for, and remembered. */
import { beforeEach, expect, test, vi } from 'vitest'
import type { Incoming } from 'oncebox'
import { createComeback } from '../../../src/brokers/rabbitmq/comeback.js'

const NOTICED_MS = 25_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  return () => void vi.useRealTimers()
})

const message = (id: string): Incoming => ({ id, source: 'shop', type: 'order.placed', key: 'k', data: null })
const placed = (id: string, place: number) => ({ incoming: message(id), place })

test('what went elsewhere is forgotten when its time is over, and takes no room on later channels', () => {
  const comeback = createComeback(NOTICED_MS)
  comeback.lose([placed('a', 0), placed('b', 1)])
  expect(comeback.opened()).toBe(2)
  vi.advanceTimersByTime(NOTICED_MS)
  expect(comeback.isOpen).toBe(false)
  comeback.lose([placed('c', 2)])
  expect(comeback.opened()).toBe(1)
})

test('a loss when its time is over does not give it more time', () => {
  const comeback = createComeback(NOTICED_MS)
  comeback.lose([placed('a', 0)])
  comeback.opened()
  vi.advanceTimersByTime(NOTICED_MS)
  comeback.lose([])
  expect(comeback.opened()).toBe(0)
})

test('its time begins with the channel on which it can come again, however long the broker was away', () => {
  const comeback = createComeback(NOTICED_MS)
  const next = comeback.place(message('first'), false)
  comeback.lose([placed('a', next + 1), placed('b', next + 2)])
  vi.advanceTimersByTime(10 * NOTICED_MS)
  expect(comeback.opened()).toBe(2)
  // A quorum queue with several consumers may hand them out in this order.
  expect(comeback.place(message('b'), true)).toBe(next + 2)
  expect(comeback.waitsUntil(placed('b', next + 2))).toBe(performance.now() + NOTICED_MS)
  expect(comeback.place(message('a'), true)).toBe(next + 1)
  expect(comeback.waitsUntil(placed('b', next + 2))).toBe(0)
})
