/** What the tests of the dashboard share: a box with a message in every state, and requests as a browser sends them. */
import { afterEach, beforeEach } from 'vitest'
import type { Incoming } from 'oncebox'
import { Reject } from 'oncebox'
import { dashboard, type Dashboard, type DashboardOptions, type Grant } from 'oncebox/dashboard'
import type { RouteInput, RouteName } from 'oncebox/dashboard/client'
import { parametersOf, ROUTES, type Route } from '../../src/dashboard/routes.js'
import { useServer, type Bench, type Server } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'

export const ORIGIN = 'http://ops.example.com'
/** In everything that is a payload, or quotes one. */
export const CANARY = 'canary-4711-secret'
/** What JavaScript would round. */
export const LARGE = '9007199254740993'

export interface Filled extends Bench {
  readonly name: string
}

/**
 * Messages: handled `h`, dead `d1` to `d3`, pending behind a blocked key `k2`, in quarantine `h` again, waiting for an answer
 * `e`.
 */
export async function fill(server: Server): Promise<Filled> {
  const box = await server.open({ source: 'shop' })
  box.consumer('mail', {
    note: async (message, ctx) => {
      await ctx.send('sent', { from: message.id, secret: CANARY })
      return { receipt: CANARY, n: 1 }
    },
    fails: (message) => Promise.reject(new Reject(`no answer for ${message.id}: ${CANARY} after 10 ms`)),
  })
  box.consumer('ledger', { entry: () => Promise.reject(new Reject(`no account for ${CANARY}`)) }, { order: 'key' })
  box.consumer('pay', {
    charge: async (_, ctx) => ctx.effect('transfer', () => Promise.reject(new Error(`cut off: ${CANARY}`)), { onUnknown: 'park' }),
  }) // prettier-ignore
  const body = (id: string): string =>
    `{"id":"${id}","cents":${LARGE},"secret":"${CANARY}","card":{"number":"4111-1111"}}`
  const message = (id: string, type: string, rest: Partial<Incoming> = {}): Incoming =>
    ({ id, type, source: 'shop', body: body(id), headers: { 'x-secret': CANARY }, ...rest }) as Incoming
  await box.receive([
    message('h', 'note', { key: 'order-1', subject: CANARY }),
    ...['d1', 'd2', 'd3'].map((id) => message(id, 'fails')),
    message('k1', 'entry', { key: 'acct-1' }),
    message('e', 'charge'),
  ])
  await box.drain()
  await box.receive([
    message('k2', 'entry', { key: 'acct-1' }),
    message('h', 'note', { body: `{"other":"${CANARY}"}` }),
  ])
  await box.receive([{ id: 'u', type: 'nobody', source: 'shop', body: `{"secret":"${CANARY}"}` }])
  await box.receive([{ id: 'b', type: 'note', source: 'shop', body: Buffer.from(`\xff${CANARY}`, 'latin1') }])
  await waitUntil(async () => {
    await box.drain()
    return (await box.fates('e')).some(({ state }) => state === 'quarantined')
  })
  return Object.assign(box, { name: box.schema })
}

export type Who = 'nobody' | 'reader' | 'looker' | 'all' | 'retry' | 'discard' | 'answer' | 'pause'

export const GRANTS: Readonly<Record<Exclude<Who, 'nobody'>, Grant>> = {
  reader: 'read',
  looker: new Set(['read', 'bodies'] as const),
  all: 'all',
  retry: new Set(['retry'] as const),
  discard: new Set(['discard'] as const),
  answer: new Set(['answer'] as const),
  pause: new Set(['pause'] as const),
}

/** Who somebody is stands in a header. */
export function open(box: Parameters<typeof dashboard>[0], options: Partial<DashboardOptions> = {}): Dashboard {
  return dashboard(box, {
    authorize: (request) => {
      const who = request.headers.get('x-who') as Who | null
      if (who === null || !Object.hasOwn(GRANTS, who)) return null
      return { may: GRANTS[who as keyof typeof GRANTS], by: `${who}@example.com` }
    },
    onError: (error) => {
      throw error
    },
    ...options,
  })
}

/** An empty box named `shop` for each test of a file, and a dashboard over it. */
export function useShop(name: string): { readonly server: Server; readonly box: Bench; readonly ops: Dashboard } {
  const server = useServer(name)
  let box: Bench
  let ops: Dashboard
  beforeEach(async () => {
    box = await server.open({ source: 'shop' })
    ops = open({ shop: box })
  })
  afterEach(async () => {
    await ops.close()
    await box[Symbol.asyncDispose]()
  })
  return {
    server,
    get box() {
      return box
    },
    get ops() {
      return ops
    },
  }
}

/** A message to the shop. */
export function message(id: string, type: string, rest: Partial<Incoming> = {}): Incoming {
  return { id, type, source: 'shop', body: '{}', ...rest } as Incoming
}

export interface Asked {
  readonly who?: Who
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly method?: string
  readonly base?: string
}

const BROWSER = {
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'cors',
  'sec-fetch-dest': 'empty',
  host: 'ops.example.com',
}

/** A request for a route, as the interface would send it. An undefined header is left out. */
export function requestFor<K extends RouteName>(name: K, input: RouteInput<K>, asked: Asked = {}): Request {
  const route: Route = ROUTES[name]
  const { who = 'all', headers = {}, method = route.method, base = '' } = asked
  const given = input as Readonly<Record<string, unknown>>
  const parameters = parametersOf(route.path)
  const rest = Object.entries(given).filter(([key, value]) => !parameters.includes(key) && value !== undefined)
  const path = route.path.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(String(given[key])))
  const query =
    route.method === 'GET' ? new URLSearchParams(rest.map(([k, v]): [string, string] => [k, String(v)])).toString() : ''
  const all: Record<string, string | undefined> = {
    ...BROWSER,
    ...(who !== 'nobody' && { 'x-who': who }),
    ...(route.method === 'POST' && { origin: ORIGIN, 'content-type': 'application/json' }),
    ...headers,
  }
  const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const body =
    method === 'GET' || method === 'HEAD'
      ? null
      : JSON.stringify(Object.fromEntries(route.method === 'POST' ? rest : []))
  return new Request(`${ORIGIN}${base}${path}${query === '' ? '' : `?${query}`}`, { method, headers: sent, body })
}

/** Asks, and answers status and what was answered. */
export async function ask<K extends RouteName>(
  ops: Dashboard,
  name: K,
  input: RouteInput<K>,
  asked?: Asked,
): Promise<{ status: number; answer: never; text: string; headers: Headers }> {
  const response = await ops.fetch(requestFor(name, input, asked))
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (isStream) await response.body?.cancel()
  const text = isStream ? '' : await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return {
    status: response.status,
    answer: (isJson ? JSON.parse(text) : undefined) as never,
    text,
    headers: response.headers,
  }
}

/** Dead messages that nobody runs. */
export async function fillDead(box: Bench, count: number): Promise<void> {
  await box.sql(`insert into ob.message (consumer, source, id, type, body, hash, envelope)
    select 'mail', 'shop', 'd' || i, 'note', '{}', '\\x00', '{}' from generate_series(1, ${count}) i`)
  await box.sql(`insert into ob.work (consumer, source, id, seq, due_at, attempts, parked, error)
    select 'mail', 'shop', 'd' || i, nextval('ob.seq'), 'infinity', 1, 'dead', '{"name":"Error","message":"no"}'
    from generate_series(1, ${count}) i`)
}
