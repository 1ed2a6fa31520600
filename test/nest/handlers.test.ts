/** Handlers are called through Nest: what of its enhancers acts on a message, and what cannot. */
import {
  Inject,
  Injectable,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ParseIntPipe,
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common'
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, REQUEST } from '@nestjs/core'
import {
  catchError,
  concat,
  defaultIfEmpty,
  defer,
  forkJoin,
  map,
  of,
  race,
  repeat,
  retry,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
  timeout,
  type Observable,
  type OperatorFunction,
} from 'rxjs'
import { beforeEach, describe, expect, test } from 'vitest'
import { Reject, RetryLater, type BatchContext, type MessageOf } from 'oncebox'
import * as nest from 'oncebox/nest'
import type { MessageRequest } from 'oncebox/nest'
import type pg from 'pg'
import { gate } from '../inbox/fixture.js'
import {
  boxOf,
  Consumer,
  Handle,
  HandleBatch,
  notes,
  open,
  order,
  refusal,
  useBench,
  type Ctx,
  type Messages,
  type Placed,
} from './fixture.js'

const bench = useBench('handlers')
/** In the order in which it happened. */
let seen: string[] = []
beforeEach(async () => {
  seen = []
  await bench.pool.query('truncate effect')
})
const write = (tx: pg.PoolClient, note: string) => tx.query('insert into effect (note) values ($1)', [note])
const ONCE = { retry: { attempts: 1 } }

test('a handler is a method of its instance, in the transaction of its message', async () => {
  @Injectable()
  class Stock {
    reserve = (tx: pg.PoolClient, sku: string) => write(tx, `reserved ${sku}`)
  }
  @Consumer('reserve')
  class Reserve {
    constructor(@Inject(Stock) private readonly stock: Stock) {}
    @Handle('order.placed') async placed({ data }: Placed, { tx, send }: Ctx) {
      await this.stock.reserve(tx, data.sku)
      await send('stock.reserved', { sku: data.sku })
      return { reserved: data.sku }
    }
  }
  const app = await open({ imports: [bench.root()], providers: [Stock, Reserve] })
  const outcome = await boxOf(app).handle(order('tea'))
  expect(outcome).toMatchObject({ status: 'handled', result: { reserved: 'tea' } })
  expect(await notes(bench.pool)).toEqual(['reserved tea'])
})

test('a message that is delivered five times is handled once, and one whose handler throws leaves nothing', async () => {
  @Consumer('book', ONCE)
  class Book {
    @Handle('order.placed') async placed({ data }: Placed, { tx }: Ctx) {
      await write(tx, data.sku)
      if (data.sku === 'bad') throw new Error('no such thing')
    }
  }
  const app = await open({ imports: [bench.root()], providers: [Book] })
  const same = order('tea')
  for (let n = 0; n < 5; n++) await boxOf(app).handle(same)
  expect(await boxOf(app).handle(order('bad'))).toMatchObject({ status: 'dead', error: { message: 'no such thing' } })
  expect(await notes(bench.pool)).toEqual(['tea'])
})

test('the decorators of the package serve an app of one box, without its vocabulary', async () => {
  @nest.Consumer('book')
  class Book {
    @nest.Handle('order.placed') placed({ data }: Placed, { tx }: Ctx) {
      return write(tx, data.sku)
    }
    @nest.HandleBatch('order.changed') changed(all: readonly MessageOf<Messages, 'order.changed'>[]) {
      seen.push(...all.map(({ data }) => data.sku))
    }
  }
  const app = await open({ imports: [bench.root()], providers: [Book] })
  expect(await boxOf(app).handle(order('tea'))).toMatchObject({ status: 'handled' })
  await boxOf(app).handle({ id: 'change-1', type: 'order.changed', data: { sku: 'mint', to: 2 } })
  expect([await notes(bench.pool), seen]).toEqual([['tea'], ['mint']])
})

