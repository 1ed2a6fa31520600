/** Naps that the end of a turn cuts short: nothing of them stays with a turn that goes on for months. */
import { expect, test } from 'vitest'
import { sleep } from '../../src/backoff.js'
import { beginTurn } from '../../src/lifecycle.js'
import { Naps } from '../../src/outbox/naps.js'

/** Counts how often the promise is asked to tell: it keeps all of that until it settles. */
function counted<T>(promise: Promise<T>): { readonly promise: Promise<T>; readonly asked: () => number } {
  let asked = 0
  const { then } = promise
  promise.then = function (...args: never[]) {
    asked += 1
    return Reflect.apply(then, this, args) as never
  }
  return { promise, asked: () => asked }
}

test('a promise that lives for long is asked once, however often it is waited for', async () => {
  const { promise, asked } = counted(new Promise<void>(() => undefined))
  for (let n = 0; n < 50; n++) await sleep(0, promise)
  expect(asked()).toBe(1)
})

test('a relay that naps leaves nothing with its turn', async () => {
  const turn = beginTurn()
  const { promise, asked } = counted(turn.over)
  const naps = new Naps()
  for (let n = 0; n < 5; n++) await naps.nap(11, { ...turn, over: promise })
  expect(asked()).toBe(1)
})

test('the first of several ends it, before and after it was waited for', async () => {
  const turn = beginTurn()
  const long = sleep(60_000, new Promise(() => undefined), turn.over)
  const besides = sleep(60_000, turn.over)
  turn.end()
  await Promise.all([long, besides])
  await sleep(60_000, turn.over)
  await sleep(60_000, undefined, Promise.resolve())
})

test('one that rejects rejects it', async () => {
  const failing = Promise.reject(new Error('no'))
  await expect(sleep(60_000, failing)).rejects.toThrow('no')
  await expect(sleep(60_000, failing)).rejects.toThrow('no')
})
