/** A webhook with `verify`: what it may answer, and what is refused where it is written. */
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { Incoming, Outcome } from 'oncebox'
import { mountOf, toNodeListener } from 'oncebox/http'
import { isHmac, isSame, isTimely, webhook, type CustomSourceOptions } from 'oncebox/webhook'
import { serve } from './senders.js'

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
  return { hook, got, errors, post }
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

const message = { id: 'a', type: 't', data: 1 }
test.for<[what: string, verdict: () => unknown]>([
  ['a rejection', () => Promise.reject(new Error('no'))],
  ['nothing', () => undefined],
  ['true', () => true],
  ['null', () => null],
  ['a text', () => 'a'],
  ['an error', () => new Error('bad signature')],
  ['a list of promises', () => [Promise.resolve(message)]],
  ['a list in a list', () => [[message]]],
  ['a list with a hole in it', () => [message, undefined]],
  ['a set', () => new Set([message])],
  ['a map', () => new Map([['a', message]])],
  ['a generator', function* () { yield message }], // prettier-ignore
  ['a date', () => new Date()],
  ['a function', () => () => message],
  ['an id that is a number', () => ({ ...message, id: 1 })],
  ['an id that is an object', () => ({ ...message, id: {} })],
  ['no type', () => ({ id: 'a', data: 1 })],
  ['neither body nor data', () => ({ id: 'a', type: 't' })],
  ['data that nobody waited for', () => ({ ...message, data: Promise.resolve(1) })],
])('a verify that answers %s delivers nothing, and is told of: 500', async ([, verdict]) => {
  const { got, errors, post } = attached(verdict as never)
  expect([await post(), got, errors.length]).toEqual([500, [], 1])
})

test('a message without an id, or of another realm, is delivered', async () => {
  const foreign = runInNewContext(`({ id: 'a', type: 't', data: 1 })`) as typeof message
  const bare = Object.assign(Object.create(null) as object, message)
  for (const one of [foreign, bare, { ...message, id: undefined }]) {
    const { got, post } = attached(() => one)
    expect([await post(), got]).toEqual([200, [{ ...one, source: 'own' }]])
  }
})

test.for<[how: string, read: (request: Request) => Promise<{ id: string }>]>([
  ['json()', (request) => request.json() as Promise<{ id: string }>],
  ['text()', async (request) => JSON.parse(await request.text()) as { id: string }],
  ['clone()', (request) => request.clone().json() as Promise<{ id: string }>],
  ['body', (request) => new Response(request.body).json() as Promise<{ id: string }>],
])('a verify that takes the body from the request finds it there: %s', async ([, read]) => {
  const mounts: unknown[] = []
  const { hook, got, errors } = attached(async (request) => {
    mounts.push(mountOf(request).base)
    return { id: (await read(request)).id, type: 't', data: request.headers.get('x-a') }
  })
  await using http = await serve(toNodeListener(hook, { base: '/hook' }))
  const body = '{"id":"e-1"}'
  expect((await fetch(http.url, { method: 'POST', body, headers: { 'x-a': 'b' } })).status).toBe(200)
  expect(await hook.fetch(new Request(http.url, { method: 'POST', body }))).toMatchObject({ status: 200 })
  expect(got.map(({ id, data }) => [id, data])).toEqual([['e-1', 'b'], ['e-1', null]]) // prettier-ignore
  expect([mounts, errors]).toEqual([['/hook', ''], []])
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

test('an unset token is nobody’s, and neither is a missing one', () => {
  expect(isSame('token', 'token')).toBe(true)
  for (const given of ['', 'Token', 'token ', null, undefined, ['token'] as never])
    expect(isSame(given, 'token')).toBe(false)
  for (const expected of ['', undefined as never, null as never]) {
    for (const given of ['', 'a', null]) {
      expect(() => isSame(given, expected)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
  }
})
