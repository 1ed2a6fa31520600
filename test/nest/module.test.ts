/** The module: where its options come from, how a box is injected, and when the box starts and stops. */
import { Inject, Injectable, Module, type OnModuleDestroy } from '@nestjs/common'
import { ConfigModule, ConfigService } from '@nestjs/config'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { Test } from '@nestjs/testing'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { unchecked, type Box, type Sink, type Source } from 'oncebox'
import {
  boxClass,
  decorators,
  getBoxToken,
  InjectBox,
  OnceboxModule,
  type OnceboxOptions,
  type OnceboxOptionsFactory,
} from 'oncebox/nest'
import { OnceboxHealthIndicator } from 'oncebox/nest/terminus'
import { fromPg, type PgClient } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'
import { HealthCheckService, TerminusModule } from '@nestjs/terminus'
import { scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import {
  boxOf,
  closeOnce,
  Consumer,
  Handle,
  messages,
  open,
  order,
  SILENT,
  useBench,
  type Ctx,
  type Messages,
  type Placed,
  type Shop,
} from './fixture.js'

const bench = useBench('module')
const POOL = Symbol('pool')

/** What has happened in the app of a test. */
const happened: string[] = []
const begin = () => void happened.splice(0)

/** Has the pool, and ends it, as the modules of database clients do. */
@Module({
  providers: [{ provide: POOL, useFactory: () => new pg.Pool({ connectionString: bench.url, max: 4 }) }],
  exports: [POOL],
})
class DatabaseModule implements OnModuleDestroy {
  constructor(@Inject(POOL) private readonly pool: pg.Pool) {}
  async onModuleDestroy() {
    happened.push('pool ends')
    await this.pool.end()
  }
}

@Consumer('counting')
class Counting {
  readonly handled: string[] = []
  @Handle('order.placed') placed({ id }: Placed) {
    this.handled.push(id)
  }
}

describe('the options', () => {
  const from = (pool: pg.Pool) => bench.options({ db: fromPg(pool) })

  test('may come from a factory that is given what other modules have', async () => {
    const app = await open({
      imports: [OnceboxModule.forRootAsync({ imports: [DatabaseModule], inject: [POOL], useFactory: from })],
      providers: [Counting],
    })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'handled' })
  })

  test('may come from ConfigService', async () => {
    process.env['NEST_TEST_URL'] = bench.url
    onTestFinished(() => void delete process.env['NEST_TEST_URL'])
    let pool: pg.Pool | undefined
    onTestFinished(() => pool?.end())
    const app = await open({
      imports: [
        OnceboxModule.forRootAsync({
          imports: [ConfigModule.forRoot({ ignoreEnvFile: true })],
          inject: [ConfigService],
          useFactory: async (config: ConfigService) => {
            pool = new pg.Pool({ connectionString: config.getOrThrow<string>('NEST_TEST_URL') })
            return from(pool)
          },
        }),
      ],
      providers: [Counting],
    })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'handled' })
  })

  @Injectable()
  class Settings implements OnceboxOptionsFactory<Messages, pg.PoolClient, PgClient> {
    constructor(@Inject(POOL) private readonly pool: pg.Pool) {}
    createOnceboxOptions = () => from(this.pool) as OnceboxOptions<Messages, pg.PoolClient, PgClient>
  }
  @Module({ imports: [DatabaseModule], providers: [Settings], exports: [Settings] })
  class SettingsModule {}

  test('may come from a class, of its own or of another module', async () => {
    for (const given of [
      { imports: [DatabaseModule], useClass: Settings },
      { imports: [SettingsModule], useExisting: Settings },
    ]) {
      const app = await open({ imports: [OnceboxModule.forRootAsync(given)], providers: [Counting] })
      expect(await boxOf(app).handle(order())).toMatchObject({ status: 'handled' })
      await app.close()
    }
  })

  test('that do not exist are refused, with the one that was meant', async () => {
    const given = { ...bench.options(), migrat: true }
    const app = Test.createTestingModule({ imports: [OnceboxModule.forRoot(given)] }).compile()
    await expect(app).rejects.toMatchObject({ code: 'OPTION_INVALID', message: expect.stringContaining('migrate') })
    expect(() => OnceboxModule.forRootAsync({} as never)).toThrow('one of useFactory, useClass and useExisting')
  })
})

