/** What is refused, and what becomes of it: kept with a reason and its original bytes, visible, and replayable. */
import { createHash, randomBytes } from 'node:crypto'
import {
  batch,
  createBox,
  defineMessages,
  OnceboxError,
  unchecked,
  type Entry,
  type Incoming,
  type MessageMap,
  type QuarantineReason,
  type StandardSchemaV1,
} from 'oncebox'
import { fromPg } from 'oncebox/pg'
import type pg from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { decodeWith } from '../../src/brokers/codec.js'
import { type Bench, gate, note, recorder, useServer } from './fixture.js'

const server = useServer('validation')

const DAY = 86_400_000
const messages = defineMessages({
  strict: z.object({ n: z.number(), at: z.iso.datetime().transform((text) => new Date(text)) }),
  note: unchecked<unknown>(),
})
const at = '2020-01-01T00:00:00.000Z'
const strict = (id: string, data: unknown, rest: Partial<Incoming> = {}) =>
  ({ id, type: 'strict', data, ...rest }) as Incoming

describe('quarantine', () => {
  const invalidUtf8 = Buffer.from([0x22, 0xff, 0xfe, 0x22])
  const withNul = Buffer.from('{"a":"\0"}')
  const reasons: [name: string, reason: QuarantineReason, message: Incoming, bytes: Buffer | string][] = [
    ['the wrong shape', 'invalid', strict('bad', { n: 'x', at }), '{"n":"x","at":"2020-01-01T00:00:00.000Z"}'],
    ['no type', 'invalid', { ...note('bad'), type: undefined as never }, '{"text":"bad"}'],
    ['a key with NUL', 'invalid', note('bad', { key: 'a\0' }), '{"text":"bad"}'],
    ['a huge key', 'invalid', note('bad', { key: 'k'.repeat(513) }), '{"text":"bad"}'],
    ['a lone surrogate for a subject', 'invalid', note('bad', { subject: '\ud800' }), '{"text":"bad"}'],
    ['a huge source', 'invalid', note('bad', { source: 's'.repeat(513) }), '{"text":"bad"}'],
    ['a header that is no string', 'invalid', note('bad', { headers: { a: 1 as never } }), '{"text":"bad"}'],
    ['a header with NUL', 'invalid', note('bad', { headers: { 'a\0': 'b' } }), '{"text":"bad"}'],
    ['no time', 'invalid', note('bad', { time: 'yesterday' }), '{"text":"bad"}'],
    ['a time beyond the calendar', 'invalid', note('bad', { time: new Date(8.64e15) }), '{"text":"bad"}'],
    ['half a document', 'undecodable', { id: 'bad', type: 'note', body: '{"a":' }, '{"a":'],
    ['an empty body', 'undecodable', { id: 'bad', type: 'note', body: '' }, ''],
    ['invalid UTF-8', 'undecodable', { id: 'bad', type: 'note', body: invalidUtf8 }, invalidUtf8],
    ['a byte order mark', 'undecodable', { id: 'bad', type: 'note', body: '\ufeff{}' }, '\ufeff{}'],
    ['NUL in the text', 'undecodable', { id: 'bad', type: 'note', body: withNul }, withNul],
    ['only NUL', 'undecodable', { id: 'bad', type: 'note', body: Buffer.from([0]) }, Buffer.from([0])],
    [
      'a lone surrogate in the text',
      'undecodable',
      { id: 'bad', type: 'note', body: '"\ud800"' },
      Buffer.from('"\ud800"', 'utf16le'),
    ],
    [
      'deep nesting',
      'undecodable',
      { id: 'bad', type: 'note', body: '['.repeat(9_000) + ']'.repeat(9_000) },
      '['.repeat(9_000) + ']'.repeat(9_000),
    ],
    ['no id', 'no-id', note(undefined as never, { data: 1 }), '1'],
    ['null for an id', 'no-id', note(null as never, { data: 1 }), '1'],
    ['an empty id', 'no-id', note('', { data: 1 }), '1'],
    ['NUL in the id', 'no-id', note('a\0b', { data: 1 }), '1'],
    ['a lone surrogate in the id', 'no-id', note('a\ud800b', { data: 1 }), '1'],
    ['an id of 513 bytes', 'no-id', note('ü'.repeat(256) + 'x', { data: 1 }), '1'],
    ['a number for an id', 'no-id', note(7 as never, { data: 1 }), '1'],
    ['more than maxBytes', 'too-large', note('bad', { data: 'x'.repeat(20_000) }), JSON.stringify('x'.repeat(20_000))],
    ['too old', 'too-old', note('bad', { time: new Date(Date.now() - 31 * DAY) }), '{"text":"bad"}'],
    ['a type that nobody takes', 'unrouted', note('bad', { type: 'nobody' }), '{"text":"bad"}'],
  ]

  test.for(reasons.flatMap((row) => (['receive', 'handle'] as const).map((door) => [...row, door] as const)))(
    '%s is %s: kept as it came, told, visible, and no neighbour suffers',
    async ([, reason, message, bytes, door]) => {
      const told: Entry<MessageMap>[] = []
      await using box = await server.open({
        messages,
        maxBytes: 18_500,
        hooks: { quarantined: (entry) => void told.push(entry as unknown as Entry<MessageMap>) },
      })
      let runs = 0
      box.consumer('a', { strict: () => void runs++, note: (one, { tx }) => box.write(tx, 'a', one) })
      const outcomes = await box[door]([note('before'), message, note('after')])
      expect(outcomes[1]).toMatchObject({ id: message.id, status: 'quarantined', reason, ack: true })
      const { detail } = outcomes[1] as { detail?: string }
      await box.drain()
      expect((await box.ids()).sort()).toEqual(['after', 'before'])
      expect(runs).toBe(0)

      const [row, ...others] = await box.quarantine()
      expect(others).toEqual([])
      expect(row).toMatchObject({
        reason,
        id: typeof message.id === 'string' && reason !== 'no-id' ? message.id : null,
      })
      expect(row!.detail.length).toBeGreaterThan(0)
      // Who handed it in is told the same.
      expect(detail).toBe(row!.detail)
      const kept = row!.bytes ?? Buffer.from(row!.body!)
      expect(sha256(kept)).toBe(sha256(Buffer.from(bytes as string)))

      const { entries } = await box.admin.messages({ state: 'quarantined', reason })
      expect(entries).toHaveLength(1)
      expect(entries[0]).toMatchObject({ state: 'quarantined', reason, detail: row!.detail })
      expect(told).toMatchObject([{ state: 'quarantined', reason, detail: expect.any(String) }])
    },
  )

  test('nothing of a body or a header is logged, and a body that is no JSON is not quoted', async () => {
    const canary = 'CANARY-7'
    let strictly = false
    const validate = (value: unknown): StandardSchemaV1.Result<unknown> =>
      strictly ? { issues: [{ message: `must not be ${JSON.stringify(value)}` }] } : { value }
    const quoting: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate } }
    const logger = recorder()
    await using box = await server.open({ logger, messages: { note: messages.note, quoting } })
    box.consumer(
      'a',
      { note: () => undefined, quoting: () => undefined },
      {
        identity: ({ id, data }) => {
          if (id === 'unfit') throw new Error(`no key in ${JSON.stringify(data)}`)
          return id
        },
      },
    )
    await box.receive(note('stored', { type: 'quoting', data: canary }))
    strictly = true
    const decode = (body: Uint8Array): unknown => JSON.parse(Buffer.from(body).toString())
    const codec = { contentType: 'text/plain', decode, encode: () => Buffer.of() }
    const coded = decodeWith(codec, note('coded', { body: Buffer.from(`password=${canary}`) }) as never)
    const bodies = [
      `password=${canary}`,
      `{"password":"${canary}`,
      `{"a":1,} "${canary}" at position 1`,
      `{"${canary}":`,
    ]
    const refused = [
      ...bodies.map((body, at) => note(`body-${at}`, { data: undefined, body })),
      coded,
      note('header', { headers: { [canary]: 7 as never } }),
      note('quoted', { type: 'quoting', data: canary }),
      note('unfit', { data: canary }),
    ]
    for (const outcome of await box.receive(refused)) expect(outcome).toMatchObject({ status: 'quarantined' })
    await box.drain()
    expect(JSON.stringify(logger.lines)).not.toContain(canary)
    expect(logger.lines.filter(({ text }) => text === 'message quarantined')).toHaveLength(refused.length + 1)
    const details = (await box.quarantine())
      .filter(({ reason }) => reason === 'undecodable')
      .map(({ detail }) => detail)
    expect(details).toHaveLength(bodies.length + 1)
    expect(details.join()).not.toContain(canary)
    for (const detail of details) expect(detail).toMatch(/^not JSON|^the codec failed/)
    expect(details.join()).toContain('at position 7')
  })

  test('the log says what to mend: which fields, or why, and nothing of what is in them', async () => {
    const logger = recorder()
    const priced = z.object({ items: z.array(z.object({ price: z.number() })), by: z.record(z.string(), z.number()) })
    await using box = await server.open({ logger, messages: { priced, note: messages.note }, maxBytes: 200 })
    box.consumer('a', { priced: () => undefined, note: () => undefined })
    const data = { items: [{ price: 1 }, { price: 'CANARY' }], by: { 'kowalski@example.com': 'CANARY' } }
    await box.receive([
      { id: '1', type: 'priced', data },
      note('2', { data: 'CANARY'.repeat(50) }),
      note('3', { type: 'elsewhere' }),
      note('4', { id: 7_003 as never }),
      note('5', { type: undefined as never }),
      note('6', { key: 7_003 as never, headers: { 'CANARY-header': 7_003 as never } }),
    ] as never)
    const lines = logger.lines.filter(({ text }) => text === 'message quarantined').map(({ about }) => about)
    expect(lines).toMatchObject([
      { id: '1', reason: 'invalid', fields: ['items.1.price', 'by.‹key›'] },
      { id: '2', reason: 'too-large', why: expect.stringMatching(/^the body has 302 bytes, the limit \(maxBytes\) is 200/) },
      { reason: 'no-id', why: 'id must be a string, not number' },
      { id: '5', reason: 'invalid', why: 'type is missing' },
      { id: '6', reason: 'invalid', why: 'key must be a string, not number; a header must be a string' },
      { id: '3', reason: 'unrouted' },
    ]) // prettier-ignore
    expect(JSON.stringify(logger.lines)).not.toMatch(/CANARY|kowalski|7003/)
  })

  test('the same refused message twice is kept once; without an id it goes by its body', async () => {
    await using box = await server.open({ messages })
    box.consumer('a', { strict: () => undefined })
    const nameless = [1, 1, 2].map((data): Incoming => ({ id: undefined, type: 'strict', data }))
    for (let time = 0; time < 2; time++) await box.receive([strict('1', {}), ...nameless])
    expect((await box.quarantine()).map(({ id, body }) => [id, body])).toEqual([
      ['1', '{}'],
      [null, '1'],
      [null, '2'],
    ])
  })

  test.for(['receive', 'handle'] as const)('a conflict keeps both bodies, by %s', async (door) => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message, JSON.stringify(message.data)) })
    await box[door](note('1', { data: 'first' }))
    for (const data of ['second', 'third', 'second']) {
      expect(await box[door](note('1', { data }))).toMatchObject({
        status: 'quarantined',
        reason: 'conflict',
        ack: true,
      })
    }
    expect(await box[door](note('1', { data: 'first' }))).toMatchObject({ status: 'duplicate' })
    await box.drain()
    expect(await box.effects()).toMatchObject([{ note: '"first"' }])
    expect(await box.quarantine()).toMatchObject([
      { consumer: 'a', id: '1', reason: 'conflict', body: '"second"' },
      { consumer: 'a', id: '1', reason: 'conflict', body: '"third"' },
    ])
    expect(await box.admin.message({ id: '1' })).toHaveLength(3)
  })

  test('ids of 512 bytes are fine, however random', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    const ids = [randomBytes(256).toString('hex'), 'ü'.repeat(256)]
    for (const id of ids) {
      expect(await box.receive(note(id, { source: randomBytes(256).toString('hex') }))).toMatchObject({
        status: 'stored',
      })
    }
    await box.drain()
    expect((await box.ids()).sort()).toEqual(ids.sort())
  })

  test('maxBytes is the last size that passes, in bytes of UTF-8', async () => {
    await using box = await server.open({ maxBytes: 10 })
    box.consumer('a', { note: () => undefined })
    const sizes = ['"12345678"', '"123456789"', '"üüüü"', '"üüüüü"'].map((body) => ({ id: body, type: 'note', body }))
    expect((await box.receive(sizes)).map(({ status }) => status)).toEqual([
      'stored',
      'quarantined',
      'stored',
      'quarantined',
    ])
  })

  test('what was invalid is released by a retry once the schema takes it', async () => {
    await using box = await server.open({ messages: { strict: z.object({ n: z.number() }) } })
    box.consumer('a', { strict: () => undefined })
    await box.receive(strict('1', { n: 'x' }, { key: 'k', headers: { h: '1' } }))
    expect(await box.admin.retry({ id: '1' })).toBe(0)
    const fixed = createBox({
      db: fromPg(server.pool),
      schema: box.schema,
      messages: { strict: z.object({ n: z.coerce.string() }) },
      logger: recorder(),
    })
    const seen: unknown[] = []
    fixed.consumer('a', { strict: ({ data, key, headers }) => void seen.push(data, key, headers) })
    expect(await fixed.admin.retry({ id: '1' })).toBe(1)
    await fixed.drain()
    expect(seen).toEqual([{ n: 'x' }, 'k', { h: '1' }])
    expect(await box.quarantine()).toEqual([])
  })

  test('a message that became invalid after it was stored is quarantined without an attempt, and can be retried', async () => {
    await using box = await server.open()
    box.consumer('a', { strict: (message, { tx }) => box.write(tx, 'a', message) })
    await box.receive([strict('1', { n: 'x' }), strict('2', { n: 2, at })])
    const told: Entry<typeof messages>[] = []
    const logger = recorder()
    const stricter = createBox({
      db: fromPg(server.pool),
      schema: box.schema,
      messages,
      logger,
      hooks: { quarantined: (entry) => void told.push(entry) },
    })
    stricter.consumer('a', { strict: (message, { tx }) => box.write(tx, 'a', message) })
    await stricter.drain()
    expect(await box.ids()).toEqual(['2'])
    expect(await box.fate('1')).toMatchObject({ state: 'quarantined', reason: 'invalid', attempts: 0 })
    expect(told).toMatchObject([{ message: { id: '1' }, reason: 'invalid' }])
    expect(logger.lines).toMatchObject([
      { about: { id: '1', reason: 'invalid', fields: ['n', 'at'] }, text: 'message quarantined' },
    ])
    expect(await box.receive(strict('1', { n: 'x' }))).toMatchObject({ status: 'quarantined', reason: 'invalid' })
    expect(await box.admin.retry({ id: '1' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['2', '1'])
  })

  test('an unrouted message that its new consumer finds invalid moves on to that reason', async () => {
    await using box = await server.open()
    await box.receive(strict('1', { n: 'x' }))
    const late = createBox({ db: fromPg(server.pool), schema: box.schema, messages, logger: recorder() })
    late.consumer('a', { strict: () => undefined })
    await late.migrate()
    expect((await box.quarantine()).map(({ id, reason }) => [id, reason])).toEqual([['1', 'invalid']])
  })
})

