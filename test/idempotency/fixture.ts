/** What the tests of idempotent endpoints share: an endpoint over HTTP, on a box with a ledger. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { defineMessages, unchecked, type Hooks } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import { idempotent, type IdempotentHandler, type IdempotentOptions } from 'oncebox/idempotency'
import type { Bench, Server } from '../inbox/fixture.js'
import { serve, type Served } from '../webhook/senders.js'

export const messages = defineMessages({ charged: unchecked<{ cents: number }>() })
export type Messages = typeof messages
export type Handler = IdempotentHandler<Messages, pg.PoolClient>

export interface Opened extends AsyncDisposable {
  readonly box: Bench<Messages>
  readonly errors: unknown[]
  readonly http: Served
  /** Sends a request with a key. */
  post(key: string | undefined, body?: RequestInit['body'], headers?: Record<string, string>): Promise<Response>
}

export type Open = (
  handler: (box: Bench<Messages>) => Handler,
  given?: Partial<IdempotentOptions>,
  hooks?: Hooks<Messages>,
) => Promise<Opened>

export function openOn(server: Server): Open {
  return async (handler, given = {}, hooks = {}) => open(await server.open({ messages, hooks }), handler, given)
}

async function open(
  box: Bench<Messages>,
  handler: (box: Bench<Messages>) => Handler,
  given: Partial<IdempotentOptions>,
): Promise<Opened> {
  const errors: unknown[] = []
  const scope = (request: Request): string => request.headers.get('authorization') ?? 'nobody'
  const options = { name: 'charges', scope, onError: (error: unknown) => errors.push(error), ...given }
  const http = await serve(toNodeListener(idempotent(box, options, handler(box))))
  return {
    box,
    errors,
    http,
    post(key, body = '{"cents":500}', headers = {}) {
      const all = {
        'content-type': 'application/json',
        ...(key !== undefined && { 'idempotency-key': key }),
        ...headers,
      }
      return fetch(http.url, { method: 'POST', headers: all, body, duplex: 'half' })
    },
    async [Symbol.asyncDispose]() {
      await http[Symbol.asyncDispose]()
      await box[Symbol.asyncDispose]()
    },
  }
}

/** Writes a line, sends an event, and answers with a number of its own. */
export const charge = (box: Bench<Messages>): Handler => {
  let charges = 0
  return async (request, { tx, send, key }) => {
    const { cents } = (await request.json()) as { cents: number }
    await box.write(tx, 'charges', { id: key ?? 'none' })
    await send('charged', { cents })
    return Response.json({ charge: ++charges }, { status: 201, headers: { location: `/charges/${charges}`, 'x-run': randomUUID() } }) // prettier-ignore
  }
}

export async function seen(response: Response): Promise<[number, string, string | null]> {
  return [response.status, await response.text(), response.headers.get('idempotent-replayed')]
}
