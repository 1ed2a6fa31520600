/**
 * One message is stored by a function of the schema, several by a statement. Whatever came, and whatever is on record, both answer the
 * same and leave the same behind.
 */
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { sqlState } from '../../src/postgres/errors.js'
import { RECEIVE, RECEIVE_ONE } from '../../src/postgres/sql/receive.js'
import { receiveParam } from '../../src/postgres/sql/receive-param.js'
import { toText } from '../../src/postgres/statement.js'
import { boxDatabase, SCHEMA } from '../interleavings/schema.js'
import type { ScratchDatabase } from '../support/postgres.js'

const RUNS = 300
const SEED = Number(process.env['ONCEBOX_TEST_SEED'] ?? Date.now() % 1_000_000_000)
const DAY = 86_400_000
const bind = bindTo(SCHEMA)
let database: ScratchDatabase
let client: pg.Client

beforeAll(async () => {
  console.info(`ONCEBOX_TEST_SEED=${SEED}`)
  database = await boxDatabase('receive_one')
  client = new pg.Client(database.url)
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await database.close()
})

/** One has the name of the type. */
const NAMES = ['a', 'b', 't'] as const
const PAIRS = NAMES.flatMap((consumer) => [...NAMES, '*'].map((type) => [consumer, type] as const))
const types = fc.subarray(['t', '*', 'other'], { minLength: 1 })
const untimed = fc.constantFrom('accept', 'quarantine')
const options = {
  ordered: fc.boolean(),
  retainMs: fc.constantFrom(DAY, 10 * DAY),
  untimed,
  types,
  identity: fc.boolean(),
}
const lane = fc.record({
  due: fc.constantFrom('infinity', '-infinity', 'tomorrow'),
  held: fc.boolean(),
  dirty: fc.boolean(),
  blocked: fc.boolean(),
})
const some = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
/** What is on record of each consumer, and what this process says of it. */
const consumer = fc.record({
  here: some(fc.record(options)),
  registered: some(fc.record(options)),
  forgotDays: some(fc.integer({ min: 1, max: 12 })),
  known: fc.boolean(),
  lane: some(lane),
})
const scene = fc.record({
  consumers: fc.tuple(consumer, consumer, consumer),
  only: some(fc.subarray([...NAMES])),
  not: fc.subarray(PAIRS, { maxLength: 4 }),
  message: fc.record({
    key: some(fc.constant('k')),
    hash: fc.constantFrom(undefined, null, 'abcd'),
    envelope: fc.constantFrom(null, '{"time":"2026-01-01T00:00:00Z"}'),
    days: some(fc.integer({ min: -1, max: 12 })),
    body: fc.constantFrom('1', '{"text":"ü \\u001e"}'),
  }),
})
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never

test('one message is stored alike by the function and by the statement', { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(scene, async (given) => {
      await client.query('begin')
      try {
        await setUp(given)
        const param = paramOf(given)
        const byStatement = await outcome(RECEIVE, param)
        const byFunction = await outcome(RECEIVE_ONE, param)
        expect(byFunction).toEqual(byStatement)
      } finally {
        await client.query('rollback')
      }
    }),
    { numRuns: RUNS, seed: SEED },
  )
})

function paramOf({ consumers, only, not, message }: Scene): string {
  const { days, ...rest } = message
  const at = days === undefined ? undefined : new Date(Date.now() - days * DAY).toISOString()
  return toText(
    receiveParam([{ id: 'm', source: 's', type: 't', at, ...rest }], {
      consumers: consumers.flatMap(({ here }, n) => (here ? [{ name: NAMES[n]!, ...here }] : [])),
      only: only ?? null,
      not,
      wait: '1s',
    }),
  )
}

async function setUp({ consumers }: Scene): Promise<void> {
  for (const [n, { registered, forgotDays, known, lane }] of consumers.entries()) {
    const name = NAMES[n]!
    const ask = (text: string, ...values: unknown[]): Promise<unknown> => client.query(bind(text), [name, ...values])
    if (registered) {
      const { ordered, retainMs, untimed, identity, types } = registered
      await ask('insert into ob.consumer values ($1, $2, $3, $4)', ordered, retainMs, untimed)
      await ask('update ob.consumer set identity = $2 where name = $1', identity)
      for (const type of types) await ask('insert into ob.subscription values ($1, $2)', type)
    }
    if (forgotDays !== undefined)
      await ask(`insert into ob.forgotten values ($1, now() - $2 * interval '1 day')`, forgotDays)
    if (known) await ask(`insert into ob.message (consumer, source, id, type, body) values ($1, 's', 'm', 't', '0')`)
    if (lane) {
      const { due, held, dirty, blocked } = lane
      const columns = 'consumer, key, due_at, token, dirty, blocked'
      const token = held ? '00000000-0000-0000-0000-000000000001' : null
      await ask(`insert into ob.lane (${columns}) values ($1, 'k', $2, $3, $4, $5)`, due, token, dirty, blocked)
    }
  }
}

/** What was answered, and what is on record then; the next begins where this one began. */
async function outcome(text: string, param: string): Promise<unknown> {
  await client.query('savepoint before')
  try {
    const { rows } = await client.query<{ answer: string }>(bind(text), [param])
    const { targets, rest, old, ahead } = JSON.parse(rows[0]!.answer) as Record<string, unknown[]>
    const sorted = [rest, old, ahead].map((list) => list!.map(String).sort())
    return { targets, sorted, left: await onRecord() }
  } catch (error) {
    return { refused: sqlState(error), words: error instanceof Error ? error.message : error }
  } finally {
    await client.query('rollback to before')
  }
}

async function onRecord(): Promise<unknown> {
  const { rows } = await client.query(
    bind(`
      select 'message' what, to_jsonb(m) - 'n' row from ob.message m
      union all
      select 'lane', to_jsonb(l) from ob.lane l
      union all
      select 'work', to_jsonb(w) - 'seq' - 'journal_place' || jsonb_build_object('found', exists (
        select from ob.message m where m.ctid = w.journal_place and m.consumer = w.consumer and m.id = w.id)) from ob.work w
      order by 1, 2`),
  )
  // What is due is due now: by the clock of the statement.
  const clock = new Set<string>()
  for (const { row } of rows as { row: Record<string, string> }[]) if (row['received_at']) clock.add(row['received_at'])
  return JSON.parse(JSON.stringify(rows), (key, value: unknown) =>
    ['received_at', 'due_at'].includes(key) && clock.has(value as string) ? 'now' : value,
  )
}
