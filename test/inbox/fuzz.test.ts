/** Whatever arrives: nothing is lost, nothing altered, and nothing stops those behind it. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { createBox, OnceboxError, type Incoming, type Message, type Outcome } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, test } from 'vitest'
import { type Bench, note, recorder, useServer } from './fixture.js'

const server = useServer('fuzz')

/** Any sequence of UTF-16 code units, lone surrogates and NUL included. */
const codeUnits = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0x7f }),
      fc.integer({ min: 0, max: 0xffff }),
      fc.constantFrom(0, 0xd800, 0xdfff),
    ),
  )
  .map((units) => String.fromCharCode(...units))

const NASTY = [
  '',
  ' ',
  'a ',
  ' a',
  'a',
  'A',
  '\u00e9', // é in one code point, and in two
  'e\u0301',
  '\0',
  'a\0b',
  '\ud800',
  '\udfff',
  "'; drop table message; --",
  '"; drop schema public cascade; --',
  '$1',
  '%s',
  '\\',
  '\\u0000',
  '{}',
  '[]',
  'null',
  'undefined',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  '\u202e',
  '\ufeff',
  '\u2028',
  '😀',
  'x'.repeat(512),
  'x'.repeat(513),
  'ü'.repeat(257),
  'x'.repeat(5_000),
]
const text = fc.oneof(fc.constantFrom(...NASTY), codeUnits, fc.string(), fc.string({ unit: 'grapheme' }))

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const BODIES = [
  ...NASTY,
  '1e999',
  '-1e999',
  '-0',
  '12345678901234567890.123456789',
  '1'.repeat(2_000),
  '{"a":1,"a":2}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '"\\u0000"',
  '"\\ud800"',
  '{"\\u0000":1}',
  '\ufeff{}',
  '{"a":1}\0',
  '{"a":1} {"b":2}',
  "{'a':1}",
  'NaN',
  nested(499),
  nested(501),
  nested(100_000),
  `{"a":${'{"a":'.repeat(600)}1${'}'.repeat(600)}}`,
  JSON.stringify('x'.repeat(70_000)),
]
type Content = { body: string | Uint8Array } | { data: unknown }
const content: fc.Arbitrary<Content> = fc.oneof(
  fc.constantFrom(...BODIES).map((body) => ({ body })),
  fc.constantFrom(...BODIES).map((body) => ({ body: Buffer.from(body) })),
  codeUnits.map((body) => ({ body })),
  fc.json().map((body) => ({ body })),
  fc.json().map((body) => ({ body: Buffer.from(body.replace(/.$/, '')) })),
  fc.uint8Array({ maxLength: 200 }).map((body) => ({ body })),
  fc
    .constantFrom([0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xef, 0xbb, 0xbf, 0x7b, 0x7d])
    .map((bytes) => ({ body: Buffer.from(bytes) })),
  fc.jsonValue().map((data) => ({ data })),
  fc.anything({ withBigInt: false, withDate: true, withMap: true, withNullPrototype: true }).map((data) => ({ data })),
)

interface Rest {
  key?: string
  subject?: string
  headers?: Record<string, string>
  time?: string | Date
}
const rest: fc.Arbitrary<Rest> = fc.record(
  {
    key: text,
    subject: text,
    headers: fc.dictionary(text, text, { maxKeys: 3 }),
    time: fc.oneof(
      fc.date({ noInvalidDate: false }),
      text,
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    ),
  },
  { requiredKeys: [] },
)

const incoming = fc.record({
  id: fc.oneof(
    { weight: 9, arbitrary: text },
    { weight: 1, arbitrary: fc.constantFrom(undefined, null as never, 7 as never) },
  ),
  type: fc.oneof({ weight: 9, arbitrary: fc.constant('note') }, { weight: 1, arbitrary: text }),
  content,
  rest: fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: rest }),
})

