/** The dashboard on real servers, under / and under /ops/inbox: pages, files, calls by the typed client, changes and streams. */
import 'reflect-metadata'
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { serve as serveHono } from '@hono/node-server'
import { Module, type INestApplication } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dashboard, type Dashboard, type DashboardOptions } from 'oncebox/dashboard'
import { createClient, DashboardError, type Job, type Overview } from 'oncebox/dashboard/client'
import { toFastify, toKoa, toNodeListener } from 'oncebox/http'
import { Reject } from 'oncebox'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'

const PROXIES = ['forwarded', 'via', 'x-real-ip', 'x-client-ip', 'cf-connecting-ip', 'fly-client-ip', 'true-client-ip', ...['for', 'host', 'port', 'proto', 'server'].map((one) => `x-forwarded-${one}`)] // prettier-ignore
const server = useServer('dashboard_mounts')
let box: Bench

beforeAll(async () => {
  box = await server.open()
  let fails = true
  box.consumer('mail', {
    note: () => {
      if (fails) throw new Reject('no answer')
    },
  })
  await box.receive({ id: 'd', type: 'note', data: { n: 1 } })
  await box.drain()
  fails = false
})
afterAll(() => box[Symbol.asyncDispose]())

interface Running extends AsyncDisposable {
  readonly url: string
}

async function listen(listener: RequestListener): Promise<Running> {
  const http = createServer(listener)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

function emptyModule(): new () => object {
  class Empty {}
  Module({})(Empty)
  return Empty
}

async function listening(app: INestApplication): Promise<Running> {
  await app.listen(0, '127.0.0.1')
  const server = app.getHttpServer() as Server
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await app.close()
    },
  }
}

/** Mounts it under a path, as docs/dashboard.md shows. */
const MOUNTS: Readonly<Record<string, (make: (options?: Partial<DashboardOptions>) => Dashboard, base: string) => Promise<Running>>> = {
  'node:http': (make, base) => listen(toNodeListener(make(), { base })),
  Express: (make, base) => {
    const app = express()
    app.use(base || '/', toNodeListener(make()))
    return listen(app)
  },
  Fastify: async (make, base) => {
    const app = fastify()
    app.register(toFastify(make()), { prefix: base })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url, [Symbol.asyncDispose]: async () => { app.server.closeAllConnections(); await app.close() } }
  },
  Koa: (make, base) => {
    const middleware = toKoa(make(), { base })
    return listen((req, res) => void middleware({ req, res, request: {} }))
  },
  'Nest on Express': async (make, base) => {
    const app = await NestFactory.create(emptyModule(), { logger: false })
    // Before Nest's own parsers, which come when it starts.
    app.use(base || '/', toNodeListener(make()))
    return listening(app)
  },
  'Nest on Fastify': async (make, base) => {
    const app = await NestFactory.create<NestFastifyApplication>(emptyModule(), new FastifyAdapter(), { logger: false })
    await app.register(toFastify(make()), { prefix: base })
    return listening(app)
  },
  'Next.js, called as it calls a route': (make, base) => {
    const ops = make({ base })
    // app/ops/inbox/[[...path]]/route.ts has GET and POST; the path comes in a promise, too, and everything else is a page of its own.
    const route = { GET: (request: Request, _: object) => ops.fetch(request), POST: (request: Request, _: object) => ops.fetch(request) }
    return listen(toNodeListener({
      async fetch(request) {
        const { pathname } = new URL(request.url)
        const isOurs = pathname === base || pathname.startsWith(`${base}/`)
        const method = route[request.method as keyof typeof route]
        if (!isOurs || !method) return new Response(null, { status: isOurs ? 405 : 404 })
        // A request of its own making, which no bridge knows.
        return method(new Request(request), { params: Promise.resolve({ path: pathname.slice(base.length + 1).split('/') }) })
      },
    }))
  },
  Hono: async (make, base) => {
    const app = new Hono()
    const ops = make({ base })
    app.all(`${base}/*`, (c) => ops.fetch(c.req.raw))
    if (base !== '') app.all(base, (c) => ops.fetch(c.req.raw))
    return new Promise((resolve) => {
      const http = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
        resolve({
          url: `http://127.0.0.1:${port}`,
          async [Symbol.asyncDispose]() {
            ;(http as { closeAllConnections?(): void }).closeAllConnections?.()
            await new Promise((closed) => http.close(closed))
          },
        })
      })
    })
  },
} // prettier-ignore