describe('schemas', () => {
  test.for(['receive', 'handle'] as const)(
    'handlers get the output of the parse, the input is stored: %s',
    async (door) => {
      await using box = await server.open({ messages })
      const seen: unknown[] = []
      box.consumer('a', { strict: ({ data }) => void seen.push(data) })
      await box[door](strict('1', { n: 1, at, extra: true }))
      await box.drain()
      expect(seen).toEqual([{ n: 1, at: new Date(at) }])
      expect(await box.sql('select body from ob.message')).toEqual([{ body: `{"n":1,"at":"${at}","extra":true}` }])
    },
  )

  const schema = (validate: (value: unknown) => unknown): StandardSchemaV1<unknown> => ({
    '~standard': { version: 1, vendor: 'test', validate: validate as never },
  })

  test.for<[name: string, schema: StandardSchemaV1<unknown>, accepted: boolean]>([
    ['one that answers later', schema(async (value) => ({ value })), true],
    ['one that refuses later', schema(async () => ({ issues: [{ message: 'no' }] })), false],
    [
      'one that throws',
      schema(() => {
        throw new Error('a bug\0\ud800')
      }),
      false,
    ],
    ['one that rejects', schema(() => Promise.reject('no error')), false],
    [
      'one with an odd issue',
      schema(() => ({ issues: [{ message: 'a\0\ud800', path: [Symbol('s'), { key: 1 }] }] })),
      false,
    ],
    ['one with no issue to name', schema(() => ({ issues: [] })), false],
  ])('any kind of schema is put up with: %s', async ([, odd, accepted]) => {
    await using box = await server.open({ messages: { odd } })
    box.consumer('a', { odd: () => undefined })
    for (const door of [box.receive, box.handle]) {
      const outcome = await door({ id: '1', type: 'odd', data: 1 })
      expect(outcome.status === 'quarantined').toBe(!accepted)
    }
  })

  test('send validates what the data becomes as JSON, and stores the input', async () => {
    await using box = await server.open({ messages })
    const client = await server.pool.connect()
    await client.query('begin')
    await box.send(client, 'strict', { n: 1, at })
    await box.send(client, 'strict', { n: 1, at: new Date(at) as never })
    await expect(box.send(client, 'strict', { n: NaN, at })).rejects.toMatchObject({ code: 'MESSAGE_INVALID' })
    await expect(box.send(client, 'strict', { n: 'x' } as never)).rejects.toMatchObject({ code: 'MESSAGE_INVALID' })
    await expect(box.send(client, 'note', 1n)).rejects.toMatchObject({ code: 'MESSAGE_INVALID' })
    await expect(box.send(client, 'note', 'x'.repeat(2 ** 20))).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE' })
    await expect(box.send(client, 'strikt' as 'strict', { n: 1, at })).rejects.toMatchObject({
      code: 'MESSAGE_TYPE_UNKNOWN',
      message: expect.stringContaining('did you mean strict?'),
    })
    for (const options of [
      { id: '' },
      { key: 'a\0' },
      { subject: '\ud800' },
      { headers: { a: '\0' } },
      { deliverAt: new Date(NaN) },
    ]) {
      await expect(box.send(client, 'note', 1, options)).rejects.toMatchObject({ code: 'MESSAGE_INVALID' })
    }
    await client.query('commit')
    client.release()
    const bodies = await box.sql('select body from ob.outbox order by n')
    expect(bodies).toEqual([{ body: `{"n":1,"at":"${at}"}` }, { body: `{"n":1,"at":"${at}"}` }])
  })
})