test('one method may handle several types, and one class all that are left', async () => {
  @Consumer('all')
  class All {
    @Handle('order.placed', 'order.changed') known(message: { type: string }) {
      seen.push(`known ${message.type}`)
    }
    @Handle('*') rest(message: { type: string }) {
      seen.push(`rest ${message.type}`)
    }
  }
  const app = await open({ imports: [bench.root()], providers: [All] })
  for (const type of ['order.placed', 'order.changed', 'stock.reserved'] as const) {
    await boxOf(app).handle({ id: type, type, data: { sku: 'tea', to: 1 } })
  }
  expect(seen).toEqual(['known order.placed', 'known order.changed', 'rest stock.reserved'])
})

test('handlers of a base class are inherited', async () => {
  abstract class Base {
    abstract readonly name: string
    @Handle('order.placed') placed() {
      seen.push(this.name)
    }
  }
  @Consumer('inherits')
  class Inherits extends Base {
    readonly name = 'derived'
  }
  const app = await open({ imports: [bench.root()], providers: [Inherits] })
  await boxOf(app).handle(order())
  expect(seen).toEqual(['derived'])
})

test('a batch handler gets many messages in one call', async () => {
  @Consumer('batches')
  class Batches {
    @HandleBatch('order.placed') async placed(many: readonly Placed[], { tx }: BatchContext<Messages, pg.PoolClient>) {
      for (const { data } of many) await write(tx, data.sku)
      seen.push(`${many.length}`)
    }
  }
  const app = await open({ imports: [bench.root({ start: false })], providers: [Batches] })
  await boxOf(app).receive([order('a'), order('b'), order('c')])
  await boxOf(app).drain()
  expect(seen).toEqual(['3'])
  expect((await notes(bench.pool)).sort()).toEqual(['a', 'b', 'c'])
})

describe('guards', () => {
  @Injectable()
  class Admission implements CanActivate {
    canActivate(context: ExecutionContext) {
      const [{ data }, ctx] = context.getArgs<[Placed, Ctx]>()
      seen.push(`${context.getType()} ${context.getClass().name}.${context.getHandler().name} ${typeof ctx.tx.query}`)
      return data.sku !== 'weapons'
    }
  }

  test('of a class run before its handlers, and one that refuses makes the attempt fail', async () => {
    @Consumer('guarded', ONCE)
    @UseGuards(Admission)
    class Guarded {
      @Handle('order.placed') placed({ data }: Placed) {
        seen.push(`handled ${data.sku}`)
      }
    }
    const app = await open({ imports: [bench.root()], providers: [Guarded] })
    expect(await boxOf(app).handle(order('tea'))).toMatchObject({ status: 'handled' })
    const refused = await boxOf(app).handle(order('weapons'))
    expect(refused).toMatchObject({ status: 'dead', error: { name: 'ForbiddenException' } })
    const asked = 'oncebox Guarded.placed function'
    expect(seen).toEqual([asked, 'handled tea', asked])
  })

  test('of a method, and those of the whole app, run too', async () => {
    const seeing = (name: string): CanActivate => ({ canActivate: () => seen.push(name) > 0 })
    @Consumer('guarded')
    class Guarded {
      @UseGuards(seeing('of the method')) @Handle('order.placed') placed() {
        seen.push('handled')
      }
    }
    const providers = [Guarded, { provide: APP_GUARD, useValue: seeing('of the app') }]
    const app = await open({ imports: [bench.root()], providers })
    await boxOf(app).handle(order())
    expect(seen).toEqual(['of the app', 'of the method', 'handled'])
  })

  test('that Nest would leave out without a word are refused at the start', async () => {
    @Consumer('guarded')
    @UseGuards(Admission)
    class Guarded {
      @Handle('order.placed') placed() {}
    }
    for (const provider of [
      { provide: 'other', useClass: Guarded },
      { provide: Guarded, useFactory: () => new Guarded() },
      { provide: Guarded, useValue: new Guarded() },
    ]) {
      const refused = await refusal({ imports: [bench.root()], providers: [provider] })
      expect(refused).toMatchObject({ code: 'OPTION_INVALID' })
      expect(refused.message).toContain('Admission cannot run before Guarded')
    }
  })
})