/** The bytes of a message, as they should be kept; undefined if JSON cannot hold the data. */
function bytesOf(message: Incoming): Buffer | undefined {
  if (message.body === undefined) {
    try {
      return Buffer.from(JSON.stringify(message.data) ?? 'null')
    } catch {
      return undefined
    }
  }
  if (typeof message.body !== 'string') return Buffer.from(message.body)
  // What is no Unicode has no UTF-8; it is kept as its code units, and so is what text columns cannot hold.
  return message.body.isWellFormed() && !message.body.includes('\0')
    ? Buffer.from(message.body)
    : Buffer.from(message.body, 'utf16le')
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

describe('messages', () => {
  /** A thousand: ten runs of a hundred. Each has a source of its own, by which it can be found whatever its id is. */
  test('none of a thousand is lost, altered, or in the way of others', { timeout: 300_000 }, async () => {
    await using box = await server.open({ maxBytes: 65_536 })
    const seen = new Map<string, unknown>()
    box.consumer('a', { note: ({ source, data }) => void seen.set(source, data) }, { retry: { attempts: 1 } })
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(incoming, { minLength: 100, maxLength: 100 }), async (plan) => {
        const run = ++runs
        const messages = plan
          .map(
            ({ id, type, content: what, rest: more }, at) =>
              ({ id, type, source: `s${run}-${at}`, ...more, ...what }) as Incoming,
          )
          // Data that JSON cannot hold is a mistake of the caller, and is told as one.
          .filter((message) => bytesOf(message) !== undefined)
        const doors = [box.receive, box.handle]
        const outcomes: Outcome[] = []
        for (let at = 0; at < messages.length; at += 25) {
          outcomes.push(...(await doors[(at / 25 + run) % 2]!(messages.slice(at, at + 25))))
        }
        expect(outcomes).toHaveLength(messages.length)
        for (const { ack, status } of outcomes) {
          expect(ack).toBe(true)
          expect(['stored', 'handled', 'quarantined']).toContain(status)
        }
        const last = note('last', { source: `last-${run}` })
        await box.receive(last)
        await box.drain()
        expect(seen.has(`last-${run}`)).toBe(true)
        await checkKept(box, messages, outcomes, seen)
      }),
      { numRuns: 10, endOnFailure: true },
    )
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    const { consumers } = await box.admin.status()
    expect(consumers['a']).toMatchObject({ pending: 0, processing: 0, dead: 0 })
  })

  async function checkKept(
    box: Bench,
    messages: readonly Incoming[],
    outcomes: readonly Outcome[],
    seen: ReadonlyMap<string, unknown>,
  ): Promise<void> {
    const stored = await box.sql(
      `select m.source, m.id, m.body, null::bytea bytes, w.id is null handled from ob.message m left join ob.work w using (consumer, source, id)`,
    )
    const kept = await box.sql('select source, id, body, bytes from ob.quarantine')
    const rows = new Map<unknown, Record<string, unknown>[]>()
    for (const row of [...stored, ...kept]) rows.set(row['source'], [...(rows.get(row['source']) ?? []), row])
    messages.forEach((message, at) => {
      const own = rows.get(message.source) ?? []
      // Found, once.
      expect(own, JSON.stringify(message)).toHaveLength(1)
      const [row] = own as [Record<string, unknown>]
      // Unaltered.
      const bytes = (row['bytes'] as Buffer | null) ?? Buffer.from(row['body'] as string)
      expect(sha256(bytes), JSON.stringify(message)).toBe(sha256(bytesOf(message)!))
      if (outcomes[at]!.status === 'quarantined') return
      expect(row['id']).toBe(message.id)
      expect(row['handled']).toBe(true)
      expect(seen.get(message.source!)).toEqual(JSON.parse(bytes.toString()))
    })
  }

  test('ids that look alike are different messages, and none is normalised', async () => {
    await using box = await server.open()
    const ids: string[] = []
    box.consumer('a', { note: ({ id }) => void ids.push(id) })
    const distinct = [
      'a',
      'a ',
      ' a',
      'A',
      '\u00e9',
      'e\u0301',
      '\u212b',
      '\u00c5',
      'A\u030a',
      '\u200b',
      '1',
      '01',
      '1.0',
      "'; select 1; --",
      '__proto__',
      '%00',
      '\\0',
      'x'.repeat(512),
      'ß',
      'SS',
      'ﬁ',
      'fi',
    ]
    await box.receive(distinct.map((id) => note(id, { data: 1 })))
    await box.handle(distinct.map((id) => note(id, { data: 1, source: 'inline' })))
    await box.drain()
    expect(ids.sort()).toEqual([...distinct, ...distinct].sort())
    for (const id of distinct) expect(await box.admin.message({ id })).toHaveLength(2)
  })

  test('whatever a handler returns or throws, the box goes on', { timeout: 240_000 }, async () => {
    await using box = await server.open()
    const plans = new Map<string, () => unknown>()
    box.consumer('a', { note: ({ id }) => plans.get(id)?.() }, { retry: { attempts: 1 } })
    let runs = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.boolean(), fc.anything()), { minLength: 20, maxLength: 20 }),
        async (plan) => {
          const run = ++runs
          const messages = plan.map(([throws, value], at) => {
            plans.set(`${run}-${at}`, () => {
              if (throws) throw value
              return value
            })
            return note(`${run}-${at}`)
          })
          const half = messages.length / 2
          await box.receive(messages.slice(0, half))
          await box.drain()
          const outcomes = await box.handle(messages)
          outcomes.forEach((outcome, at) => {
            const [throws, value] = plan[at]!
            const expected = throws || !isJson(value) ? 'dead' : at < half ? 'duplicate' : 'handled'
            expect(outcome.status, String(at)).toBe(expected)
            if (expected !== 'dead') expect((outcome as { result?: unknown }).result).toEqual(roundTrip(value))
          })
        },
      ),
      { numRuns: 10, endOnFailure: true },
    )
  })
})

