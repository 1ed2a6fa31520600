/** What the server says of a value that it refuses is told without the value, in every language, and still says enough. */
import { connect } from 'node:net'
import { inspect } from 'node:util'
import { DatabaseError } from 'pg'
import { describe, expect, test } from 'vitest'
import { plainWords, toFailure, withoutValues } from '../../src/failure.js'
import { useServer } from './fixture.js'

const server = useServer('values')
const CANARY = 'CANARY'
const CARD = '4111111111111111'
const SHOW = { depth: 20, showHidden: true } as const

async function refusal(statement: string, value?: unknown): Promise<Error> {
  const asked = server.pool.query(statement, value === undefined ? [] : [value])
  return asked.then(
    () => expect.unreachable(`${statement} was not refused`),
    (error: unknown) => error as Error,
  )
}

/** All that leaves of an error: the record, what hooks get, the words of logs and spans. */
function leaving(error: Error): string {
  return inspect([toFailure(error), withoutValues(error), plainWords(error)], SHOW)
}

describe('English', () => {
  test.for<[value: string, statement: string, says: string]>([
    [CARD, 'select $1::int', 'value is out of range for type integer'],
    [CARD, 'select $1::smallint', 'value is out of range for type smallint'],
    [CARD + CARD, 'select $1::bigint', 'value is out of range for type bigint'],
    [CARD + CARD, 'select $1::money', 'value is out of range for type money'],
    [CARD, 'select $1::oid', 'value is out of range for type oid'],
    [`1e${CARD}`, 'select $1::float8', 'is out of range for type double precision'],
    [`{${CARD}}`, 'select $1::int[]', 'value is out of range for type integer'],
    [`[${CARD},${CARD}]`, 'select $1::int4range', 'value is out of range for type integer'],
    [`" is out of range for type ${CANARY}`, 'select $1::int', 'invalid input syntax for type integer'],
    [CANARY, 'select $1::int', 'invalid input syntax for type integer'],
    [CANARY, 'select $1::uuid', 'invalid input syntax for type uuid'],
    [CANARY, 'select $1::int[]', 'malformed array literal'],
    [CANARY, 'select $1::timestamptz', 'invalid input syntax for type timestamp with time zone'],
    ['4111-41-11', 'select $1::date', 'date/time field value out of range'],
    ['41', 'select make_date(4111, 41, $1)', 'date field value out of range'],
    [CANARY, 'select now() at time zone $1', 'time zone not recognized'],
    [CANARY, 'select date_trunc($1, now())', 'not recognized'],
    [CANARY, `select to_date($1, 'YYYY-MM-DD')`, 'invalid_datetime_format (22007)'],
    [CANARY, `select decode($1, 'hex')`, 'invalid_parameter_value (22023)'],
    [CANARY, `select format('%' || $1, 1)`, 'invalid_parameter_value (22023)'],
    [CANARY, `select set_config('work_mem', $1, true)`, 'invalid value for parameter "work_mem"'],
    [`${CANARY}(`, `select 'a' ~ $1`, 'invalid regular expression: parentheses () not balanced'],
    [`{"a": ${CANARY}`, 'select $1::jsonb', 'invalid input syntax for type json'],
    [`${CANARY} &&& (`, 'select $1::tsquery', 'syntax error in tsquery'],
    [`${CANARY} &&& (`, `select to_tsquery('simple', $1)`, 'syntax error in tsquery'],
    [CANARY, 'select repeat($1, 1000)::tsquery', 'word is too long in tsquery'],
    [CANARY, 'select $1::varchar::bit(4)', '22P02'],
    [CANARY, `select $1::text::"Mood"`, 'invalid input value for enum "Mood"'],
  ])('%s in %s', async ([value, statement, says]) => {
    await server.pool.query(`do $$ begin create type "Mood" as enum ('glad'); exception when others then null; end $$`)
    const error = await refusal(statement, value)
    expect(leaving(error)).toContain(says)
    expect(leaving(error)).not.toMatch(/canary|4111/i)
  })
})

describe('what a developer needs stays', () => {
  test.for<[statement: string, code: string, says: string]>([
    ['selct 1', '42601', 'syntax error at or near "selct"'],
    [`do $$ begin execute 'selct 1'; end $$`, '42601', 'syntax error at or near "selct"'],
    ['select nothing from pg_class', '42703', 'column "nothing" does not exist'],
    ['select 1 from nowhere', '42P01', 'relation "nowhere" does not exist'],
    ['select 1 / 0', '22012', 'division by zero'],
    [`create temp table t1 (v varchar(2)); insert into t1 values ('abc')`, '22001', 'type character varying(2)'],
    ['create temp table t2 (v int not null); insert into t2 values (null)', '23502', 'null value in column "v"'],
    ['create temp table t3 (v int constraint odd check (v > 1)); insert into t3 values (1)', '23514', '"odd"'],
    ['create temp table t4 (v int constraint one unique); insert into t4 values (1), (1)', '23505', '"one"'],
    [`do $$ begin raise exception 'order "7" is closed'; end $$`, 'P0001', 'order "7" is closed'],
    [`do $$ begin raise 'order "7" is closed' using errcode = '22023'; end $$`, '22023', 'order "7" is closed'],
  ])('%s', async ([statement, code, says]) => {
    const error = await refusal(statement)
    expect(toFailure(error)).toMatchObject({ code, message: expect.stringContaining(says) as string })
    expect(withoutValues(error)).toMatchObject({ code, message: expect.stringContaining(says) as string })
    expect(plainWords(error)).toContain(says)
  })
})

