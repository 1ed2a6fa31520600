/** What should compile, and what should not: the vocabulary, handlers, send and results. */
import { type } from 'arktype'
import type { PoolClient } from 'pg'
import pg from 'pg'
import * as v from 'valibot'
import { assertType, describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import {
  batch,
  createBox,
  defineMessages,
  unchecked,
  type Criteria,
  type Filter,
  type Handlers,
  type Json,
  type MessageOf,
  type TypedMessages,
} from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'

const messages = defineMessages({
  'zod.in-out': z.object({ when: z.string().transform((text) => new Date(text)), n: z.number().int() }),
  'valibot.plain': v.object({ name: v.string() }),
  'arktype.plain': type({ amount: 'number' }),
  'unchecked.plain': unchecked<{ orderId: string }>(),
})
type M = typeof messages
const box = createBox({ db: fromPg(new pg.Pool()), messages })

describe('handlers', () => {
  test('get the output of their schema, from any vendor', () => {
    box.consumer('c', {
      'zod.in-out': (message) => {
        expectTypeOf(message.data).toEqualTypeOf<{ when: Date; n: number }>()
        expectTypeOf(message.type).toEqualTypeOf<'zod.in-out'>()
      },
      'valibot.plain': (message) => expectTypeOf(message.data).toEqualTypeOf<{ name: string }>(),
      'arktype.plain': (message) => expectTypeOf(message.data).toEqualTypeOf<{ amount: number }>(),
      'unchecked.plain': (message) => expectTypeOf(message.data).toEqualTypeOf<{ orderId: string }>(),
    })
  })

  test('get the driver’s own transaction', () => {
    box.consumer('c', {
      'valibot.plain': (_message, { tx, attempt, signal }) => {
        expectTypeOf(tx).toEqualTypeOf<PoolClient>()
        expectTypeOf(attempt).toEqualTypeOf<number>()
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      },
    })
  })

  test('of every other type get a union that narrows by type', () => {
    box.consumer('c', {
      '*': (message) => {
        if (message.type === 'arktype.plain') expectTypeOf(message.data).toEqualTypeOf<{ amount: number }>()
        if (message.type === 'valibot.plain') expectTypeOf(message.data).toEqualTypeOf<{ name: string }>()
      },
    })
  })

  test('of many get a list of one type, and no effects', () => {
    box.consumer('c', {
      'valibot.plain': batch((list, ctx) => {
        expectTypeOf(list[0]!.data).toEqualTypeOf<{ name: string }>()
        expectTypeOf(ctx.tx).toEqualTypeOf<PoolClient>()
        // @ts-expect-error a batch has no effects
        void ctx.effect
      }),
    })
  })

  test('of an unknown type do not compile', () => {
    // @ts-expect-error there is no such type
    box.consumer('c', { 'zod.inout': () => undefined })
  })

  test('can live in a file of their own', () => {
    const handlers = {
      'valibot.plain': async (message, { tx }) => {
        expectTypeOf(message.data.name).toEqualTypeOf<string>()
        await tx.query('select 1')
      },
    } satisfies Handlers<M, PoolClient>
    box.consumer('c', handlers)
  })

  test('options are typed', () => {
    box.consumer('c', {}, { order: 'key', retry: { attempts: 3 }, identity: (message) => message.id })
    // @ts-expect-error there is no such mode
    box.consumer('c', {}, { mode: 'later' })
    // @ts-expect-error an identity is a string
    box.consumer('c', {}, { identity: () => 1 })
  })
})

describe('send', () => {
  const tx = null as unknown as PoolClient

  test('takes the input of the schema', () => {
    assertType<Promise<{ id: string }>>(box.send(tx, 'zod.in-out', { when: '2026-01-01', n: 1 }))
    // @ts-expect-error the input is a string, not the output's Date
    void box.send(tx, 'zod.in-out', { when: new Date(), n: 1 })
  })

  test('refuses a wrong name, a wrong payload and an unknown option', () => {
    // @ts-expect-error there is no such type
    void box.send(tx, 'zod.nope', {})
    // @ts-expect-error name is a string
    void box.send(tx, 'valibot.plain', { name: 1 })
    // @ts-expect-error there is no such option
    void box.send(tx, 'valibot.plain', { name: 'a' }, { kee: 'x' })
  })

  test('with a union of names must satisfy all of them', () => {
    const name = 'valibot.plain' as 'valibot.plain' | 'arktype.plain'
    void box.send(tx, name, { name: 'a', amount: 1 })
    // @ts-expect-error it may be an arktype.plain
    void box.send(tx, name, { name: 'a' })
  })

  test('refuses a pool', () => {
    // @ts-expect-error a pool is not a transaction
    void box.send(new pg.Pool(), 'valibot.plain', { name: 'a' })
    // @ts-expect-error a pool is not a transaction
    void box.once(new pg.Pool(), 'c', { id: '1' }, () => 1)
  })

  test('of many pairs each name with its payload', () => {
    void box.sendMany(tx, [
      { type: 'valibot.plain', data: { name: 'a' }, key: 'k' },
      { type: 'arktype.plain', data: { amount: 1 } },
    ])
    // @ts-expect-error the payload belongs to another type
    void box.sendMany(tx, [{ type: 'valibot.plain', data: { amount: 1 } }])
  })

  test('is typed inside handlers', () => {
    box.consumer('c', {
      'valibot.plain': async (_message, { send }) => {
        await send('arktype.plain', { amount: 1 })
        // @ts-expect-error amount is a number
        await send('arktype.plain', { amount: 'x' })
      },
    })
  })
})

describe('results', () => {
  const tx = null as unknown as PoolClient

  test('are what JSON makes of them', async () => {
    const outcome = await box.once(tx, 'c', { id: '1' }, () => ({ at: new Date(), run: () => 1, n: 1 }))
    if (outcome.status === 'handled') expectTypeOf(outcome.result).toEqualTypeOf<{ at: string; n: number }>()
    // @ts-expect-error a quarantined message has no result
    if (outcome.status === 'quarantined') void outcome.result
    expectTypeOf<Json<Date>>().toEqualTypeOf<string>()
    expectTypeOf<Json<{ a: Date[]; b: () => void }>>().toEqualTypeOf<{ a: string[] }>()
  })

  test('of effects are what JSON makes of them', () => {
    box.consumer('c', {
      'valibot.plain': async (_message, { effect }) => {
        const charge = await effect('charge', ({ idempotencyKey }) => ({ idempotencyKey, at: new Date() }))
        expectTypeOf(charge).toEqualTypeOf<{ idempotencyKey: string; at: string }>()
        // @ts-expect-error there is no such policy
        await effect('charge', () => 1, { onUnknown: 'ignore' })
      },
    })
  })

  test('one message gives one outcome, a list gives a list', () => {
    const one = { id: '1', type: 'valibot.plain', data: {} }
    expectTypeOf(box.receive(one)).resolves.toHaveProperty('ack')
    expectTypeOf(box.handle([one])).resolves.items.toHaveProperty('status')
    // @ts-expect-error the id must be written down, though it may be undefined
    void box.receive({ type: 'valibot.plain', data: {} })
    // @ts-expect-error either data or body
    void box.receive({ id: '1', type: 'valibot.plain', data: {}, body: '{}' })
  })
})

describe('the rest', () => {
  test('a vocabulary of types alone can be annotated', () => {
    const typed: TypedMessages<{ 'a.b': { n: number } }> = { 'a.b': unchecked() }
    const other = createBox({ db: fromPg(new pg.Pool()), messages: typed })
    other.consumer('c', { 'a.b': (message) => expectTypeOf(message.data).toEqualTypeOf<{ n: number }>() })
  })

  test('without a vocabulary every name goes', () => {
    const open = createBox({ db: fromPg(new pg.Pool()) })
    open.consumer('c', { anything: (message) => expectTypeOf(message.data).toEqualTypeOf<unknown>() })
  })

  test('filters know the names, and mutations need a criterion', () => {
    void box.admin.messages({ type: 'valibot.plain' })
    // @ts-expect-error there is no such type
    void box.admin.messages({ type: 'nope' })
    void box.admin.retry('all')
    void box.admin.retry({ id: 'x' })
    // @ts-expect-error at least one criterion
    void box.admin.retry({})
    // @ts-expect-error an undefined criterion would match everything
    void box.admin.discard({ id: undefined }, { reason: 'x' })
    // @ts-expect-error a reason is needed
    void box.admin.discard({ id: 'x' }, {})
    expectTypeOf<{ id: string }>().toExtend<Criteria<Filter<M>>>()
  })

  test('the test box knows what was sent, and runs on PGlite', async () => {
    const kit = await createTestBox({ messages })
    expectTypeOf(kit.sent()).resolves.items.toEqualTypeOf<MessageOf<M>>()
    kit.consumer('c', { 'valibot.plain': async (_m, { tx }) => void (await tx.query('select 1')) })
    const own = await createTestBox({ db: fromPg(new pg.Pool()), messages })
    own.consumer('c', { 'valibot.plain': (_m, { tx }) => expectTypeOf(tx).toEqualTypeOf<PoolClient>() })
  })
})
