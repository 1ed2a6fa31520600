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