describe('age', () => {
  const HOUR = 3_600_000
  // The margin is a tenth of what is retained, five minutes at most.
  const options = { retainMs: HOUR }
  const ago = (ms: number): Date => new Date(Date.now() - ms)

  test('a time without a zone is UTC, wherever the process runs', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    vi.stubEnv('TZ', 'America/New_York')
    try {
      await box.receive(note('1', { time: '2026-01-01T00:00:00' }))
    } finally {
      vi.unstubAllEnvs()
    }
    const [entry] = await box.admin.message({ id: '1' })
    expect(entry!.message.time).toEqual(new Date('2026-01-01T00:00:00Z'))
  })

  test.for(['receive', 'handle'] as const)(
    'older than what is retained is too old, by the clock of the database: %s',
    async (door) => {
      await using box = await server.open()
      box.consumer('a', { note: () => undefined }, options)
      const fresh = door === 'receive' ? 'stored' : 'handled'
      expect(await box[door](note('young', { time: ago(HOUR / 2) }))).toMatchObject({ status: fresh })
      expect(await box[door](note('edge', { time: ago(HOUR - 2 * 60_000) }))).toMatchObject({ reason: 'too-old' })
      expect(await box[door](note('old', { time: ago(2 * HOUR) }))).toMatchObject({ reason: 'too-old', ack: true })
      await box.clock.advance(HOUR)
      expect(await box[door](note('now old', { time: ago(HOUR / 2) }))).toMatchObject({ reason: 'too-old' })
    },
  )

  test.for(['receive', 'handle'] as const)('what is known is judged by what is known first: %s', async (door) => {
    await using box = await server.open()
    box.consumer('a', { note: () => 'result' }, options)
    const time = new Date()
    await box[door](note('1', { time }))
    await box.drain()
    await box.clock.advance(10 * HOUR)
    expect(await box[door](note('1', { time }))).toMatchObject({ status: 'duplicate', result: 'result' })
    expect(await box[door](note('1', { time, data: 'other' }))).toMatchObject({ reason: 'conflict' })
    expect(await box.admin.prune()).toBeGreaterThan(0)
    expect(await box[door](note('1', { time }))).toMatchObject({ reason: 'too-old' })
  })

  test.for(['receive', 'handle'] as const)(
    'without a time, the consumer says: accept or quarantine: %s',
    async (door) => {
      await using box = await server.open()
      box.consumer('accepts', { note: (message, { tx }) => box.write(tx, 'accepts', message) })
      box.consumer(
        'refuses',
        { note: (message, { tx }) => box.write(tx, 'refuses', message) },
        { untimed: 'quarantine' },
      )
      const outcome = await box[door](note('1'))
      expect(outcome).toMatchObject({ status: 'quarantined', reason: 'too-old', ack: true })
      expect(outcome.consumers.map(({ consumer, status }) => [consumer, status]).sort()).toEqual([
        ['accepts', door === 'receive' ? 'stored' : 'handled'],
        ['refuses', 'quarantined'],
      ])
      await box[door](note('2', { time: new Date() }))
      await box.drain()
      const effects = (await box.effects()).map(({ consumer, id }) => `${consumer} ${id}`)
      expect(effects.sort()).toEqual(['accepts 1', 'accepts 2', 'refuses 2'])
    },
  )

  test.for(['receive', 'handle'] as const)(
    'a time in the future beyond the margin counts as none: %s',
    async (door) => {
      await using box = await server.open()
      box.consumer('a', { note: () => undefined }, { ...options, untimed: 'quarantine' })
      const fresh = door === 'receive' ? 'stored' : 'handled'
      expect(await box[door](note('soon', { time: ago(-60_000) }))).toMatchObject({ status: fresh })
      expect(await box[door](note('far', { time: ago(-10 * 60_000) }))).toMatchObject({ reason: 'too-old' })
      const lenient = box.consumer('b', { other: () => undefined }, options)
      expect(lenient.name).toBe('b')
      expect(await box[door](note('far', { type: 'other', time: ago(-100 * HOUR) }))).toMatchObject({ status: fresh })
    },
  )

  test('a release from quarantine bypasses the age, never dedup', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, options)
    await box.receive(note('1', { time: ago(2 * HOUR) }))
    expect(await box.admin.retry({ id: '1' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
    expect(await box.receive(note('1', { time: ago(2 * HOUR) }))).toMatchObject({ status: 'duplicate' })
    expect(await box.quarantine()).toEqual([])
  })
})

