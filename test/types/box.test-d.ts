/** The box over each driver: whose transaction handlers get, which roots do not compile, and how outcomes narrow. */
import type { PGlite, Transaction } from '@electric-sql/pglite'
import type pg from 'pg'
import type postgres from 'postgres'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import {
  batch,
  createBox,
  defineMessages,
  unchecked,
  type Consumer,
  type ConsumerOptions,
  type Entry,
  type Failure,
  type Handlers,
  type Json,
  type MessageOf,
  type OnceOutcome,
  type Outcome,
  type QuarantineReason,
  type Source,
} from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'
import type { PgliteTx } from 'oncebox/testing'
import { fromPostgres } from 'oncebox/postgres'
import type { TestBox } from 'oncebox/testing'

const messages = defineMessages({
  a: z.object({ n: z.number().default(1), at: z.string().transform((text) => new Date(text)) }),
  b: unchecked<{ text: string }>(),
})
type M = typeof messages

declare const pool: pg.Pool
declare const sql: postgres.Sql
declare const pglite: PGlite
const overPg = () => createBox({ db: fromPg(pool), messages })
const overPostgres = () => createBox({ db: fromPostgres(sql), messages })
const overPglite = () => createBox({ db: fromPglite(pglite), messages })

describe('over each driver', () => {
  test('handlers get its own transaction', () => {
    void (() => {
      overPg().consumer('c', { b: (_m, { tx }) => expectTypeOf(tx).toEqualTypeOf<pg.PoolClient>() })
      overPostgres().consumer('c', { b: (_m, { tx }) => expectTypeOf(tx).toEqualTypeOf<postgres.TransactionSql>() })
      overPglite().consumer('c', { b: (_m, { tx }) => expectTypeOf(tx).toEqualTypeOf<Transaction>() })
    })
  })

  test('send and once take it, and no root', () => {
    void (async (client: pg.PoolClient) => {
      await overPg().send(client, 'b', { text: '' })
      // @ts-expect-error a pool is not a transaction
      await overPg().send(pool, 'b', { text: '' })
      // @ts-expect-error a pool is not a transaction
      await overPg().sendMany(pool, [])
    })
    void sql.begin(async (tx) => {
      await overPostgres().send(tx, 'b', { text: '' })
      await overPostgres().once(tx, 'c', { id: '1' }, () => 1)
      // @ts-expect-error the root is not a transaction
      await overPostgres().send(sql, 'b', { text: '' })
      // @ts-expect-error the root is not a transaction
      await overPostgres().once(sql, 'c', { id: '1' }, () => 1)
    })
    void pglite.transaction(async (tx) => {
      await overPglite().send(tx, 'b', { text: '' })
      // @ts-expect-error the database is not a transaction
      await overPglite().send(pglite, 'b', { text: '' })
      // @ts-expect-error the database is not a transaction
      await overPglite().once(pglite, 'c', { id: '1' }, () => 1)
    })
  })

  test('handlers in a file of their own fit one driver, and no other', () => {
    const handlers = {
      b: async (message, { tx }) => (await tx.query('select $1', [message.data.text])).rows.length,
    } satisfies Handlers<M, pg.PoolClient>
    void (() => overPg().consumer('c', handlers))
    // @ts-expect-error written for pg
    void (() => overPostgres().consumer('c', handlers))
    void ({
      // @ts-expect-error there is no such message
      c: () => undefined,
    } satisfies Handlers<M, pg.PoolClient>)
  })
})

describe('handlers', () => {
  test('a default and a transform: optional on the way in, there on the way out', () => {
    void (async (tx: pg.PoolClient) => {
      await overPg().send(tx, 'a', { at: '2020-01-01' })
      // @ts-expect-error at is needed
      await overPg().send(tx, 'a', { n: 1 })
    })
    expectTypeOf<MessageOf<M, 'a'>['data']>().toEqualTypeOf<{ n: number; at: Date }>()
    expectTypeOf<MessageOf<M>['type']>().toEqualTypeOf<'a' | 'b'>()
  })

  test("'*' in a batch gets a union that narrows by type", () => {
    void (() =>
      overPg().consumer('c', {
        '*': batch((list) => {
          for (const message of list) {
            if (message.type === 'b') expectTypeOf(message.data).toEqualTypeOf<{ text: string }>()
            else expectTypeOf(message.data).toEqualTypeOf<{ n: number; at: Date }>()
          }
        }),
      }))
  })

  test('a batch beside plain handlers costs them nothing of their inference', () => {
    void (() =>
      overPg().consumer('c', {
        a: batch((list, { send }) => {
          expectTypeOf(list[0]!.data.at).toEqualTypeOf<Date>()
          void send('b', { text: '' })
        }),
        b: (message, { attempt }) => {
          expectTypeOf(message.data.text).toEqualTypeOf<string>()
          expectTypeOf(attempt).toEqualTypeOf<number>()
        },
      }))
  })

  test('messages are read-only', () => {
    void (() =>
      overPg().consumer('c', {
        b(message) {
          // @ts-expect-error read-only
          message.id = 'x'
        },
      }))
  })

  test('options: a retry function, an identity over the union, and nothing unknown', () => {
    expectTypeOf<ConsumerOptions<M>['identity']>().toEqualTypeOf<((message: MessageOf<M>) => string) | undefined>()
    const options: ConsumerOptions<M> = {
      retry: (error, attempt) => {
        expectTypeOf(error).toEqualTypeOf<unknown>()
        return attempt > 3 ? null : 1_000
      },
    }
    void options
    // @ts-expect-error there is no such option
    void ({ retries: 3 } satisfies ConsumerOptions<M>)
    // @ts-expect-error there is no such level
    void ({ isolation: 'read uncommitted' } satisfies ConsumerOptions<M>)
    expectTypeOf<ReturnType<ReturnType<typeof overPg>['consumer']>>().toEqualTypeOf<Consumer>()
  })
})

