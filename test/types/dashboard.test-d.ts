/** What compiles of a dashboard, its rights and its client, and what does not. */
import type { PoolClient } from 'pg'
import { expectTypeOf, test } from 'vitest'
import { unchecked, type Box } from 'oncebox'
import { dashboard, type Redactable } from 'oncebox/dashboard'
import { createClient, type Counted, type Job, type Messages } from 'oncebox/dashboard/client'
import { toFastify, toKoa, toNodeListener } from 'oncebox/http'
import type { Permission, Route, RouteName } from '../../src/dashboard/routes.js'
import { get } from '../../src/dashboard/route.js'

const _messages = { charged: unchecked<{ cents: number }>() }
declare const box: Box<typeof _messages, PoolClient>

test('a box is shown, or several by name, and a bridge mounts it', () => {
  const ops = dashboard(box, { authorize: () => 'all' })
  dashboard({ orders: box, billing: box }, { dev: true })
  expectTypeOf(ops.fetch).toEqualTypeOf<(request: Request) => Promise<Response>>()
  toNodeListener(ops)
  toFastify(ops)
  toKoa(ops, { base: '/ops' })
  // @ts-expect-error no box
  dashboard({ orders: {} }, { dev: true })
  // @ts-expect-error options say who may look
  dashboard(box)
})

test('authorize answers a grant, with a name perhaps, and no right that there is not', () => {
  dashboard(box, { authorize: () => null })
  dashboard(box, { authorize: async () => ({ may: 'read' }) })
  dashboard(box, { authorize: async (request) => (request.headers.has('a') ? { may: 'all', by: 'a' } : null) })
  dashboard(box, { authorize: () => new Set(['read', 'retry'] as const) })
  dashboard(box, { authorize: () => ({ may: 'all', by: 'ines', boxes: ['orders'] }) })
  dashboard(box, { authorize: () => new Response(null, { status: 302 }) })
  // @ts-expect-error a boolean is no grant
  dashboard(box, { authorize: () => true })
  // @ts-expect-error no such right
  dashboard(box, { authorize: () => new Set(['delete'] as const) })
})

test('redact gets a message, and answers one', () => {
  dashboard(box, {
    dev: true,
    redact(message) {
      expectTypeOf(message).toEqualTypeOf<Redactable>()
      return { ...message, data: {} }
    },
  })
  // @ts-expect-error nobody waits for it
  dashboard(box, { dev: true, redact: async (message) => message })
})

test('a client has a method for each route that answers data, with its input and its answer', () => {
  const ops = createClient({ url: 'https://ops.example.com' })
  expectTypeOf(ops.messages).returns.resolves.toEqualTypeOf<Messages>()
  expectTypeOf(ops.countRetry).returns.resolves.toEqualTypeOf<Counted>()
  expectTypeOf(ops.retry).returns.resolves.toEqualTypeOf<Job>()
  expectTypeOf(ops.body).returns.resolves.toEqualTypeOf<string>()
  void ops.messages({ box: 'orders', q: 'state:dead', limit: 10 })
  // @ts-expect-error a box is needed
  void ops.messages({ q: 'state:dead' })
  // @ts-expect-error no such input
  void ops.messages({ box: 'orders', query: 'state:dead' })
  // @ts-expect-error a discard says why
  void ops.discard({ box: 'orders', confirmation: 'x' })
  // @ts-expect-error a page is no data
  void ops.home
})

test('a route says which right it takes', () => {
  expectTypeOf<Route['needs']>().toEqualTypeOf<Permission>()
  get<string>()('/x', { needs: 'read', input: {}, does: '' })
  // @ts-expect-error it has no right
  get<string>()('/x', { input: {}, does: '' })
  // @ts-expect-error no such right
  get<string>()('/x', { needs: 'delete', input: {}, does: '' })
  expectTypeOf<'messages'>().toExtend<RouteName>()
})
