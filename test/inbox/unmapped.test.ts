/** A function of the receiver's that fails is no fault of the message: nothing that was acknowledged is lost by it. */
import type { Deliver, Incoming, Source } from 'oncebox'
import { describe, expect, test } from 'vitest'
import { HTTP } from '../../src/brokers/cloudevents.js'
import { toIncoming, type ReadOptions } from '../../src/brokers/event.js'
import { waitUntil } from '../support/wait.js'
import { recorder, useServer, type Bench } from './fixture.js'

const server = useServer('unmapped')
const DAY = 86_400_000

interface Raw {
  readonly id: string
  readonly body: string
}

/** A broker whose adapter reads with these options, as all of them do. */
async function attach(box: Bench, options: ReadOptions<Raw>, from: Parameters<Bench['from']>[1] = {}) {
  let deliver: Deliver | undefined
  const source: Source = { name: 'broker', start: async (given) => void (deliver = given), stop: async () => {} }
  box.from(source, from)
  await box.start()
  await waitUntil(() => deliver !== undefined, { what: 'the source' })
  const read = (raw: Raw): Incoming =>
    toIncoming(raw, { headers: { own: 'yes' }, id: raw.id, source: 'shop', type: 'raw', body: Buffer.from(raw.body) }, HTTP, options) // prettier-ignore
  return (...raws: Raw[]) => deliver!(raws.map(read))
}

const broken = (raw: Raw, message: Incoming): Incoming => {
  const data = JSON.parse(raw.body) as { deep?: { key: string } }
  return { ...message, type: 'paid', key: data.deep!.key }
}
const fails = (): never => {
  throw new Error('no luck')
}

describe.for<[what: string, options: ReadOptions<Raw>, detail: string]>([
  ['a `map` that throws', { map: broken }, 'map threw: TypeError'],
  ['a `type` that throws', { type: fails }, 'type threw: Error: no luck'],
  ['a `type` that throws beside a `map`', { type: fails, map: (_, message) => message }, 'type threw: Error: no luck'],
  ['a `map` that returns no message', { map: () => undefined as never }, 'map returned no message'],
])('%s', ([, options, detail]) => {
  test.for([['paid'], undefined] as const)(
    'leaves the message as it came, with its id and for ever, whatever the source may send (%s)',
    async (types) => {
      const logger = recorder()
      await using box = await server.open({ logger })
      box.consumer('a', { paid: (message, { tx }) => box.write(tx, 'a', message), raw: () => undefined })
      const quarantine = { maxRows: 100 }
      const deliver = await attach(box, options, { quarantine, ...(types && { types: [...types] }) })
      const bodies = ['{"shallow":1}', '{"shallow":2}']
      const outcomes = await deliver(...bodies.map((body, n) => ({ id: `m${n}`, body })))
      expect(outcomes).toMatchObject([
        { id: 'm0', ack: true, status: 'quarantined', reason: 'unmapped' },
        { id: 'm1', ack: true, status: 'quarantined', reason: 'unmapped' },
      ])
      const kept = bodies.map((body, n) => ({ id: `m${n}`, source: 'shop', reason: 'unmapped', body }))
      expect(await box.quarantine()).toMatchObject(kept)
      expect((await box.quarantine())[0]!.detail).toContain(detail)
      expect(logger.lines.filter(({ text }) => text === 'message quarantined')).toMatchObject([
        { about: { id: 'm0', reason: 'unmapped', via: 'broker', why: expect.stringContaining(detail) as string } },
        { about: { id: 'm1', reason: 'unmapped' } },
      ])
      await box.clock.advance(400 * DAY)
      await box.admin.prune()
      expect(await box.admin.message({ id: 'm0' })).toMatchObject([{ state: 'quarantined', reason: 'unmapped' }])
    },
  )
})

test('the words of JSON.parse, which quote the message, are not told', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  const deliver = await attach(box, { map: (raw) => JSON.parse(raw.body) as never })
  await deliver({ id: 'm1', body: 'c4n4ry' })
  expect(await box.quarantine()).toMatchObject([{ id: 'm1', detail: 'map threw: SyntaxError' }])
  expect(JSON.stringify(logger.lines)).not.toContain('c4n4ry')
})

test('an unmapped message is not released as it is: it may have another id, type or source', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  box.consumer('a', { '*': (message, { tx }) => box.write(tx, 'a', message, message.type) })
  const deliver = await attach(box, { map: broken })
  await deliver({ id: 'm1', body: '{"shallow":1}' })
  expect(await box.admin.retry({ reason: 'unmapped' })).toBe(0)
  expect(logger.lines.filter(({ text }) => text?.startsWith('unmapped messages are not released'))).toHaveLength(1)
  expect(await box.quarantine()).toMatchObject([{ id: 'm1' }])
})

test('what a mended `map` makes of it is handed in, once, and then it is discarded', async () => {
  await using box = await server.open()
  box.consumer('a', { paid: (message, { tx }) => box.write(tx, 'a', message, message.key) })
  const deliver = await attach(box, { map: broken })
  await deliver({ id: 'm1', body: '{"shallow":1}' })
  for (let times = 0; times < 2; times++) {
    const { entries } = await box.admin.messages({ reason: 'unmapped' })
    expect(entries).toMatchObject([
      { message: { id: 'm1', source: 'shop', data: { shallow: 1 }, headers: { own: 'yes' } } },
    ])
    const { id, source, data, headers } = entries[0]!.message
    await box.receive({ id, source, type: 'paid', key: 'k', data, headers })
  }
  expect(await box.admin.discard({ reason: 'unmapped', id: 'm1' }, { reason: 'handed in' })).toBe(1)
  await box.drain()
  expect(await box.effects()).toEqual([{ consumer: 'a', id: 'm1', note: 'k' }])
})

test('a broker that delivers it again once `map` is mended delivers it as new', async () => {
  await using box = await server.open()
  box.consumer('a', { paid: (message, { tx }) => box.write(tx, 'a', message) })
  let mended = false
  const map = (raw: Raw, message: Incoming): Incoming => (mended ? { ...message, type: 'paid' } : broken(raw, message))
  const deliver = await attach(box, { map })
  await deliver({ id: 'm1', body: '{}' })
  mended = true
  expect(await deliver({ id: 'm1', body: '{}' })).toMatchObject([{ status: 'stored' }])
  await box.drain()
  expect(await box.ids()).toEqual(['m1'])
})
