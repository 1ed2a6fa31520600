/** When was a message handled, and with which result: by `admin.message`, by `admin.messages`, and in SQL. */
import { describe, expect, test } from 'vitest'
import { batch, RetryLater } from 'oncebox'
import { gate, note, notes, useServer, type Bench } from '../inbox/fixture.js'

const server = useServer('handled')

const AT = new Date('2030-01-02T03:04:05.000Z')

/** Moves the clock of the box to a time by which it can be recognised. */
async function at(box: Bench): Promise<Date> {
  const [row] = await box.sql('select extract(epoch from ob.now()) * 1000 ms')
  await box.clock.advance(AT.getTime() - Number(row!['ms']))
  return AT
}

const isNear = (time: unknown): boolean => time instanceof Date && Math.abs(time.getTime() - AT.getTime()) < 60_000

type Way = [name: string, run: (box: Bench) => Promise<void>]

const ways: Way[] = [
  [
    'stored, alone',
    async (box) => {
      box.consumer('a', { note: () => ({ ok: 1 }) }, { group: { messages: 1 } })
      await box.receive(note('n1'))
      await at(box)
      await box.drain()
    },
  ],
  [
    'stored, in a group',
    async (box) => {
      box.consumer('a', { note: () => ({ ok: 1 }) })
      await box.receive(notes(5))
      await at(box)
      await box.drain()
    },
  ],
  [
    'stored, in order',
    async (box) => {
      box.consumer('a', { note: () => ({ ok: 1 }) }, { order: 'key' })
      await box.receive(notes(5, { key: 'k' }))
      await at(box)
      await box.drain()
    },
  ],
  [
    'on arrival',
    async (box) => {
      box.consumer('a', { note: () => ({ ok: 1 }) })
      await at(box)
      await box.handle(note('n1'))
    },
  ],
  [
    'on arrival, in a group',
    async (box) => {
      box.consumer('a', { note: () => ({ ok: 1 }) })
      await at(box)
      await box.handle(notes(5))
    },
  ],
  [
    'on arrival, after a failure',
    async (box) => {
      let failures = 1
      box.consumer(
        'a',
        {
          note() {
            if (failures-- > 0) throw new Error('not yet')
            return { ok: 1 }
          },
        },
        { mode: 'inline' },
      )
      await box.handle(note('n1'))
      await at(box)
      await box.handle(note('n1'))
    },
  ],
  [
    'on arrival, after an effect',
    async (box) => {
      box.consumer('a', {
        async note(_, { effect }) {
          await effect('call', () => 1)
          return { ok: 1 }
        },
      })
      await at(box)
      await box.handle(note('n1'))
    },
  ],
  [
    'in a transaction of the caller',
    async (box) => {
      await at(box)
      const client = await server.pool.connect()
      try {
        await client.query('begin')
        await box.once(client, 'a', { id: 'n1', type: 'note' }, () => ({ ok: 1 }))
        await client.query('commit')
      } finally {
        client.release()
      }
    },
  ],
]

describe('a handled message tells when, and with which result', () => {
  test.for(ways)('%s', async ([, run]) => {
    await using box = await server.open()
    await run(box)
    const [entry] = await box.admin.message({ id: 'n1' })
    expect(entry).toMatchObject({ state: 'handled', result: { ok: 1 } })
    expect(isNear(entry!.handledAt)).toBe(true)
    const page = await box.admin.messages({ id: 'n1' })
    expect(page.entries[0]).toMatchObject({ state: 'handled', result: { ok: 1 }, handledAt: entry!.handledAt })
    const [row] = await box.sql(`select * from ob.messages where id = 'n1'`)
    expect(row).toMatchObject({ consumer: 'a', state: 'handled', attempts: 0, error: null })
    expect(isNear(row!['handled_at'])).toBe(true)
  })

  test('batch handlers have no result, and a time', async () => {
    await using box = await server.open()
    box.consumer('a', { note: batch(() => undefined) })
    await at(box)
    await box.handle(notes(3))
    await box.receive(notes(3, { source: 'stored' }))
    await box.drain()
    const rows = await box.sql('select state, handled_at from ob.messages')
    expect(rows).toHaveLength(6)
    expect(rows.every((row) => isNear(row['handled_at']))).toBe(true)
  })
})

