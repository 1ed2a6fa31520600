/** Several processes declare one consumer, or receive for one that they have not declared. */
import { createBox, type ConsumerOptions, type Incoming, type MessageMap, type Outcome, type Source } from 'oncebox'
import { link } from 'oncebox/link'
import { fromPg } from 'oncebox/pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('registry')

/** Another process on the same schema; with options, one that declares the consumer `a`. */
function processOf(box: Bench, options?: ConsumerOptions<MessageMap>) {
  const logger = recorder()
  const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger })
  if (options) {
    other.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, options)
  }
  const warnings = () => logger.lines.filter(({ level }) => level === 'warn').map(({ about }) => about)
  return Object.assign(other, { warnings })
}

/** A source that delivers what the test hands it. */
function handSource() {
  let to: (batch: Incoming[]) => Promise<readonly Outcome[]> = () => Promise.reject(new Error('not started'))
  const source: Source = {
    async start(deliver) {
      to = deliver
    },
    async stop() {},
  }
  return { source, deliver: (batch: Incoming[]) => to(batch) }
}

describe('a consumer with a business key', () => {
  const identity = (message: { data: unknown }) => (message.data as { invoice: string }).invoice
  const paid = (id: string, invoice: string): Incoming => note(id, { data: { invoice } })

  test('is not guessed for by a process that has not declared it, or without its key', async () => {
    await using box = await server.open()
    const worker = processOf(box, { identity })
    await worker.migrate()
    const refused = { code: 'IDENTITY_UNKNOWN' }
    for (const receiver of [processOf(box), processOf(box, {})]) {
      await expect(receiver.receive(paid('1', 'i'))).rejects.toMatchObject(refused)
    }
    const client = await server.pool.connect()
    await client.query('begin')
    const once = processOf(box).once(client, 'a', { id: '1', type: 'note', data: { invoice: 'i' } }, () => 1)
    await expect(once).rejects.toMatchObject(refused)
    await client.query('commit')
    client.release()
    expect(await box.sql('select 1 from ob.message')).toEqual([])
    // What is for others is none of its business.
    expect(await processOf(box).receive({ id: 'x', type: 'other', data: 1 })).toMatchObject({ reason: 'unrouted' })

    const receiver = processOf(box, { identity })
    expect(await receiver.receive([paid('1', 'i'), paid('2', 'i')])).toMatchObject([
      { status: 'stored' },
      { status: 'duplicate' },
    ])
    await worker.drain()
    expect(await box.ids()).toEqual(['1'])
  })

  test('gets nothing acknowledged away by a source of a process that lacks it', async () => {
    await using box = await server.open()
    await processOf(box, { identity }).migrate()
    const { source, deliver } = handSource()
    const receiver = processOf(box)
    receiver.from(source)
    await receiver.start()
    await expect(deliver([paid('1', 'i')])).rejects.toMatchObject({ code: 'IDENTITY_UNKNOWN' })
    await receiver.stop()
  })

  test('is not run on arrival by a process that declares it without its key', async () => {
    await using box = await server.open()
    const worker = processOf(box, { mode: 'inline', identity })
    await worker.migrate()
    expect(await worker.handle(paid('1', 'i'))).toMatchObject({ status: 'handled' })

    const refused = { code: 'IDENTITY_UNKNOWN' }
    const { source, deliver } = handSource()
    const older = processOf(box, { mode: 'inline' })
    // It takes the same messages, and has them stored where they come from a source.
    older.consumer('b', { audited: () => undefined, note: () => undefined })
    older.from(source)
    await older.start()
    await expect(older.handle(paid('2', 'i'))).rejects.toMatchObject(refused)
    await expect(older.handle([paid('3', 'i'), paid('4', 'i')])).rejects.toMatchObject(refused)
    await expect(deliver([paid('5', 'i')])).rejects.toMatchObject(refused)
    await expect(deliver([{ ...paid('6', 'i'), redelivered: true }])).rejects.toMatchObject(refused)
    const client = await server.pool.connect()
    await client.query('begin')
    const once = older.once(client, 'a', { id: '7', type: 'note', data: { invoice: 'i' } }, () => 1)
    await expect(once).rejects.toMatchObject(refused)
    await client.query('commit')
    client.release()
    // What is for others is none of its business.
    expect(await older.handle({ id: 'x', type: 'audited', data: 1 })).toMatchObject({ status: 'handled' })
    await older.stop()
    expect(await box.ids()).toEqual(['1'])
    expect(await box.sql(`select id from ob.message where type = 'note'`)).toEqual([{ id: expect.any(String) }])
  })

  test('gets its events over a link inside one database only where its key is known', async () => {
    await using box = await server.open()
    await using sender = await server.open()
    const worker = processOf(box, { identity })
    await worker.migrate()
    const send = async (to: ReturnType<typeof processOf>): Promise<void> => {
      const relay = createBox({ db: fromPg(server.pool), schema: sender.schema, source: 'shop', logger: recorder() })
      relay.to(link({ to, name: 'link' }), { retry: () => 0 })
      await relay.migrate()
      await relay.drain().catch(() => undefined)
    }
    const client = await server.pool.connect()
    await client.query('begin')
    const data = { invoice: 'i' }
    await sender.sendMany(client, [{ type: 'note', data, id: '1' }, { type: 'note', data, id: '2' }]) // prettier-ignore
    await client.query('commit')
    client.release()
    const other = createBox({ db: fromPg(server.pool), schema: sender.schema, source: 'shop', logger: recorder() })
    const receive = processOf(box)
    other.to(link({ to: receive, name: 'link' }))
    await other.migrate()
    // The destination refuses, which is no fault of the events.
    await other.drain().catch(() => undefined)
    expect(await box.sql('select 1 from ob.message')).toEqual([])
    await sender.clock.advance(3_600_000)
    await send(worker)
    await worker.drain()
    expect(await box.ids()).toEqual(['1'])
  })
})

