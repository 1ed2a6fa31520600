/**
 * The recipes of the page about frameworks run as they stand, with a real server and a real client: a signed request is
 * handled, a copy of it is a duplicate, and a forged one is refused. Frameworks that are no devDependencies are installed
 * on demand.
 */
import { randomUUID } from 'node:crypto'
import { type createServer } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { toKoa, toNodeListener } from 'oncebox/http'
import { webhook, type WebhookSource } from 'oncebox/webhook'
import { useServer, type Bench } from '../inbox/fixture.js'
import { installed, type Installed } from '../support/installed.js'
import { bodyOf, SECRETS, serve, sign, type Sent } from '../webhook/senders.js'
import { recipesOf, runRecipe, type Given } from './recipe.js'

const database = useServer('frameworks')
const recipes = recipesOf('docs/frameworks.md')
const NEST = ['common', 'core', 'platform-express', 'platform-fastify'].map((name) => `@nestjs/${name}@11.1.9`)
const KOA = ['koa@3.1.1', '@koa/router@15.0.0', '@koa/bodyparser@6.0.0', 'koa-mount@4.2.0']
const OTHERS = ['express4@npm:express@4.21.2', 'fastify4@npm:fastify@4.29.1', 'reflect-metadata@0.2.2', 'rxjs@7.8.2']

let others: Installed
beforeAll(async () => {
  others = await installed('frameworks', [...KOA, ...NEST, ...OTHERS])
})

async function post(url: string, { body, headers }: Sent): Promise<[number, unknown]> {
  const response = await fetch(url, { method: 'POST', headers, body })
  return [response.status, await response.json()]
}

/** A box whose handler writes a line for each message, and a webhook into it. */
let box: Bench
let hook: WebhookSource
let errors: unknown[]
beforeAll(async () => {
  box = await database.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode: 'inline' })
  const onError = (error: unknown): void => void errors.push(error)
  hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard, onError }), { types: 'any' })
})
afterAll(() => box[Symbol.asyncDispose]())
beforeEach(() => {
  errors = []
})

/** What our own sink sends, and as much as a webhook takes by default, or nearly. */
async function expectAll(url: string): Promise<void> {
  const id = randomUUID()
  const event = { specversion: '1.0', id, source: '/test', type: 'note', data: { text: 'ü' } }
  const sent = await sign('standard', JSON.stringify(event), { id })
  const headers = { ...sent.headers, 'content-type': 'application/cloudevents+json' }
  expect(await post(url, { ...sent, headers })).toEqual([200, { status: 'handled' }])
  const large = await sign('standard', bodyOf('standard', '', { text: 'x'.repeat(900_000) }), { id: randomUUID() })
  expect(await post(url, large)).toEqual([200, { status: 'handled' }])
}

async function expectOnce(url: string): Promise<void> {
  const id = randomUUID()
  const sent = await sign('standard', bodyOf('standard', '', { text: 'ü' }), { id })
  expect(await post(url, sent)).toEqual([200, { status: 'handled' }])
  expect(await post(url, sent)).toEqual([200, { status: 'duplicate' }])
  expect(await post(url, { ...sent, body: `${sent.body} ` })).toMatchObject([401, {}])
  expect((await box.ids()).filter((one) => one === id)).toHaveLength(1)
}

const onDemand = (...names: string[]): Given['modules'] =>
  Object.fromEntries(names.map((name) => [name, others.require(name) as unknown]))
const PLATFORMS = ['@nestjs/platform-express', '@nestjs/platform-fastify']
const nest = (): Given['modules'] => onDemand('reflect-metadata', '@nestjs/common', '@nestjs/core', ...PLATFORMS)
const emptyModule = (): unknown => {
  const { Module } = others.require('@nestjs/common') as { Module(of: object): (target: object) => void }
  const target = class AppModule {}
  Module({})(target)
  return target
}

const ON_FASTIFY = (text: string): string =>
  text
    .replace(`'@nestjs/core'`, `'@nestjs/core'\nimport { FastifyAdapter } from '@nestjs/platform-fastify'`)
    .replace('(AppModule, {', '(AppModule, new FastifyAdapter(), {')
    .replace(/^server.useBodyParser.*$/m, '')

