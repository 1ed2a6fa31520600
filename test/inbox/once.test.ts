/** `box.once`: in your own transaction, only if this consumer has not handled the message. */
import { createBox, unchecked, type Box, type MessageMap } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { bindTo } from '../../src/postgres/database.js'
import { CLASSIFY } from '../../src/postgres/sql/receive.js'
import { inTransaction } from '../support/transaction.js'
import { gate, note, recorder, useServer } from './fixture.js'

const server = useServer('once', { max: 20 })

const transaction = <R>(work: (client: pg.PoolClient) => Promise<R>, begin?: string): Promise<R> =>
  inTransaction(server.pool, work, begin)

describe('side by side in one transaction', () => {
  const settled = (calls: readonly Promise<{ status: string }>[]): Promise<string[]> =>
    Promise.all(calls.map((call) => call.then(({ status }) => status, () => 'rejected'))) // prettier-ignore

  test('each is handled, and has its effect', async () => {
    await using box = await server.open()
    const ids = ['1', '2', '3', '4']
    const run = () =>
      transaction((client) =>
        settled(ids.map((id) => box.once(client, 'a', { id }, () => box.write(client, 'a', { id })))),
      )
    expect(await run()).toEqual(ids.map(() => 'handled'))
    expect(await box.ids()).toEqual(ids)
    expect(await run()).toEqual(ids.map(() => 'duplicate'))
  })

  test('one that fails undoes itself alone, whatever its statement did to the transaction', async () => {
    await using box = await server.open()
    const outcomes = await transaction((client) =>
      settled([
        box.once(client, 'a', { id: '1' }, () => box.write(client, 'a', { id: '1' })),
        box.once(client, 'a', { id: '2' }, async () => {
          await box.write(client, 'a', { id: '2' })
          await client.query('select 1 / 0')
        }),
        box.once(client, 'a', { id: '3' }, () => box.write(client, 'a', { id: '3' })),
      ]),
    )
    expect(outcomes).toEqual(['handled', 'rejected', 'handled'])
    expect(await box.ids()).toEqual(['1', '3'])
    const ids = await box.sql('select id from ob.message order by id')
    expect(ids).toEqual([{ id: '1' }, { id: '3' }])
  })

  test('what is quarantined stays so, if a neighbour fails', async () => {
    await using box = await server.open({ messages: { note: z.object({ n: z.number() }) } })
    const outcomes = await transaction((client) =>
      settled([
        box.once(client, 'a', { id: '1' }, async () => {
          await client.query('select 1')
          throw new Error('no')
        }),
        box.once(client, 'a', { id: '2', type: 'note', data: 'none' }, () => undefined),
      ]),
    )
    expect(outcomes).toEqual(['rejected', 'quarantined'])
    expect(await box.quarantine()).toMatchObject([{ id: '2' }])
  })

  test('boxes of other drivers, and other objects for the same transaction, take turns too', async () => {
    await using box = await server.open()
    const other = createBox({ db: fromPg(server.pool), schema: box.schema })
    const outcomes = await transaction((client) => {
      const alias = new Proxy(client, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key)
          return typeof value === 'function' ? (value.bind(target) as unknown) : value
        },
      })
      return settled([
        box.once(client, 'a', { id: '1' }, async () => {
          await box.write(client, 'a', { id: '1' })
          throw new Error('no')
        }),
        box.once(alias, 'a', { id: '2' }, () => box.write(client, 'a', { id: '2' })),
        other.once(client, 'a', { id: '3' }, () => box.write(client, 'a', { id: '3' })),
      ])
    })
    expect(outcomes).toEqual(['rejected', 'handled', 'handled'])
    expect((await box.ids()).sort()).toEqual(['2', '3'])
  })

  test('inside the work of another they are part of it, and take turns there', async () => {
    await using box = await server.open()
    const inner: string[] = []
    const run = (fail: boolean) =>
      transaction((client) =>
        settled([
          box.once(client, 'a', { id: '1' }, async () => {
            const calls = ['2', '3'].map((id) =>
              box.once(client, 'a', { id }, async () => {
                await box.write(client, 'a', { id })
                if (id === '2') throw new Error('no')
              }),
            )
            inner.push(...(await settled(calls)))
            if (fail) throw new Error('no')
          }),
          box.once(client, 'a', { id: '4' }, () => box.write(client, 'a', { id: '4' })),
        ]),
      )
    expect(await run(true)).toEqual(['rejected', 'handled'])
    expect(await box.ids()).toEqual(['4'])
    expect(await run(false)).toEqual(['handled', 'duplicate'])
    expect(inner).toEqual(['rejected', 'handled', 'rejected', 'handled'])
    expect(await box.ids()).toEqual(['4', '3'])
  })
})

