/** The front doors where the caller wrote the message, and the types by which a service names its box. */
import type pg from 'pg'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import {
  createBox,
  defineMessages,
  unchecked,
  type Box,
  type BoxOf,
  type Driver,
  type FrontDoor,
  type Handlers,
  type Incoming,
  type IncomingOf,
  type MessageMap,
  type MessageName,
  type Outcome,
  type OutcomeOf,
  type ResultOf,
} from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'

const messages = defineMessages({
  placed: z.object({
    total: z.number(),
    lines: z.array(z.string()),
    at: z.string().transform((text) => new Date(text)),
  }),
  paid: unchecked<{ invoice: string; note?: string }>(),
})
type M = typeof messages

declare const pool: pg.Pool
const db = fromPg(pool)
declare const box: Box<M, pg.PoolClient, PgClient>
declare const untyped: Box<MessageMap, pg.PoolClient, PgClient>
const data = { total: 1, lines: ['tea'], at: '2026-01-01' }

describe('a message that is written down', () => {
  test('has a type of the vocabulary, and the data that its schema takes', () => {
    void (async () => {
      await box.handle({ id: '1', type: 'placed', data })
      await box.receive({
        id: '1',
        type: 'paid',
        data: { invoice: 'i' },
        key: 'k',
        headers: { a: 'b' },
        time: new Date(),
      })
      await box.handle({ id: '1', type: 'placed', data: { total: 1, lines: ['tea'], at: '2026-01-01' } })
      // @ts-expect-error there is no such message
      await box.handle({ id: '1', type: 'plaecd', data })
      // @ts-expect-error the output of the schema is not its input
      await box.handle({ id: '1', type: 'placed', data: { ...data, at: new Date() } })
      // @ts-expect-error not its data
      await box.receive({ id: '1', type: 'paid', data })
      // @ts-expect-error an id has to be written down
      await box.receive({ type: 'paid', data: { invoice: 'i' } })
      // @ts-expect-error neither data nor a body
      await box.receive({ id: '1', type: 'paid' })
      // @ts-expect-error both
      await box.receive({ id: '1', type: 'paid', data: { invoice: 'i' }, body: '{}' })
      // @ts-expect-error there is no such field
      await box.receive({ id: '1', type: 'paid', data: { invoice: 'i' }, topic: 't' })
    })
  })

  test('may come as bytes, which are judged on arrival', () => {
    void (() => box.handle({ id: '1', type: 'placed', body: new Uint8Array() }))
  })

  test('satisfies all types that its own may be', () => {
    void (async (type: MessageName<M>) => {
      // @ts-expect-error it may be the other one
      await box.handle({ id: '1', type, data: { invoice: 'i' } })
    })
  })

  test('is any, for a box without a vocabulary', () => {
    void (() => untyped.handle({ id: '1', type: 'whatever', data: 1 }))
  })

  test('can be made by a function that says so', () => {
    const make = (): IncomingOf<M, 'paid'> => ({ id: '1', type: 'paid', data: { invoice: 'i' } })
    void (() => box.handle(make()))
    // @ts-expect-error not its data
    void ((): IncomingOf<M, 'paid'> => ({ id: '1', type: 'paid', data }))
  })
})

describe('a message from elsewhere', () => {
  test('has any type and any data', () => {
    void (async (
      message: Incoming,
      list: readonly Incoming[],
      either: Incoming | readonly Incoming[],
      type: string,
    ) => {
      expectTypeOf(await box.receive(message)).toEqualTypeOf<Outcome>()
      expectTypeOf(await box.receive(list)).toEqualTypeOf<Outcome[]>()
      expectTypeOf(await box.receive(either)).toEqualTypeOf<Outcome | Outcome[]>()
      await box.handle({ id: undefined, type, data: JSON.parse('1') as unknown })
    })
    expectTypeOf<(message: Incoming) => Promise<Outcome>>().not.toBeAny()
    const deliver: (message: Incoming) => Promise<Outcome> = (message) => box.receive(message)
    void deliver
    const door: FrontDoor<M> = box.receive
    void door
  })
})

describe('results', () => {
  const handlers = {
    placed: async ({ data }) => ({ total: data.total, at: data.at }),
    paid: () => undefined,
  } satisfies Handlers<M, pg.PoolClient>
  void (() => box.consumer('c', handlers))

  test('are what the handlers return, as JSON has it', () => {
    expectTypeOf<ResultOf<typeof handlers, 'placed'>>().toEqualTypeOf<{ total: number; at: string }>()
    expectTypeOf<ResultOf<typeof handlers, 'paid'>>().toEqualTypeOf<undefined>()
    void (async () => {
      const outcome: OutcomeOf<typeof handlers, 'placed'> = await box.handle({ id: '1', type: 'placed', data })
      if (outcome.status === 'handled') expectTypeOf(outcome.result.at).toEqualTypeOf<string>()
      // @ts-expect-error only a handled message has a result for certain
      void outcome.result
      // @ts-expect-error no handler has this name
      type _None = OutcomeOf<typeof handlers, 'plaecd'>
    })
  })

  test('are unknown to who does not name them', () => {
    void (async () => {
      const outcome = await box.handle({ id: '1', type: 'placed', data })
      if (outcome.status === 'handled') expectTypeOf(outcome.result).toEqualTypeOf<unknown>()
    })
  })
})

describe('a service', () => {
  class Orders {
    constructor(readonly box: BoxOf<M, pg.PoolClient>) {}
    place(tx: pg.PoolClient) {
      // @ts-expect-error there is no such message
      void this.box.send(tx, 'plaecd', data)
      return this.box.send(tx, 'placed', data)
    }
  }

  test('names its box by the vocabulary and the transaction, or the driver', () => {
    void (() => new Orders(createBox({ db, messages })))
    expectTypeOf<BoxOf<M, typeof db>>().toEqualTypeOf<Box<M, pg.PoolClient, PgClient>>()
    expectTypeOf<BoxOf<M, Driver<unknown>>>().toEqualTypeOf<Box<M, unknown>>()
    void (() => {
      const other = createBox({ db, messages: defineMessages({ shipped: unchecked<string>() }) })
      // @ts-expect-error a box of another vocabulary
      return new Orders(other)
    })
  })
})
