/** A filter by data reads bodies, each of which may have a megabyte: a few in one statement, and none that cannot fit. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { open, silent, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('bodies')
})
afterAll(() => opened.close())

interface Answered {
  readonly body?: unknown
  readonly bytes?: unknown
}

/** 450 dead messages, 450 in quarantine and one that could not be decoded; and all that the database has answered. */
async function reading() {
  const first = opened.box()
  const { schema } = first
  await first.migrate()
  await opened.sql(
    schema,
    `with m as (insert into ob.message (consumer, source, id, type, body)
       select 'c', 's', 'm' || n, 't', '{"n":' || n || '}' from generate_series(1, 450) n returning id)
     insert into ob.work (consumer, source, id, due_at, parked) select 'c', 's', id, 'infinity', 'dead' from m`,
  )
  await first.receive(Array.from({ length: 450 }, (_, n) => ({ id: `q${n}`, type: 't', data: { n: -n } })))
  await first.receive({ id: 'bytes', type: 't', body: new Uint8Array([0xff]) })
  const answers: (readonly Answered[])[] = []
  const driver = fromPg(opened.pool)
  const query = driver.query.bind(driver)
  driver.query = async (...given) => {
    const rows = await query(...given)
    answers.push(rows)
    return rows
  }
  const box = createBox({ db: driver, schema, logger: silent })
  box.consumer('c', { t: () => undefined })
  const most = (has: (row: Answered) => boolean): number => Math.max(...answers.map((rows) => rows.filter(has).length))
  return {
    box,
    mostBodies: () => most(({ body }) => body != null),
    mostBytes: () => most(({ bytes }) => bytes != null),
  }
}

test('to list messages by their data', async () => {
  const { box, mostBodies, mostBytes } = await reading()
  const { entries } = await box.admin.messages({ data: { n: 7 } })
  expect(entries.map(({ message }) => message.id)).toEqual(['m7'])
  expect([mostBodies(), mostBytes()]).toEqual([100, 0])
})

test.for(['retry', 'discard'] as const)('to %s messages by their data', async (verb) => {
  const { box, mostBodies, mostBytes } = await reading()
  expect(await box.admin[verb]({ data: { n: 300 } }, { reason: 'test', dryRun: true })).toBe(1)
  expect([mostBodies(), mostBytes()]).toEqual([100, 0])
})

test('what could not be decoded is listed with its bytes where no data is asked for', async () => {
  const { box } = await reading()
  expect((await box.admin.messages({ id: 'bytes' })).entries).toMatchObject([{ bytes: Buffer.from([0xff]) }])
})