describe('a box', () => {
  test('is injected everywhere, also where its module is not imported', async () => {
    @Injectable()
    class Orders {
      constructor(@InjectBox() readonly box: Shop) {}
    }
    @Module({ providers: [Orders], exports: [Orders] })
    class OrdersModule {}
    const app = await open({ imports: [OrdersModule, bench.root()] })
    expect(app.get(Orders).box).toBe(boxOf(app))
  })

  test('is injected by its name, or by its class, if there are several; each has its consumers', async () => {
    const billing = { 'bill.due': unchecked<{ cents: number }>() }
    class BillingBox extends boxClass<typeof billing, pg.PoolClient, PgClient>() {}
    const shop = decorators<Messages, pg.PoolClient>('shop')
    const bills = decorators<typeof billing, pg.PoolClient>(BillingBox)
    const seen: string[] = []

    @shop.Consumer('same-name')
    class Orders {
      constructor(@shop.InjectBox() readonly box: Shop) {}
      @shop.Handle('order.placed') placed() {
        seen.push('order')
      }
    }
    @bills.Consumer('same-name')
    class Bills {
      constructor(
        @Inject(BillingBox) readonly box: BillingBox,
        @InjectBox('shop') readonly other: Shop,
      ) {}
      @bills.Handle('bill.due') due() {
        seen.push('bill')
      }
    }
    const app = await open({
      imports: [
        bench.root({ name: 'shop' }),
        OnceboxModule.forRoot({
          ...{ name: BillingBox, db: fromPg(bench.pool), messages: billing, migrate: true, logger: SILENT },
          schema: scratchSchemaName('billing'),
        }),
      ],
      providers: [Orders, Bills],
    })
    expect(app.get(Bills).other).toBe(app.get(Orders).box)
    expect(app.get(Bills).box).not.toBe(app.get(Orders).box)
    await app.get(Orders).box.handle(order())
    await app.get(BillingBox).handle({ id: 'b-1', type: 'bill.due', data: { cents: 1 } })
    expect(seen).toEqual(['order', 'bill'])
    expect(await app.get(BillingBox).handle(order())).toMatchObject({ status: 'quarantined' })
  })
})

