/**
 * Who may what: every route of the table, by everybody, from everywhere. The cases are made from the table, so a route that is
 * added there is tried here, or this file does not compile.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dashboard, type Dashboard } from 'oncebox/dashboard'
import type { RouteInput, RouteName } from 'oncebox/dashboard/client'
import { ACTIONS } from '../../src/dashboard/access.js'
import { matchAll } from '../../src/dashboard/match.js'
import { ROUTES, type Route } from '../../src/dashboard/routes.js'
import { useServer } from '../inbox/fixture.js'
import { ask, fill, GRANTS, open, requestFor, type Filled, type Who } from './fixture.js'

const server = useServer('dashboard_routes')
const NAMES = Object.keys(ROUTES) as RouteName[]
const PEOPLE: readonly Who[] = ['nobody', ...(Object.keys(GRANTS) as Exclude<Who, 'nobody'>[])]

let box: Filled
let ops: Dashboard
let inputs: { readonly [K in RouteName]: RouteInput<K> }

beforeAll(async () => {
  box = await fill(server)
  ops = open({ shop: box })
  const at = { box: 'shop' }
  const job = { ...at, job: 'none' }
  inputs = {
    session: {},
    overview: at,
    history: { ...at, minutes: 60 },
    vocabulary: at,
    messages: { ...at, q: 'state:dead' },
    tally: { ...at, q: 'state:dead' },
    message: { ...at, id: 'h' },
    body: { ...at, id: 'h' },
    conversation: { ...at, id: 'h' },
    failures: at,
    quarantine: at,
    conflict: { ...at, n: String((await box.sql(`select n from ob.quarantine where reason = 'conflict'`))[0]!['n']) },
    keys: at,
    outbox: at,
    doctor: at,
    audit: at,
    pause: { ...at, consumer: 'mail' },
    resume: { ...at, consumer: 'mail' },
    answer: { ...at, consumer: 'pay', id: 'e', effect: 'nothing', happened: false },
    countRetry: { ...at, q: 'id:nothing' },
    retry: { ...at, confirmation: 'none' },
    paceRetry: { ...job, perSecond: 1 },
    cancelRetry: job,
    countDiscard: { ...at, q: 'id:nothing' },
    discard: { ...at, confirmation: 'none', reason: 'a test' },
    paceDiscard: { ...job, perSecond: 1 },
    cancelDiscard: job,
    jobs: at,
    stream: at,
    asset: { file: 'none-0123abcd.js' },
    icon: {},
    home: {},
    page: { page: 'messages' },
    pageOf: { page: 'messages', box: 'shop' },
  }
})
afterAll(() => box[Symbol.asyncDispose]())

/** What a route answers to those who may: the ones that were not given what there is refuse, for other reasons. */
const LET_IN: Partial<Record<RouteName, number>> = {
  answer: 404,
  retry: 409,
  discard: 409,
  paceRetry: 404,
  cancelRetry: 404,
  paceDiscard: 404,
  cancelDiscard: 404,
  asset: 404,
}

function mayBe(who: Who, needs: Route['needs']): boolean {
  if (who === 'nobody') return false
  const grant = GRANTS[who]
  return needs === 'session' || grant === 'all' || (grant === 'read' ? needs === 'read' : grant.has(needs))
}

/** Asks, and ends a stream. */
async function statusOf(request: Request, of: Dashboard = ops): Promise<number> {
  const response = await of.fetch(request)
  await response.body?.cancel()
  return response.status
}

