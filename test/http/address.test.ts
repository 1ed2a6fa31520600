/** The address of a Request: the path that the framework has routed, whatever the client says of the host. */
import type { RequestListener } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, test } from 'vitest'
import { toFastify, toKoa, toNodeListener } from 'oncebox/http'
import { installed, type Installed } from '../support/installed.js'
import { serve } from '../webhook/senders.js'

/** Written as it stands: clients of Node.js would mend the path and the host. */
async function get(port: number, path: string, ...headers: string[]): Promise<{ status: number; body: string }> {
  const socket = connect(port, '127.0.0.1')
  socket.write([`GET ${path} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n'))
  const answer = await text(socket)
  return { status: Number(answer.split(' ')[1]), body: answer.slice(answer.indexOf('\r\n\r\n') + 4) }
}

const where = toNodeListener((request) => new Response(request.url))

test.for([
  [['Host: shop.example'], '/a/b?c=d', 'http://shop.example/a/b?c=d'],
  [['Host: shop.example:8080'], '/', 'http://shop.example:8080/'],
  [['Host: x'], '//evil.example/a', 'http://x//evil.example/a'],
  [['Host: x', 'X-Forwarded-Host: evil.example', 'X-Forwarded-Proto: https'], '/a', 'http://x/a'],
  [['Host: x'], 'http://y/a?b=c', 'http://x/a?b=c'],
  [['Host: x'], '/a?back=/b/../c', 'http://x/a?back=/b/../c'],
  [['Host: x'], '/a.b/..c/d../...', 'http://x/a.b/..c/d../...'],
] as const)('of the headers %j and the path %s the address is %s', async ([headers, path, url]) => {
  await using http = await serve(where)
  expect((await get(http.port, path, ...headers)).body).toBe(url)
})

test.for(['', 'a:99999', 'a%20b', 'user@x', '1.2.3.4.5', 'x/evil', '[::1', 'a,b', ':80', 'x?y', 'x#y'])(
  'a host that is none, such as %j, changes neither path nor query',
  async (host) => {
    await using http = await serve(where)
    for (const path of ['/charges/1?a=1', '/charges/2?a=2']) {
      expect((await get(http.port, path, `Host: ${host}`)).body).toBe(`http://localhost${path}`)
    }
  },
)

describe('a path that a URL would make another one of', () => {
  const OTHERS = [
    ...['/public/../private/a', '/public/%2e%2e/private/a', '/public/.%2E/private/a', '/public/%2E./private/a?b'],
    ...['/public/./a', '/public/%2e/a', '/public/..', '/public\\..\\private\\a', '/public/a#b'],
    ...['http://x/public/../private/a', 'http://x?/private/a', "http://x'/private/a", '*'],
  ]
  /** One app for two prefixes, and a check before one of them. */
  const site = (request: Request): Response => {
    const { pathname } = new URL(request.url)
    return new Response(pathname.startsWith('/private') ? 'secret' : `public ${pathname}`)
  }
  let others: Installed
  beforeAll(async () => {
    others = await installed('koa', ['koa@3.1.1', 'koa-mount@4.2.0'])
  })

  async function onExpress(): Promise<RequestListener> {
    const { default: express } = await import('express')
    const app = express()
    app.use('/private', (_request, response) => void response.status(401).end())
    app.use(['/public', '/'], toNodeListener(site))
    return app
  }
  async function onFastify(): Promise<RequestListener> {
    const { default: fastify } = await import('fastify')
    const app = fastify()
    app.register(toFastify(site), { prefix: '/public' })
    app.register(toFastify(site), { prefix: '/' })
    app.all('/private/*', (_request, reply) => reply.code(401).send())
    await app.ready()
    return app.routing
  }
  async function onKoa(): Promise<RequestListener> {
    interface Koa {
      use(one: unknown): void
      callback(): RequestListener
    }
    const mount = others.require('koa-mount') as (path: string, one: unknown) => unknown
    const app = new (others.require('koa') as new () => Koa)()
    app.use(mount('/private', (context: { status: number }) => void (context.status = 401)))
    app.use(mount('/public', toKoa(site)))
    app.use(toKoa(site))
    return app.callback()
  }
  const onNode = async (): Promise<RequestListener> => {
    const all = toNodeListener(site)
    return (request, response) =>
      request.url!.startsWith('/private') ? void response.writeHead(401).end() : all(request, response)
  }

  test.for([
    ['node:http', onNode],
    ['Express', onExpress],
    ['Fastify', onFastify],
    ['Koa', onKoa],
  ] as const)('passes no check of a prefix, and is answered 400: %s', async ([, open]) => {
    await using http = await serve(await open())
    expect(await get(http.port, '/public/a', 'Host: x')).toMatchObject({ status: 200, body: 'public /public/a' })
    expect(await get(http.port, '/private/a', 'Host: x')).toMatchObject({ status: 401 })
    for (const path of OTHERS) {
      const { status, body } = await get(http.port, path, 'Host: x')
      // A framework may have refused it before.
      expect([path, body]).not.toEqual([path, 'secret'])
      expect([400, 401, 404], path).toContain(status)
    }
    for (const path of OTHERS.slice(0, 4)) expect((await get(http.port, path, 'Host: x')).status, path).toBe(400)
  })
})
