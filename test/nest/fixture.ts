/** What the tests of the Nest module share: a vocabulary, a database per file, and apps that are closed when a test ends. */
import 'reflect-metadata'
import type { DynamicModule, INestApplicationContext, ModuleMetadata } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import pg from 'pg'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { defineMessages, unchecked, type Box, type Context, type MessageOf } from 'oncebox'
import { decorators, getBoxToken, OnceboxModule, type OnceboxModuleOptions } from 'oncebox/nest'
import { fromPg, type PgClient } from 'oncebox/pg'
import { scratchDatabase, scratchSchemaName, type ScratchDatabase } from '../support/postgres.js'

export const messages = defineMessages({
  'order.placed': unchecked<{ sku: string }>(),
  'order.changed': unchecked<{ sku: string; to: number }>(),
  'stock.reserved': unchecked<{ sku: string }>(),
})
export type Messages = typeof messages
export type Placed = MessageOf<Messages, 'order.placed'>
export type Ctx = Context<Messages, pg.PoolClient>
export type ShopOptions = OnceboxModuleOptions<Messages, pg.PoolClient, PgClient>
export type Shop = Box<Messages, pg.PoolClient, PgClient>

export const { Consumer, Handle, HandleBatch } = decorators<Messages, pg.PoolClient>()

export const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export interface Bench {
  readonly url: string
  readonly pool: pg.Pool
  /** Options of a box in a schema of its own, in which nothing is retried. */
  options(more?: Partial<ShopOptions>): ShopOptions
  /** `forRoot` with them: migrated, and started. */
  root(more?: Partial<ShopOptions>): DynamicModule
}

export function useBench(name: string): Bench {
  let database: ScratchDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    database = await scratchDatabase(`nest_${name}`)
    pool = new pg.Pool({ connectionString: database.url, max: 10 })
    pool.on('error', () => {})
    await pool.query('create table effect (n serial, note text)')
  })
  afterAll(async () => {
    await pool.end()
    await database.close()
  })
  const options = (more: Partial<ShopOptions> = {}): ShopOptions => ({
    db: fromPg(pool),
    messages,
    schema: scratchSchemaName('nest'),
    logger: SILENT,
    migrate: true,
    // The classes of the other tests of a file are loaded too.
    unprovided: 'allow',
    ...more,
  })
  return {
    get url() {
      return database.url
    },
    get pool() {
      return pool
    },
    options,
    root: (more) => OnceboxModule.forRoot(options(more)),
  }
}

/** An app without a server. It is closed when the test ends, if it has not been before. */
export async function open(metadata: ModuleMetadata): Promise<INestApplicationContext> {
  const app = await Test.createTestingModule(metadata).compile()
  app.useLogger(false)
  closeOnce(app)
  return app.init()
}

/** At the end of the test, or when the test says so; modules must not be destroyed twice. */
export function closeOnce(app: INestApplicationContext): void {
  const close = app.close.bind(app)
  let closed: Promise<void> | undefined
  app.close = () => (closed ??= close())
  // An app that did not start cannot be closed.
  onTestFinished(() => app.close().catch(() => undefined))
}

/** What the app's start is refused with. */
export async function refusal(metadata: ModuleMetadata): Promise<{ code?: string; message: string }> {
  const app = await Test.createTestingModule(metadata).compile()
  app.useLogger(false)
  closeOnce(app)
  return app.init().then(
    () => ({ message: 'it started' }),
    (error: { code?: string; message: string }) => error,
  )
}

export function boxOf(app: INestApplicationContext, name?: string): Shop {
  return app.get<Shop>(getBoxToken(name))
}

let orders = 0

/** An order, of an id that no other has. */
export function order(sku = 'tea'): { id: string; type: string; data: { sku: string } } {
  return { id: `order-${++orders}`, type: 'order.placed', data: { sku } }
}

/** A method of a consumer that any test can have: it keeps what it was called with. */
export const notes = async (pool: pg.Pool): Promise<string[]> =>
  (await pool.query<{ note: string }>('select note from effect order by n')).rows.map(({ note }) => note)