describe('its life', () => {
  test('begins when the app starts: migrated, set up, and at work', async () => {
    begin()
    const source: Source = {
      name: 'test source',
      async start() {
        happened.push('source starts')
      },
      async stop() {
        happened.push('source stops')
      },
    }
    const setUp = (box: Shop) => {
      happened.push('set up')
      box.from(source)
    }
    const app = await open({ imports: [bench.root({ setUp })], providers: [Counting] })
    await waitUntil(() => happened.includes('source starts'))
    const given = order()
    await boxOf(app).receive(given)
    await waitUntil(() => app.get(Counting).handled.includes(given.id))
    await app.close()
    expect(happened).toEqual(['set up', 'source starts', 'source stops'])
  })

  test('a process that only sends does not start it', async () => {
    const app = await open({ imports: [bench.root({ start: false })], providers: [Counting] })
    const client = await bench.pool.connect()
    await client.query('begin')
    const { id } = await boxOf(app).send(client, 'order.placed', { sku: 'tea' })
    await client.query('commit')
    client.release()
    expect(id).toBeTypeOf('string')
    await boxOf(app).receive(order())
    expect(await boxOf(app).health()).toMatchObject({ ok: true })
    expect(app.get(Counting).handled).toEqual([])
  })

  test('without migrate, an app on a database that has no tables does not start', async () => {
    const app = await Test.createTestingModule({ imports: [bench.root({ migrate: false })] }).compile()
    closeOnce(app)
    await expect(app.init()).rejects.toMatchObject({ code: 'SCHEMA_OUTDATED' })
  })

  test.each([
    ['that the box imports', 'async'],
    ['that the app imports after it', 'after'],
    ['that the app imports before it', 'before'],
  ] as const)('ends before the pool of a module %s', async (_, how) => {
    begin()
    @Consumer('slow')
    class Slow {
      @Handle('order.placed') async placed(__: Placed, { tx }: Ctx) {
        happened.push('handler begins')
        await tx.query('select pg_sleep(0.3)')
        happened.push('handler ends')
      }
    }
    const box = OnceboxModule.forRootAsync({
      imports: [DatabaseModule],
      inject: [POOL],
      useFactory: (pool: pg.Pool) => bench.options({ db: fromPg(pool) }),
    })
    const imports = { async: [box], after: [box, DatabaseModule], before: [DatabaseModule, box] }[how]
    const app = await open({ imports, providers: [Slow] })
    const given = order()
    await boxOf(app).receive(given)
    await waitUntil(() => happened.includes('handler begins'))
    await app.close()
    expect(happened).toEqual(['handler begins', 'handler ends', 'pool ends'])
  })

  test('ends before the pool also when the app is closed while it starts', async () => {
    begin()
    let close: Promise<void> | undefined
    const closeNow = () => {
      close = app.close().then(() => void happened.push('closed'))
    }
    const box = OnceboxModule.forRootAsync({
      imports: [DatabaseModule],
      inject: [POOL],
      useFactory: (pool: pg.Pool) => bench.options({ db: fromPg(pool), setUp: closeNow }),
    })
    const module = await Test.createTestingModule({ imports: [box], providers: [Counting] }).compile()
    const app = module.createNestApplication()
    app.useLogger(false)
    await app.init().then(() => happened.push('initialised'))
    await close
    expect(happened.sort()).toEqual(['closed', 'initialised', 'pool ends'])
  })

  test('is the same behind an HTTP server of Express and of Fastify', async () => {
    for (const adapter of [undefined, new FastifyAdapter()]) {
      const module = await Test.createTestingModule({ imports: [bench.root()], providers: [Counting] }).compile()
      const app = adapter ? module.createNestApplication(adapter) : module.createNestApplication()
      app.useLogger(false)
      closeOnce(app)
      await app.listen(0, '127.0.0.1')
      expect(await boxOf(app).handle(order())).toMatchObject({ status: 'handled' })
      await app.close()
    }
  })
})

describe('tests of an app', () => {
  test('put a test box in place of its box: it is set up, not started, and drained by the test', async () => {
    await using box = await createTestBox({ db: fromPg(bench.pool), messages })
    const imports = [bench.root({ db: fromPg(new pg.Pool({ host: 'nowhere.invalid' })) })]
    const module = await Test.createTestingModule({ imports, providers: [Counting] })
      .overrideProvider(getBoxToken())
      .useValue(box)
      .compile()
    const app = await module.init()
    closeOnce(app)
    const given = order()
    await box.deliver(given, { times: 3 })
    expect(app.get(Counting).handled).toEqual([])
    await box.drain()
    expect(app.get(Counting).handled).toEqual([given.id])
    await app.close()
  })

  test('publish nothing to the sinks of the app, and may have a sink of their own', async () => {
    await using box = await createTestBox({ db: fromPg(bench.pool), messages })
    const published: string[] = []
    const sink = (name: string): Sink & { readonly name: string } => ({
      name,
      async publish(events) {
        published.push(...events.map(({ id }) => `${name} ${id}`))
        return events.map(() => undefined)
      },
      async close() {},
    })
    const broker = sink('broker')
    const setUp = (given: Shop) => {
      expect(given.to(broker)).toBe(broker)
      given.from(source)
    }
    const source: Source = { name: 'orders', async start() {}, async stop() {} }
    const module = await Test.createTestingModule({ imports: [bench.root({ setUp })], providers: [Counting] })
      .overrideProvider(getBoxToken())
      .useValue(box)
      .compile()
    closeOnce(await module.init())
    // It is attached to the box itself.
    expect(() => box.from(source)).toThrow(/attached/)
    const client = await bench.pool.connect()
    await client.query('begin')
    const { id } = await box.send(client, 'order.placed', { sku: 'tea' })
    await client.query('commit')
    client.release()
    await box.drain()
    expect(published).toEqual([])
    expect((await box.sent()).map((event) => event.id)).toEqual([id])
    box.to(sink('own'))
    await box.drain()
    expect(published).toEqual([`own ${id}`])
  })

  test('may put something else in place of a consumer', async () => {
    await using box = await createTestBox({ db: fromPg(bench.pool), messages })
    const module = await Test.createTestingModule({ imports: [bench.root()], providers: [Counting] })
      .overrideProvider(getBoxToken())
      .useValue(box)
      .overrideProvider(Counting)
      .useValue({})
      .compile()
    const app = await module.init()
    expect((await box.deliver(order()))[0]).toMatchObject({ status: 'quarantined', reason: 'unrouted' })
    await app.close()
  })
})