describe('the work', () => {
  test('runs once; the second time its stored result comes back', async () => {
    await using box = await server.open()
    const run = () =>
      transaction((client) =>
        box.once(client, 'a', { id: '1' }, async () => {
          await box.write(client, 'a', { id: '1' })
          return { at: new Date(0), gone: undefined }
        }),
      )
    expect(await run()).toEqual({ status: 'handled', result: { at: '1970-01-01T00:00:00.000Z' } })
    expect(await run()).toEqual({ status: 'duplicate', result: { at: '1970-01-01T00:00:00.000Z' } })
    expect(await box.ids()).toEqual(['1'])
  })

  test.for<[name: string, result: unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['false', false],
    ['an empty string', ''],
  ])('may answer %s, and a duplicate gets the same', async ([, result]) => {
    await using box = await server.open()
    const run = () => transaction((client) => box.once(client, 'a', { id: '1' }, () => result))
    expect(await run()).toEqual({ status: 'handled', result })
    expect(await run()).toEqual({ status: 'duplicate', result })
  })

  test('is forgotten if its transaction rolls back', async () => {
    await using box = await server.open()
    const run = (fail: boolean) =>
      transaction(async (client) => {
        const outcome = await box.once(client, 'a', { id: '1' }, () => box.write(client, 'a', { id: '1' }))
        if (fail) throw new Error('changed my mind')
        return outcome
      })
    await expect(run(true)).rejects.toThrow('changed my mind')
    expect(await box.ids()).toEqual([])
    expect(await run(false)).toMatchObject({ status: 'handled' })
    expect(await box.ids()).toEqual(['1'])
  })

  test('that throws leaves nothing behind, even in a transaction that is committed all the same', async () => {
    await using box = await server.open()
    await transaction(async (client) => {
      await box.write(client, 'a', { id: 'before' })
      const failing = box.once(client, 'a', { id: '1' }, async () => {
        await box.write(client, 'a', { id: '1' })
        throw new TypeError('mine')
      })
      await expect(failing).rejects.toThrow(TypeError)
      const broken = box.once(client, 'a', { id: '2' }, () => client.query('select 1/0'))
      await expect(broken).rejects.toMatchObject({ code: '22012' })
      await box.write(client, 'a', { id: 'after' })
    })
    expect(await box.ids()).toEqual(['before', 'after'])
    for (const id of ['1', '2']) {
      expect(await transaction((client) => box.once(client, 'a', { id }, () => 1))).toMatchObject({ status: 'handled' })
    }
  })

  test('is known by consumer, source and id', async () => {
    await using box = await server.open()
    const run = (consumer: string, source: string | undefined, id: string) =>
      transaction((client) => box.once(client, consumer, { id, ...(source && { source }) }, () => 1))
    for (const [consumer, source, id] of [
      ['a', undefined, '1'],
      ['b', undefined, '1'],
      ['a', 's', '1'],
      ['a', undefined, '2'],
    ] as const) {
      expect(await run(consumer, source, id)).toMatchObject({ status: 'handled' })
      expect(await run(consumer, source, id)).toMatchObject({ status: 'duplicate' })
    }
  })

  test('finds the session as it was: the limit on waiting for a copy is put back', async () => {
    await using box = await server.open()
    await transaction(async (client) => {
      await client.query(`set local lock_timeout = '7s'`)
      const show = async () => (await client.query('show lock_timeout')).rows[0].lock_timeout
      expect(await box.once(client, 'a', { id: '1' }, show)).toMatchObject({ result: '7s' })
      expect(await box.once(client, 'a', { id: '1' }, show)).toMatchObject({ status: 'duplicate' })
      expect(await show()).toBe('7s')
    })
  })

  test.for(['commit', 'commit; begin', 'rollback', 'rollback; begin'])(
    'that ends the transaction is told so: %s',
    async (command) => {
      await using box = await server.open()
      for (const result of [undefined, 1]) {
        const run = transaction((client) =>
          box.once(client, 'a', { id: `1${result}` }, async () => {
            await client.query(command)
            return result
          }),
        )
        await expect(run).rejects.toMatchObject({ code: 'HANDLER_COMMITTED' })
      }
    },
  )

  test('inside a handler, in the handler’s transaction', async () => {
    await using box = await server.open()
    box.consumer('outer', {
      note: (message, { tx }) => box.once(tx, 'inner', { id: 'shared' }, () => box.write(tx, 'inner', message)),
    })
    expect(await box.handle([note('1'), note('2')])).toMatchObject([
      { result: { status: 'handled' } },
      { result: { status: 'duplicate' } },
    ])
    expect(await box.ids()).toEqual(['1'])
  })

  test.for(['begin isolation level repeatable read', 'begin isolation level serializable'])(
    'under %s',
    async (begin) => {
      await using box = await server.open()
      const run = () =>
        transaction((client) => box.once(client, 'a', { id: '1' }, () => box.write(client, 'a', { id: '1' })), begin)
      expect(await run()).toMatchObject({ status: 'handled' })
      expect(await run()).toMatchObject({ status: 'duplicate' })
      expect(await box.ids()).toEqual(['1'])
    },
  )
})