describe('a signed request is handled once, and a forged one refused', () => {
  test.for<[title: string, how: string, given?: () => Given]>([
    ['node.ts', 'as it stands'],
    ['express.ts', 'on Express 5'],
    ['express-raw.ts', 'on Express 5'],
    ['express-verify.ts', 'on Express 5'],
    ['express.ts', 'on Express 4', () => ({ modules: { express: others.require('express4') } })],
    ['express-raw.ts', 'on Express 4', () => ({ modules: { express: others.require('express4') } })],
    ['express-verify.ts', 'on Express 4', () => ({ modules: { express: others.require('express4') } })],
    ['fastify.ts', 'on Fastify 5'],
    ['fastify.ts', 'on Fastify 4', () => ({ modules: { fastify: others.require('fastify4') } })],
    ['koa.ts', 'as it stands', () => ({ modules: onDemand('koa', '@koa/router') })],
    [
      'koa.ts',
      'behind a parser of bodies',
      () => ({
        modules: onDemand('koa', '@koa/router', '@koa/bodyparser'),
        edit: (text) =>
          text
            .replace('import Koa', `import { bodyParser } from '@koa/bodyparser'\nimport Koa`)
            .replace('app.use(', `app.use(bodyParser({ jsonLimit: '1mb' }))\napp.use(`),
      }),
    ],
    ['hono.ts', 'as it stands'],
    ['nest.ts', 'on Express', () => ({ modules: nest() })],
    ['nest-fastify.ts', 'as it stands', () => ({ modules: nest(), values: { AppModule: emptyModule() } })],
  ])('%s, %s', async ([title, , given = (): Given => ({})]) => {
    const { values, ...more } = given()
    await using recipe = await runRecipe(recipes.get(title)!, { values: { hook, ...values }, ...more })
    await expectOnce(recipe.url)
    await expectAll(recipe.url)
  })

  test('nest.ts, on Fastify, which takes no other type of content than JSON and forms', async () => {
    await using recipe = await runRecipe(recipes.get('nest.ts')!, {
      values: { hook },
      modules: nest(),
      edit: ON_FASTIFY,
    })
    await expectOnce(recipe.url)
    const init = { method: 'POST', headers: { 'content-type': 'application/cloudevents+json' }, body: '{}' }
    expect((await fetch(recipe.url, init)).status).toBe(415)
  })

  test('next.ts, called as Next.js calls a route', async () => {
    await using recipe = await runRecipe(recipes.get('next.ts')!, { values: { hook } })
    const { POST } = recipe.values as { POST: (request: Request, context: object) => Promise<Response> }
    await using http = await serve(toNodeListener((request) => POST(request, { params: Promise.resolve({}) })))
    await expectOnce(http.url)
  })

  test('next-pages.ts, called as Next.js calls a page', async () => {
    await using recipe = await runRecipe(recipes.get('next-pages.ts')!, { values: { hook } })
    const page = recipe.values['byDefault'] as ReturnType<typeof toNodeListener>
    // Next.js warns of a page that comes to its end without an answer.
    const answered: boolean[] = []
    await using http = await serve((request, response) => {
      const ended = page(request, response) as unknown
      void Promise.resolve(ended).then(() => answered.push(response.writableEnded))
    })
    await expectOnce(http.url)
    expect(answered).toEqual([true, true, true])
  })
})

describe('somebody else has read the body: 500, advice, and nothing is lost', () => {
  test.for<[title: string, edit: (text: string) => string, modules?: () => Given['modules']]>([
    ['express.ts', (text) => text.replace('express()\n', 'express()\napp.use(express.json())\n')],
    ['nest.ts', (text) => text.replace('rawBody: true, ', ''), nest],
    ['nest.ts', (text) => ON_FASTIFY(text.replace('rawBody: true, ', '')), nest],
    [
      'hono.ts',
      (text) => text.replace('app.post(', 'app.use(async (c, next) => (await c.req.json(), next()))\napp.post('),
    ],
  ])('%s', async ([title, edit, modules = () => ({})]) => {
    await using recipe = await runRecipe(recipes.get(title)!, { values: { hook }, edit, modules: modules()! })
    const before = await box.ids()
    const sent = await sign('standard', bodyOf('standard'))
    expect(await post(recipe.url, sent)).toEqual([500, { error: 'not ready' }])
    expect(errors).toMatchObject([{ code: 'OPTION_INVALID', message: expect.stringContaining('parses bodies') }])
    expect(await box.ids()).toEqual(before)
  })
})

test('what it is mounted under is told, by every framework that knows', async () => {
  const { mountOf, toFastify } = await import('oncebox/http')
  const where = (request: Request): Response => {
    const { base, request: own } = mountOf(request)
    return Response.json([base, new URL(request.url).pathname, typeof own])
  }
  const { default: express } = await import('express')
  const { default: fastify } = await import('fastify')
  const Koa = others.require('koa') as new () => { use(one: unknown): void; callback(): Parameters<typeof serve>[0] }
  const mount = others.require('koa-mount') as (path: string, one: unknown) => unknown

  const onExpress = express().use('/admin', toNodeListener(where))
  const onFastify = fastify()
  onFastify.register(toFastify(where), { prefix: '/admin' })
  await onFastify.ready()
  const onKoa = new Koa()
  onKoa.use(mount('/admin', toKoa(where)))
  const onNode = toNodeListener(where, { base: '/admin' })
  for (const listener of [onExpress, onFastify.routing, onKoa.callback(), onNode] as Parameters<
    typeof createServer
  >[1][]) {
    await using http = await serve(listener!)
    const response = await fetch(http.url.replace('/hook', '/admin/me?x=1'))
    expect(await response.json()).toEqual(['/admin', '/admin/me', 'object'])
  }
})
