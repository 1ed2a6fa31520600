/** Consumers are listed with who runs them, and removed with all that is theirs once nobody does. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Reject } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createRuntime } from '../../src/box-options.js'
import { declareConsumer } from '../../src/inbox/consumer.js'
import { createPresence } from '../../src/inbox/presence.js'
import { open, range, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('remove_consumer')
})
afterAll(() => opened.close())

const note = (id: string, rest: object = {}) => ({ id, type: 'note', data: { id }, ...rest })

/** A box with a consumer that handles `note`, rejects `bad`, and is not started. */
async function declared(name = 'mail', options: object = {}, schema?: string) {
  const box = opened.box(schema === undefined ? {} : { schema })
  const ran: string[] = []
  const handlers = {
    note: (message: { id: string }) => void ran.push(message.id),
    bad: () => Promise.reject(new Reject('no')),
  }
  box.consumer(name, handlers, options)
  await box.migrate()
  return Object.assign(box, { ran })
}

/** A box of another process, on the same schema, that has declared nothing. */
const elsewhere = (schema: string) => opened.box({ schema })

const rowsOf = async (schema: string, consumer = 'mail') => {
  const [row] = await opened.sql(
    schema,
    `select (select count(*) from ob.work where consumer = $1)::int work, (select count(*) from ob.lane where consumer = $1)::int lane,
       (select count(*) from ob.message where consumer = $1)::int message, (select count(*) from ob.attempt where consumer = $1)::int attempt,
       (select count(*) from ob.effect where consumer = $1)::int effect, (select count(*) from ob.quarantine where consumer = $1)::int quarantine,
       (select count(*) from ob.subscription where consumer = $1)::int subscription, (select count(*) from ob.consumer where name = $1)::int consumer`,
    [consumer],
  )
  return row
}
const NOTHING = {
  work: 0,
  lane: 0,
  message: 0,
  attempt: 0,
  effect: 0,
  quarantine: 0,
  subscription: 0,
  consumer: 0,
}

describe('consumers()', () => {
  test('lists what is registered, what it takes, and whether it is paused', async () => {
    const box = await declared('mail', { order: 'key', retainMs: 60_000 })
    await box.admin.pause('mail')
    const mail = { name: 'mail', types: ['bad', 'note'], order: 'key', identity: false, retainMs: 60_000, paused: true }
    expect(await box.admin.consumers()).toEqual([{ ...mail, local: true, processes: [] }])
    expect(await elsewhere(box.schema).admin.consumers()).toEqual([{ ...mail, local: false, processes: [] }])
  })

  test('has one that was declared here and never started', async () => {
    const box = await declared()
    box.consumer('ahead', { note: () => 1 })
    expect(await box.admin.consumers()).toMatchObject([
      { name: 'ahead', types: ['note'], local: true, paused: false },
      { name: 'mail' },
    ])
  })

  test('says which processes run it, and when one was seen last', async () => {
    const box = await declared()
    await box.start()
    const [running] = await elsewhere(box.schema).admin.consumers()
    expect(running).toMatchObject({ processes: [expect.stringContaining(`:${process.pid}`)], seenAt: expect.any(Date) })
    box.consumer('late', { note: () => 1 })
    await expect.poll(async () => (await box.admin.consumers())[0]?.processes, { timeout: 30_000 }).toHaveLength(1)
    await box.stop()
    const [, stopped] = await elsewhere(box.schema).admin.consumers()
    expect(stopped).toMatchObject({ name: 'mail', processes: [], seenAt: expect.any(Date) })
    await opened.setClock(box.schema, 100_000)
    await box.start()
    const again = (await box.admin.consumers())[1]!.seenAt!
    expect(again.getTime()).toBeGreaterThan(stopped!.seenAt!.getTime() + 50_000)
    expect(await opened.sql(box.schema, `select 1 from ob.consumer_process where consumer = 'mail'`)).toHaveLength(1)
    await box.stop()
  })
})

describe('a consumer that was started by itself', () => {
  test('is run by this process until it is stopped, and the others of its box are not', async () => {
    const box = opened.box()
    const started = box.consumer('started', { note: () => 1 })
    box.consumer('other', { note: () => 1 })
    await box.migrate()
    const processes = async () =>
      (await elsewhere(box.schema).admin.consumers()).map(({ name, processes }) => [name, processes.length])
    await started.start()
    expect(await processes()).toEqual([
      ['other', 0],
      ['started', 1],
    ])
    await expect(elsewhere(box.schema).admin.removeConsumer('started')).rejects.toMatchObject({
      code: 'CONSUMER_IN_USE',
    })
    await started.stop()
    expect(await processes()).toEqual([
      ['other', 0],
      ['started', 0],
    ])
  })
})

