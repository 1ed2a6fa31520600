/** Who hands a message in is told what is wrong with it, at every door, and not only that it is in quarantine. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { unchecked } from 'oncebox'
import { note, useServer } from './fixture.js'

const server = useServer('detail')
const DOORS = ['receive', 'handle'] as const
const messages = { note: unchecked(), order: z.object({ sku: z.string() }) }

test.each(DOORS)('%s says which field of an invalid message is wrong', async (door) => {
  await using box = await server.open({ messages })
  box.consumer('a', { order: () => undefined })
  const outcome = await box[door]({ id: '1', type: 'order', source: 'web', body: '{"sku":7}' })
  expect(outcome).toMatchObject({ status: 'quarantined', reason: 'invalid', detail: expect.stringContaining('sku') })
  const [kept] = await box.quarantine()
  expect(outcome).toMatchObject({ detail: kept!.detail })
})

test.each(DOORS)('%s says why a message is for nobody, a conflict, or too old', async (door) => {
  await using box = await server.open({ messages })
  expect(await box[door](note('1'))).toMatchObject({ reason: 'unrouted', detail: expect.stringContaining('note') })
  box.consumer('a', { note: () => undefined }, { retainMs: 1_000 })
  await box.migrate()
  await box[door](note('2', { data: 1 }))
  const conflict = await box[door](note('2', { data: 2 }))
  const words = 'the id is known with another body, or another type'
  expect(conflict).toMatchObject({ reason: 'conflict', detail: words, consumers: [{ consumer: 'a', detail: words }] })
  const old = await box[door](note('3', { time: new Date(Date.now() - 3_600_000) }))
  expect(old).toMatchObject({ reason: 'too-old', detail: expect.stringContaining('beyond the dedup horizon') })
})

test.each(DOORS)('%s says why a consumer cannot tell which message it is', async (door) => {
  await using box = await server.open({ messages })
  box.consumer('a', { note: () => undefined }, { identity: () => '' })
  const outcome = await box[door](note('1'))
  const [kept] = await box.quarantine()
  expect(outcome).toMatchObject({ reason: 'no-id', detail: kept!.detail, consumers: [{ detail: kept!.detail }] })
})

test('what is taken has no detail', async () => {
  await using box = await server.open({ messages })
  box.consumer('a', { note: () => undefined })
  expect(await box.handle(note('1'))).not.toHaveProperty('detail')
  expect(await box.receive(note('1'))).not.toHaveProperty('detail')
})
