/** Handlers may throw anything. Nothing that they throw passes for a word of the box, and keeps its message for ever. */
import { batch, OnceboxError, RetryLater } from 'oncebox'
import { describe, expect, test } from 'vitest'
import { note, useServer } from './fixture.js'

const server = useServer('thrown')

const forged = (when: unknown): unknown =>
  Object.assign(new Error('later'), { [Symbol.for('oncebox.retry-later')]: true, when })
const THROWN: [what: string, make: () => unknown][] = [
  ['the code of our own SQL', () => Object.assign(new Error('no'), { code: 'OB001' })],
  ['another code of our own SQL', () => Object.assign(new Error('no'), { code: 'OB002' })],
  ['a CLAIM_LOST', () => new OnceboxError('CLAIM_LOST', 'no')],
  ['a CLAIM_LOST as the cause', () => new Error('no', { cause: new OnceboxError('CLAIM_LOST', 'no') })],
  ['a branded object', () => ({ [Symbol.for('oncebox.error')]: true, code: 'CLAIM_LOST', message: 'no' })],
  ['a HANDLER_MISSING', () => new OnceboxError('HANDLER_MISSING', 'no')],
  ['a RetryLater of NaN', () => Object.assign(new RetryLater({ afterMs: 5 }), { when: { afterMs: NaN } })],
  ['a RetryLater without a time', () => forged(undefined)],
  ['a RetryLater of nonsense', () => forged({ at: 'tomorrow' })],
]

describe.each(THROWN)('a handler that throws %s', (_, make) => {
  test('stored, uses up its attempts', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => Promise.reject(make()) }, NO_DELAY)
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'dead', attempts: 2 })
  })

  test('in a batch, uses up its attempts', async () => {
    await using box = await server.open()
    box.consumer('a', { note: batch(() => Promise.reject(make())) }, NO_DELAY)
    await box.receive([note('1'), note('2')])
    await box.drain()
    for (const id of ['1', '2']) expect(await box.fate(id)).toMatchObject({ state: 'dead', attempts: 2 })
  })

  test('on arrival, uses up its attempts', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => Promise.reject(make()) }, { mode: 'inline', ...NO_DELAY })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed' })
    expect(await box.handle(note('1', { redelivered: true }))).toMatchObject({ status: 'dead' })
  })

  test('directly, has failed', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => Promise.reject(make()) }, { mode: 'direct' })
    const outcome = await box.handle(note('1'))
    expect(outcome).toMatchObject({ status: 'failed', ack: false })
    expect(outcome.retryAt).toBeUndefined()
  })
})

const NO_DELAY = { retry: { attempts: 2, baseMs: 0, jitter: 'none' } } as const

test('a message that asks again and again to be run at once is run less and less often', async () => {
  await using box = await server.open()
  let runs = 0
  box.consumer('a', {
    note() {
      runs++
      throw new RetryLater({ afterMs: 0 })
    },
  })
  await box.receive(note('1'))
  for (let round = 1; round <= 12; round++) {
    await box.drain()
    expect(runs).toBe(round)
    const { dueInMs } = await box.fate('1')
    // A few times at once, then after 0.1, 0.2, 0.4 seconds and so on; some of it has passed already.
    if (round === 12) expect(dueInMs).toBeGreaterThan(3_000)
    await box.clock.advance(Math.max(0, dueInMs!) + 1)
  }
  expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 0 })
})
