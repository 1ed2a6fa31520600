/** What compiles of an idempotent endpoint and of a mount, and what does not. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PoolClient } from 'pg'
import { expectTypeOf, test } from 'vitest'
import { unchecked, type Box } from 'oncebox'
import { mountOf, toFastify, toKoa, toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'

const _messages = { charged: unchecked<{ cents: number }>() }
declare const box: Box<typeof _messages, PoolClient>
const options = { name: 'a', scope: 'shared' } as const

test('the handler gets the transaction of the driver, and sends what the box knows', () => {
  const endpoint = idempotent(box, options, async (request, { tx, send, key }) => {
    expectTypeOf(request).toEqualTypeOf<Request>()
    expectTypeOf(tx).toEqualTypeOf<PoolClient>()
    expectTypeOf(key).toEqualTypeOf<string | undefined>()
    await send('charged', { cents: 1 })
    // @ts-expect-error no such type
    await send('paid', { cents: 1 })
    // @ts-expect-error not its data
    await send('charged', { euros: 1 })
    return new Response()
  })
  expectTypeOf(endpoint.fetch).toEqualTypeOf<(request: Request) => Promise<Response>>()
})

test('a scope is asked for, and a response', () => {
  // @ts-expect-error whose key is it
  idempotent(box, { name: 'a' }, () => new Response())
  // @ts-expect-error data is no response
  idempotent(box, options, () => ({ ok: true }))
})

test('a mount takes a function or an object with fetch', () => {
  const listener = toNodeListener((request: Request) => new Response(request.url))
  expectTypeOf(listener).toBeCallableWith({} as IncomingMessage, {} as ServerResponse)
  toFastify({ fetch: async () => new Response() })
  toKoa({ fetch: () => new Response() }, { base: '/a' })
  // @ts-expect-error a function of something else
  toNodeListener((text: string) => new Response(text))
  expectTypeOf(mountOf({} as Request).base).toEqualTypeOf<string>()
})
