/** Responses of another class than the global: a server of Hono puts its own in that place, for the whole process. */
import type { AddressInfo } from 'node:net'
import { serve, type ServerType } from '@hono/node-server'
import { Hono } from 'hono'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { webhook } from 'oncebox/webhook'
import { useServer, type Bench } from '../inbox/fixture.js'
import { serve as serveNode } from '../webhook/senders.js'

const database = useServer('responses')
const errors: unknown[] = []
const onError = (error: unknown): void => void errors.push(error)
let box: Bench
let server: ServerType
let url: string
beforeAll(async () => {
  box = await database.open()
  const scope = ({ headers }: Request): string | Response =>
    headers.get('authorization') ?? Response.json({ error: 'who are you?' }, { status: 401 })
  const charge = idempotent(box, { name: 'charge', scope, onError }, () => Response.json({ ok: true }))
  const verify = (): Response => Response.json({ challenge: 'c-1' })
  const hook = box.from(webhook({ source: 'shaker', verify, onError }), { types: 'any' })
  const app = new Hono()
  app.post('/charge', (c) => charge.fetch(c.req.raw))
  app.post('/hook', (c) => hook.fetch(c.req.raw))
  server = await new Promise((resolve) => {
    const one = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(one))
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  // The reason for this file.
  expect(Response.json({})).not.toBeInstanceOf(Response)
})
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve))
  await box[Symbol.asyncDispose]()
})

async function post(path: string, headers: Record<string, string> = {}): Promise<[number, string]> {
  const all = { connection: 'close', 'idempotency-key': 'k-1', ...headers }
  const response = await fetch(`${url}${path}`, { method: 'POST', body: '{}', headers: all })
  return [response.status, await response.text()]
}

test('a scope that refuses with one is heeded, and so is a handler', async () => {
  expect(await post('/charge')).toEqual([401, '{"error":"who are you?"}'])
  expect(await post('/charge', { authorization: 'a' })).toEqual([200, '{"ok":true}'])
  expect(await post('/charge', { authorization: 'a' })).toEqual([200, '{"ok":true}'])
  expect(errors).toEqual([])
})

test('a verify that answers one is heeded, and nothing is kept', async () => {
  expect(await post('/hook')).toEqual([200, '{"challenge":"c-1"}'])
  expect(await box.quarantine()).toEqual([])
  expect(errors).toEqual([])
})

test('the bridge writes both', async () => {
  await using http = await serveNode(
    toNodeListener(({ method }) => (method === 'PUT' ? new Response('a') : Response.json(1))),
  )
  expect(await (await fetch(http.url, { method: 'PUT' })).text()).toBe('a')
  expect(await (await fetch(http.url)).text()).toBe('1')
})