describe.for(NAMES)('%s', (name) => {
  const route: Route = ROUTES[name]

  test.for(PEOPLE)('is answered to %s, or refused, as the table says', async (who) => {
    // Searches are counted by reader: these are nobody's limit.
    const status = await statusOf(requestFor(name, inputs[name], { who }), open({ shop: box }))
    expect(status).toBe(who === 'nobody' ? 401 : mayBe(who, route.needs) ? (LET_IN[name] ?? 200) : 403)
  })

  test('is read-only where the dashboard is, whoever asks', async () => {
    const looks = route.method === 'GET'
    const status = await statusOf(requestFor(name, inputs[name]), open({ shop: box }, { readOnly: true }))
    expect(status).toBe(looks ? (LET_IN[name] ?? 200) : 403)
  })

  test.for(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])('takes its own method, and not another: %s', async (method) => {
    if (method === route.method) return
    const response = await ops.fetch(requestFor(name, inputs[name], { method }))
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe(route.method)
  }) // prettier-ignore

  test.for<[what: string, headers: Record<string, string | undefined>]>([
    ['another site, by a form or a script', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['another site that hides where it is', { 'sec-fetch-site': 'cross-site', origin: 'null' }],
    ['a neighbour of the same site', { 'sec-fetch-site': 'same-site', origin: 'http://blog.example.com' }],
    ['another site, in an old browser', { 'sec-fetch-site': undefined, origin: 'https://evil.example' }],
    ['another site that says that it is this one', { origin: 'https://evil.example' }],
    ['an origin that has ours in its name', { 'sec-fetch-site': undefined, origin: 'http://ops.example.com.evil.example' }],
    ['an origin of another scheme', { 'sec-fetch-site': undefined, origin: 'chrome-extension://ops.example.com' }],
    ['an image of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors', origin: undefined }],
  ])('is refused to %s', async ([, headers]) => {
    const { status, answer } = await ask(ops, name, inputs[name], { headers })
    expect([status, answer]).toEqual([403, { error: expect.objectContaining({ code: 'CROSS_SITE' }) }])
  }) // prettier-ignore

  test('is refused under a name that is not on the list', async () => {
    const listed = open({ shop: box }, { hosts: ['ops.example.com'] })
    expect(await statusOf(requestFor(name, inputs[name]), listed)).toBe(LET_IN[name] ?? 200)
    const rebound = { host: 'evil.example', origin: 'http://evil.example' }
    const { status, answer } = await ask(listed, name, inputs[name], { headers: rebound })
    expect([status, answer]).toEqual([403, { error: expect.objectContaining({ code: 'HOST_UNKNOWN' }) }])
  })

  test('has the headers that protect, whoever asks', async () => {
    for (const who of ['nobody', 'all'] as const) {
      const response = await open({ shop: box }).fetch(requestFor(name, inputs[name], { who }))
      await response.body?.cancel()
      const { headers } = response
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none';.*frame-ancestors 'none'/)
      expect(headers.get('content-security-policy')).not.toMatch(/unsafe|\*|http|data:/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('set-cookie')).toBeNull()
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
  })

  if (route.method === 'POST') {
    test('is refused without a word of where it comes from', async () => {
      const headers = { 'sec-fetch-site': undefined, origin: undefined }
      expect((await ask(ops, name, inputs[name], { headers })).status).toBe(403)
    })

    test.for([
      undefined,
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
    ])('is refused as %s, which forms can send', async (type) => {
      expect((await ask(ops, name, inputs[name], { headers: { 'content-type': type } })).status).toBe(415)
    })
  }

  if (Object.keys(route.input).includes('box') && route.kind !== 'page') {
    test('is not there for a box that is not shown, or that there is not', async () => {
      const scoped = dashboard({ shop: box, other: box }, { authorize: () => ({ may: 'all', boxes: ['other'] }) })
      expect(await statusOf(requestFor(name, inputs[name]), scoped)).toBe(404)
      expect((await ask(ops, name, { ...inputs[name], box: 'nothing' } as never)).status).toBe(404)
    })
  }
})

test('a link from elsewhere leads to a page, and to nothing else', async () => {
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  for (const name of NAMES) {
    const status = await statusOf(requestFor(name, inputs[name], { headers }))
    expect([name, status]).toEqual([name, ROUTES[name].kind === 'page' ? 200 : 403])
  }
})

test('a page is opened with a query, which is its own, and another route refuses what it does not know', async () => {
  for (const [path, status] of [
    ['/messages/shop?q=state:dead&q=twice', 200],
    ['/message/shop?id=a&source=b&consumer=', 200],
    ['/api/v1/session?q=x', 400],
  ] as const) {
    const response = await ops.fetch(new Request(`http://ops.example.com${path}`, { headers: { 'x-who': 'all' } }))
    expect([path, response.status]).toEqual([path, status])
  }
})

test('every route is found under its own path, and under no other’s', () => {
  for (const name of NAMES) {
    const path = ROUTES[name].path.replace(/:\w+/g, 'x-1')
    expect(matchAll(path).map((one) => one.name)).toEqual([name])
  }
})

test('what is not in the table is not there', async () => {
  for (const path of ['/api/v1', '/api/v1/', '/api/v1/boxes', '/api/v1/nothing/at/all', '/api/v2/session', '/nothing', '/a/b/c', '/assets/', '//', '/api/v1/session/', '/api/v1/boxes//overview', '/%', '/__proto__', '/constructor']) {
    const response = await ops.fetch(new Request(`http://ops.example.com${path}`, { headers: { 'x-who': 'all' } }))
    expect([path, response.status]).toEqual([path, 404])
  }
}) // prettier-ignore

test('an action is a right of its own: each is needed by some route, and none is needed that there is not', () => {
  const needed = new Set(NAMES.map((name) => ROUTES[name].needs))
  expect([...needed].sort()).toEqual([...ACTIONS, 'session'].sort())
})