/** As the server says it, in the catalogs of PostgreSQL 15. */
const LANGUAGES: [code: string, message: string, says: string][] = [
  ['22P02', `ungültige Eingabesyntax für Typ integer: »${CANARY}«`, 'invalid_text_representation (22P02, integer)'],
  ['22003', `Wert »${CARD}« ist außerhalb des gültigen Bereichs für Typ bigint`, 'out_of_range (22003, bigint)'],
  [
    '22P02',
    `syntaxe en entrée invalide pour le type uuid : « ${CANARY} »`,
    'invalid_text_representation (22P02, uuid)',
  ],
  ['22P02', `la sintaxis de entrada no es válida para tipo integer: «${CANARY}»`, '(22P02, integer)'],
  ['22P02', `неверный синтаксис для типа integer: "${CANARY}"`, 'invalid_text_representation (22P02, integer)'],
  ['22P02', `integer型の入力構文が不正です: "${CANARY}"`, 'invalid_text_representation (22P02'],
  ['22P02', `nieprawidłowa składnia wejścia dla typu integer: „${CANARY}”`, '(22P02, integer)'],
  ['22003', `${CARD} დიაპაზონს გარეთაა ტიპისთვის: double precision`, '(22003, double precision)'],
  ['42601', `tsvector内の構文エラー: ${CANARY}`, 'syntax_error (42601'],
  ['42601', `Syntaxfehler in tsquery: »${CANARY}«`, 'syntax_error (42601, tsquery)'],
  ['22ZZZ', `etwas Neues mit ${CANARY}`, 'data_exception (22ZZZ)'],
]

test.for(LANGUAGES)('%s %s', ([code, message, says]) => {
  const error = Object.assign(new DatabaseError(message, message.length, 'error'), { code, severity: 'FEHLER' })
  const wrapped = new Error(`while charging: ${message}`, { cause: error })
  for (const one of [error, wrapped]) {
    expect(leaving(one)).toContain(says)
    expect(leaving(one)).not.toMatch(/canary|4111/i)
  }
  expect(plainWords(wrapped)).toContain('while charging')
})

/** Each says what the one below it says. */
function wrappedTimes(times: number, inner: Error): Error {
  let error = inner
  for (let n = 1; n <= times; n++) error = new Error(`layer ${n}: ${error.message}`, { cause: error })
  return error
}

function depthOf({ cause }: { readonly cause?: unknown }): number {
  return cause === undefined ? 0 : 1 + depthOf(cause as object)
}

test('a cause that is deeper than what is recorded is left out, and its value is in no message around it', async () => {
  const inner = await refusal('select $1::int', CANARY)
  for (const times of [4, 5, 6, 40]) {
    const error = wrappedTimes(times, inner)
    expect(leaving(error), String(times)).not.toContain(CANARY)
    expect(leaving(error)).toContain('invalid input syntax for type integer')
    expect(depthOf(toFailure(error))).toBe(Math.min(times, 5))
    expect(depthOf(withoutValues(error))).toBe(Math.min(times, 5))
    expect(plainWords(error)).toContain(`layer ${times}: `)
  }
})

test('a chain of causes that leads back to itself has an end', async () => {
  const inner = await refusal('select $1::int', CANARY)
  const outer = new Error(`again: ${inner.message}`, { cause: inner })
  Object.assign(inner, { cause: outer })
  expect(leaving(outer)).not.toContain(CANARY)
  expect(depthOf(toFailure(outer))).toBe(5)
})

/** As Node has it where a name has several addresses, and nobody listens at any of them. */
function refusedEverywhere(): Promise<Error> {
  const both = [
    { address: '::1', family: 6 },
    { address: '127.0.0.1', family: 4 },
  ]
  const lookup = (_name: string, _options: object, found: (error: null, addresses: typeof both) => void): void =>
    found(null, both)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: 'broker.test', port: 1, autoSelectFamily: true, lookup })
    socket.on('error', resolve)
    socket.on('connect', () => reject(new Error('somebody listens there')))
  })
}

test('an error that sums up others and says nothing itself is told in their words', async () => {
  const refused = await refusedEverywhere()
  expect(refused).toMatchObject({ name: 'AggregateError', message: '' })
  const words = (refused as AggregateError).errors.map((one: Error) => one.message).join('; ')
  expect(words).toContain('127.0.0.1:1')
  expect(plainWords(refused)).toBe(words)
  expect(toFailure(refused)).toMatchObject({ code: 'ECONNREFUSED', message: words })
  expect(toFailure(refused).stack).toContain(words)
  expect(plainWords(new Error('cannot publish', { cause: refused }))).toBe(`cannot publish: ${words}`)
  // Hooks get it as it is: it hides nothing.
  expect(withoutValues(refused)).toBe(refused)
})

test('the parts of an error that sums up others are told once each, and without values', async () => {
  const inner = await refusal('select $1::int', CANARY)
  const summed = new AggregateError([inner, inner, new AggregateError([new Error('no route')]), 'no error'])
  expect(plainWords(summed)).toBe('invalid input syntax for type integer; no route')
  expect(leaving(summed)).not.toContain(CANARY)
})

test('an error without words is told by its code, or by its cause, and one that is a part of itself has an end', () => {
  expect(plainWords(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED')
  expect(plainWords(new Error('', { cause: new Error('no route') }))).toBe('no route')
  const endless = new AggregateError([])
  endless.errors.push(endless, new Error('no route'))
  expect(plainWords(endless)).toBe('no route')
})
