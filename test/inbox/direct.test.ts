/** `mode: 'direct'`: plain execution in a transaction, and no record of the message. */
import { batch, Reject, RetryLater, type Message, type MessageMap } from 'oncebox'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { gate, note, notes, useServer } from './fixture.js'

const server = useServer('direct')

test('it runs every time, commits what it wrote and sent, and leaves no record', async () => {
  await using box = await server.open()
  box.consumer(
    'a',
    {
      async note(message, { tx, send }) {
        await box.write(tx, 'a', message)
        await send('sent', {})
        return { at: new Date(0) }
      },
    },
    { mode: 'direct' },
  )
  for (let time = 0; time < 2; time++) {
    expect(await box.handle(note('1'))).toEqual({
      id: '1',
      ack: true,
      status: 'handled',
      result: { at: '1970-01-01T00:00:00.000Z' },
      consumers: [{ consumer: 'a', status: 'handled', result: { at: '1970-01-01T00:00:00.000Z' } }],
    })
  }
  expect(await box.ids()).toEqual(['1', '1'])
  expect(await box.sent()).toHaveLength(2)
  expect(await box.sql('select 1 from ob.message')).toEqual([])
  expect(await box.sql('select 1 from ob.work')).toEqual([])
})

test.for<[name: string, thrown: unknown]>([
  ['an error', new Error('no')],
  ['Reject', new Reject('no')],
  ['RetryLater', new RetryLater({ afterMs: 1 })],
  ['undefined', undefined],
])('a failure is not acknowledged, and nothing is kept: %s', async ([, thrown]) => {
  await using box = await server.open()
  box.consumer(
    'a',
    {
      async note(message, { tx, send }) {
        await box.write(tx, 'a', message)
        await send('sent', {})
        throw thrown
      },
    },
    { mode: 'direct' },
  )
  expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: false, error: {} })
  expect(await box.effects()).toEqual([])
  expect(await box.sent()).toEqual([])
  expect(await box.sql('select 1 from ob.message')).toEqual([])
})

test('each message of a call has its own transaction: one that fails spares the others', async () => {
  await using box = await server.open()
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        if (message.id === 'n2') await tx.query('select 1/0').catch(() => undefined)
        if (message.id === 'n3') await tx.query('commit')
      },
    },
    { mode: 'direct' },
  )
  const outcomes = await box.handle(notes(4))
  expect(outcomes.map(({ status }) => status)).toEqual(['handled', 'failed', 'failed', 'handled'])
  expect(outcomes[1]).toMatchObject({ error: { code: 'TRANSACTION_ABORTED' } })
  expect(outcomes[2]).toMatchObject({ error: { code: 'HANDLER_COMMITTED' } })
  expect(await box.ids()).toEqual(['n1', 'n4'])
})

test('what its schema refuses is quarantined, not run', async () => {
  await using box = await server.open({ messages: { strict: z.object({ n: z.number() }) } })
  let runs = 0
  box.consumer('a', { strict: () => void runs++ }, { mode: 'direct' })
  expect(await box.handle(note('1', { type: 'strict', data: { n: 'x' } }))).toMatchObject({
    status: 'quarantined',
    reason: 'invalid',
    ack: true,
  })
  expect(runs).toBe(0)
})

test('a batch handler gets one message at a time', async () => {
  await using box = await server.open()
  const sizes: number[] = []
  const sized = batch<Message, MessageMap, pg.PoolClient>((messages) => void sizes.push(messages.length))
  box.consumer('a', { note: sized }, { mode: 'direct' })
  await box.handle(notes(3))
  expect(sizes).toEqual([1, 1, 1])
})

test('effects need a record, so they are refused', async () => {
  await using box = await server.open()
  let calls = 0
  box.consumer('a', { note: (_message, { effect }) => effect('call', () => ++calls) }, { mode: 'direct' })
  expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', error: { code: 'OPTION_INVALID' } })
  expect(calls).toBe(0)
})

test('what was stored for it is run by its loop, once', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode: 'direct' })
  expect(await box.receive(note('1'))).toMatchObject({ status: 'stored' })
  expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate' })
  await box.drain()
  expect(await box.ids()).toEqual(['1'])
})

test('copies at once run side by side: nothing makes them wait', async () => {
  await using box = await server.open()
  const both = gate()
  let running = 0
  box.consumer(
    'a',
    {
      async note() {
        if (++running === 2) both.open()
        await both.opened
      },
    },
    { mode: 'direct' },
  )
  const outcomes = await Promise.all([box.handle(note('1')), box.handle(note('1'))])
  expect(outcomes.map(({ status }) => status)).toEqual(['handled', 'handled'])
})
