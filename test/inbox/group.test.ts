/** Groups: handlers share a transaction, and none of them can hurt, double or take down its neighbours. */
import { type Message, Reject } from 'oncebox'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { type Bench, expectOnlySecondDead, misbehave, note, notes, useServer } from './fixture.js'

const server = useServer('group', { max: 20 })

async function transactions(box: Bench): Promise<string[][]> {
  const byTransaction = new Map<string, string[]>()
  for (const { id, note: xid } of await box.effects()) {
    byTransaction.set(xid, [...(byTransaction.get(xid) ?? []), id])
  }
  return [...byTransaction.values()]
}

async function writeXid(box: Bench, tx: pg.PoolClient, message: Message): Promise<void> {
  const { rows } = await tx.query<{ xid: string }>('select pg_current_xact_id()::text xid')
  await box.write(tx, 'a', message, rows[0]!.xid)
}

describe('sharing', () => {
  test('fast handlers share a transaction', async () => {
    await using box = await server.open()
    // A generous time, so that a busy machine splits nothing, and nobody to share the messages with.
    const options = { group: { ms: 10_000 }, concurrency: 1 }
    box.consumer('a', { note: (message, { tx }) => writeXid(box, tx, message) }, options)
    await box.receive(notes(20))
    await box.drain()
    expect((await transactions(box)).map((ids) => ids.length)).toEqual([20])
  })

  test.for([
    [1, [1, 1, 1, 1, 1, 1, 1]],
    [3, [3, 3, 1]],
    [7, [7]],
  ] as const)('at most %i messages share a transaction', async ([messages, sizes]) => {
    await using box = await server.open()
    box.consumer(
      'a',
      { note: (message, { tx }) => writeXid(box, tx, message) },
      { group: { messages, ms: 10_000 }, concurrency: 1 },
    )
    await box.receive(notes(7))
    await box.drain()
    expect((await transactions(box)).map((ids) => ids.length)).toEqual(sizes)
    expect(await box.ids()).toEqual(notes(7).map(({ id }) => id))
  })

  test('handlers slower than group.ms get a transaction of their own', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await tx.query('select pg_sleep(0.02)')
          await writeXid(box, tx, message)
        },
      },
      { group: { ms: 10 } },
    )
    await box.receive(notes(6))
    await box.drain()
    expect((await transactions(box)).map((ids) => ids.length)).toEqual([1, 1, 1, 1, 1, 1])
  })

  test('one that throws fails alone, after one attempt; the others are handled once', async () => {
    await using box = await server.open()
    await misbehave(box, () => {
      throw Object.assign(new Error('no'), { code: 'MINE' })
    })
    await expectOnlySecondDead(box, 'MINE')
    expect((await box.fate('n2')).error).toMatchObject({ name: 'Error', message: 'no' })
  })

  test.for([false, true])(
    'where many fail, groups become small enough to go through (together: %s)',
    async (together) => {
      await using box = await server.open()
      box.consumer(
        'a',
        {
          note(message, { tx }) {
            if (Number(message.id.slice(1)) % 10 === 0) throw new Reject('every tenth')
            return writeXid(box, tx, message)
          },
        },
        { group: { messages: 40, ms: 10_000, together }, concurrency: 1 },
      )
      await box.receive(notes(200))
      await box.drain()
      const sizes = (await transactions(box)).map((ids) => ids.length)
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(180)
      expect(sizes.filter((size) => size > 1).length).toBeGreaterThan(5)
    },
  )

  test.for(['none', 'key'] as const)(
    'one that has failed before takes no others down with it (order: %s)',
    async (order) => {
      await using box = await server.open()
      const calls = new Map<string, number>()
      box.consumer(
        'a',
        {
          note({ id }) {
            calls.set(id, (calls.get(id) ?? 0) + 1)
            if (id === 'z') throw new Error('no')
          },
        },
        { order, group: { ms: 10_000 }, concurrency: 1, retry: { attempts: 5, baseMs: 1_000, jitter: 'none' } },
      )
      // The last of its group, by its key.
      await box.receive([note('a', { key: 'a' }), note('z', { key: 'z' })])
      await box.drain()
      const fresh = notes(6).map((one) => ({ ...one, key: one.id }))
      await box.receive(fresh)
      await box.clock.advance(60_000)
      await box.drain()
      expect(await box.fate('z')).toMatchObject({ state: 'pending', attempts: 2 })
      expect(fresh.map(({ id }) => calls.get(id!))).toEqual([1, 1, 1, 1, 1, 1])
    },
  )

  // Behind the others it would be given back, uncounted, with the rest of every claim that turns out slow.
  test('what has failed before runs ahead of the rest of its claim, where there is no order', async () => {
    await using box = await server.open()
    const ran: string[] = []
    box.consumer(
      'a',
      {
        note({ id, attempt }) {
          ran.push(id)
          if (id === 'z' && attempt === 1) throw new Error('the first time')
        },
      },
      { group: { ms: 10_000 }, concurrency: 1, retry: { attempts: 5, baseMs: 1_000, jitter: 'none' } },
    )
    await box.receive(note('z', { key: 'z' }))
    await box.drain()
    await box.receive(notes(6).map((one) => ({ ...one, key: one.id })))
    await box.clock.advance(60_000)
    await box.drain()
    expect(ran).toEqual(['z', 'z', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6'])
  })

  test('the heads of lanes that have failed before share a transaction, ahead of what is behind them', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (message.id.endsWith('1') && message.attempt === 1) throw new Error('the first time')
          await writeXid(box, tx, message)
        },
      },
      { order: 'key', group: { ms: 10_000 }, concurrency: 1, retry: { attempts: 5, baseMs: 1_000, jitter: 'none' } },
    )
    const keys = ['a', 'b', 'c', 'd']
    await box.receive(keys.flatMap((key) => [1, 2, 3].map((n) => note(`${key}${n}`, { key }))))
    await box.drain()
    expect(await box.ids()).toEqual([])
    await box.clock.advance(60_000)
    await box.drain()
    const ran = await box.ids()
    for (const key of keys) expect(ran.filter((id) => id.startsWith(key))).toEqual([`${key}1`, `${key}2`, `${key}3`])
    expect((await transactions(box)).map((ids) => ids.length)).toEqual([4, 8])
  })

  test('what a failed message sent is not sent, what its neighbours sent is, once', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note({ id }, { send }) {
          await send('sent', { by: id })
          if (id === 'n2') throw new Error('no')
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    await box.drain()
    expect((await box.sent()).map(({ data }) => data)).toEqual([{ by: 'n1' }, { by: 'n3' }])
    expect(await box.fate('n2')).toMatchObject({ state: 'dead', attempts: 1 })
  })

  test('a result stored by a group comes back to a duplicate', async () => {
    await using box = await server.open()
    box.consumer('a', { note: ({ id }) => ({ id, at: new Date(0) }) })
    await box.receive(notes(3))
    expect(await box.receive(note('n2'))).toEqual({
      id: 'n2',
      ack: true,
      status: 'duplicate',
      consumers: [{ consumer: 'a', status: 'duplicate' }],
    })
    await box.drain()
    for (const door of [box.receive, box.handle]) {
      expect(await door(note('n2'))).toMatchObject({
        status: 'duplicate',
        result: { id: 'n2', at: '1970-01-01T00:00:00.000Z' },
      })
    }
  })
})
