/** Functions of a user that are called and not waited for: one that is async, and rejects, does not end the process. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fromPg } from 'oncebox/pg'
import { Reject, type Logger, type Message } from 'oncebox'
import { dashboard } from 'oncebox/dashboard'
import { toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { createTestBox } from 'oncebox/testing'
import { webhook } from 'oncebox/webhook'
import { HTTP } from '../../src/brokers/cloudevents.js'
import { toEnvelope, toIncoming } from '../../src/brokers/event.js'
import { serve } from '../webhook/senders.js'
import { note, useServer } from './fixture.js'

const server = useServer('rejections')

const unhandled: unknown[] = []
const listen = (error: unknown): unknown => unhandled.push(error)
beforeEach(() => {
  unhandled.length = 0
  process.on('unhandledRejection', listen)
})
afterEach(() => void process.off('unhandledRejection', listen))

/** Node.js tells of rejections that nobody handles before it turns to what was set for the next round of its loop. */
const told = (): Promise<unknown> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

let calls = 0
beforeEach(() => void (calls = 0))
/** An async function in the place of one that answers at once. */
const rejects = (): never => {
  calls += 1
  return Promise.reject(new Error('not told')) as never
}

const CASES: Readonly<Record<string, () => Promise<void>>> = {
  'onError of a webhook that is not ready': async () => {
    const hook = webhook({ source: 'own', verify: () => false as const, onError: rejects })
    const response = await hook.fetch(new Request('http://localhost/', { method: 'POST', body: '{}' }))
    expect(response.status).toBe(503)
  },
  'onError of what is mounted': async () => {
    const fails = (): never => {
      throw new Error('broken')
    }
    await using http = await serve(toNodeListener(fails, { onError: rejects }))
    expect((await fetch(http.url)).status).toBe(500)
  },
  'onError of an idempotent endpoint': async () => {
    await using box = await server.open()
    const fails = (): never => {
      throw new Error('broken')
    }
    const endpoint = idempotent(box, { name: 'charges', scope: 'shared', onError: rejects }, fails)
    const headers = { 'idempotency-key': 'k' }
    const response = await endpoint.fetch(new Request('http://shop/', { method: 'POST', headers, body: '{}' }))
    expect(response.status).toBe(500)
  },
  'redact of a dashboard': async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.receive(note('1'))
    const reported: unknown[] = []
    const onError = (error: unknown): unknown => reported.push(error)
    const ops = dashboard({ shop: box }, { authorize: () => 'all', redact: rejects, onError })
    const response = await ops.fetch(new Request('http://localhost/api/v1/boxes/shop/message?id=1'))
    expect(response.status).toBe(200)
    expect(reported).not.toEqual([])
    await ops.close()
  },
  'a logger': async () => {
    const logger: Logger = { debug: rejects, info: rejects, warn: rejects, error: rejects }
    await using box = await server.open({ logger })
    box.consumer('a', { note: () => Promise.reject(new Reject('no')) })
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'dead' })
  },
  'identity of a consumer': async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined }, { identity: rejects })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'quarantined' })
  },
  'isDefinite of an effect': async () => {
    await using box = await createTestBox({ db: fromPg(server.pool) })
    box.consumer('a', {
      note: (_message: Message, { effect }) =>
        effect('charge', () => Promise.reject(new Error('cut off')), { onUnknown: 'park', isDefinite: rejects }),
    })
    await box.receive(note('1'))
    await box.drain()
    expect((await box.admin.status()).consumers['a']).toMatchObject({ quarantined: 1 })
  },
  'encode of a codec': async () => {
    const codec = { contentType: 'text/plain', decode: () => null, encode: rejects }
    const message = { id: '1', source: 's', type: 't', data: 1, headers: {}, receivedAt: new Date(), attempt: 1, correlationId: 'c' } // prettier-ignore
    expect(() => toEnvelope(message, HTTP, { codec })).toThrow(expect.objectContaining({ code: 'RESULT_INVALID' }))
  },
  'a body that map has not waited for': async () => {
    const map = (): never => ({ id: '1', type: 't', body: rejects() }) as never
    toIncoming(null, { headers: {}, body: Buffer.from('{}') }, HTTP, { map })
  },
  'messages that verify has not waited for': async () => {
    const hook = webhook({
      source: 'own',
      verify: () => [rejects(), rejects()],
      onError: () => undefined,
    })
    await hook.start(async () => [])
    const response = await hook.fetch(new Request('http://localhost/', { method: 'POST', body: '{}' }))
    expect(response.status).toBe(500)
    await hook.stop()
  },
}

test.for(Object.entries(CASES))('%s', async ([, run]) => {
  await run()
  await told()
  expect(calls).toBeGreaterThan(0)
  expect(unhandled).toEqual([])
})

test('progress of a retry that rejects fails the retry, as one that throws does', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => Promise.reject(new Reject('no')) })
  await box.receive(note('1'))
  await box.drain()
  await expect(box.admin.retry({ state: 'dead' }, { progress: rejects })).rejects.toThrow('not told')
  await told()
  expect(unhandled).toEqual([])
})