describe('options that differ between processes', () => {
  test('are warned about, with both values and who declared the other', async () => {
    await using box = await server.open()
    await processOf(box, { order: 'key', retainMs: 3_600_000 }).migrate()
    const second = processOf(box, { untimed: 'quarantine', identity: ({ id }) => id })
    await second.migrate()
    const declared = { host: expect.any(String), pid: process.pid, at: expect.any(String) }
    expect(second.warnings()).toMatchObject([
      { consumer: 'a', option: 'order', here: 'none', there: 'key', declared },
      { option: 'retainMs', here: 30 * 86_400_000, there: 3_600_000 },
      { option: 'untimed', here: 'quarantine', there: 'accept' },
      { option: 'identity', here: true, there: false },
    ])
    const same = processOf(box, { order: 'key', untimed: 'quarantine', identity: ({ id }) => id })
    await same.migrate()
    expect(same.warnings()).toEqual([])
  })

  test('leave a consumer ordered for every receiver as long as one process says so', async () => {
    await using box = await server.open()
    await processOf(box, { order: 'key' }).migrate()
    const forgetful = processOf(box, {})
    await forgetful.migrate()
    const lanes = () => box.sql('select lane from ob.work order by seq')
    for (const [n, receiver] of [processOf(box), forgetful, processOf(box, { order: 'key' })].entries()) {
      await receiver.receive(note(`${n}`, { key: 'k' }))
    }
    expect(await lanes()).toEqual([{ lane: 'k' }, { lane: 'k' }, { lane: 'k' }])

    // A deploy takes it back on purpose: the word of the old version runs out.
    await box.clock.advance(6 * 60_000)
    await forgetful.migrate()
    await forgetful.receive(note('3', { key: 'k' }))
    expect(await lanes()).toEqual([{ lane: 'k' }, { lane: 'k' }, { lane: 'k' }, { lane: null }])
    await forgetful.drain()
    expect((await box.ids()).sort()).toEqual(['0', '1', '2', '3'])
  })
})

describe.for(['box.start()', 'consumer.start()'] as const)('a process that runs by %s', (way) => {
  test('keeps its word for as long as it runs, whatever its janitor does', async () => {
    await using box = await server.open()
    const worker = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    const consumer = worker.consumer('a', { note: () => 1 }, { identity: ({ id }) => id, order: 'key' })
    // The janitor goes by another clock, which stands still.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const runner = way === 'box.start()' ? worker : consumer
    await runner.start()
    const forgetful = processOf(box, {})
    const holds = async (word: 'identity' | 'ordered'): Promise<boolean> =>
      (await box.sql(`select ${word}_until > ob.now() + interval '4 minutes' holds from ob.consumer`))[0]!['holds'] ===
      true
    for (let minutes = 0; minutes < 8; minutes += 4) {
      await box.clock.advance(4 * 60_000)
      await vi.advanceTimersByTimeAsync(60_000)
      await waitUntil(async () => (await holds('identity')) && (await holds('ordered')), {
        what: 'the word to be renewed',
      })
    }
    await forgetful.migrate()
    await expect(forgetful.receive(note('1'))).rejects.toMatchObject({ code: 'IDENTITY_UNKNOWN' })

    await runner.stop()
    await box.clock.advance(6 * 60_000)
    await vi.advanceTimersByTimeAsync(600_000)
    await forgetful.migrate()
    expect(await forgetful.receive(note('1'))).toMatchObject({ status: 'stored' })
  })
})

describe('a consumer that is registered while a message of its type comes in', () => {
  for (const door of ['receive', 'handle'] as const) {
    test(`gets it, though ${door} had found nobody: it does not stay in quarantine`, async () => {
      await using box = await server.open()
      const receiver = processOf(box)
      // So that handle() has something that it could run.
      if (door === 'handle') receiver.consumer('other', { else() {} })
      const worker = processOf(box, {})
      const holder = await server.pool.connect()
      await holder.query(`begin; lock table ${box.schema}.quarantine in exclusive mode`)
      const arrival = receiver[door](note('1'))
      await waitUntil(() => isWaiting(box), { what: 'the receiver to put it in quarantine' })
      await worker.start()
      await holder.query('commit')
      holder.release()
      expect(await arrival).toMatchObject({ status: 'stored', ack: true, consumers: [{ consumer: 'a' }] })
      await waitUntil(async () => (await box.ids()).length > 0, { what: 'the message to be handled' })
      await worker.stop()
      expect(await box.ids()).toEqual(['1'])
      expect(await box.quarantine()).toEqual([])
    })
  }

  async function isWaiting(box: Bench): Promise<boolean> {
    const rows = await box.sql(`select 1 from pg_locks where not granted and relation = 'ob.quarantine'::regclass`)
    return rows.length > 0
  }
})