describe('while another transaction holds the message', () => {
  test('it throws BUSY soon, and the transaction can go on', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    const first = transaction((client) =>
      box.once(client, 'a', { id: '1' }, async () => {
        started.open()
        await finish.opened
        return 'first'
      }),
    )
    await started.opened
    await transaction(async (client) => {
      const asked = performance.now()
      await expect(box.once(client, 'a', { id: '1' }, () => 'second')).rejects.toMatchObject({ code: 'BUSY' })
      expect(performance.now() - asked).toBeLessThan(10_000)
      await box.write(client, 'a', { id: 'goes on' })
    })
    finish.open()
    expect(await first).toEqual({ status: 'handled', result: 'first' })
    expect(await transaction((client) => box.once(client, 'a', { id: '1' }, () => 'third'))).toEqual({
      status: 'duplicate',
      result: 'first',
    })
    expect(await box.ids()).toEqual(['goes on'])
  })

  test('ten at once: one runs, the others are busy or duplicates', async () => {
    await using box = await server.open()
    let runs = 0
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () =>
        transaction((client) =>
          box.once(client, 'a', { id: '1' }, async () => {
            runs++
            await box.write(client, 'a', { id: '1' })
          }),
        ).then(
          ({ status }) => status,
          (error: { code?: string }) => error.code,
        ),
      ),
    )
    expect(runs).toBe(1)
    expect(outcomes.filter((one) => one === 'handled')).toHaveLength(1)
    for (const one of outcomes) expect(['handled', 'duplicate', 'BUSY']).toContain(one)
    expect(await box.ids()).toEqual(['1'])
  })

  test('a stored message that runs right now is BUSY too; one that waits is run', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    box.consumer('a', {
      async note() {
        started.open()
        await finish.opened
      },
    })
    await box.receive(note('1'))
    const drained = box.drain()
    await started.opened
    await box.receive(note('2'))
    const message = (id: string) => ({ id, type: 'note', data: { text: id } })
    const busy = transaction((client) => box.once(client, 'a', message('1'), () => 1))
    await expect(busy).rejects.toMatchObject({ code: 'BUSY' })
    expect(await transaction((client) => box.once(client, 'a', message('2'), () => 'by once'))).toEqual({
      status: 'handled',
      result: 'by once',
    })
    finish.open()
    await drained
    expect(await box.handle(note('2'))).toMatchObject({ status: 'duplicate', result: 'by once' })
  })

  test('a stored message that waits its turn in its key is BUSY', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined }, { order: 'key' })
    await box.receive(note('1', { key: 'k' }))
    const message = { id: '1', type: 'note', data: { text: '1' } }
    const busy = transaction((client) => box.once(client, 'a', message, () => 1))
    await expect(busy).rejects.toMatchObject({ code: 'BUSY' })
    await box.waitUntilHandled('1')
  })
})