describe('options', () => {
  const box = () => createBox({ db: fromPg(server.pool), messages })
  const consumer = (options: object) => () => box().consumer('a', { note: () => undefined }, options)

  test.for<[what: string, use: () => unknown, hint: string]>([
    ['a box', () => createBox({ db: fromPg(server.pool), mesages: {} } as never), 'did you mean messages?'],
    ['a box, something else entirely', () => createBox({ db: fromPg(server.pool), xyzzy: 1 } as never), 'it takes db'],
    ['hooks', () => createBox({ db: fromPg(server.pool), hooks: { ded: () => 1 } } as never), 'did you mean dead?'],
    ['a consumer', consumer({ concurency: 1 }), 'did you mean concurrency?'],
    ['a consumer, in another case', consumer({ timeoutMS: 1 }), 'did you mean timeoutMs?'],
    ['a group', consumer({ group: { message: 1 } }), 'did you mean messages?'],
    ['retry', consumer({ retry: { attempt: 1 } }), 'did you mean attempts?'],
    [
      'from',
      () => box().from({ push: false, start: async () => {}, stop: async () => {} }, { consumer: [] } as never),
      'did you mean consumers?',
    ],
  ])('an unknown one is an error with a suggestion: %s', ([, use, hint]) => {
    expect(use).toThrow(expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(hint) }))
  })

  test.for<[what: string, use: () => unknown]>([
    ['mode', consumer({ mode: 'later' })],
    ['order', consumer({ order: 'fifo' })],
    ['onDead', consumer({ onDead: 'stop' })],
    ['retry.attempts', consumer({ retry: { attempts: 0 } })],
    ['retry.attempts, a fraction', consumer({ retry: { attempts: 1.5 } })],
    ['retry.baseMs', consumer({ retry: { baseMs: -1 } })],
    ['retry.maxMs', consumer({ retry: { maxMs: NaN } })],
    ['retry.jitter', consumer({ retry: { jitter: 'half' } })],
    ['retryBy', consumer({ retryBy: 'me' })],
    ['isolation', consumer({ isolation: 'read uncommitted' })],
    ['concurrency', consumer({ concurrency: 0 })],
    ['group.messages', consumer({ group: { messages: 0 } })],
    ['group.ms', consumer({ group: { ms: '20' } })],
    ['leaseMs', consumer({ leaseMs: 1 })],
    ['timeoutMs', consumer({ timeoutMs: 0 })],
    ['retainMs', consumer({ retainMs: -5 })],
    ['untimed', consumer({ untimed: 'maybe' })],
    ['identity', consumer({ identity: 'id' })],
    ['db', () => createBox({ db: server.pool as never })],
    ['no db', () => createBox({} as never)],
    ['maxBytes', () => createBox({ db: fromPg(server.pool), maxBytes: 0 })],
    ['source', () => createBox({ db: fromPg(server.pool), source: 'a\0' })],
    ['schema', () => createBox({ db: fromPg(server.pool), schema: '' })],
    ['a reserved schema', () => createBox({ db: fromPg(server.pool), schema: 'pg_mine' })],
    ['a long schema', () => createBox({ db: fromPg(server.pool), schema: 'x'.repeat(64) })],
    ['a hook', () => createBox({ db: fromPg(server.pool), hooks: { dead: 'mail' as never } })],
    ['no handlers', () => box().consumer('a', {})],
    ['nothing for handlers', () => box().consumer('a', undefined as never)],
    ['a handler that is none', () => box().consumer('a', { note: 'x' as never })],
    ['a handler that is an object', () => box().consumer('a', { note: {} as never })],
    ['null for handlers', () => box().consumer('a', null as never)],
    ['null for options', consumer(null as never)],
    ['null for retry', consumer({ retry: null })],
    ['null for group', consumer({ group: null })],
    ['a batch of nothing', () => batch(null as never)],
    ['null for a box', () => createBox(null as never)],
    ['nothing for a box', () => (createBox as () => unknown)()],
    ['a schema that is none', () => createBox({ db: fromPg(server.pool), messages: { a: {} as never } })],
    ['null for messages', () => createBox({ db: fromPg(server.pool), messages: null as never })],
    ['a vocabulary with a schema that is none', () => defineMessages({ a: {} as never })],
    ['null for a vocabulary', () => defineMessages(null as never)],
    ['a logger without levels', () => createBox({ db: fromPg(server.pool), logger: {} as never })],
    ['null for a logger', () => createBox({ db: fromPg(server.pool), logger: null as never })],
    ['null for hooks', () => createBox({ db: fromPg(server.pool), hooks: null as never })],
    [
      'null for the options of a sink',
      () => box().to({ publish: async () => [], close: async () => {} }, null as never),
    ],
  ])('an ill-typed one is refused when it is given: %s', ([, use]) => {
    expect(use).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(use).toThrow(OnceboxError)
  })

  test.for(['', 5, null, 'a\0b', "it's"])('it is the schema that is refused, not the source it names: %j', (schema) => {
    expect(() => createBox({ db: fromPg(server.pool), schema: schema as string })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringMatching(/^schema must/) }),
    )
  })

  test.for<[what: string, use: (box: Bench<typeof messages>, tx: pg.PoolClient) => Promise<unknown>, code: string]>([
    ['send, null for options', (box, tx) => box.send(tx, 'note', 1, null as never), 'OPTION_INVALID'],
    ['send, no type', (box, tx) => box.send(tx, undefined as never, 1), 'MESSAGE_INVALID'],
    ['sendMany, null', (box, tx) => box.sendMany(tx, null as never), 'MESSAGE_INVALID'],
    ['sendMany, null within', (box, tx) => box.sendMany(tx, [null as never]), 'MESSAGE_INVALID'],
    ['once, without work', (box, tx) => box.once(tx, 'a', { id: '1' }, undefined as never), 'OPTION_INVALID'],
    ['once, without a message', (box, tx) => box.once(tx, 'a', null as never, () => 1), 'MESSAGE_INVALID'],
    ['messages, null for a page', (box) => box.admin.messages({}, null as never), 'OPTION_INVALID'],
    ['stop, a negative time', (box) => box.stop({ timeoutMs: -1 }), 'OPTION_INVALID'],
    ['stop, misspelt', (box) => box.stop({ timeout: 1 } as never), 'OPTION_INVALID'],
    ['stop of a consumer', (box) => box.consumer('a', { note: () => 1 }).stop({ timeoutMs: NaN }), 'OPTION_INVALID'],
    ['health, NaN', (box) => box.health({ maxLagMs: NaN }), 'OPTION_INVALID'],
    ['health, null', (box) => box.health(null as never), 'OPTION_INVALID'],
    ['the clock of a test, NaN', (box) => box.clock.advance(NaN), 'OPTION_INVALID'],
    ['a state of no message', (box) => box.waitFor('1', 'Handled' as never), 'OPTION_INVALID'],
  ])('what cannot be meant is refused in our own words: %s', async ([, use, code]) => {
    await using box = await server.open({ messages })
    const tx = await server.pool.connect()
    try {
      await tx.query('begin')
      await expect(use(box, tx)).rejects.toMatchObject({ name: 'OnceboxError', code })
      await tx.query('rollback')
    } finally {
      tx.release()
    }
  })

  test('stop takes what a signal handler is given', async () => {
    await using box = await server.open()
    await box.start()
    await (box.stop as (signal: string, number: number) => Promise<void>)('SIGTERM', 15)
  })

  test('stop takes Infinity for as long as it needs', async () => {
    await using box = await server.open()
    const running = gate()
    box.consumer('a', {
      async note(message, { tx }) {
        running.open()
        await tx.query('select pg_sleep(0.2)')
        await box.write(tx, 'a', message)
      },
    })
    await box.receive(note('1'))
    await box.start()
    await running.opened
    await box.stop({ timeoutMs: Infinity })
    expect(await box.ids()).toEqual(['1'])
  })

  test('a handler for a type outside the vocabulary is refused', () => {
    expect(() => box().consumer('a', { nope: () => undefined } as never)).toThrow(
      expect.objectContaining({ code: 'MESSAGE_TYPE_UNKNOWN' }),
    )
  })
})

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