const AUTHORIZE: DashboardOptions['authorize'] = (request) => {
  const who = request.headers.get('authorization') ?? new URL(request.url).searchParams.get('none')
  return who === 'Bearer all' ? { may: 'all', by: 'ines' } : null
}

/** Events, as they come over a real connection. */
async function events(url: string, headers: Record<string, string>): Promise<{ response: IncomingMessage; seen: { event: string; data: unknown }[]; close(): void }> {
  const seen: { event: string; data: unknown }[] = []
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest(url, { headers }, resolve).on('error', reject).end()
  })
  let rest = ''
  response.setEncoding('utf8').on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/s.exec(block) ?? []
      if (event !== undefined) seen.push({ event, data: JSON.parse(data!) })
    }
  })
  response.on('error', () => undefined)
  return { response, seen, close: () => response.destroy() }
} // prettier-ignore

/** Those of the built interface that the page names: each is there, is what it says, and is kept by the browser. */
async function expectFiles(url: string, headers: Record<string, string>): Promise<void> {
  const html = await (await fetch(url, { headers })).text()
  const base = new URL(/<base href="([^"]+)"/.exec(html)![1]!, url)
  const named = [...html.matchAll(/(?:src|href)="([^"]+\.(?:js|css|svg))"/g)].map(([, name]) => new URL(name!, base).href)
  expect(named.map((name) => path.extname(name)).toSorted()).toEqual(expect.arrayContaining(['.css', '.js', '.svg']))
  const types: Readonly<Record<string, string>> = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
  for (const name of named) {
    expect((await fetch(name)).status).toBe(401)
    const file = await fetch(name, { headers })
    expect([name, file.status, file.headers.get('content-type')?.split(';')[0]]).toEqual([name, 200, types[path.extname(name)]])
    expect((await file.text()).length).toBeGreaterThan(100)
    if (name.includes('/assets/')) expect(file.headers.get('cache-control')).toContain('immutable')
  }
} // prettier-ignore