describe('dedup is shared with the other doors', () => {
  test('what handle handled is a duplicate for once, with its result, and the other way round', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => 'by handle' })
    await box.handle(note('1'))
    const once = (id: string) =>
      transaction((client) => box.once(client, 'a', { id, type: 'note', data: { text: id } }, () => 'by once'))
    expect(await once('1')).toEqual({ status: 'duplicate', result: 'by handle' })
    expect(await once('2')).toEqual({ status: 'handled', result: 'by once' })
    expect(await box.handle(note('2'))).toMatchObject({ status: 'duplicate', result: 'by once' })
    expect(await box.receive(note('2'))).toMatchObject({ status: 'duplicate', result: 'by once' })
  })

  test('another body under the id is quarantined as a conflict; without data there is nothing to compare', async () => {
    await using box = await server.open()
    const once = (data?: unknown) =>
      transaction((client) => box.once(client, 'a', { id: '1', ...(data !== undefined && { data }) }, () => 'ran'))
    expect(await once({ n: 1 })).toMatchObject({ status: 'handled' })
    expect(await once({ n: 2 })).toEqual({ status: 'quarantined', reason: 'conflict' })
    expect(await once({ n: 1 })).toEqual({ status: 'duplicate', result: 'ran' })
    expect(await once()).toEqual({ status: 'duplicate', result: 'ran' })
    expect(await box.quarantine()).toMatchObject([{ consumer: 'a', id: '1', reason: 'conflict', body: '{"n":2}' }])
  })

  test('a message is judged by its time: one from before the horizon is quarantined as too old', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => {} }, { retainMs: 3_600_000, untimed: 'quarantine' })
    const once = (message: { id: string; time?: Date | string }) =>
      transaction((tx) => box.once(tx, 'a', { ...message, type: 'note', data: 1 }, () => 'ran'))
    expect(await once({ id: 'new', time: new Date() })).toMatchObject({ status: 'handled' })
    expect(await once({ id: 'old', time: '2001-01-01T00:00:00Z' })).toEqual({
      status: 'quarantined',
      reason: 'too-old',
    })
    expect(await once({ id: 'untimed' })).toEqual({ status: 'quarantined', reason: 'too-old' })
  })

  test('a message beyond the horizon is quarantined as too old, not BUSY for ever', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => {} }, { retainMs: 3_600_000 })
    const once = (consumer: string, time: string) =>
      transaction((tx) => box.once(tx, consumer, { id: time, time, type: 'note', data: 1 }, () => 'ran'))
    const tooOld = { status: 'quarantined', reason: 'too-old' }
    expect(await once('a', '2001-01-01T00:00:00Z')).toEqual(tooOld)
    expect(await once('nobody declared it', '2001-01-01T00:00:00Z')).toEqual(tooOld)
    expect(await box.quarantine()).toHaveLength(2)
  })

  test('a consumer that another process has declared goes by the horizon declared there', async () => {
    await using box = await server.open()
    const other = createBox({ db: fromPg(server.pool), schema: box.schema })
    other.consumer('a', { note: () => {} }, { retainMs: 3_600_000, untimed: 'quarantine' })
    await other.migrate()
    const once = (time?: Date) =>
      transaction((tx) => box.once(tx, 'a', { id: '1', ...(time && { time }), type: 'note', data: 1 }, () => 'ran'))
    const tooOld = { status: 'quarantined', reason: 'too-old' }
    expect(await once(new Date(Date.now() - 7_200_000))).toEqual(tooOld)
    expect(await once()).toEqual(tooOld)
    expect(await once(new Date())).toMatchObject({ status: 'handled' })
  })

  test('data that its schema refuses is quarantined, and the work not called', async () => {
    await using box = await server.open({
      messages: { strict: z.object({ n: z.number() }), loose: unchecked<string>() },
    })
    let runs = 0
    const once = (id: string, data: unknown) =>
      transaction((client) => box.once(client, 'a', { id, type: 'strict', data }, () => ++runs))
    expect(await once('1', { n: 'x' })).toEqual({ status: 'quarantined', reason: 'invalid' })
    expect(await once('2', { n: 1 })).toEqual({ status: 'handled', result: 1 })
    expect(await box.quarantine()).toMatchObject([{ consumer: 'a', id: '1', reason: 'invalid', body: '{"n":"x"}' }])
  })

  test('what is quarantined in a transaction that rolls back is not', async () => {
    await using box = await server.open()
    await transaction((client) => box.once(client, 'a', { id: '1', data: 1 }, () => 1))
    await transaction(async (client) => {
      await box.once(client, 'a', { id: '1', data: 2 }, () => 1)
      throw new Error('no')
    }).catch(() => undefined)
    expect(await box.quarantine()).toEqual([])
  })
})