describe('interceptors', () => {
  @Injectable()
  class Around implements NestInterceptor {
    intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
      seen.push('before')
      return next.handle().pipe(
        map((result) => ({ wrapped: result })),
        tap(() => seen.push('after')),
      )
    }
  }

  test('run around a handler and may change its result', async () => {
    @Consumer('intercepted')
    @UseInterceptors(Around)
    class Intercepted {
      @Handle('order.placed') async placed(_: Placed, { tx }: Ctx) {
        await write(tx, 'inside')
        seen.push('handled')
        return 1
      }
    }
    const app = await open({ imports: [bench.root()], providers: [Intercepted] })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'handled', result: { wrapped: 1 } })
    expect(seen).toEqual(['before', 'handled', 'after'])
    expect(await notes(bench.pool)).toEqual(['inside'])
  })

  test('of the whole app run, and see what a handler throws', async () => {
    const reporting: NestInterceptor = {
      intercept: (_, next) => next.handle().pipe(tap({ error: (error: Error) => seen.push(error.message) })),
    }
    @Consumer('failing', ONCE)
    class Failing {
      @Handle('order.placed') placed() {
        throw new Reject('never')
      }
    }
    const app = await open({
      imports: [bench.root()],
      providers: [Failing, { provide: APP_INTERCEPTOR, useValue: reporting }],
    })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'dead', error: { name: 'Reject' } })
    expect(seen).toEqual(['never'])
  })

  test('let RetryLater through', async () => {
    @Consumer('later')
    @UseInterceptors(Around)
    class Later {
      @Handle('order.placed') placed() {
        throw new RetryLater({ afterMs: 60_000 })
      }
    }
    const app = await open({ imports: [bench.root()], providers: [Later] })
    const [fate] = (await boxOf(app).handle(order())).consumers
    expect(fate).toMatchObject({ status: 'failed', retryAt: expect.any(Date) })
    expect((fate as { retryAt: Date }).retryAt.getTime()).toBeGreaterThan(Date.now() + 30_000)
  })

  test.each<[string, OperatorFunction<unknown, unknown>, string]>([
    ['catch its error', catchError(() => of('fine')), 'no'],
    ['call it again', retry(1), 'no'],
    ['replace its error', catchError(() => throwError(() => new Error('in other words'))), 'in other words'],
  ])('that %s do not make the message of a handler handled that has thrown', async (_, operator, message) => {
    const around: NestInterceptor = { intercept: (__, next) => next.handle().pipe(operator) }
    let calls = 0
    @Consumer('half-done', ONCE)
    @UseInterceptors(around)
    class HalfDone {
      @Handle('order.placed') async placed(__: Placed, { tx }: Ctx) {
        await write(tx, 'half done')
        if (++calls === 1) throw new Error('no')
      }
    }
    const app = await open({ imports: [bench.root()], providers: [HalfDone] })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'dead', error: { message } })
    expect(await notes(bench.pool)).toEqual([])
  })

  test.each<[string, (handled: Observable<unknown>) => Observable<unknown>]>([
    ['subscribe twice', (handled) => (handled.subscribe({ error: () => undefined }), handled)],
    ['repeat it', (handled) => handled.pipe(repeat(3))],
    ['join it to itself', (handled) => forkJoin([handled, handled]).pipe(map(([first]) => first))],
  ])('that %s do not make a handler write twice', async (_, operator) => {
    const around: NestInterceptor = { intercept: (__, next) => operator(next.handle()) }
    @Consumer('doubled', ONCE)
    @UseInterceptors(around)
    class Doubled {
      @Handle('order.placed') async placed({ data }: Placed, { tx, send }: Ctx) {
        await write(tx, data.sku)
        await send('stock.reserved', data)
        return { calls: seen.push(data.sku) }
      }
      @HandleBatch('order.changed') async changed(
        many: readonly MessageOf<Messages, 'order.changed'>[],
        { tx }: BatchContext<Messages, pg.PoolClient>,
      ) {
        for (const { data } of many) await write(tx, data.sku)
      }
    }
    const app = await open({ imports: [bench.root()], providers: [Doubled] })
    expect(await boxOf(app).handle(order('tea'))).toMatchObject({ status: 'handled', result: { calls: 1 } })
    expect(await boxOf(app).handle(order('milk'))).toMatchObject({ status: 'handled', result: { calls: 2 } })
    const changed = { id: 'change', type: 'order.changed', data: { sku: 'rum', to: 1 } } as const
    expect(await boxOf(app).handle(changed)).toMatchObject({ status: 'handled' })
    expect(await notes(bench.pool)).toEqual(['tea', 'milk', 'rum'])
    expect((await boxOf(app).admin.messages({ box: 'outbox' })).entries).toHaveLength(2)
  })

  const early = new Subject<string>()
  test.each<[string, (handled: Observable<unknown>) => Observable<unknown>]>([
    ['fall back after a time', (handled) => handled.pipe(timeout({ each: 20, with: () => of('fallback') }))],
    ['race the handler', (handled) => race(handled, early.pipe(take(1)))],
    ['give up', (handled) => handled.pipe(takeUntil(early), defaultIfEmpty('none'))],
    ['do not wait for it', (handled) => (handled.subscribe({ error: () => undefined }), of('done'))],
  ])('that %s do not make the message of a handler handled that still runs', async (name, operator) => {
    const around: NestInterceptor = { intercept: (_, next) => operator(next.handle()) }
    const answered = gate()
    const refused = gate<unknown>()
    @Consumer('half-done', ONCE)
    @UseInterceptors(around)
    class HalfDone {
      @Handle('order.placed') async placed(_: Placed, { tx }: Ctx) {
        try {
          await write(tx, 'half done')
          early.next(name)
          await answered.opened
          await write(tx, 'whole')
        } catch (error) {
          refused.open(error)
        }
      }
    }
    const app = await open({ imports: [bench.root()], providers: [HalfDone] })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'dead', error: { code: 'UNAWAITED_CALL' } })
    answered.open()
    expect(await refused.opened).toBeInstanceOf(Error)
    expect(await notes(bench.pool)).toEqual([])
  })

  test.each<[string, OperatorFunction<unknown, unknown>, { message: string }]>([
    ['the first value alone', take(1), { message: 'no' }],
    ['no error', catchError(() => of('fine')), { message: 'no' }],
  ])(
    'that take %s of a handler which answers an observable do not make its message handled',
    async (_, operator, error) => {
      const around: NestInterceptor = { intercept: (__, next) => next.handle().pipe(operator) }
      @Consumer('half-done', ONCE)
      @UseInterceptors(around)
      class HalfDone {
        @Handle('order.placed') placed(__: Placed, { tx }: Ctx) {
          return concat(
            defer(() => write(tx, 'half done')),
            throwError(() => new Error('no')),
          )
        }
      }
      const app = await open({ imports: [bench.root()], providers: [HalfDone] })
      expect(await boxOf(app).handle(order())).toMatchObject({ status: 'dead', error })
      expect(await notes(bench.pool)).toEqual([])
    },
  )

  test('that swallow an error of a statement do not make its message handled', async () => {
    const swallowing: NestInterceptor = { intercept: (_, next) => next.handle().pipe(catchError(() => of('fine'))) }
    @Consumer('swallowed', ONCE)
    @UseInterceptors(swallowing)
    class Swallowed {
      @Handle('order.placed') async placed(_: Placed, { tx }: Ctx) {
        await tx.query('select 1 / 0')
      }
    }
    const app = await open({ imports: [bench.root()], providers: [Swallowed] })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'dead' })
  })
})

