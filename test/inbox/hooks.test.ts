/** What is told, to hooks and to the log: every failure, in the same words whichever way it ran, and each trouble once. */
import pg from 'pg'
import { batch, createBox, Reject, RetryLater, type Hooks, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, test } from 'vitest'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { gate, note, recorder, useServer } from './fixture.js'

const server = useServer('hooks')

type Failed = Parameters<NonNullable<Hooks<MessageMap>['failed']>>

/** The ways in which a message may run, and who retries it then. */
const WAYS = [
  { way: 'stored', mode: 'stored', door: 'receive', retryBy: 'box' },
  { way: 'stored, run at once', mode: 'stored', door: 'handle', retryBy: 'box' },
  { way: 'inline', mode: 'inline', door: 'handle', retryBy: 'source' },
  { way: 'inline, redelivered', mode: 'inline', door: 'handle', retryBy: 'source', fields: { redelivered: true } },
  { way: 'inline, retried by the box', mode: 'inline', door: 'handle', retryBy: 'box', options: { retryBy: 'box' } },
  { way: 'direct', mode: 'direct', door: 'handle', retryBy: 'source' },
] as const

describe.for(WAYS)('a failed attempt, $way', ({ mode, door, retryBy, ...more }) => {
  const options = { mode, retry: { baseMs: 60_000, jitter: 'none' }, ...('options' in more && more.options) } as const
  const fields = 'fields' in more ? more.fields : {}
  const throwing = (): never => {
    throw new Error('no stock')
  }

  test.for(['one by one', 'batch'] as const)('is told to the hook and the log, once: %s', async (handler) => {
    const told: Failed[] = []
    const logger = recorder()
    await using box = await server.open({ logger, hooks: { failed: (...what) => void told.push(what) } })
    box.consumer('a', { note: handler === 'batch' ? batch(throwing) : throwing }, options)
    const before = Date.now()
    await box[door](note('1', { source: 'shop', ...fields }))
    await box.drain()
    expect(told).toMatchObject([
      [{ consumer: 'a', state: 'pending', message: { id: '1', source: 'shop', attempt: 1 } }, { retryBy }],
    ])
    expect(told[0]![0].error).toMatchObject({ message: 'no stock' })
    const { retryAt } = told[0]![1]
    if (mode === 'direct') expect(retryAt).toBeUndefined()
    else expect(retryAt!.getTime()).toBeGreaterThanOrEqual(before + 60_000)
    const lines = logger.lines.filter(({ text }) => text?.startsWith('message failed'))
    expect(lines).toEqual([
      {
        level: 'warn',
        about: {
          ...{ id: '1', type: 'note', correlationId: '1', consumer: 'a', attempt: 1, error: 'no stock', retryBy },
          ...(mode !== 'direct' && { retryInMs: 60_000 }),
        },
        text: retryBy === 'box' ? 'message failed; the box retries it' : 'message failed; its source delivers it again',
      },
    ])
  })

  test('a handler that asks for later has not failed', async () => {
    const told: unknown[] = []
    await using box = await server.open({ hooks: { failed: (...what) => void told.push(what) } })
    box.consumer('a', { note: () => Promise.reject(new RetryLater({ afterMs: 60_000 })) }, options)
    await box[door](note('1', fields))
    await box.drain()
    expect(told).toEqual([])
  })
})

test('every hook is called as a method of the object that it came with', async () => {
  class Alerts {
    #told: string[] = []
    get told(): readonly string[] {
      return this.#told
    }
    failed(): void {
      this.#told.push('failed')
    }
    dead(): void {
      this.#told.push('dead')
    }
    quarantined(): void {
      this.#told.push('quarantined')
    }
    error(): void {
      this.#told.push('error')
    }
  }
  const hooks = new Alerts()
  await using box = await server.open({ hooks })
  box.consumer('stored', { note: () => Promise.reject(new Reject('no')) })
  box.consumer('inline', { other: () => Promise.reject(new Reject('no')) }, { mode: 'inline' })
  // Its second attempt must not fall due while the drain goes on.
  const later = { retry: { baseMs: 600_000, maxMs: 600_000, jitter: 'none' } } as const
  box.consumer('again', { third: () => Promise.reject(new Error('no')) }, later)
  await box.receive([note('1'), note('2', { type: 'nobody' }), note('3', { type: 'third' })])
  await box.handle(note('4', { type: 'other' }))
  await box.drain()
  expect([...hooks.told].sort()).toEqual(['dead', 'dead', 'failed', 'quarantined'])
})

