/**
 * Lines of the log and hooks: each event once, after its commit, with the ids by which it is found, and nothing of what is
 * inside.
 */
import { inspect } from 'node:util'
import pg from 'pg'
import { createBox, defineMessages, Reject, type Hooks, type Logger, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { traceIdOf } from '../../src/telemetry/headers.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer } from './fixture.js'

const server = useServer('log_lines')
const CANARY = 'c4n4ry'
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const headers = { traceparent: `00-${TRACE}-b7ad6b7169203331-01`, correlationid: 'conversation', token: CANARY }
const secret = (id: string, type: string) => note(id, { type, data: { secret: CANARY }, headers, source: 'shop' })
const IDS = { correlationId: 'conversation', traceId: TRACE }

type Told = [hook: string, what: Record<string, unknown>]

/** Hooks that look, from outside, at the message that they are told of, and then fail. */
function spies(look: (id: string) => Promise<unknown>) {
  const told: Told[] = []
  const seen: Promise<unknown>[] = []
  const hear = (hook: string) => (what: unknown) => {
    const { message, messages } = what as { message?: { id: string }; messages?: { id: string }[] }
    told.push([hook, what as Record<string, unknown>])
    seen.push(look((message ?? messages![0])!.id))
    throw new Error('the pager is down')
  }
  const hooks = Object.fromEntries(['failed', 'dead', 'quarantined', 'takenOver'].map((name) => [name, hear(name)]))
  return { told, seen: () => Promise.all(seen), hooks: hooks as unknown as Hooks<MessageMap> }
}

describe('what is told of a message', () => {
  test('is told once, when it can be seen from outside, and the log names its ids and nothing else of it', async () => {
    const logger = recorder()
    const state = async (id: string): Promise<unknown> => {
      const [row] = await box.sql(
        `select (select state from ob.messages where id = $1 and consumer = 'pay') state, (select reason from ob.quarantine where id = $1) reason,
           (select parked from ob.delivery join ob.outbox using (n) where id = $1) event`,
        [id],
      )
      return { id, ...row }
    }
    const { told, seen, hooks } = spies(state)
    const schema = z.object({ secret: z.string().max(3) })
    const anything = z.unknown()
    const messages = defineMessages({ again: anything, bad: anything, strict: schema, call: anything, sent: anything })
    await using box = await server.open({ logger, hooks: hooks as never, messages })
    box.consumer('pay', {
      again: () => Promise.reject(new Error('no luck')),
      bad: () => Promise.reject(new Reject('never')),
      strict: () => undefined,
      call: (_message, { effect }) => effect('charge', () => Promise.reject(new Error('who knows')), { onUnknown: 'park' }),
    }, { retry: { baseMs: 60_000, jitter: 'none' } }) // prettier-ignore
    box.to({
      name: 'events',
      publish: async (batch) => batch.map(() => ({ error: new Error('refused'), retry: false })),
      close: async () => undefined,
    })
    const types = ['again', 'bad', 'call', 'strict', 'nobody']
    await box.receive(types.map((type) => secret(type, type)) as never)
    const client = await server.pool.connect()
    await client.query('begin')
    await (box as never as { send(...given: unknown[]): Promise<unknown> }).send(client, 'sent', { secret: CANARY }, { id: 'event', headers }) // prettier-ignore
    await client.query('commit')
    client.release()
    await box.drain()

    expect(told.map(([hook, { message }]) => `${hook} ${(message as { id: string }).id}`).sort()).toEqual([
      ...['dead bad', 'dead event', 'failed again', 'quarantined call', 'quarantined nobody', 'quarantined strict'],
    ])
    expect((await seen()).toSorted((a, b) => ((a as { id: string }).id < (b as { id: string }).id ? -1 : 1))).toEqual([
      { id: 'again', state: 'pending', reason: null, event: null },
      { id: 'bad', state: 'dead', reason: null, event: null },
      { id: 'call', state: 'quarantined', reason: null, event: null },
      { id: 'event', state: null, reason: null, event: 'dead' },
      { id: 'nobody', state: null, reason: 'unrouted', event: null },
      { id: 'strict', state: null, reason: 'invalid', event: null },
    ])
    const about = (id: string): object[] =>
      logger.lines.filter((line) => (line.about as { id?: string }).id === id).map((line) => line.about)
    const pay = { consumer: 'pay', ...IDS }
    expect(about('again')).toEqual([{ id: 'again', type: 'again', attempt: 1, error: 'no luck', retryBy: 'box', retryInMs: expect.any(Number), ...pay }]) // prettier-ignore
    expect(about('bad')).toEqual([{ id: 'bad', type: 'bad', attempt: 1, error: 'never', ...pay }])
    expect(about('call')).toMatchObject([{ id: 'call', type: 'call', reason: 'effect-unknown', ...pay }])
    expect(about('strict')).toEqual([{ id: 'strict', type: 'strict', reason: 'invalid', fields: ['secret'], ...pay, consumer: '' }]) // prettier-ignore
    const why = 'no consumer takes messages of type nobody'
    expect(about('nobody')).toEqual([{ id: 'nobody', type: 'nobody', reason: 'unrouted', why, ...pay, consumer: '' }])
    expect(about('event')).toEqual([{ id: 'event', type: 'sent', sink: 'events', error: 'refused', ...IDS }])
    expect(logger.lines.filter(({ text }) => text === 'a hook failed')).toHaveLength(6)
    expect(inspect(logger.lines, { depth: 10, maxStringLength: Infinity })).not.toContain(CANARY)
    for (const { text } of logger.lines) expect(text).not.toContain('\n')
  })

  test('messages of a worker that stood still are taken over, and that is told once', async () => {
    const logger = recorder()
    const look = async (id: string): Promise<unknown> => (await box.fates(id))[0]
    const { told, seen, hooks } = spies(look)
    await using box = await server.open({ logger, hooks })
    box.consumer('pay', { note: () => undefined })
    await box.receive([secret('1', 'note'), secret('2', 'note')])
    await box.sql(`update ob.work set token = gen_random_uuid(), due_at = ob.now() - interval '1 second'`)
    await box.drain()
    const messages = ['1', '2'].map((id) => ({ id, source: 'shop', type: 'note' }))
    expect(told).toEqual([['takenOver', { consumer: 'pay', messages }]])
    expect(await seen()).toHaveLength(1)
    expect(logger.lines[0]).toMatchObject({ about: { id: '1', type: 'note', consumer: 'pay', messages: 2, ...IDS } })
    expect(inspect([logger.lines, told], { depth: 10 })).not.toContain(CANARY)
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })

  test.for(['before', 'after'] as const)(
    'a verdict whose record is cut off, %s it is made, is told once',
    async (at) => {
      const proxy = await startProxy(server.url)
      const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
      pool.on('error', () => undefined)
      await using schema = await server.open()
      const { told, seen, hooks } = spies(async (id) => (await schema.fates(id))[0])
      const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} }
      const box = createBox({ db: fromPg(pool), schema: schema.schema, hooks, logger: silent })
      box.consumer('pay', { note: () => Promise.reject(new Reject('never')) }, { leaseMs: 2_000 })
      try {
        await box.receive(secret('1', 'note'))
        const recording = proxy.intercept({ at, statement: /'failures'/ })
        await box.start()
        const record = await recording
        expect(told).toEqual([])
        record.cut()
        await waitUntil(async () => (await schema.fate('1')).state === 'dead', { timeoutMs: 60_000 })
        await waitUntil(() => told.some(([hook]) => hook === 'dead'), { timeoutMs: 60_000 })
        await box.stop()
        expect(told.filter(([hook]) => hook === 'dead')).toHaveLength(1)
        expect((await seen()).at(-1)).toMatchObject({ state: 'dead' })
      } finally {
        await box.stop()
        await pool.end()
        await proxy.close()
      }
    },
  )
})

