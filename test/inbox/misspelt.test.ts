/** What is misspelt is refused, or warned of with the name that was meant; nothing is taken for something else in silence. */
import { expect, test } from 'vitest'
import { createBox, unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { webhook } from 'oncebox/webhook'
import { SECRETS, bodyOf, sign, toRequest } from '../webhook/senders.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer } from './fixture.js'

const server = useServer('misspelt')

test.for<[string, object]>([
  ['payload', { payload: { text: 'lost' } }],
  ['payload, a text', { payload: 'lost' }],
  ['Data', { Data: 1 }],
  ['any object', { order: { id: 1 } }],
])('a message without data or body, but with %s, is refused by name', async ([name, rest]) => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const wrong = { id: '1', type: 'note', ...rest } as never
  const refusal = { code: 'MESSAGE_INVALID', message: expect.stringContaining(Object.keys(rest)[0]!) }
  await expect(box.receive(wrong), name).rejects.toMatchObject(refusal)
  await expect(box.handle(wrong), name).rejects.toMatchObject(refusal)
  expect(await box.fates('1')).toEqual([])
})

test('a source that brings such a message has it quarantined as invalid, with what it brought', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const outcomes: unknown[] = []
  box.from({
    async start(deliver) {
      outcomes.push(...(await deliver([{ id: '1', type: 'note', payload: { text: 'kept' } } as never])))
    },
    stop: async () => undefined,
  })
  await box.start()
  await waitUntil(() => outcomes.length > 0)
  expect(outcomes).toMatchObject([{ status: 'quarantined', reason: 'invalid' }])
  const [kept] = await box.quarantine()
  expect(kept).toMatchObject({
    id: '1',
    detail: expect.stringContaining('payload'),
    body: expect.stringContaining('kept'),
  })
})

test('a message without data is taken, and one with data and a property too many is taken with one warning', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  box.consumer('a', { note: ({ data }) => ({ data }) })
  expect(await box.handle({ id: '1', type: 'note' } as never)).toMatchObject({
    status: 'handled',
    result: { data: null },
  })
  for (const id of ['2', '3']) {
    expect(await box.handle(note(id, { correlationKey: 'x', keys: 'k' } as never))).toMatchObject({ status: 'handled' })
  }
  expect(logger.lines.map(({ about, text }) => [about, text])).toEqual([
    [{ type: 'note', property: 'correlationKey' }, expect.stringContaining('correlationKey')],
    [{ type: 'note', property: 'keys' }, expect.stringContaining('did you mean key?')],
  ])
})

test('of a message with both data and a body the body counts, and a warning says so once', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  box.consumer('a', { note: ({ data }) => ({ data }) })
  for (const id of ['1', '2']) {
    const outcome = await box.handle({ id, type: 'note', data: 1, body: '2' } as never)
    expect(outcome).toMatchObject({ status: 'handled', result: { data: 2 } })
  }
  expect(logger.lines).toMatchObject([
    { level: 'warn', about: { type: 'note' }, text: expect.stringContaining('both') },
  ])
})

test('a map that adds data and leaves the body is refused, not half obeyed', async () => {
  const errors: unknown[] = []
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const hook = box.from(
    webhook({
      scheme: 'standard',
      secret: SECRETS.standard,
      map: ({ message }) => ({ ...message, data: { mapped: true } }) as never,
      onError: (error) => errors.push(error),
    }),
    { types: 'any' },
  )
  expect((await hook.fetch(toRequest(await sign('standard', bodyOf('standard'))))).status).toBe(503)
  expect(await box.quarantine()).toEqual([])
  expect(errors).toMatchObject([{ code: 'MESSAGE_INVALID', message: expect.stringContaining('both') }])
})

