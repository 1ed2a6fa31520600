/** `box.from`: what a hand-written source may count on, whether it pulls or is pushed. */
import { Reject, type Incoming, type Outcome, type Source } from 'oncebox'
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('sources')

type Deliver = (batch: readonly Incoming[]) => Promise<readonly Outcome[]>

/** A broker in a list: delivers what it has, forgets what it may acknowledge, delivers the rest again. */
class ListSource implements Source {
  readonly acked: string[] = []
  readonly outcomes: Outcome[] = []
  starts = 0
  stops = 0
  failures = 0
  /** Fails so many starts. */
  unreachable = 0
  #waiting: Incoming[] = []
  #running = false
  #loop: Promise<void> | undefined
  #more = gate()

  add(...messages: Incoming[]): void {
    this.#waiting.push(...messages)
    this.#more.open()
  }

  get waiting(): number {
    return this.#waiting.length
  }

  async start(deliver: Deliver): Promise<void> {
    this.starts++
    if (this.unreachable-- > 0) throw new Error('connection refused')
    this.#running = true
    this.#loop = this.#run(deliver)
  }

  async stop(): Promise<void> {
    this.stops++
    this.#running = false
    this.#more.open()
    await this.#loop
  }

  async #run(deliver: Deliver): Promise<void> {
    while (this.#running) {
      const batch = this.#waiting.slice(0, 10)
      if (batch.length === 0) {
        this.#more = gate()
        await this.#more.opened
        continue
      }
      try {
        const outcomes = await deliver(batch)
        this.outcomes.push(...outcomes)
        const acked = new Set(batch.filter((_, at) => outcomes[at]!.ack))
        this.acked.push(...[...acked].map((message) => message?.id ?? 'none'))
        this.#waiting = this.#waiting
          .filter((message) => !acked.has(message))
          .map((message) => (batch.includes(message) ? { ...message, redelivered: true } : message))
      } catch {
        this.failures++
        this.#waiting = this.#waiting.map((message) =>
          batch.includes(message) ? { ...message, redelivered: true } : message,
        )
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
}

/** A webhook: whoever calls it gets the outcome. */
class PushSource implements Source {
  readonly push = true
  stops = 0
  #deliver: Deliver | undefined

  async start(deliver: Deliver): Promise<void> {
    this.#deliver = deliver
  }

  async stop(): Promise<void> {
    this.stops++
  }

  async post(...messages: Incoming[]): Promise<readonly Outcome[]> {
    const deliver = await waitUntil(() => this.#deliver)
    return deliver(messages)
  }
}

/** Every delivery fails until it is restored. */
async function withoutTable(box: Bench, table: string): Promise<() => Promise<unknown>> {
  await box.sql(`alter table ob.${table} rename to hidden`)
  return () => box.sql(`alter table ob.hidden rename to ${table}`)
}

describe('a source that pulls', () => {
  test('is returned as it is, starts with the box, and stops with it', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const source = new ListSource()
    expect(box.from(source)).toBe(source)
    expect(source.starts).toBe(0)
    await box.start()
    source.add(...notes(25))
    await waitUntil(() => source.acked.length === 25)
    await box.stop()
    expect([source.starts, source.stops]).toEqual([1, 1])
    expect(source.acked).toEqual(notes(25).map(({ id }) => id))
    await box.start()
    source.add(note('later'))
    await waitUntil(() => source.acked.includes('later'))
    expect(source.starts).toBe(2)
  })

  test('attached after start() takes effect at once', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.start()
    const source = box.from(new ListSource())
    source.add(note('1'))
    await waitUntil(() => source.acked.length === 1)
  })

  test('each consumer gets its messages by its mode, and all of them before the ack', async () => {
    await using box = await server.open()
    const stuck = gate()
    box.consumer('stored', {
      async note(message, { tx }) {
        await stuck.opened
        await box.write(tx, 'stored', message)
      },
    })
    box.consumer('inline', { note: (message, { tx }) => box.write(tx, 'inline', message) }, { mode: 'inline' })
    box.consumer('direct', { note: (message, { tx }) => box.write(tx, 'direct', message) }, { mode: 'direct' })
    const source = box.from(new ListSource())
    await box.start()
    source.add(note('1'), note('1'))
    await waitUntil(() => source.acked.length === 2)
    const statuses = source.outcomes.map(({ consumers }) =>
      Object.fromEntries(consumers.map(({ consumer, status }) => [consumer, status])),
    )
    expect(statuses).toEqual([
      { stored: 'stored', inline: 'handled', direct: 'handled' },
      { stored: 'duplicate', inline: 'duplicate', direct: 'handled' },
    ])
    expect(source.outcomes.map(({ status }) => status)).toEqual(['handled', 'handled'])
    expect((await box.effects()).map(({ consumer }) => consumer).sort()).toEqual(['direct', 'direct', 'inline'])
    stuck.open()
    await waitUntil(async () => (await box.effects()).length === 4)
  })