describe('what is said of a message that cannot be read', () => {
  test('a NUL in a body that is not JSON', async () => {
    await using box = await server.open()
    box.consumer('a', { note() {} })
    const outcome = await box.receive({ id: '1', type: 'note', body: '\0{"a":1}' })
    expect(outcome).toMatchObject({ status: 'quarantined', reason: 'undecodable', ack: true })
    expect(await box.quarantine()).toMatchObject([{ id: '1', reason: 'undecodable' }])
  })

  test('a schema, or an identity, that throws what cannot be stored', async () => {
    const bad: StandardSchemaV1 = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate() {
          throw new Error('odd: \0 and \ud800')
        },
      },
    }
    const fine: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
    await using box = await server.open({ messages: { bad, fine } })
    box.consumer('a', { bad() {} })
    box.consumer(
      'b',
      { fine() {} },
      {
        identity() {
          throw Object.create(null)
        },
      },
    )
    expect(await box.receive({ id: '1', type: 'bad', data: {} })).toMatchObject({ reason: 'invalid' })
    expect(await box.receive({ id: '2', type: 'fine', data: {} })).toMatchObject({ reason: 'no-id' })
  })
})

test('ids that only differ in lone surrogates are not taken for one another', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
  const outcomes = await box.handle([note('a\ud800b'), note('a\ud801b'), note('a\ufffdb')])
  expect(outcomes.map(({ status }) => status)).toEqual(['quarantined', 'quarantined', 'handled'])
  expect(await box.quarantine()).toHaveLength(2)
})

