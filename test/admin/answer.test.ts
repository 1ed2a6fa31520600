/** Answers for messages that wait because nobody knows whether their effect happened. */
import { describe, expect, test } from 'vitest'
import { note, useServer } from '../inbox/fixture.js'

const server = useServer('admin_answer')

/** Messages `1` of these sources, all parked. */
async function parked(...sources: string[]) {
  const box = await server.open()
  const results: [source: string, result: unknown][] = []
  let calls = 0
  box.consumer('pay', {
    async note(message, { effect }) {
      const call = (): never => {
        calls++
        throw new Error('nobody knows')
      }
      results.push([message.source, await effect('charge', call, { onUnknown: 'park' })])
    },
  })
  await box.receive(sources.map((source) => note('1', { source })))
  await box.drain()
  return Object.assign(box, { results, calls: () => calls })
}

const charge = { consumer: 'pay', id: '1', effect: 'charge' }

test('an answer that fits messages of two sources is refused, and names them', async () => {
  await using box = await parked('shop', 'branch')
  await expect(box.admin.answer(charge, { happened: true, result: 'told' })).rejects.toMatchObject({
    code: 'FILTER_INVALID',
    message: expect.stringContaining('branch, shop') as string,
  })
  await box.drain()
  expect(box.results).toEqual([])
  await box.admin.answer({ ...charge, source: 'shop' }, { happened: true, result: 'of the shop' })
  // Only one waits now.
  await box.admin.answer(charge, { happened: true, result: 'of the branch' })
  await box.drain()
  expect(box.results.sort()).toEqual([
    ['branch', 'of the branch'],
    ['shop', 'of the shop'],
  ])
})

test.for<[what: string, result: unknown]>([
  ['a bigint', 10n],
  ['a function', () => 1],
  ['a symbol', Symbol('x')],
  ['what cannot be written', { toJSON: () => { throw new Error('no') } }], // prettier-ignore
])('an answer with %s is refused before anything is written', async ([, result]) => {
  await using box = await parked('shop')
  await expect(box.admin.answer(charge, { happened: true, result })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  expect(await box.sql('select state from ob.effect')).toEqual([{ state: 'intent' }])
  expect(await box.fate('1')).toMatchObject({ state: 'quarantined', reason: 'effect-unknown' })
})

test.for<[what: string, at: object]>([
  ['a number for an id', { id: 1 }],
  ['NUL in the effect', { effect: 'a\0' }],
  ['no consumer', { consumer: undefined }],
])('an answer with %s is refused', async ([, at]) => {
  await using box = await server.open()
  await expect(box.admin.answer({ ...charge, ...at }, { happened: false })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
})

describe('a parked message whose intent is gone', () => {
  test.for<[happened: boolean, calls: number]>([
    [true, 1],
    [false, 2],
  ])('can be answered: happened %s', async ([happened, calls]) => {
    await using box = await parked('shop')
    await box.sql('delete from ob.effect')
    await expect(box.admin.answer({ ...charge, effect: 'refund' }, { happened: false })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    await box.admin.answer(charge, happened ? { happened, result: 'told' } : { happened })
    await box.drain()
    expect(box.calls()).toBe(calls)
    expect(box.results).toEqual(happened ? [['shop', 'told']] : [])
  })

  test('or whose outcome is on record: the record stands', async () => {
    await using box = await parked('shop')
    await box.sql(`update ob.effect set state = 'done', result = '"recorded"'`)
    await box.admin.answer(charge, { happened: true, result: 'told' })
    await box.drain()
    expect(box.results).toEqual([['shop', 'recorded']])
  })
})
