/** What somebody is told who is refused, or gets nothing: in a browser, by a search, and where a destination is down. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Incoming, Sink } from 'oncebox'
import type { Dashboard } from 'oncebox/dashboard'
import type { Outbox, Overview, SinkStatus } from 'oncebox/dashboard/client'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { ask, CANARY, open, ORIGIN } from './fixture.js'

const server = useServer('dashboard_refusals')
let box: Bench
let ops: Dashboard
const at = { box: 'shop' }

beforeAll(async () => {
  box = await server.open({ source: 'shop' })
  ops = open({ shop: box })
})
afterAll(() => box[Symbol.asyncDispose]())

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

test.for([
  ['/nowhere', 'all', 404, 'there is no such page'],
  ['/a/b/c/d', 'all', 404, 'there is nothing here'],
  ['/', 'nobody', 401, 'you are not logged in here, or have no right to see this'],
] as const)('a browser that is refused %s gets a page with the same words, others JSON', async ([path, who, status, words]) => {
  const get = (accept: string): Promise<Response> =>
    ops.fetch(new Request(`${ORIGIN}${path}`, { headers: { accept, 'x-who': who, host: 'ops.example.com' } }))
  const page = await get(BROWSER)
  expect(page.status).toBe(status)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none';.*frame-ancestors 'none'/)
  expect(await page.text()).toContain(words)
  for (const accept of ['application/json', '*/*']) {
    const answer = await get(accept)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ error: { message: words } })
  }
}) // prettier-ignore

test('a search that is refused says which right it takes, and a short fingerprint how long one is', async () => {
  for (const q of ['error:x', 'data.a:1']) {
    const { status, answer } = await ask(ops, 'messages', { ...at, q }, { who: 'reader' })
    expect([status, answer]).toMatchObject([403, { error: { needs: 'bodies', message: expect.stringContaining('‘bodies’') as string } }]) // prettier-ignore
  }
  const { status, answer } = await ask(ops, 'messages', { ...at, q: 'fingerprint:9f3a61c2' })
  expect([status, answer]).toMatchObject([400, { error: { message: expect.stringContaining('all 12') as string } }])
})

test('a sink whose destination is down is failing, though no event of it has an error, and without its words', async () => {
  await using other = await server.open({ source: 'shop' })
  other.to({
    name: 'events',
    publish: () => Promise.reject(new Error(`down: ${CANARY}`)),
    close: () => Promise.resolve(),
  } as Sink)
  other.consumer('pay', { pay: async (_, ctx) => void (await ctx.send('paid', {})) })
  const shown = open({ shop: other })
  const sinkOf = async (name: 'overview' | 'outbox'): Promise<SinkStatus | undefined> => {
    const { answer } = await ask(shown, name, at, { who: 'reader' })
    const { sinks } = answer as Overview | Outbox
    expect(JSON.stringify(sinks)).not.toContain(CANARY)
    return sinks.find((sink) => sink.name === 'events')
  }
  await other.start()
  await other.receive({ id: 'p', type: 'pay', source: 'shop', data: {} } as Incoming)
  for (const name of ['overview', 'outbox'] as const) {
    expect(await waitUntil(async () => ((await sinkOf(name))?.failing ? true : undefined))).toBe(true)
  }
  await other.stop()
})