test('options of a driver, of the test kit and of once are refused by name', async () => {
  await using box = await server.open()
  const refusal = (near: string) =>
    expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(`did you mean ${near}?`) })
  expect(() => fromPg(server.pool, { prepared: false } as never)).toThrow(refusal('prepare'))
  expect(() => box.crashAt('claimed', { time: 2 } as never)).toThrow(refusal('times'))
  await expect(box.deliver(note('1'), { time: 2 } as never)).rejects.toThrow(refusal('times'))
  await expect(box.waitFor('1', 'handled', { timeoutMS: 2 } as never)).rejects.toThrow(refusal('timeoutMs'))
  const client = await server.pool.connect()
  try {
    await client.query('begin')
    const run = () => box.once(client, 'a', { id: '1', sorce: 'x' } as never, () => 1)
    await expect(run()).rejects.toThrow(refusal('source'))
    // A whole message, as a handler got it, may be handed on.
    const whole = { ...note('1'), subject: 's', headers: {}, receivedAt: new Date(), attempt: 1 }
    expect(await box.once(client, 'a', whole as never, () => 1)).toMatchObject({ status: 'handled' })
    await client.query('commit')
  } finally {
    client.release()
  }
})

test('what is given in a wrong shape is told with the right one', async () => {
  await using box = await server.open({ messages: { note: unchecked(), 'order.placed': unchecked() } })
  const words = (text: string) => expect.objectContaining({ message: expect.stringContaining(text) })
  expect(() => createBox(server.pool as never)).toThrow(words('createBox takes { db }, and db must be a driver'))
  await expect(box.admin.message('1' as never)).rejects.toThrow(
    words('message takes { id, source?, consumer? }; got "1"'),
  )
  expect(() => box.consumer('a', { 'order.place': () => 1 } as never)).toThrow(words('did you mean order.placed?'))
  const client = await server.pool.connect()
  try {
    const sent = box.sendMany(client, [{ type: 'note', payload: 1 } as never])
    await expect(sent).rejects.toThrow(
      words('sendMany: an event of type note has no property "payload"; pass it as data'),
    )
  } finally {
    client.release()
  }
  let refused: Promise<unknown> | undefined
  box.from({
    async start(deliver) {
      refused = deliver(note('1') as never).catch((error: unknown) => error)
    },
    stop: async () => undefined,
  })
  await box.start()
  expect(await refused).toEqual(words('deliver takes an array of messages'))
})

test('a source for a consumer that nobody has heard of is warned of, with the name that was meant', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  box.consumer('reserve-stock', { note: () => undefined })
  const quiet = () => ({ start: async () => undefined, stop: async () => undefined })
  box.from(quiet(), { consumers: ['reserve-stok'] })
  box.from(quiet(), { consumers: ['reserve-stock'] })
  await box.start()
  const lines = logger.lines.filter(({ text }) => text?.includes('reserve-stok'))
  expect(lines).toMatchObject([{ level: 'warn', text: expect.stringContaining('did you mean reserve-stock?') }])
})

test('a webhook for such a consumer is warned of when the first request comes', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  const hook = box.from(webhook({ scheme: 'standard', secret: SECRETS.standard }), {
    types: 'any',
    consumers: ['leter'],
  })
  box.consumer('letter', { note: () => undefined })
  await hook.fetch(toRequest(await sign('standard', bodyOf('standard'))))
  await waitUntil(() => logger.lines.some(({ text }) => text?.includes('did you mean letter?')))
})

test('retry and discard of an unknown consumer are refused; of a known one without such messages they change none', async () => {
  await using box = await server.open()
  box.consumer('reserve-stock', { note: () => undefined })
  const unknown = { code: 'FILTER_INVALID', message: expect.stringContaining('did you mean reserve-stock?') }
  await expect(box.admin.retry({ consumer: 'reserve-stok' })).rejects.toMatchObject(unknown)
  await expect(box.admin.discard({ consumer: 'reserve-stok' }, { reason: 'x' })).rejects.toMatchObject(unknown)
  await expect(box.admin.retry({ consumer: 'reserve-stok' }, { dryRun: true })).rejects.toMatchObject(unknown)
  expect(await box.admin.retry({ consumer: 'reserve-stock' })).toBe(0)
  // One that ran here once, and is declared no more.
  await box.sql(`insert into ob.consumer (name, retain_ms) values ('gone', 1)`)
  await box.sql(`insert into ob.subscription (consumer, type) values ('gone', 'note')`)
  expect(await box.admin.retry({ consumer: 'gone' })).toBe(0)
  await box.sql(`insert into ob.message (consumer, source, id, type, body) values ('older', '', '1', 'note', '1')`)
  expect(await box.admin.retry({ consumer: 'older' })).toBe(0)
})