test('what is not handled has no time, nor a result', async () => {
  await using box = await server.open()
  box.consumer('a', {
    note({ id }) {
      if (id === 'n1') throw new RetryLater({ afterMs: 60_000 })
      throw new Error('never')
    },
  }, { retry: { attempts: 1 } }) // prettier-ignore
  await box.receive(notes(2))
  await box.drain()
  const entries = [...(await box.admin.message({ id: 'n1' })), ...(await box.admin.message({ id: 'n2' }))]
  expect(entries.map(({ state, handledAt, result }) => ({ state, handledAt, result }))).toEqual([
    { state: 'pending', handledAt: undefined, result: undefined },
    { state: 'dead', handledAt: undefined, result: undefined },
  ])
  expect(await box.sql('select id, state, handled_at, error from ob.messages order by id')).toEqual([
    { id: 'n1', state: 'pending', handled_at: null, error: null },
    { id: 'n2', state: 'dead', handled_at: null, error: 'never' },
  ])
})

test('a replay has no time until it is handled again, and then its own', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.receive(note('n1'))
  await box.drain()
  const [first] = await box.admin.message({ id: 'n1' })
  await box.admin.retry({ id: 'n1', state: 'handled' })
  const [pending] = await box.admin.message({ id: 'n1' })
  expect(pending).toMatchObject({ state: 'pending' })
  expect(pending!.handledAt).toBeUndefined()
  await at(box)
  await box.drain()
  const [second] = await box.admin.message({ id: 'n1' })
  expect(isNear(second!.handledAt)).toBe(true)
  expect(second!.handledAt!.getTime()).toBeGreaterThan(first!.handledAt!.getTime())
})

test('a group that commits early notes the time of what ran, and of nothing else', async () => {
  await using box = await server.open()
  const slow = gate()
  let calls = 0
  box.consumer('a', {
    async note() {
      // The first takes long, so the others get another transaction.
      if (calls++ === 0) await slow.opened
    },
  }, { group: { messages: 10, ms: 5 } }) // prettier-ignore
  const handled = box.handle(notes(5))
  setTimeout(() => slow.open(), 100)
  await handled
  expect(await box.sql('select count(*)::int n from ob.handled')).toEqual([{ n: 5 }])
  expect(await box.sql('select 1 from ob.messages where handled_at is null')).toEqual([])
})

test('retention forgets the time with the message, and an archive is shown both', async () => {
  const shown: unknown[] = []
  await using box = await server.open({
    hooks: { archive: async (entries) => void shown.push(...entries.map(({ handledAt, result }) => [handledAt, result])) },
  }) // prettier-ignore
  box.consumer('a', { note: () => 7 }, { retainMs: 60_000 })
  await box.receive(note('n1'))
  await box.drain()
  const [entry] = await box.admin.message({ id: 'n1' })
  await box.clock.advance(3_600_000)
  expect(await box.admin.prune()).toBe(1)
  expect(shown).toEqual([[entry!.handledAt, 7]])
  expect(await box.sql('select 1 from ob.handled')).toEqual([])
})

test('a message that was stored before rows had a number is handled all the same', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => 7 })
  await box.receive(notes(3))
  await box.sql('update ob.message set n = null')
  await box.drain()
  await box.handle(note('n4'))
  const rows = await box.sql('select id, state, handled_at is null unknown from ob.messages order by id')
  expect(rows).toEqual([
    { id: 'n1', state: 'handled', unknown: true },
    { id: 'n2', state: 'handled', unknown: true },
    { id: 'n3', state: 'handled', unknown: true },
    { id: 'n4', state: 'handled', unknown: false },
  ])
})