const UNREADABLE: readonly (readonly [what: string, make: () => unknown])[] = [
  ['an object without a prototype', () => Object.create(null) as unknown],
  ['an error whose message throws', () => Object.defineProperty(new Error(), 'message', { get: () => notToBeRead() })],
]
const notToBeRead = (): never => {
  throw new Error('not to be read')
}

describe.for(UNREADABLE)('a hook that throws %s', ([, make]) => {
  test.for(['at once', 'later'] as const)('changes nothing, and leaves a line: %s', async (when) => {
    const unhandled: unknown[] = []
    const listen = (error: unknown): unknown => unhandled.push(error)
    process.on('unhandledRejection', listen)
    const logger = recorder()
    const quarantined = (): unknown => {
      if (when === 'later') return Promise.reject(make())
      throw make()
    }
    await using box = await server.open({ logger, hooks: { quarantined } })
    box.consumer('a', { note: () => undefined })
    await box.migrate()
    expect(await box.receive(note('1', { type: 'nobody' }))).toMatchObject({ status: 'quarantined' })
    const lines = await waitUntil(() => {
      const told = logger.lines.filter(({ text }) => text === 'a hook failed')
      return (told.length > 0 || unhandled.length > 0) && told
    })
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
    expect(lines).toMatchObject([
      { about: { hook: 'quarantined', error: expect.stringMatching(/^something was thrown that /) } },
    ])
  })
})

describe('hooks of a class', () => {
  class Alerts {
    readonly channel: string[] = []
    dead({ message }: { readonly message: { readonly id: string } }): void {
      this.channel.push(message.id)
    }
  }

  test('are methods of their object, which may have more than hooks', async () => {
    const alerts = new Alerts()
    await using box = await server.open({ hooks: alerts })
    box.consumer('a', { note: () => Promise.reject(new Reject('no')) })
    await box.receive(note('1'))
    await box.drain()
    expect(alerts.channel).toEqual(['1'])
  })

  test('are refused where one is no function, and so is an unknown name in a plain object', () => {
    const opened = (hooks: object) => () => createBox({ db: fromPg(server.pool), hooks })
    expect(opened(Object.assign(new Alerts(), { failed: 'loudly' }))).toThrow(/hooks\.failed/)
    for (const plain of [{ channel: [] }, Object.assign(Object.create(null) as object, { channel: [] })]) {
      expect(opened(plain)).toThrow(/hooks has no option "channel"/)
    }
  })
})

test('the log names the source that cannot be started, once, and says when it runs', async () => {
  const logger = recorder()
  const told: unknown[] = []
  await using box = await server.open({
    logger,
    hooks: {
      error: (error, where) => void told.push(['error', error.message, where]),
      recovered: (where) => void told.push(['recovered', where]),
    },
  })
  let starts = 0
  const source = box.from({
    name: 'orders',
    async start() {
      if (++starts <= 3) throw new Error('connection refused')
    },
    stop: async () => undefined,
  })
  await box.start()
  await waitUntil(() => told.length >= 2)
  expect(starts).toBe(4)
  expect(told).toEqual([
    ['error', 'connection refused', { source }],
    ['recovered', { source }],
  ])
  expect(logger.lines).toEqual([
    {
      level: 'warn',
      about: { source: 'orders', error: 'connection refused' },
      text: 'source orders fails, and is tried again',
    },
    { level: 'warn', about: { source: 'orders' }, text: 'source orders works again' },
  ])
})

test('the log and health() say why a destination is away also where the error says it in its parts', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  const refused = ['::1', '127.0.0.1'].map((host) => new Error(`connect ECONNREFUSED ${host}:9092`))
  const publish = () => Promise.reject(new AggregateError(refused))
  box.to({ name: 'orders', publish, close: async () => undefined } as never)
  await box.start()
  const client = await server.pool.connect()
  await client.query('begin')
  await box.send(client, 'note', {})
  await client.query('commit')
  client.release()
  const words = 'connect ECONNREFUSED ::1:9092; connect ECONNREFUSED 127.0.0.1:9092'
  const reasons = await waitUntil(async () => (await box.health()).reasons)
  expect(reasons).toEqual([`sink orders is down: ${words}`])
  expect(logger.lines[0]).toMatchObject({ about: { sink: 'orders', error: words } })
})

const turnsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => (n % 2 === 0 ? 'fails' : 'works'))

test('an outage of the database is told once for each place, and once when it is over', async () => {
  const proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 10 })
  pool.on('error', () => undefined)
  const logger = recorder()
  const told: string[] = []
  await using schema = await server.open()
  const nameOf = ({ consumer, sink }: { consumer?: string; sink?: object }): string => consumer ?? (sink ? 'sink' : '?')
  const box = createBox({
    db: fromPg(pool),
    schema: schema.schema,
    logger,
    hooks: {
      error: (_error, where) => void told.push(`${nameOf(where)} fails`),
      recovered: (where) => void told.push(`${nameOf(where)} works`),
    },
  })
  box.consumer('a', { note: () => undefined })
  box.consumer('b', { note: () => undefined })
  const sink = { name: 'events', publish: () => Promise.resolve([]), close: () => Promise.resolve() }
  box.to(sink)
  try {
    await box.start()
    const attempts = (): number => proxy.log.filter(({ event }) => event === 'open').length
    await proxy.refuse()
    proxy.cutAll()
    await waitUntil(() => told.length >= 3)
    // Cut again and again, so that there are several failures, in several words.
    for (let time = 0; time < 3; time++) {
      const before = attempts()
      await proxy.accept()
      await waitUntil(() => attempts() > before)
      proxy.cutAll()
      await proxy.refuse()
      proxy.cutAll()
    }
    await proxy.accept()
    // Whoever got through between two cuts may have told of that as well, but nobody tells one thing twice.
    const places = ['a', 'b', 'sink'].map((name) => () => told.filter((one) => one.startsWith(`${name} `)))
    const isOver = (): boolean => places.every((of) => of().at(-1)?.endsWith('works'))
    await waitUntil(isOver, { timeoutMs: 90_000 })
    for (const of of places) expect(of().map((one) => one.split(' ')[1])).toEqual(turnsOf(of().length))
    const linesOf = (text: string): string[] =>
      logger.lines.flatMap((line) => (line.level !== 'debug' && line.text?.includes(text) ? [line.text] : []))
    for (const [at, name] of ['consumer a', 'consumer b', 'sink events'].entries()) {
      const turn = [`${name} fails, and is tried again`, `the database is back: ${name} works again`]
      expect(linesOf(name)).toEqual(turnsOf(places[at]!().length).map((_, n) => turn[n % 2]))
    }
  } finally {
    await box.stop({ timeoutMs: 5_000 })
    await pool.end()
    await proxy.close()
  }
})

test('messages that are taken over from a dead worker leave a line', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  box.consumer('a', { note: () => undefined }, { concurrency: 1 })
  await box.receive([note('1'), note('2')])
  box.crashAt('claimed')
  await box.drain()
  await box.clock.advance(60_000)
  await box.drain()
  expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  expect(logger.lines).toEqual([
    {
      level: 'warn',
      about: { id: '1', type: 'note', correlationId: '1', consumer: 'a', messages: 2 },
      text: 'messages are taken over from a worker that died or lost its lease',
    },
  ])
})

describe('a consumer that nothing runs', () => {
  test('is named once when its failed message waits for the box to retry it', async () => {
    const logger = recorder()
    await using box = await server.open({ logger })
    box.consumer('a', { note: () => Promise.reject(new Error('no')) })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: true })
    await box.handle(note('2'))
    const lines = logger.lines.filter(({ text }) => text?.includes('box.start()'))
    expect(lines).toMatchObject([{ level: 'warn', about: { consumer: 'a' } }])
  })

  test('is not, while its loop runs', async () => {
    const logger = recorder()
    await using box = await server.open({ logger })
    const done = gate()
    box.consumer('a', {
      note: () => {
        done.open()
        throw new Error('no')
      },
    })
    await box.start()
    await box.handle(note('1'))
    await done.opened
    expect(logger.lines.filter(({ text }) => text?.includes('box.start()'))).toEqual([])
  })
})
