import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Filter } from 'oncebox'
import { open, type Opened } from './open.js'

let opened: Opened
let box: ReturnType<Opened['box']>
beforeAll(async () => {
  opened = await open('admin_filter')
  box = opened.box()
  box.consumer('c', { '*': () => undefined })
  await box.migrate()
})
afterAll(() => opened.close())

const refused: Record<string, unknown> = {
  'a misspelt criterion': { consumr: 'c' },
  'a criterion of another library': { where: {} },
  'an undefined consumer': { consumer: undefined },
  'an undefined id': { id: undefined },
  'an undefined criterion beside a good one': { consumer: 'c', id: undefined },
  'a null type': { type: null },
  'a number for an id': { id: 7 },
  'a list with an undefined id': { id: ['a', undefined] },
  'too many ids': { id: Array.from({ length: 1_001 }, String) },
  'an unknown state': { state: 'failed' },
  'a list with an unknown state': { state: ['dead', 'deda'] },
  'an unknown reason': { reason: 'bad' },
  'an unknown box': { box: 'letterbox' },
  'a string for a time': { before: '2020-01-01' },
  'an invalid date': { after: new Date(NaN) },
  'a date no database has': { after: new Date(8.64e15) },
  'a string for data': { data: 'x' },
  'an array for data': { data: [] },
  'empty data': { data: {} },
  'data with an undefined member': { data: { a: { b: undefined } } },
  'data with an integer that JavaScript has rounded': { data: { a: [2 ** 53] } },
  'data with a negative one': { data: { a: -(2 ** 53) } },
  'data with a bigint': { data: { a: 1n } },
  'data with a number that JSON does not have': { data: { a: NaN } },
  'data with an endless number': { data: { a: { b: Infinity } } },
  'a key with NUL': { key: 'a\0b' },
  'an error text with a lone surrogate': { error: '\ud800' },
  'an empty error text, which every error has': { error: '' },
  'an empty error text beside a good criterion': { consumer: 'c', error: '' },
  'a list instead of a filter': [{ consumer: 'c' }],
  'a string that is not all': 'everything',
  'a number': 5,
}

for (const [what, filter] of Object.entries(refused)) {
  test(`${what} is refused by every verb that takes a filter`, async () => {
    const bad = { code: 'FILTER_INVALID' }
    await expect(box.admin.messages(filter as Filter)).rejects.toMatchObject(bad)
    await expect(box.admin.retry(filter as { id: string })).rejects.toMatchObject(bad)
    await expect(box.admin.discard(filter as { id: string }, { reason: 'test' })).rejects.toMatchObject(bad)
  })
}

describe('changing messages', () => {
  for (const filter of [{}, undefined, null]) {
    test(`retrying and discarding without a criterion is refused (${JSON.stringify(filter)})`, async () => {
      await expect(box.admin.retry(filter as never)).rejects.toMatchObject({ code: 'FILTER_INVALID' })
      await expect(box.admin.discard(filter as never, { reason: 'r' })).rejects.toMatchObject({
        code: 'FILTER_INVALID',
      })
    })
  }

  const options: Record<string, unknown> = {
    'no options': undefined,
    'no reason': {},
    'an empty reason': { reason: ' ' },
    'a reason that is no string': { reason: 5 },
    'a misspelt option': { reason: 'r', dryrun: true },
    'a negative limit': { reason: 'r', limit: -1 },
    'a limit that is no number': { reason: 'r', limit: '5' },
    'no messages per second': { reason: 'r', perSecond: 0 },
    'a dryRun that is no boolean': { reason: 'r', dryRun: 'no' },
  }
  for (const [what, given] of Object.entries(options)) {
    test(`discarding with ${what} is refused`, async () => {
      await expect(box.admin.discard('all', given as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    })
  }
})

test('times at the ends of the calendar are times like others', async () => {
  await box.receive({ id: undefined, type: 't', data: 1 })
  const [first, last] = [new Date('0001-01-01T00:00:00Z'), new Date('9999-12-31T23:59:59Z')]
  expect(await box.admin.messages({ before: last, after: first, key: 'none' })).toEqual({ entries: [] })
  expect(await box.admin.messages({ before: first, consumer: 'c' })).toEqual({ entries: [] })
  expect(await box.admin.retry({ after: first, key: 'none' })).toBe(0)
  expect(await box.admin.retry({ after: last, consumer: 'c' })).toBe(0)
})

test('a misspelt criterion comes with a suggestion', async () => {
  await expect(box.admin.messages({ stat: 'dead' } as Filter)).rejects.toThrow(/did you mean state/)
})

test('an unknown key of message() is refused', async () => {
  await expect(box.admin.message({ id: 'a', box: 'inbox' } as never)).rejects.toMatchObject({ code: 'FILTER_INVALID' })
  await expect(box.admin.message({} as never)).rejects.toMatchObject({ code: 'FILTER_INVALID' })
  await expect(box.admin.message({ id: 'a', source: undefined })).rejects.toMatchObject({ code: 'FILTER_INVALID' })
})

test('an empty list of ids selects nothing', async () => {
  await box.receive({ id: 'a', type: 't', data: 1 })
  expect(await box.admin.messages({ id: [] })).toEqual({ entries: [] })
  expect(await box.admin.discard({ id: [], state: 'pending' }, { reason: 'test' })).toBe(0)
})