  test('an inline failure is delivered again until it is handled, or dead and acknowledged', async () => {
    await using box = await server.open()
    const attempts: Record<string, number[]> = {}
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          const own = (attempts[message.id] ??= [])
          if (own.at(-1) !== message.attempt) own.push(message.attempt)
          if (message.id === 'never') throw new Error('no')
          if (message.id === 'rejected') throw new Reject('no')
          if (message.id === 'later' && message.attempt < 3) throw new Error('not yet')
          await box.write(tx, 'a', message)
        },
      },
      { mode: 'inline', retry: { attempts: 4 } },
    )
    const source = box.from(new ListSource())
    await box.start()
    source.add(note('fine'), note('later'), note('never'), note('rejected'))
    await waitUntil(() => source.acked.length === 4)
    expect((await box.ids()).sort()).toEqual(['fine', 'later'])
    expect(attempts).toEqual({ fine: [1], later: [1, 2, 3], never: [1, 2, 3, 4], rejected: [1] })
    expect(await box.fate('never')).toMatchObject({ state: 'dead', attempts: 4 })
    expect(await box.fate('rejected')).toMatchObject({ state: 'dead', attempts: 1 })
  })

  test('a delivery that fails as a whole acknowledges nothing; what was stored of it is not stored twice', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    const source = box.from(new ListSource())
    await box.start()
    box.crashAt('received', { times: 2 })
    source.add(...notes(3))
    await waitUntil(() => source.acked.length === 3)
    expect(source.failures).toBe(2)
    await waitUntil(async () => (await box.ids()).length >= 3)
    await box.stop()
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
  })

  test.for(['opened', 'handled', 'settled', 'committed'] as const)(
    'inline, a crash at %s: delivered again, and its effects are there once',
    async (point) => {
      await using box = await server.open()
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode: 'inline' })
      const source = box.from(new ListSource())
      await box.start()
      box.crashAt(point)
      source.add(...notes(5))
      await waitUntil(() => source.acked.length === 5)
      expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3', 'n4', 'n5'])
      expect(source.failures).toBe(1)
    },
  )

  test('a stop waits for the delivery in flight and its ack', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          started.open()
          await finish.opened
          await box.write(tx, 'a', message)
        },
      },
      { mode: 'inline' },
    )
    const source = box.from(new ListSource())
    await box.start()
    source.add(note('1'))
    await started.opened
    let stopped = false
    const stopping = box.stop().then(() => (stopped = true))
    await waitUntil(() => source.stops === 1)
    expect(stopped).toBe(false)
    finish.open()
    await stopping
    expect(source.acked).toEqual(['1'])
    expect(await box.ids()).toEqual(['1'])
  })
})

describe('what is no message', () => {
  const cyclic: unknown[] = []
  cyclic.push(cyclic)

  test.for(['stored', 'inline', 'direct'] as const)(
    'is quarantined alone, and its neighbours flow: %s',
    async (mode) => {
      await using box = await server.open()
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode })
      const source = box.from(new ListSource())
      await box.start()
      const wrong = [
        note('big', { data: { n: 10n } }),
        note('cycle', { data: cyclic }),
        { id: 'body', type: 'note', body: 7 },
        undefined,
        null,
        'text',
      ]
      source.add(note('1'), ...(wrong as Incoming[]), note('2'))
      await waitUntil(() => source.waiting === 0)
      expect(source.failures).toBe(0)
      await waitUntil(async () => (await box.ids()).length === 2)
      expect((await box.ids()).sort()).toEqual(['1', '2'])
      const kept = (await box.quarantine()).map(({ id, reason, body }) => [id, reason, body])
      expect(kept).toHaveLength(wrong.length)
      expect(kept).toEqual(
        expect.arrayContaining([
          ['big', 'undecodable', '{ n: 10n }'],
          ['cycle', 'undecodable', '<ref *1> [ [Circular *1] ]'],
          ['body', 'undecodable', '7'],
          [null, 'invalid', 'undefined'],
          [null, 'invalid', 'null'],
          [null, 'invalid', "'text'"],
        ]),
      )
    },
  )
})