describe('what it is given', () => {
  test('has to be a transaction', async () => {
    await using box = await server.open()
    let runs = 0
    const once = (tx: unknown) => box.once(tx as PgClient, 'a', { id: '1' }, () => ++runs)
    const client = await server.pool.connect()
    try {
      for (const wrong of [server.pool, client, undefined, null, {}]) {
        await expect(once(wrong)).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
        const send = box.send(wrong as PgClient, 'note', {})
        await expect(send).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
      }
    } finally {
      client.release()
    }
    expect(runs).toBe(0)
    expect(await box.sent()).toEqual([])
  })

  test('may be any client of pg, also one of no pool', async () => {
    await using box = await server.open()
    const client = new pg.Client(server.url)
    await client.connect()
    await client.query('begin')
    expect(await box.once(client, 'a', { id: '1' }, () => 1)).toMatchObject({ status: 'handled' })
    await client.query('commit')
    await client.end()
  })

  test.for<[name: string, consumer: string, id: unknown, code: string]>([
    ['no consumer', '', '1', 'OPTION_INVALID'],
    ['no id', 'a', undefined, 'MESSAGE_INVALID'],
    ['an empty id', 'a', '', 'MESSAGE_INVALID'],
    ['an id with NUL', 'a', 'a\0', 'MESSAGE_INVALID'],
    ['a lone surrogate', 'a', '\ud800', 'MESSAGE_INVALID'],
    ['a number', 'a', 7, 'MESSAGE_INVALID'],
  ])('needs a consumer and an id: %s', async ([, consumer, id, code]) => {
    await using box = await server.open()
    const run = transaction((client) => box.once(client, consumer, { id: id as string }, () => 1))
    await expect(run).rejects.toMatchObject({ code })
  })

  test('a result that is no JSON fails it, and nothing is recorded', async () => {
    await using box = await server.open()
    const run = (result: unknown) =>
      transaction((client) => (box as Box<MessageMap, unknown>).once(client, 'a', { id: '1' }, () => result))
    await expect(run(1n)).rejects.toMatchObject({ code: 'RESULT_INVALID' })
    await expect(run(new Error('oops'))).rejects.toMatchObject({ code: 'RESULT_INVALID' })
    expect(await run(1)).toMatchObject({ status: 'handled' })
  })
})

test('once for a message that retention takes at this very moment is busy, not too old', async () => {
  await using box = await server.open()
  const { db } = box
  const watched: typeof db = {
    transaction: (work, options) => db.transaction(work, options),
    async query(text, values, tx) {
      // Between the mark, which finds it known, and the look at what is known of it.
      if (text === bindTo(box.schema)(CLASSIFY)) await box.sql('delete from ob.message')
      return db.query(text, values, tx)
    },
  }
  const other = createBox({ db: watched, schema: box.schema, logger: recorder() })
  const once = (): Promise<unknown> => db.transaction((tx) => other.once(tx, 'a', { id: '1' }, () => 1))
  expect(await once()).toMatchObject({ status: 'handled' })
  await expect(once()).rejects.toMatchObject({ code: 'BUSY' })
  expect(await once()).toMatchObject({ status: 'handled' })
  expect(await box.quarantine()).toEqual([])
})