describe('exception filters', () => {
  const swallowing: ExceptionFilter = {
    catch(error: Error, _: ArgumentsHost) {
      seen.push(`filtered ${error.message}`)
      return 'fine'
    },
  }

  test('of the whole app do not swallow the failure of a handler', async () => {
    @Consumer('failing', ONCE)
    class Failing {
      @Handle('order.placed') async placed(_: Placed, { tx }: Ctx) {
        await write(tx, 'half done')
        throw new Error('no')
      }
    }
    const app = await open({
      imports: [bench.root()],
      providers: [Failing, { provide: APP_FILTER, useValue: swallowing }],
    })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'dead', error: { message: 'no' } })
    expect(seen).toEqual([])
    expect(await notes(bench.pool)).toEqual([])
  })

  test('of a consumer are refused at the start', async () => {
    @Consumer('filtered')
    class Filtered {
      @UseFilters(swallowing) @Handle('order.placed') placed() {}
    }
    const refused = await refusal({ imports: [bench.root()], providers: [Filtered] })
    expect(refused).toMatchObject({ code: 'OPTION_INVALID' })
    expect(refused.message).toContain('Filtered.placed has @UseFilters')
  })
})

describe('pipes', () => {
  test('of the whole app leave messages alone, which their schemas check', async () => {
    @Consumer('piped')
    class Piped {
      @Handle('order.placed') placed({ data }: Placed) {
        seen.push(data.sku)
      }
    }
    const app = await open({
      imports: [bench.root()],
      providers: [Piped, { provide: APP_PIPE, useClass: ParseIntPipe }],
    })
    await boxOf(app).handle(order('tea'))
    expect(seen).toEqual(['tea'])
  })

  test('of a consumer are refused at the start', async () => {
    @Consumer('piped')
    @UsePipes(ParseIntPipe)
    class Piped {
      @Handle('order.placed') placed() {}
    }
    const refused = await refusal({ imports: [bench.root()], providers: [Piped] })
    expect(refused).toMatchObject({ code: 'OPTION_INVALID' })
    expect(refused.message).toContain('Piped.placed has @UsePipes')
  })
})

