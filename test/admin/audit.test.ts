/** What people do to messages leaves a row that says who, what, how many and why. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RetryLater } from 'oncebox'
import { open, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('admin_audit')
})
afterAll(() => opened.close())

const signed = { by: 'alice', reason: 'ticket 7' }

/** A box with one dead message, one that waits for an answer, and one that nobody takes. */
async function troubled() {
  const box = opened.box()
  box.consumer('pay', {
    fails: () => Promise.reject(new Error('no')),
    later: () => Promise.reject(new RetryLater({ afterMs: 3_600_000 })),
    async charges(_, { effect }) {
      await effect('charge', () => Promise.reject(new Error('nobody knows')), { onUnknown: 'park' })
    },
  }, { retry: { attempts: 1 } }) // prettier-ignore
  await box.migrate()
  await box.receive(['fails', 'later', 'charges', 'unknown'].map((type) => ({ id: type, type, data: 1 })))
  await box.drain()
  return box
}

test('a removal of a sink that fails halfway is on record, with what it had removed', async () => {
  const box = opened.box()
  await box.migrate()
  await opened.sql(
    box.schema,
    `insert into ob.sink (name) values ('old');
     create function ob.refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
     create trigger refuse before delete on ob.outbox for each row execute function ob.refuse()`,
  )
  const client = await opened.pool.connect()
  await client.query('begin')
  await box.send(client, 'sent', 1, { id: 'e1' })
  await client.query('commit')
  client.release()
  await expect(box.admin.removeSink('old', signed)).rejects.toThrow('not now')
  const { records } = await box.admin.audit()
  expect(records).toMatchObject([{ action: 'remove-sink', by: 'alice', detail: { sink: 'old', count: 1 } }])
})

test('every change that a person makes is on record, with who, what, how many and why', async () => {
  const box = await troubled()
  await box.admin.retry({ state: 'dead' }, { ...signed, limit: 5 })
  await box.drain()
  await box.admin.discard({ state: 'dead' }, signed)
  await box.admin.pause('pay', signed)
  await box.admin.resume('pay', signed)
  await box.admin.answer({ consumer: 'pay', id: 'charges', effect: 'charge' }, { happened: false }, signed)
  await box.admin.prune(signed)
  await opened.sql(box.schema, `insert into ob.sink (name) values ('old')`)
  await box.admin.removeSink('old', signed)
  await box.admin.markHandled('pay', ['elsewhere'], { ...signed, source: 'old' })
  await box.admin.removeConsumer('pay', { ...signed, discard: true })

  const { records } = await box.admin.audit()
  const { reason } = signed
  expect(records.map(({ action, detail }) => [action, detail]).reverse()).toEqual([
    ['retry', { filter: { state: 'dead' }, count: 1, limit: 5, reason }],
    ['discard', { filter: { state: 'dead' }, count: 1, reason }],
    ['pause', { consumer: 'pay', reason }],
    ['resume', { consumer: 'pay', reason }],
    ['answer', { consumer: 'pay', source: '', id: 'charges', effect: 'charge', happened: false, reason }],
    ['prune', { count: 0, reason }],
    ['remove-sink', { sink: 'old', count: 0, reason }],
    ['mark-handled', { consumer: 'pay', given: 1, count: 1, source: 'old', reason }],
    ['remove-consumer', { consumer: 'pay', count: 3, discard: true, forget: false, reason }],
  ])
  const [{ me } = {}] = await opened.sql(box.schema, 'select session_user as me')
  for (const record of records) expect(record).toMatchObject({ by: 'alice', role: me, login: me, at: expect.any(Date) })
})

test('a change that nobody signed names the role of the database', async () => {
  const box = await troubled()
  const role = `${box.schema}_on_call`
  await opened.sql(box.schema, `create role ${role} superuser`)
  await box.admin.pause('pay')
  const client = await opened.pool.connect()
  await client.query(`set role ${role}`)
  await client.query(`insert into "${box.schema}".audit (action, detail) values ('by hand', 'not JSON')`)
  client.release(true)
  const { records } = await box.admin.audit()
  expect(records.map(({ action, by, role: of }) => [action, by, of])).toEqual([
    ['by hand', undefined, role],
    ['pause', undefined, records[1]!.login],
  ])
  expect(records[0]!.login).toBe(records[1]!.login)
  await opened.sql(box.schema, `drop role ${role}`)
})

test('the audit is read a page at a time, newest first', async () => {
  const box = await troubled()
  for (let n = 0; n < 5; n++) await box.admin[n % 2 ? 'resume' : 'pause']('pay', { by: `p${n}` })
  const seen: (string | undefined)[] = []
  let cursor: string | undefined
  let pages = 0
  do {
    const page = await box.admin.audit({ cursor, limit: 2 })
    seen.push(...page.records.map(({ by }) => by))
    cursor = page.cursor
    pages++
  } while (cursor !== undefined)
  expect(seen).toEqual(['p4', 'p3', 'p2', 'p1', 'p0'])
  expect(pages).toBe(3)
  await expect(box.admin.audit({ cursor: 'x' })).rejects.toMatchObject({ code: 'CURSOR_INVALID' })
})

let refusing: ReturnType<typeof troubled> | undefined
test.for<[what: string, options: object]>([
  ['nobody', { by: '' }],
  ['a number', { by: 7 }],
  ['NUL', { by: 'a\0b' }],
  ['a reason that is no text', { reason: 7 }],
  ['an unknown option', { buy: 'alice' }],
])('a change signed with %s is refused before anything happens', async ([, options]) => {
  const box = await (refusing ??= troubled())
  const refused = { code: 'OPTION_INVALID' }
  await expect(box.admin.pause('pay', options)).rejects.toMatchObject(refused)
  await expect(box.admin.retry('all', options)).rejects.toMatchObject(refused)
  await expect(box.admin.prune(options)).rejects.toMatchObject(refused)
  await expect(box.admin.removeSink('old', options)).rejects.toMatchObject(refused)
  await expect(box.admin.markHandled('pay', ['x'], options)).rejects.toMatchObject(refused)
  await expect(box.admin.removeConsumer('pay', { ...options, discard: true })).rejects.toMatchObject(refused)
  const at = { consumer: 'pay', id: 'charges', effect: 'charge' }
  await expect(box.admin.answer(at, { happened: false }, options)).rejects.toMatchObject(refused)
  expect(await box.admin.audit()).toEqual({ records: [] })
  expect((await box.admin.status()).consumers['pay']).toMatchObject({ dead: 1, quarantined: 1 })
})