describe('a broker that is away', () => {
  test('does not fail start(): it is tried again, told to the hook, and shown by health()', async () => {
    const told: [string, unknown][] = []
    await using box = await server.open({
      hooks: { error: (error, where) => void told.push([error.message, where.source]) },
    })
    box.consumer('a', { note: () => undefined })
    const source = box.from(new ListSource())
    source.unreachable = 2
    await box.start()
    expect(await box.health()).toMatchObject({ ok: false, database: true, sources: false })
    await waitUntil(async () => (await box.health()).sources)
    expect(await box.health()).toMatchObject({ ok: true })
    expect(source.starts).toBe(3)
    expect(told).toEqual([['connection refused', source]])
  })

  test('a delivery that fails is told to the hook once, and shown by health() until one succeeds', async () => {
    const told: [string, unknown][] = []
    await using box = await server.open({
      hooks: { error: (error, where) => void (where.source && told.push([error.message, where.source])) },
    })
    box.consumer('a', { note: () => undefined }, { mode: 'inline' })
    const source = box.from(new ListSource())
    await box.start()
    await waitUntil(async () => (await box.health()).sources)
    for (let row = 1; row <= 2; row++) {
      const restored = await withoutTable(box, 'message')
      const before = source.failures
      source.add(note(`n${row}`))
      await waitUntil(() => source.failures > before + 5)
      expect(await box.health()).toMatchObject({ ok: false, sources: false })
      await restored()
      await waitUntil(() => source.acked.length === row)
      expect((await box.health()).sources).toBe(true)
      expect(told).toHaveLength(row)
    }
    expect(told.every(([message, where]) => message.includes('message') && where === source)).toBe(true)
  })

  test('what a source warns of is logged once, however often it is started', async () => {
    const logger = recorder()
    await using box = await server.open({ logger })
    let starts = 0
    box.from({
      name: 'queue',
      async start(_deliver, _report, warn) {
        warn?.('a limit of 3 deliveries: set none')
        if (++starts < 3) throw new Error('connection refused')
      },
      async stop() {},
    })
    await box.start()
    await waitUntil(() => starts === 3)
    const lines = logger.lines.filter(({ text }) => text?.startsWith('a limit'))
    expect(lines).toEqual([{ level: 'warn', about: { source: 'queue' }, text: 'a limit of 3 deliveries: set none' }])
  })

  test('a stop ends the attempts', async () => {
    await using box = await server.open()
    const source = box.from(new ListSource())
    source.unreachable = 1_000
    await box.start()
    await waitUntil(() => source.starts >= 2)
    await box.stop()
    const { starts } = source
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(source.starts).toBe(starts)
  })

  test('a source that fails to stop is told to the hook, and the box stops', async () => {
    const told: string[] = []
    await using box = await server.open({ hooks: { error: (error) => void told.push(error.message) } })
    const source = box.from(new ListSource())
    source.stop = () => Promise.reject(new Error('stuck'))
    await box.start()
    await waitUntil(async () => (await box.health()).sources)
    await box.stop()
    expect(told).toEqual(['stuck'])
  })
})

describe('a source that is pushed', () => {
  test('works at once, without start()', async () => {
    await using box = await server.open()
    box.consumer('inline', { note: () => 'done' }, { mode: 'inline' })
    box.consumer('stored', { note: (message, { tx }) => box.write(tx, 'stored', message) })
    const source = box.from(new PushSource(), { types: 'any' })
    expect(await source.post(note('1'))).toMatchObject([{ status: 'handled', ack: true, result: 'done' }])
    const [copy] = await source.post(note('1'))
    expect(copy).toMatchObject({ status: 'duplicate', ack: true })
    expect(copy!.consumers).toContainEqual({ consumer: 'inline', status: 'duplicate', result: 'done' })
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
  })

  test('stops with the box, started or not', async () => {
    for (const started of [true, false]) {
      await using box = await server.open()
      const source = box.from(new PushSource(), { types: 'any' })
      await source.post()
      if (started) await box.start()
      await box.stop()
      expect(source.stops).toBe(1)
    }
  })
})

describe('a source that is attached already', () => {
  test.for([ListSource, PushSource])('is refused, here and elsewhere, and goes on where it is: %o', async (Kind) => {
    await using box = await server.open()
    await using other = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode: 'inline' })
    const source = box.from(new Kind(), { types: 'any' })
    await box.start()
    const refused = expect.objectContaining({ code: 'OPTION_INVALID' })
    expect(() => box.from(source, { types: 'any', consumers: ['b'] })).toThrow(refused)
    expect(() => other.from(source, { types: 'any' })).toThrow(refused)
    await other.start()
    await other.stop()
    expect(source.stops).toBe(0)
    for (const id of ['1', '2']) {
      if (source instanceof PushSource) await source.post(note(id))
      else source.add(note(id))
      await waitUntil(async () => (await box.ids()).includes(id))
      // A stopped box still has it, and may start again.
      await box.stop()
      expect(() => other.from(source, { types: 'any' })).toThrow(refused)
      await box.start()
    }
  })
})