describe.for(Object.keys(MOUNTS))('%s', (name) => {
  test.for(['', '/ops/inbox'])('under "%s/": pages, files, calls, changes and streams work', async (base) => {
    let ops: Dashboard | undefined
    const make = (options: Partial<DashboardOptions> = {}): Dashboard =>
      (ops = dashboard({ shop: box }, { authorize: AUTHORIZE, title: 'Shop <1>', ...options }))
    await using running = await MOUNTS[name]!(make, base)
    const url = running.url + base
    const headers = { authorization: 'Bearer all' }

    for (const at of [`${url}/`, ...(base === '' ? [] : [url]), `${url}/messages`, `${url}/messages/shop`]) {
      const page = await fetch(at, { headers })
      expect([at, page.status, page.headers.get('content-type')]).toEqual([at, 200, 'text/html; charset=utf-8'])
      const html = await page.text()
      expect(html).toContain(`<base href="${base}/">`)
      expect(html).toContain('<title>Shop &#60;1&#62;</title>')
    }
    await expectFiles(`${url}/`, headers)
    expect((await fetch(`${url}/`)).status).toBe(401)
    expect((await fetch(`${url}/nothing`, { headers })).status).toBe(404)

    const client = createClient({ url: `${url}/`, headers })
    expect(await client.session({})).toMatchObject({ user: 'ines', boxes: [{ name: 'shop' }], title: 'Shop <1>' })
    const stream = await events(client.streamUrl('shop'), headers)
    expect(stream.response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    await waitUntil(() => stream.seen.some(({ event }) => event === 'overview'))
    expect((stream.seen.find(({ event }) => event === 'overview')!.data as Overview).box).toBe('shop')

    const { count, confirmation } = await client.countRetry({ box: 'shop', q: 'id:d state:dead,handled' })
    expect(count).toBe(1)
    const job = await client.retry({ box: 'shop', confirmation, reason: 'a test' })
    await waitUntil(() => stream.seen.some(({ event, data }) => event === 'jobs' &&
      (data as { jobs: Job[] }).jobs.some(({ id, state }) => id === job.id && state === 'done'))) // prettier-ignore
    await waitUntil(async () => {
      await box.drain()
      return (await box.fate('d')).state === 'handled'
    })
    await expect(client.message({ box: 'shop', id: 'nothing' })).rejects.toThrow(DashboardError)
    stream.close()
    await ops!.close()
  })
})

/** A proxy that shows the dashboard under `seen`, where its server has it under `mounted`. */
function behindProxy(running: Running, mounted: string, seen: string): Promise<Running> {
  return listen((request, response) => {
    const isOurs = request.url === seen || request.url!.startsWith(`${seen}/`)
    if (!isOurs) return void response.writeHead(502).end()
    const to = running.url + mounted + request.url!.slice(seen.length)
    httpRequest(to, { headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    }).end()
  })
}

async function expectWorks(proxy: Running, seen: string): Promise<void> {
  const headers = { authorization: 'Bearer all' }
  const url = proxy.url + seen
  for (const at of [`${url}/`, `${url}/messages/shop`]) {
    const page = await fetch(at, { headers })
    expect([at, page.status]).toEqual([at, 200])
    expect(await page.text()).toContain(`<base href="${seen}/">`)
  }
  await expectFiles(`${url}/`, headers)
  expect(await createClient({ url: `${url}/`, headers }).session({})).toMatchObject({ user: 'ines' })
}

describe.for<[mounted: string, seen: string]>([
  ['/ops/inbox', '/admin/ops/inbox'],
  ['/ops/inbox', '/ops'],
  ['/ops/inbox', ''],
])('mounted under %s, behind a proxy that shows it under "%s/"', ([mounted, seen]) => {
  test.for(['Express', 'Fastify', 'node:http', 'Koa'])('%s: pages, files and calls work', async (name) => {
    const make = (): Dashboard => dashboard({ shop: box }, { authorize: AUTHORIZE, base: seen })
    await using running = await MOUNTS[name]!(make, mounted)
    await using proxy = await behindProxy(running, mounted, seen)
    await expectWorks(proxy, seen)
  })
  test.for(Object.keys(MOUNTS))('%s, which is told where it is mounted: pages, files and calls work', async (name) => {
    const make = (): Dashboard => dashboard({ shop: box }, { authorize: AUTHORIZE, base: seen, mount: mounted })
    await using running = await MOUNTS[name]!(make, mounted)
    await using proxy = await behindProxy(running, mounted, seen)
    await expectWorks(proxy, seen)
  })
})

test.for(Object.keys(MOUNTS))('%s, mounted under / behind a proxy that takes the whole path away', async (name) => {
  const make = (): Dashboard => dashboard({ shop: box }, { authorize: AUTHORIZE, base: '/ops/inbox', mount: '' })
  await using running = await MOUNTS[name]!(make, '')
  await using proxy = await behindProxy(running, '', '/ops/inbox')
  await expectWorks(proxy, '/ops/inbox')
})

test('who is told where it is mounted, and not what readers see, shows itself there and nowhere else', async () => {
  const ops = dashboard({ shop: box }, { authorize: AUTHORIZE, mount: '/ops/inbox' })
  const get = (path: string) => ops.fetch(new Request(`http://ops.example.com${path}`, { headers: { authorization: 'Bearer all' } }))
  expect(await (await get('/ops/inbox/')).text()).toContain('<base href="/ops/inbox/">')
  for (const path of ['/', '/messages', '/ops', '/ops/inboxes']) expect([path, (await get(path)).status]).toEqual([path, 404])
  await ops.close()
}) // prettier-ignore

test('a stream tells of changes that others make, once a second at most, and ends with its client', async () => {
  const ops = dashboard({ shop: box }, { authorize: AUTHORIZE })
  await using running = await listen(toNodeListener(ops))
  const headers = { authorization: 'Bearer all' }
  const client = createClient({ url: running.url, headers })
  const two = await Promise.all([events(client.streamUrl('shop'), headers), events(client.streamUrl('shop'), headers)])
  await waitUntil(() => two.every(({ seen }) => seen.some(({ event }) => event === 'overview')))
  await client.pause({ box: 'shop', consumer: 'mail' })
  const overviews = ({ seen }: (typeof two)[number]): Overview[] =>
    seen.filter(({ event }) => event === 'overview').map(({ data }) => data as Overview)
  for (const one of two) await waitUntil(() => overviews(one).some(({ consumers }) => consumers[0]!.paused))
  await client.resume({ box: 'shop', consumer: 'mail' })
  for (const one of two)
    await waitUntil(() => overviews(one).at(-1)!.consumers[0]!.paused === false && overviews(one).length > 2)
  const times = overviews(two[0]).map(({ at }) => Date.parse(at))
  // By the clock of the readings: no two within the same second.
  expect(times.slice(1).map((at, n) => at - times[n]!).filter((gap) => gap < 850)).toEqual([]) // prettier-ignore
  two[0].close()
  await waitUntil(async () => {
    const before = overviews(two[1]).length
    await waitUntil(() => overviews(two[1]).length > before)
    return true
  })
  // The server ends what is left.
  const ended = new Promise((resolve) => two[1].response.once('end', resolve))
  await ops.close()
  await ended
})

test('streams have a limit, and who comes late is told to ask instead', async () => {
  const ops = dashboard({ shop: box }, { authorize: ({ headers }) => ({ may: 'read', by: headers.get('x-name')! }) })
  const url = 'http://ops.example.com/api/v1/boxes/shop/stream'
  const openAs = (name: string): Promise<Response> => ops.fetch(new Request(url, { headers: { 'x-name': name } }))
  const open: Response[] = []
  for (let n = 0; n < 200; n++) open.push(await openAs(`reader ${n % 20}`))
  expect(new Set(open.map(({ status }) => status))).toEqual(new Set([200]))
  expect((await openAs('somebody else')).status).toBe(503)
  await open[0]!.body!.cancel()
  const again = await openAs('somebody else')
  expect(again.status).toBe(200)
  open.push(again)
  await ops.close()
})

describe('dev', () => {
  const make = (): Dashboard => dashboard({ shop: box }, { dev: true })

  test('lets in who is on this machine, through a bridge that knows', async () => {
    await using running = await listen(toNodeListener(make()))
    expect((await fetch(`${running.url}/api/v1/session`)).status).toBe(200)
    const status = async (headers: Record<string, string>): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        httpRequest(`${running.url}/api/v1/session`, { headers }, (response) => {
          response.resume()
          resolve(response.statusCode)
        }).on('error', reject).end()
      }) // prettier-ignore
    expect(await status({ host: 'localhost:3000' })).toBe(200)
    expect(await status({ host: '[::1]:3000' })).toBe(200)
    expect(await status({ host: 'evil.example' })).toBe(403)
    expect(await status({ host: 'localhost.evil.example' })).toBe(403)
    expect(await status({ host: '127.0.0.1.evil.example' })).toBe(403)
    for (const header of PROXIES) {
      expect(await status({ [header]: '127.0.0.1' })).toBe(403)
    }
  })

  test.for(['10.0.0.7', '::ffff:10.0.0.7', '192.168.1.2', '128.0.0.1', 'fe80::1', undefined])('refuses the peer %s', async (remoteAddress) => {
    // As a server of Node.js calls it, with a connection from there.
    const listener = toNodeListener(make())
    await using running = await listen((request, response) => {
      Object.defineProperty(request.socket, 'remoteAddress', { value: remoteAddress })
      listener(request, response)
    })
    const response = await fetch(`${running.url}/api/v1/session`)
    expect([response.status, await response.json()]).toEqual([403, { error: expect.objectContaining({ code: 'NOT_LOCAL' }) }])
  }) // prettier-ignore

  test('refuses everybody where nobody knows who asks', async () => {
    expect((await make().fetch(new Request('http://localhost/api/v1/session'))).status).toBe(403)
  })
})