describe('removeConsumer()', () => {
  test('removes a consumer with nothing to do, and its subscriptions; what it has handled it still knows', async () => {
    const box = await declared()
    await box.receive([note('a'), note('b')])
    await box.drain()
    expect(await elsewhere(box.schema).admin.removeConsumer('mail', { by: 'ann', reason: 'moved' })).toBe(0)
    expect(await rowsOf(box.schema)).toEqual({ ...NOTHING, message: 2 })
    expect(await box.admin.audit()).toMatchObject({
      records: [
        {
          action: 'remove-consumer',
          by: 'ann',
          detail: { consumer: 'mail', count: 0, discard: false, forget: false, reason: 'moved' },
        },
      ],
    })
    // Nobody wants the type any more, until the consumer is back.
    expect(await elsewhere(box.schema).receive(note('c'))).toMatchObject({ status: 'quarantined', reason: 'unrouted' })
    const back = await declared('mail', {}, box.schema)
    expect(await back.receive(note('a'))).toMatchObject({ status: 'duplicate' })
    await back.drain()
    expect(back.ran).toEqual(['c'])
  })

  test('refuses while something is not handled, says what, and how to go on', async () => {
    const box = await declared()
    await box.receive([note('a'), note('b'), { id: 'x', type: 'bad', data: 1 }])
    await box.admin.pause('mail')
    await box.handle(note('b', { data: 'other' }))
    const before = await rowsOf(box.schema)
    const refused = box.admin.removeConsumer('mail')
    await expect(refused).rejects.toMatchObject({ code: 'CONSUMER_HAS_MESSAGES' })
    await expect(refused).rejects.toThrow(/3 waiting, 1 in quarantine.*discard: true/)
    expect(await rowsOf(box.schema)).toEqual(before)
    expect((await box.admin.audit()).records.map(({ action }) => action)).toEqual(['pause'])
  })

  test.for(['none', 'key'] as const)('with discard, all that is not handled goes; order: %s', async (order) => {
    const box = await declared('mail', { order, retry: { attempts: 1 } })
    await box.receive([note('done', { key: 'k' }), { id: 'x', type: 'bad', key: 'k2', data: 1 }])
    await box.drain()
    await box.receive(range(25).map((n) => note(`m${n}`, { key: `k${n % 5}` })))
    await box.receive([note('done', { data: 'another body' })])
    expect(await rowsOf(box.schema)).toMatchObject({ work: 26, message: 27, quarantine: 1 })
    expect(await box.admin.removeConsumer('mail', { discard: true })).toBe(27)
    expect(await rowsOf(box.schema)).toEqual({ ...NOTHING, message: 1 })
    // What it never handled is new to it if it comes back; what it has handled is not.
    const back = await declared('mail', { order }, box.schema)
    expect(await back.receive([note('m0', { key: 'k' }), note('done', { key: 'k' })])).toMatchObject([
      { status: 'stored' },
      { status: 'duplicate' },
    ])
    await back.drain()
    expect(back.ran).toEqual(['m0'])
  })

  test('with forget, nothing is left, and every copy is new', async () => {
    const box = await declared('mail', { retainMs: 3_600_000 })
    await box.receive(range(30).map((n) => note(`m${n}`)))
    await box.drain()
    await opened.sql(
      box.schema,
      `update ob.forgotten set sent_before = now() + interval '1 day' where consumer = 'mail'`,
    )
    expect(await box.admin.removeConsumer('mail', { forget: true })).toBe(30)
    expect(await rowsOf(box.schema)).toEqual(NOTHING)
    const back = await declared('mail', {}, box.schema)
    expect(await back.receive(note('m1', { time: new Date() }))).toMatchObject({ status: 'stored' })
    await back.drain()
    expect(back.ran).toEqual(['m1'])
  })

  test('a message that was handled, and replayed, is handled as before', async () => {
    const box = await declared()
    await box.receive(note('a'))
    await box.drain()
    await box.admin.retry({ id: 'a', state: 'handled' })
    expect(await box.admin.removeConsumer('mail', { discard: true })).toBe(1)
    const back = await declared('mail', {}, box.schema)
    expect(await back.receive(note('a'))).toMatchObject({ status: 'duplicate' })
  })

  test('refuses while a process runs it, also an idle one, and one that was not stopped', async () => {
    const box = await declared()
    await box.start()
    const other = elsewhere(box.schema)
    await expect(other.admin.removeConsumer('mail', { discard: true })).rejects.toMatchObject({
      code: 'CONSUMER_IN_USE',
    })
    await expect(box.admin.removeConsumer('mail')).rejects.toThrow(`:${process.pid}`)
    await box.stop()
    expect(await other.admin.removeConsumer('mail')).toBe(0)

    const killed = await declared('lost')
    await opened.sql(
      killed.schema,
      `insert into ob.consumer_process (consumer, process, host) values ('lost', gen_random_uuid(), 'far:1')`,
    )
    await expect(killed.admin.removeConsumer('lost')).rejects.toThrow('far:1')
    await opened.setClock(killed.schema, 91_000)
    expect(await killed.admin.removeConsumer('lost')).toBe(0)
  })

  test.for(['none', 'key'] as const)('refuses while a worker holds a message; order: %s', async (order) => {
    const box = await declared('mail', { order })
    await box.receive(note('a', { key: 'k' }))
    const table = order === 'key' ? 'lane' : 'work'
    await opened.sql(
      box.schema,
      `update ob.${table} set token = gen_random_uuid(), due_at = now() + interval '1 minute'`,
    )
    await expect(box.admin.removeConsumer('mail', { discard: true })).rejects.toMatchObject({ code: 'CONSUMER_IN_USE' })
    await opened.sql(box.schema, `update ob.${table} set due_at = now() - interval '1 minute'`)
    expect(await box.admin.removeConsumer('mail', { discard: true })).toBe(1)
    expect(await rowsOf(box.schema)).toEqual(NOTHING)
  })

  test('waits for who is just storing for it, so that nothing is left that nobody sees', async () => {
    const box = await declared()
    const client = new pg.Client(opened.pool.options.connectionString)
    await client.connect()
    try {
      // A receiver that has read the subscriptions and not committed yet.
      await client.query(`begin; select from "${box.schema}".subscription`)
      await client.query(`insert into "${box.schema}".message (consumer, source, id, type, body) values ('mail', '', 'slow', 'note', '1');
        insert into "${box.schema}".work (consumer, source, id, due_at) values ('mail', '', 'slow', now())`)
      let ended = false
      const removal = box.admin.removeConsumer('mail', { discard: true }).finally(() => (ended = true))
      await expect
        .poll(
          async () =>
            (
              await opened.sql(
                box.schema,
                `select 1 from pg_locks where not granted and relation = 'ob.subscription'::regclass`,
              )
            ).length,
          { timeout: 30_000, interval: 5 },
        )
        .toBe(1)
      expect(ended).toBe(false)
      await client.query('commit')
      expect(await removal).toBe(1)
      expect(await rowsOf(box.schema)).toEqual(NOTHING)
    } finally {
      await client.end()
    }
  })

  test('a process that was out of sight registers its consumer again, and says so', async () => {
    const { schema } = await declared()
    const lines: string[] = []
    const logger = { debug() {}, info() {}, error() {}, warn: (_: object, text = '') => void lines.push(text) }
    const runtime = createRuntime({ db: fromPg(opened.pool), schema, logger })
    const mail = declareConsumer('mail', { note: () => 1 }, {}, { messages: undefined, log: logger })
    const presence = createPresence(runtime, { all: () => [mail], alive: () => [], declared: () => [mail] })
    await presence.start()
    expect(lines).toEqual([])
    await opened.sql(schema, `delete from ob.consumer_process; delete from ob.consumer`)
    await presence.seen()
    expect(lines).toEqual([expect.stringMatching(/mail was removed, and runs here/)])
    expect(await elsewhere(schema).admin.consumers()).toMatchObject([{ name: 'mail', types: ['note'] }])
    await presence.stop(1_000)
    expect(await elsewhere(schema).admin.removeConsumer('mail')).toBe(0)
  })

  test('a removal that finds the consumer back stops, and takes nothing that came since', async () => {
    const box = await declared()
    await box.receive(range(5).map((n) => note(`m${n}`)))
    const client = new pg.Client(opened.pool.options.connectionString)
    await client.connect()
    try {
      // What somebody has locked keeps the removal going.
      await client.query(`begin; select from "${box.schema}".work where id = 'm0' for update`)
      const removal = box.admin.removeConsumer('mail', { discard: true })
      removal.catch(() => undefined)
      await expect.poll(async () => (await rowsOf(box.schema))!['work'], { timeout: 30_000 }).toBe(1)
      const back = await declared('mail', {}, box.schema)
      await back.receive(note('new'))
      await client.query('commit')
      await expect(removal).rejects.toMatchObject({ code: 'CONSUMER_IN_USE' })
      await back.drain()
      expect(back.ran).toContain('new')
      expect((await back.admin.audit()).records[0]).toMatchObject({ action: 'remove-consumer' })
    } finally {
      await client.end()
    }
  })

  test('what a removal left that died halfway is removed by the next one', async () => {
    const box = await declared()
    await box.receive(range(3).map((n) => note(`m${n}`)))
    await opened.sql(box.schema, `delete from ob.consumer`)
    const other = elsewhere(box.schema)
    await expect(other.admin.removeConsumer('mail')).rejects.toMatchObject({ code: 'CONSUMER_HAS_MESSAGES' })
    expect(await other.admin.removeConsumer('mail', { discard: true })).toBe(3)
    await expect(other.admin.removeConsumer('mail')).rejects.toMatchObject({ code: 'CONSUMER_UNKNOWN' })
  })

  test('a name that nobody has is refused, with what was meant', async () => {
    const box = await declared()
    await expect(box.admin.removeConsumer('mial')).rejects.toThrow('did you mean mail?')
    for (const name of ['', 'a\0b', 'a\ud800b', 7, undefined]) {
      await expect(box.admin.removeConsumer(name as string)).rejects.toMatchObject({ code: 'CONSUMER_UNKNOWN' })
    }
    for (const options of [{ force: true }, { discard: 'yes' }, { by: 7 }, 'now']) {
      await expect(box.admin.removeConsumer('mail', options as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
    expect((await box.admin.consumers()).map(({ name }) => name)).toEqual(['mail'])
  })
})