describe('providers that are made per request', () => {
  let made = 0
  /** A repository that is bound to the transaction of the message. */
  @Injectable({ scope: Scope.REQUEST })
  class Ledger {
    readonly n = ++made
    constructor(@Inject(REQUEST) private readonly request: MessageRequest<Messages, pg.PoolClient>) {}
    write = () => write(this.request.ctx.tx, `${this.request.message?.id}`)
  }
  @Injectable()
  class Service {
    constructor(@Inject(Ledger) readonly ledger: Ledger) {}
  }

  test('are made for each message, with its message and context as the request', async () => {
    @Consumer('scoped')
    class Scoped {
      constructor(
        @Inject(Service) private readonly service: Service,
        @Inject(Ledger) private readonly ledger: Ledger,
      ) {}
      @Handle('order.placed') async placed({ id }: Placed) {
        await this.ledger.write()
        seen.push(`${id} ${this.service.ledger === this.ledger}`)
      }
    }
    const app = await open({ imports: [bench.root()], providers: [Ledger, Service, Scoped] })
    const [first, second] = [order(), order()]
    const before = made
    await boxOf(app).handle(first)
    await boxOf(app).handle(second)
    expect(made - before).toBe(2)
    expect(seen).toEqual([`${first.id} true`, `${second.id} true`])
    expect(await notes(bench.pool)).toEqual([first.id, second.id])
  })

  test('may be guards, and a consumer may have that scope itself', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Admission implements CanActivate {
      constructor(@Inject(REQUEST) private readonly request: MessageRequest) {}
      canActivate() {
        return this.request.message?.data !== undefined && seen.push('asked') > 0
      }
    }
    @Consumer('guarded')
    @UseGuards(Admission)
    class Guarded {
      @Handle('order.placed') placed() {
        seen.push('handled')
      }
    }
    @Consumer('scoped')
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      readonly n = ++made
      @Handle('order.changed') changed() {}
    }
    const app = await open({ imports: [bench.root()], providers: [Guarded, Scoped] })
    const before = made
    for (const id of ['c-1', 'c-2']) {
      await boxOf(app).handle(order())
      await boxOf(app).handle({ id, type: 'order.changed', data: { sku: 'tea', to: 1 } })
    }
    expect(seen).toEqual(['asked', 'handled', 'asked', 'handled'])
    expect(made - before).toBe(2)
  })

  test('may be guards and interceptors of the whole app', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Admission implements CanActivate {
      constructor(@Inject(REQUEST) private readonly request: MessageRequest) {}
      canActivate() {
        return seen.push(`asked ${this.request.message?.id}`) > 0
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class Around implements NestInterceptor {
      constructor(@Inject(REQUEST) private readonly request: MessageRequest) {}
      intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
        return next.handle().pipe(tap(() => seen.push(`after ${this.request.message?.id}`)))
      }
    }
    @Consumer('guarded', ONCE)
    class Guarded {
      @Handle('order.placed') placed({ id }: Placed) {
        seen.push(`handled ${id}`)
      }
    }
    const providers = [
      Guarded,
      { provide: APP_GUARD, useClass: Admission, scope: Scope.REQUEST },
      { provide: APP_INTERCEPTOR, useClass: Around, scope: Scope.REQUEST },
    ]
    const app = await open({ imports: [bench.root()], providers })
    const [first, second] = [order(), order()]
    for (const message of [first, second]) {
      expect(await boxOf(app).handle(message)).toMatchObject({ status: 'handled' })
    }
    expect(seen).toEqual([first, second].flatMap(({ id }) => [`asked ${id}`, `handled ${id}`, `after ${id}`]))
  })

  test('get all messages of a batch', async () => {
    @Consumer('scoped')
    class Scoped {
      constructor(@Inject(REQUEST) private readonly request: MessageRequest) {}
      @HandleBatch('order.placed') placed(many: readonly Placed[]) {
        seen.push(`${this.request.messages === many} ${many.length}`)
      }
    }
    const app = await open({ imports: [bench.root({ start: false })], providers: [Scoped] })
    await boxOf(app).receive([order(), order()])
    await boxOf(app).drain()
    expect(seen).toEqual(['true 2'])
  })

  test('one that cannot be made makes the attempt fail', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Broken {
      constructor() {
        throw new Error('no tenant')
      }
    }
    @Consumer('scoped', ONCE)
    class Scoped {
      constructor(@Inject(Broken) readonly broken: Broken) {}
      @Handle('order.placed') placed() {}
    }
    const app = await open({ imports: [bench.root()], providers: [Broken, Scoped] })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'dead', error: { message: 'no tenant' } })
  })

  test('transient guards and consumers are found', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Admission implements CanActivate {
      canActivate = () => seen.push('asked') > 0
    }
    @Consumer('transient')
    @UseGuards(Admission)
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient {
      readonly word = 'handled'
      @Handle('order.placed') placed() {
        seen.push(this.word)
      }
    }
    @Consumer('static')
    @UseGuards(Admission)
    class Static {
      @Handle('order.changed') changed() {
        seen.push('changed')
      }
    }
    const app = await open({ imports: [bench.root()], providers: [Transient, Static] })
    expect(await boxOf(app).handle(order())).toMatchObject({ status: 'handled' })
    await boxOf(app).handle({ id: 'c', type: 'order.changed', data: { sku: 'tea', to: 1 } })
    expect(seen).toEqual(['asked', 'handled', 'asked', 'changed'])
  })
})