describe('names', () => {
  const schemas = [
    'a"b',
    "a'b",
    'a b',
    'ob',
    'ob.x',
    'select',
    'UPPER',
    'a\\b',
    '$1',
    '$$',
    'a$$b',
    '$oncebox$',
    '--',
    '/*',
    '*/',
    ';',
    'new\nline',
    'cr\rlf',
    'tab\t',
    '\u2028',
    '☃',
    '𝒳'.repeat(15),
    'x'.repeat(63),
    '%I',
    '{}',
    ' ',
    '\ufeff',
    '__proto__',
    '\u0001',
    'test?',
    'a\0',
    '\ud800',
    '',
    'x'.repeat(64),
  ]
  const anySchema = fc.string({ minLength: 1, maxLength: 10, unit: 'binary' })

  test('a schema of any name works, or is refused at once', { timeout: 300_000 }, async () => {
    const tried = new Set<string>()
    const examples = schemas.map((schema): [string] => [schema])
    await fc.assert(
      fc.asyncProperty(anySchema, async (schema) => {
        if (tried.has(schema)) return
        tried.add(schema)
        let box
        try {
          box = createBox({ db: fromPg(server.pool), schema, logger: recorder() })
        } catch (error) {
          expect(error).toBeInstanceOf(OnceboxError)
          expect(error).toMatchObject({ code: 'OPTION_INVALID' })
          return
        }
        const seen: string[] = []
        box.consumer('a', { note: ({ id }) => void seen.push(id) })
        await box.migrate()
        await box.receive(note('1', { key: 'k' }))
        await box.handle(note('2'))
        await box.drain()
        expect(seen.sort()).toEqual(['1', '2'])
        const { rows } = await server.pool.query('select 1 from pg_namespace where nspname = $1', [schema])
        expect(rows).toHaveLength(1)
        await server.pool.query(`drop schema "${schema.replaceAll('"', '""')}" cascade`)
      }),
      { numRuns: schemas.length + 10, examples, endOnFailure: true },
    )
  })

  test('a consumer, a type, a key and a source of any name work, or are refused', { timeout: 240_000 }, async () => {
    await using box = await server.open()
    const seen = new Set<string>()
    let runs = 0
    await fc.assert(
      fc.asyncProperty(text, text, text, text, async (consumer, type, key, source) => {
        const name = `${++runs} ${consumer}`
        const own = `m${runs}`
        const handler = (message: Message): void => {
          // A later run may have hit upon the same type.
          if (message.id !== own) return
          expect(message).toMatchObject({ type, source, ...(key && { key }) })
          seen.add(message.id)
        }
        const options = runs % 2 ? ({ order: 'key' } as const) : {}
        try {
          box.consumer(name, Object.fromEntries([[type, handler]]), options)
        } catch (error) {
          expect(error).toMatchObject({ code: 'OPTION_INVALID' })
          return
        }
        const outcome = await box.receive(note(own, { type, key, source }))
        await box.drain()
        if (outcome.consumers.some((one) => one.consumer === name)) expect(seen.has(own)).toBe(true)
        else expect(outcome).toMatchObject({ status: 'quarantined', reason: 'invalid' })
      }),
      { numRuns: 60, endOnFailure: true },
    )
    const { consumers } = await box.admin.status()
    for (const counts of Object.values(consumers)) expect(counts).toMatchObject({ pending: 0, dead: 0 })
  })
})

function isJson(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

function roundTrip(value: unknown): unknown {
  const json = JSON.stringify(value) as string | undefined
  return json === undefined ? undefined : JSON.parse(json)
}
