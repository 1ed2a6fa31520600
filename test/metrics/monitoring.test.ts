/** The fetch handler of oncebox/monitoring. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, test } from 'vitest'
import { toNodeListener } from 'oncebox/http'
import { monitoring, type MonitoredBoxes, type MonitoringOptions } from 'oncebox/monitoring'
import { notes, recorder, useServer } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { parse } from './scrape.js'

const server = useServer('monitoring')

function ask(boxes: MonitoredBoxes, path: string, options?: MonitoringOptions, init?: RequestInit): Promise<Response> {
  return monitoring(boxes, options).fetch(new Request(`http://host${path}`, init))
}

test('/metrics answers what box.metrics() tells, as Prometheus takes it', async () => {
  await using box = await server.open()
  const response = await ask(box, '/metrics')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const told = parse(await response.text())
  expect(told.types.get('oncebox_dead_letters_total')).toBe('counter')
  expect(told.value('oncebox_pool_capacity', { box: box.schema })).toBe(10)
})

test('several boxes share a text, in which each metric is declared once and its series tell them apart', async () => {
  await using one = await server.open()
  await using two = await server.open()
  const told = parse(await (await ask([one, two], '/metrics')).text())
  expect(told.text.match(/^# TYPE oncebox_dead_letters_total /gm)).toHaveLength(1)
  expect(told.value('oncebox_pool_capacity', { box: one.schema })).toBe(10)
  expect(told.value('oncebox_pool_capacity', { box: two.schema })).toBe(10)
  const named = parse(await (await ask({ eu: one, us: two }, '/metrics')).text())
  expect(named.value('oncebox_pool_capacity', { box: 'eu' })).toBe(10)
})

test('/healthz asks nothing, and /readyz is 503 while a box is not well, without words about the inside', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.migrate()
  expect((await ask(box, '/readyz')).status).toBe(200)
  await box.receive(notes(1))
  await box.clock.advance(60_000)
  const lagging = await ask(box, '/readyz', { maxLagMs: 1_000 })
  expect(lagging.status).toBe(503)
  const { ok, boxes } = (await lagging.json()) as { ok: boolean; boxes: Record<string, Record<string, unknown>> }
  expect(ok).toBe(false)
  expect(Object.keys(boxes[box.schema]!).sort()).toEqual(['database', 'lagMs', 'ok', 'sources'])
  const told = await ask(box, '/readyz', { maxLagMs: 1_000, reasons: true })
  expect(await told.text()).toContain('above maxLagMs')
  expect(await (await ask(box, '/healthz', { maxLagMs: 1_000 })).text()).toBe('ok\n')
})

test('neither the log nor /readyz repeats a value of a row that an error quotes', async () => {
  const log = recorder()
  await using box = await server.open({ logger: log })
  await box.migrate()
  const authorize = async (): Promise<boolean> => {
    await box.sql(`select 'canary-7f3a'::text::int`)
    return true
  }
  expect((await ask(box, '/metrics', { authorize })).status).toBe(500)
  expect(JSON.stringify(log.lines)).toContain('invalid input syntax for type integer')
  // Whatever the statement of health() meets, its error may quote what the server read.
  await box.sql(`create or replace function ob.now() returns timestamptz language sql as $$ select 'canary-7f3a'::text::timestamptz $$`) // prettier-ignore
  const told = await (await ask(box, '/readyz', { reasons: true })).text()
  expect(told).toContain('the database cannot be used')
  expect(told + JSON.stringify(log.lines)).not.toContain('canary-7f3a')
})

test('HEAD has no body, other methods and paths are refused', async () => {
  await using box = await server.open()
  const head = await ask(box, '/metrics', {}, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
  const post = await ask(box, '/metrics', {}, { method: 'POST', body: 'x' })
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  for (const path of ['/', '/metrics/more', '/other', '/xmetrics']) expect((await ask(box, path)).status).toBe(404)
})

test.for<[answer: () => boolean | Promise<boolean> | Response, status: number]>([
  [() => true, 200],
  [() => Promise.resolve(false), 401],
  [() => new Response('no', { status: 418 }), 418],
  [() => undefined as never, 401],
])('authorize decides: %#', async ([authorize, status]) => {
  await using box = await server.open()
  expect((await ask(box, '/metrics', { authorize })).status).toBe(status)
})

test('authorize knows the page, so that probes may be let in; one that throws tells the log alone', async () => {
  const log = recorder()
  await using box = await server.open({ logger: log })
  const authorize = (_: Request, page: string): boolean => page !== 'metrics'
  expect((await ask(box, '/healthz', { authorize })).status).toBe(200)
  expect((await ask(box, '/metrics', { authorize })).status).toBe(401)
  const broken = await ask(box, '/metrics', {
    authorize: () => {
      throw new Error('the secret store is at 10.0.0.1')
    },
  })
  expect([broken.status, await broken.text()]).toEqual([500, 'internal error\n'])
  expect(JSON.stringify(log.lines)).toContain('10.0.0.1')
})

test('scrapes that come together read once', async () => {
  await using box = await server.open()
  const { fetch } = monitoring(box)
  await box.sql('create table ob.test_seen (n bigserial)')
  await box.sql(`create function ob.see() returns trigger language plpgsql as $$
    begin insert into ob.test_seen default values; return new; end $$`)
  await box.sql('create trigger see after update on ob.reading for each row execute function ob.see()')
  const all = await Promise.all(Array.from({ length: 50 }, () => fetch(new Request('http://host/metrics'))))
  const texts = new Set(await Promise.all(all.map((response) => response.text())))
  expect(texts.size).toBe(1)
  expect((await box.sql('select count(*)::int n from ob.test_seen'))[0]).toEqual({ n: 1 })
})

test('it mounts under any path', async () => {
  await using box = await server.open()
  const app = express()
  app.use('/internal/box', toNodeListener(monitoring(box)))
  const listening = createServer(app).listen(0, '127.0.0.1')
  await waitUntil(() => listening.listening)
  const origin = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
  try {
    expect((await fetch(`${origin}/internal/box/metrics`)).status).toBe(200)
    expect((await fetch(`${origin}/internal/box/healthz/`)).status).toBe(200)
    expect((await fetch(`${origin}/internal/box/deeper/metrics`)).status).toBe(404)
  } finally {
    listening.close()
  }
})

test.for<[what: string, given: unknown, words: RegExp]>([
  ['nothing', undefined, /takes a box/],
  ['no boxes', [], /takes a box/],
  ['something else', { health: () => undefined }, /takes a box/],
])('%s is refused in words', ([, given, words]) => {
  expect(() => monitoring(given as never)).toThrow(words)
})

test('two boxes of one name are refused, and the words say how to name them', async () => {
  await using box = await server.open()
  expect(() => monitoring([box, box])).toThrow(/monitoring\(\{ eu/)
  // @ts-expect-error no such option
  expect(() => monitoring(box, { maxLag: 1 })).toThrow(/maxLagMs/)
})
