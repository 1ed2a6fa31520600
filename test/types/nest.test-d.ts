/** What the decorators take, and what must not compile: another message, an unknown type, another transaction. */
import type { Transaction } from '@electric-sql/pglite'
import type pg from 'pg'
import { expectTypeOf, test } from 'vitest'
import { defineMessages, unchecked, type BatchContext, type Box, type Context, type MessageOf } from 'oncebox'
import * as nest from 'oncebox/nest'
import { boxClass, decorators, OnceboxModule, type OnceboxOptionsFactory } from 'oncebox/nest'
import { fromPg, type PgClient } from 'oncebox/pg'

declare const pool: pg.Pool
const messages = defineMessages({
  'order.placed': unchecked<{ sku: string }>(),
  'order.changed': unchecked<{ to: number }>(),
})
type M = typeof messages
type Tx = pg.PoolClient
const { Consumer, Handle, HandleBatch } = decorators<M, Tx>()

test('a method takes the message that it handles, its context, or less', () => {
  @Consumer('fits', { concurrency: 2, identity: ({ type }) => type })
  class Fits {
    @Handle('order.placed') both({ data }: MessageOf<M, 'order.placed'>, { tx, send }: Context<M, Tx>) {
      void tx.query(data.sku)
      return send('order.changed', { to: 1 })
    }
    @Handle('order.placed') one(_: MessageOf<M, 'order.placed'>) {}
    @Handle('order.placed') none() {}
    @Handle('order.placed', 'order.changed') several(_: MessageOf<M>) {}
    @Handle('*') all(_: MessageOf<M>) {}
    @HandleBatch('order.placed') batch(_: readonly MessageOf<M, 'order.placed'>[], __: BatchContext<M, Tx>) {}
  }
  void Fits
})

test('another message, an unknown type and another transaction do not compile', () => {
  class Wrong {
    // @ts-expect-error the message of another type
    @Handle('order.placed') message(_: MessageOf<M, 'order.changed'>) {}
    // @ts-expect-error one of the two is not taken
    @Handle('order.placed', 'order.changed') half(_: MessageOf<M, 'order.placed'>) {}
    // @ts-expect-error no such type
    @Handle('order.plced') type() {}
    // @ts-expect-error the transaction of another client
    @Handle('order.placed') tx(_: MessageOf<M, 'order.placed'>, __: Context<M, Transaction>) {}
    // @ts-expect-error a batch is many messages
    @HandleBatch('order.placed') batch(_: MessageOf<M, 'order.placed'>) {}
    // @ts-expect-error a batch has no effects
    @HandleBatch('order.placed') effects(_: readonly MessageOf<M, 'order.placed'>[], __: Context<M, Tx>) {}
    // @ts-expect-error it needs a type
    @Handle() nothing() {}
  }
  void Wrong
  // @ts-expect-error no such option
  Consumer('wrong', { concurency: 2 })
})

test('the decorators of the package take any method of one or two parameters, and any type', () => {
  @nest.Consumer('any', { concurrency: 2 })
  class Any {
    @nest.Handle('order.placed') placed(_: MessageOf<M, 'order.placed'>, __: Context<M, Tx>) {}
    @nest.Handle('what.ever', '*') others() {}
    @nest.HandleBatch('order.placed') batch(_: readonly MessageOf<M, 'order.placed'>[], __: BatchContext<M, Tx>) {}
    // @ts-expect-error it needs a type
    @nest.Handle() nothing() {}
    // @ts-expect-error a handler is called with a message and a context
    @nest.Handle('order.placed') more(_: MessageOf<M, 'order.placed'>, __: Context<M, Tx>, ___: string) {}
  }
  void Any
  // @ts-expect-error no such option
  nest.Consumer('wrong', { concurency: 2 })
})

test('the module infers the box of setUp, also from a factory', () => {
  type Shop = Box<M, pg.PoolClient, PgClient>
  const setUp = (box: Shop) => box.admin
  OnceboxModule.forRoot({
    db: fromPg(pool),
    messages,
    setUp: (box) => expectTypeOf(box).toEqualTypeOf<Shop>(),
  })
  OnceboxModule.forRootAsync({
    inject: ['pool'],
    useFactory: (given: pg.Pool) => ({ db: fromPg(given), messages, setUp }),
  })
  OnceboxModule.forRootAsync({ useFactory: async () => ({ db: fromPg(pool), messages, migrate: true }) })
  // @ts-expect-error no such option
  OnceboxModule.forRoot({ db: fromPg(pool), messages, migrat: true })
  // @ts-expect-error one of the two
  OnceboxModule.forRootAsync({ useFactory: () => ({ db: fromPg(pool), messages }), useClass: Settings })
  OnceboxModule.forRootAsync({ useClass: Settings })
  // @ts-expect-error it makes no options
  OnceboxModule.forRootAsync({ useClass: class {} })
})

class Settings implements OnceboxOptionsFactory<M, pg.PoolClient, PgClient> {
  createOnceboxOptions() {
    return { db: fromPg(pool), messages }
  }
}

test('a class stands for its box, and for no other', () => {
  class ShopBox extends boxClass<M, pg.PoolClient, PgClient>() {}
  class OtherBox extends boxClass<{ other: M['order.placed'] }, pg.PoolClient, PgClient>() {}
  expectTypeOf<ShopBox>().toExtend<Box<M, pg.PoolClient, PgClient>>()
  OnceboxModule.forRoot({ name: ShopBox, db: fromPg(pool), messages })
  // @ts-expect-error the box of other messages
  OnceboxModule.forRoot({ name: OtherBox, db: fromPg(pool), messages })
})