describe('options', () => {
  test.for<[what: string, source: unknown, options: unknown, problem: string]>([
    ['nothing', undefined, undefined, 'a source has two methods, start and stop'],
    ['null', null, undefined, 'a source has two methods, start and stop'],
    ['a sink', { publish() {}, close() {} }, undefined, 'a source has two methods, start and stop'],
    ['no stop', { start() {} }, undefined, 'a source has two methods, start and stop'],
    ['an unknown option', new PushSource(), { consumer: ['a'] }, 'did you mean consumers?'],
    ['consumers as text', new PushSource(), { consumers: 'ab' }, 'consumers must be a list of names'],
    ['consumers that are no names', new PushSource(), { consumers: [1] }, 'consumers must be a list of names'],
    ['another unrouted', new PushSource(), { unrouted: 'drop' }, 'unrouted must be one of quarantine, skip'],
  ])('refused: %s', async ([, source, options, problem]) => {
    await using box = await server.open()
    const attach = () => box.from(source as Source, options as never)
    expect(attach).toThrow(problem)
    expect(attach).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  test('consumers: only these get what the source delivers', async () => {
    await using box = await server.open()
    for (const name of ['a', 'b', 'c'])
      box.consumer(name, { note: () => name }, { mode: name === 'c' ? 'stored' : 'inline' })
    const source = box.from(new PushSource(), { types: 'any', consumers: ['b', 'c'] })
    const [outcome] = await source.post(note('1'))
    expect(outcome!.consumers.map(({ consumer }) => consumer).sort()).toEqual(['b', 'c'])
    expect(await box.handle(note('1'))).toMatchObject({
      consumers: expect.arrayContaining([expect.objectContaining({ consumer: 'a', status: 'handled' })]),
    })
  })

  test.for<[unrouted: 'quarantine' | 'skip' | undefined, status: string, kept: number]>([
    [undefined, 'quarantined', 1],
    ['quarantine', 'quarantined', 1],
    ['skip', 'skipped', 0],
  ])('unrouted: %s', async ([unrouted, status, kept]) => {
    for (const mode of ['stored', 'inline'] as const) {
      await using box = await server.open()
      box.consumer('a', { note: () => undefined }, { mode })
      const source = box.from(new PushSource(), { types: 'any', ...(unrouted && { unrouted }) })
      const outcomes = await source.post(note('1', { type: 'other' }), note('2'))
      expect(outcomes[0]).toMatchObject({ id: '1', status, ack: true, consumers: [] })
      expect(outcomes[1]).toMatchObject({ ack: true, consumers: [{ consumer: 'a' }] })
      expect(await box.quarantine()).toHaveLength(kept)
    }
  })

  test('a source that is meant for a consumer which does not take the type leaves it unrouted', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    box.consumer('b', { other: () => undefined })
    const source = box.from(new PushSource(), { types: 'any', consumers: ['b'] })
    expect(await source.post(note('1'))).toMatchObject([{ status: 'quarantined', reason: 'unrouted' }])
  })

  test('fingerprint: the source says what makes two bodies the same', async () => {
    await using box = await server.open()
    box.consumer('inline', { note: () => undefined }, { mode: 'inline' })
    box.consumer('stored', { note: () => undefined })
    const some = Object.assign(new PushSource(), {
      fingerprint: ({ data }: Incoming) => (data as { same: unknown }).same,
    })
    box.from(some, { types: 'any' })
    await some.post(note('1', { data: { same: { a: 1, b: 2 }, retries: 0 } }))
    expect(await some.post(note('1', { data: { same: { b: 2, a: 1 }, retries: 9 } }))).toMatchObject([
      { status: 'duplicate' },
    ])
    expect(await some.post(note('1', { data: { same: { a: 1, b: 3 }, retries: 0 } }))).toMatchObject([
      { status: 'quarantined', reason: 'conflict' },
    ])
    const none = Object.assign(new PushSource(), { fingerprint: () => false })
    box.from(none, { types: 'any' })
    await none.post(note('2', { data: 1 }))
    expect(await none.post(note('2', { data: 2 }))).toMatchObject([{ status: 'duplicate' }])
  })
})