test('what jsonb refuses or changes comes through unchanged, or is kept as bytes', async () => {
  await using box = await server.open()
  const bodies = [
    '"\\u0000"',
    '"\\ud800"',
    '{"a":1,"a":2}',
    '1e999',
    '12345678901234567890123',
    '[1.0, 1.10, 1e2]',
    '{"b":1,"a":2}',
    `${'['.repeat(400)}${']'.repeat(400)}`,
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
    Buffer.from([0xc3, 0x28]),
  ]
  box.consumer('a', { note: () => undefined })
  const outcomes = await box.receive(bodies.map((body, at): Incoming => ({ id: `b${at}`, type: 'note', body })))
  expect(outcomes.map(({ status }) => status)).toEqual([...Array(8).fill('stored'), 'quarantined', 'quarantined'])
  const stored = await box.sql('select id, body from ob.message')
  const kept = await box.quarantine()
  bodies.forEach((body, at) => {
    const row = stored.find(({ id }) => id === `b${at}`) ?? kept.find(({ id }) => id === `b${at}`)
    const bytes = (row as { bytes?: Buffer | null }).bytes ?? Buffer.from(row!.body as string)
    expect(Buffer.compare(bytes, Buffer.from(body as string))).toBe(0)
  })
  await box.drain()
  expect(await box.sql('select 1 from ob.work')).toEqual([])
})

test('ids beyond 512 bytes are refused, whether an index would take them or not', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const ids = [randomBytes(2_500).toString('hex'), 'x'.repeat(100_000), randomBytes(256).toString('hex')]
  const outcomes = await box.receive(ids.map((id) => note(id)))
  expect(outcomes.map(({ status }) => status)).toEqual(['quarantined', 'quarantined', 'stored'])
})