test('a password in the address of the database is in no line and no error of a hook', async () => {
  const url = new URL(server.url)
  url.password = CANARY
  url.port = '1'
  const pool = new pg.Pool({ connectionString: url.href, connectionTimeoutMillis: 1_000 })
  pool.on('error', () => undefined)
  const logger = recorder()
  const errors: unknown[] = []
  const box = createBox({ db: fromPg(pool), logger, hooks: { error: (...what) => void errors.push(what) } })
  const worker = box.consumer('pay', { note: () => undefined })
  const failed = await worker.start().catch((error: unknown) => error)
  const received = await box.receive(note('1')).catch((error: unknown) => error)
  await pool.end()
  for (const told of [logger.lines, errors, failed, received]) {
    expect(inspect(told, { depth: 10, showHidden: true })).not.toContain(CANARY)
  }
  expect(received).toBeInstanceOf(Error)
})

test.for<[what: string, traceparent: string | undefined, id: string | undefined]>([
  ['a trace context', headers.traceparent, TRACE],
  ['one of a later version, with more behind it', `01-${TRACE}-b7ad6b7169203331-00-more`, TRACE],
  ['none', undefined, undefined],
  ['an id of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, undefined],
  ['a version that there is not', `ff-${TRACE}-b7ad6b7169203331-01`, undefined],
  ['capitals', `00-${TRACE.toUpperCase()}-b7ad6b7169203331-01`, undefined],
  ['anything else', `${CANARY}\n`, undefined],
])('the trace id of %s', ([, traceparent, id]) => {
  expect(traceIdOf(traceparent === undefined ? {} : { traceparent })).toBe(id)
})