describe('the health indicator', () => {
  const check = async (pool: pg.Pool, limits?: { maxLagMs?: number }) => {
    const options = bench.options({ db: fromPg(pool), start: false, migrate: pool === bench.pool })
    const app = await open({
      imports: [TerminusModule.forRoot({ logger: false }), OnceboxModule.forRoot(options)],
      providers: [OnceboxHealthIndicator, Counting],
    })
    if (limits) await boxOf(app).receive(order())
    const health = await app.resolve(HealthCheckService)
    return health.check([() => app.get(OnceboxHealthIndicator).isHealthy('box', limits)]).then(
      (result) => result,
      (error: { getResponse(): object }) => error.getResponse(),
    )
  }

  test('says up with the figures of the box', async () => {
    const up = { status: 'up', database: true, sources: true, lagMs: expect.any(Number) }
    expect(await check(bench.pool)).toMatchObject({ status: 'ok', details: { box: up } })
  })

  test('says down with the reasons', async () => {
    const down = { status: 'down', reasons: [expect.stringContaining('above maxLagMs')] }
    expect(await check(bench.pool, { maxLagMs: 0 })).toMatchObject({ status: 'error', details: { box: down } })
    const gone = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/gone' })
    const unreachable = { status: 'down', database: false }
    expect(await check(gone)).toMatchObject({ status: 'error', details: { box: unreachable } })
  })

  test('finds a box by its name', async () => {
    const app = await open({
      imports: [TerminusModule.forRoot({ logger: false }), bench.root({ name: 'shop' })],
      providers: [OnceboxHealthIndicator],
    })
    const found = await app.get(OnceboxHealthIndicator).isHealthy('shop', { box: 'shop' })
    expect(found.shop.status).toBe('up')
  })
})

test('the lines of a box go to the logger of the app', async () => {
  const lines: string[] = []
  const logger = Object.fromEntries(
    ['log', 'error', 'warn', 'debug', 'verbose', 'fatal'].map((level) => [
      level,
      (text: unknown, context: unknown) => lines.push(`${level} [${String(context)}] ${String(text)}`),
    ]),
  )
  @Consumer('telling')
  class Telling {
    @Handle('order.placed') placed(_: Placed, { log }: Ctx) {
      log.info({ sku: 'tea' }, 'reserved')
    }
  }
  const { logger: _, ...options } = bench.options()
  const module = await Test.createTestingModule({ imports: [OnceboxModule.forRoot(options)], providers: [Telling] })
    .setLogger(logger as never)
    .compile()
  const app = await module.init()
  closeOnce(app)
  const box: Box<Messages, pg.PoolClient> = boxOf(app)
  const given = order()
  await box.handle(given)
  expect(lines.join('\n')).toContain(`log [Oncebox] reserved (id ${given.id}, type order.placed, consumer telling`)
})
