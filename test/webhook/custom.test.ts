/** A webhook with `verify`: what it may answer, and what is refused where it is written. */
import { expect, test } from 'vitest'
import type { Incoming, Outcome } from 'oncebox'
import { isHmac, isTimely, webhook, type CustomSourceOptions } from 'oncebox/webhook'

function attached(verify: CustomSourceOptions['verify'], ack = true) {
  const got: Incoming[] = []
  const errors: unknown[] = []
  const hook = webhook({ source: 'own', verify, onError: (error) => errors.push(error) })
  void hook.start(async (batch) => {
    got.push(...batch)
    return batch.map(({ id }): Outcome => ({ id, ack: ack || id === 'a', status: ack ? 'stored' : 'busy', consumers: [] }))
  }) // prettier-ignore
  const post = async (): Promise<number> =>
    (await hook.fetch(new Request('http://x/', { method: 'POST', body: '{}' }))).status
  return { got, errors, post }
}

test('the source of a message is the webhook’s, whatever verify says', async () => {
  const { got, post } = attached(() => ({ id: 'a', type: 't', data: 1, source: 'another' as never }))
  expect(await post()).toBe(200)
  expect(got).toEqual([{ id: 'a', type: 't', data: 1, source: 'own' }])
})

test('one message that is not safe is for the sender to send again, and the others with it', async () => {
  const two = ['a', 'b'].map((id) => ({ id, type: 't', data: 1 }))
  expect(await attached(() => two, false).post()).toBe(409)
  expect(await attached(() => two).post()).toBe(200)
  expect(await attached(() => []).post()).toBe(200)
})

test('a verify that throws, or answers nothing, delivers nothing and is told of', async () => {
  for (const verify of [() => Promise.reject(new Error('no')), () => undefined as never, () => true as never]) {
    const { got, errors, post } = attached(verify)
    expect([await post(), got, errors.length]).toEqual([500, [], 1])
  }
})

test('bad options are refused', () => {
  const bad = [{ verify: () => false }, { verify: 1, source: 'a' }, { verify: () => false, source: 'a', scheme: 'github' }, { verify: () => false, source: 'a', secret: 'x' }] // prettier-ignore
  for (const options of bad) {
    expect(() => webhook(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  }
})

test('an empty secret signs for nobody, and a time that is none is not timely', () => {
  expect(() => isHmac('x', { secret: '', encoding: 'hex' }, '')).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
  expect(isHmac(null, { secret: 'x', encoding: 'hex' }, '')).toBe(false)
  for (const time of [null, '', 'x', 'NaN', '0', Infinity]) expect(isTimely(time)).toBe(false)
  expect(isTimely(Date.now() / 1_000 - 299)).toBe(true)
})