test.for<[what: string, options: DashboardOptions]>([
  ['without authorize', {}],
  ['with dev: false alone', { dev: false }],
  ['with dev and authorize', { dev: true, authorize: () => 'all' }],
  ['with an authorize that is no function', { authorize: 'all' as never }],
  ['with a short secret', { authorize: () => 'all', secret: 'short' }],
  ['with addresses for hosts', { authorize: () => 'all', hosts: ['https://ops.example.com/'] }],
  ['with no hosts at all', { authorize: () => 'all', hosts: [] }],
  ['with a misspelt option', { authorise: () => 'all' } as never],
])('a dashboard does not start %s', ([, options]) => {
  expect(() => dashboard({ shop: box }, options)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test('a dashboard does not start without a box, nor for everybody in production', () => {
  const authorize = () => 'all' as const
  for (const boxes of [undefined, null, {}, [], { a: {} }, { a: { admin: {} } }, 'box']) {
    expect(() => dashboard(boxes as never, { authorize })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  }
  const before = process.env['NODE_ENV']
  process.env['NODE_ENV'] = 'production'
  try {
    expect(() => dashboard(box, { dev: true })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  } finally {
    process.env['NODE_ENV'] = before
  }
})

test.for([
  undefined,
  'everything',
  [],
  { may: 'write' },
  new Set(['everything']),
  { may: 'all', by: '' },
  { may: 'all', boxes: 'shop' },
  1,
  true,
])('an authorize that answers %j lets nobody in', async (answer) => {
  const ops = dashboard({ shop: box }, { authorize: () => answer as never, onError: () => undefined })
  const { status } = await ops.fetch(new Request('http://ops.example.com/api/v1/session'))
  expect(status).toBe(answer === undefined ? 401 : 500)
})

test('an authorize that answers a Response has it sent, and what protects is added', async () => {
  const ops = dashboard(
    { shop: box },
    { authorize: () => new Response(null, { status: 302, headers: { location: '/login' } }) },
  )
  const response = await ops.fetch(new Request('http://ops.example.com/'))
  expect([response.status, response.headers.get('location'), response.headers.get('x-frame-options')]).toEqual([
    302,
    '/login',
    'DENY',
  ])
})

describe('behind a parser of bodies', () => {
  const errors: unknown[] = []
  const ops = (): Dashboard =>
    dashboard({ shop: box }, { authorize: () => 'all', onError: (error) => errors.push(error) })
  const count = (url: string, body: unknown = { q: 'id:nobody' }): Promise<Response> =>
    fetch(`${url}/api/v1/boxes/shop/retry/count`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', connection: 'close' },
      body: JSON.stringify(body),
    })

  test('of Express, what it has parsed is taken', async () => {
    const app = express()
    app.use(express.json())
    app.use('/', toNodeListener(ops()))
    await using http = await listen(app)
    const response = await count(http.url)
    expect([response.status, await response.json()]).toMatchObject([200, { count: 0 }])
    errors.length = 0
    expect((await count(http.url, [])).status).toBe(400)
    expect(errors).toEqual([])
  })

  test('of Koa, what it has left in its request is taken', async () => {
    const middleware = toKoa(ops())
    await using http = await listen((req, res) => {
      req.on('end', () => void middleware({ req, res, request: { body: { q: 'id:nobody' } } })).resume()
    })
    const response = await count(http.url)
    expect([response.status, await response.json()]).toMatchObject([200, { count: 0 }])
  })

  test('that keeps nothing, it is 500, and the operator is told what to do', async () => {
    errors.length = 0
    const listener = toNodeListener(ops())
    await using http = await listen((req, res) => void req.on('end', () => listener(req, res)).resume())
    const response = await count(http.url)
    expect([response.status, await response.json()]).toMatchObject([500, { error: { code: 'INTERNAL' } }])
    expect(errors).toMatchObject([{ code: 'OPTION_INVALID', message: expect.stringContaining('before whatever parses bodies') as string }]) // prettier-ignore
  })
})