describe('outcomes', () => {
  test('narrow by status', () => {
    void ((outcome: Outcome<number>) => {
      expectTypeOf(outcome.ack).toEqualTypeOf<boolean>()
      expectTypeOf(outcome.retryAt).toEqualTypeOf<Date | undefined>()
      if (outcome.status === 'handled') expectTypeOf(outcome.result).toEqualTypeOf<number>()
      if (outcome.status === 'duplicate') expectTypeOf(outcome.result).toEqualTypeOf<number | undefined>()
      if (outcome.status === 'failed') expectTypeOf(outcome.error).toEqualTypeOf<Failure>()
      if (outcome.status === 'dead') expectTypeOf(outcome.error).toEqualTypeOf<Failure>()
      if (outcome.status === 'quarantined') {
        expectTypeOf(outcome.reason).toEqualTypeOf<QuarantineReason>()
        expectTypeOf(outcome.detail).toEqualTypeOf<string | undefined>()
      }
      // @ts-expect-error only a failed or dead one has an error
      if (outcome.status === 'stored') void outcome.error
      for (const one of outcome.consumers) {
        expectTypeOf(one.consumer).toEqualTypeOf<string>()
        if (one.status === 'failed') expectTypeOf(one.retryAt).toEqualTypeOf<Date | undefined>()
      }
    })
    expectTypeOf<OnceOutcome<1>['status']>().toEqualTypeOf<'handled' | 'duplicate' | 'quarantined'>()
  })

  test('Json: what comes back of what was returned', () => {
    expectTypeOf<Json<string | null>>().toEqualTypeOf<string | null>()
    expectTypeOf<Json<undefined>>().toEqualTypeOf<undefined>()
    expectTypeOf<Json<void>>().toEqualTypeOf<undefined>()
    expectTypeOf<Json<Date | number>>().toEqualTypeOf<string | number>()
    expectTypeOf<Json<{ a?: Date; f(): void; s: symbol }>>().toEqualTypeOf<{ a?: string }>()
    expectTypeOf<Json<readonly Date[]>>().toEqualTypeOf<string[]>()
    expectTypeOf<Json<unknown>>().toEqualTypeOf<unknown>()
  })
})

describe('around the box', () => {
  test('hooks know the vocabulary', () => {
    void (() =>
      createBox({
        db: fromPg(pool),
        messages,
        hooks: {
          failed(entry, { retryBy, retryAt }) {
            expectTypeOf(entry).toEqualTypeOf<Entry<M>>()
            expectTypeOf(retryBy).toEqualTypeOf<'box' | 'source'>()
            expectTypeOf(retryAt).toEqualTypeOf<Date | undefined>()
          },
          recovered(where) {
            expectTypeOf(where.consumer).toEqualTypeOf<string | undefined>()
          },
          dead(entry) {
            expectTypeOf(entry).toEqualTypeOf<Entry<M>>()
            if (entry.message.type === 'b') expectTypeOf(entry.message.data).toEqualTypeOf<{ text: string }>()
          },
        },
      }))
  })

  test('from returns the source as it is, with what it has beside', () => {
    void ((source: Source & { fetch(): void }) => {
      expectTypeOf(overPg().from(source)).toEqualTypeOf<Source & { fetch(): void }>()
      // @ts-expect-error nothing to start
      overPg().from({ stop: async () => {} })
      // @ts-expect-error there is no such choice
      overPg().from(source, { unrouted: 'drop' })
    })
  })

  test('from a push source takes the types that it may send, of the vocabulary', () => {
    void ((source: Source, push: Source & { readonly push: true }, broker: typeof push & { readonly broker: true }) => {
      const box = overPg()
      const open = createBox({ db: fromPg({} as pg.Pool) })
      box.from(source, { types: ['a'], keys: 'source', quarantine: { maxRows: 1, maxBytes: 1, retainMs: 1 } })
      box.from(push, { types: ['a', 'b'] })
      box.from(push, { types: 'any' })
      box.from(broker)
      open.from(push, { types: ['whatever'] })
      // @ts-expect-error it has to say
      box.from(push)
      // @ts-expect-error it has to say
      box.from(push, { consumers: ['x'] })
      // @ts-expect-error no type of the box
      box.from(push, { types: ['c'] })
      // @ts-expect-error there is no such choice
      box.from(push, { types: 'any', keys: 'mine' })
    })
  })

  test('admin answers by the vocabulary', () => {
    void (async () => {
      const { entries } = await overPg().admin.messages({ type: ['a', 'b'], state: ['dead', 'pending'] })
      expectTypeOf(entries).toEqualTypeOf<Entry<M>[]>()
      // @ts-expect-error there is no such state
      await overPg().admin.messages({ state: 'lost' })
    })
  })

  test('the transaction of a test box is one of PGlite, though its types are our own', () => {
    expectTypeOf<PgliteTx>().toExtend<Transaction>()
    expectTypeOf<Transaction>().toExtend<PgliteTx>()
  })

  test('a test box is a box', () => {
    expectTypeOf<TestBox<M, Transaction>>().toExtend<ReturnType<typeof overPglite>>()
  })
})
