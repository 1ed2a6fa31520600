/** What MikroORM keeps beyond the conformance suite. */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import pg from 'pg'
import { createBox, type Driver, type OnceboxErrorCode } from 'oncebox'
import { fromMikroOrm } from 'oncebox/mikro-orm'
import { fromPg } from 'oncebox/pg'
import { causes } from '../../src/failure.js'
import { placeOf } from '../drivers/subjects.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { MIKRO_ORM } from './mikro-orm.js'
import { type Opened, subject } from './subject.js'
import { promisesOf } from './suite.js'

describe('MikroORM 7', () => promisesOf({ name: 'mikro-orm', from: MIKRO_ORM }))

/** An EntityManager, as far as these tests use one: the packages of package.json are of another version. */
interface Em {
  fork(): Em
  create(entity: object, data: object): object
  persist(entity: object): Em
  find(entity: object, where: object): Promise<{ id: string }[]>
  count(entity: object, where: object): Promise<number>
  insert(entity: object, data: object): Promise<unknown>
  transactional<R>(work: (em: Em) => Promise<R>, options?: object): Promise<R>
  begin(): Promise<void>
  commit(): Promise<void>
  setTransactionContext?: unknown
  getConnection(): { getClient(): unknown }
}

interface Orm {
  readonly em: Em
  readonly config: { get(name: string): unknown; set(name: string, value: unknown): void }
  readonly schema: { getUpdateSchemaSQL(): Promise<string> }
}

interface RequestContext {
  create<R>(em: Em, work: () => Promise<R>): Promise<R>
}

let database: ScratchDatabase
let pool: pg.Pool
let opened: Opened & { readonly orm: Orm; readonly RequestContext: RequestContext; readonly Effect: object }
let driver: Driver<Em>

beforeAll(async () => {
  database = await scratchDatabase('client_mikro_orm_own')
  pool = new pg.Pool({ connectionString: database.url, max: 2 })
  await pool.query(`create table effect (n bigserial primary key, consumer text, key text, id text unique, seq int,
    attempt int, pid int)`)
  const { open } = await subject('mikro-orm')
  opened = (await open({ ...placeOf(database.url), max: 4, name: 'own' }, await MIKRO_ORM())) as typeof opened
  driver = opened.driver as unknown as Driver<Em>
})
beforeEach(() => pool.query('truncate effect'))
afterAll(async () => {
  await opened?.close()
  await pool?.end()
  await database?.close()
})

const ids = async (): Promise<string[]> =>
  (await pool.query<{ id: string }>('select id from effect order by id')).rows.map(({ id }) => id)
const code = (value: OnceboxErrorCode) => ({ code: value })
const effect = (id: string) => ({ consumer: 'c', key: null, id, seq: null, attempt: 1, pid: 0 })
const persist = (em: Em, id: string): void => void em.persist(em.create(opened.Effect, effect(id)))

/** A handler as the box calls it. */
function handled<R>(handler: (tx: Em) => Promise<R>): Promise<R> {
  return driver.transaction(async (tx) => {
    const loan = driver.lend!(tx)
    const result = await loan.run!(() => handler(loan.tx))
    await loan.giveBack()
    return result
  })
}

describe('in a handler', () => {
  test('what was persisted is flushed when it has returned, and a failure of that is its own', async () => {
    await handled(async (tx) => persist(tx, 'a'))
    expect(await ids()).toEqual(['a'])
    const error = await handled(async (tx) => persist(tx, 'a')).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'UniqueConstraintViolationException', code: '23505' })
    expect([...causes(error)]).toHaveLength(2)
    expect(await ids()).toEqual(['a'])
  })

  test('the EntityManager that a service was given is that of the handler', async () => {
    const service = {
      place: async (id: string) => persist(opened.orm.em, id),
      all: () => opened.orm.em.find(opened.Effect, {}),
    }
    await handled(async () => {
      await service.place('injected')
      expect(await ids()).toEqual([])
    })
    expect(await ids()).toEqual(['injected'])
    await handled(async () => expect(await service.all()).toMatchObject([{ id: 'injected' }]))
    // Outside of handlers it is what it was.
    await expect(service.all()).rejects.toThrow(/global EntityManager/)
  })

  test('what it has started and outlives it has the context of the user', async () => {
    const count = () => opened.orm.em.count(opened.Effect, {})
    const inRequest = () => opened.RequestContext.create(opened.orm.em, count)
    const returned = withResolvers()
    let job: Promise<number> | undefined
    let late: Promise<number> | undefined
    await handled(async (tx) => {
      job = returned.promise.then(inRequest)
      late = returned.promise.then(count)
      await tx.insert(opened.Effect, effect('a'))
      expect(await inRequest()).toBe(1)
    })
    await pool.query('truncate effect')
    returned.resolve()
    await expect(late).rejects.toMatchObject(code('TRANSACTION_CLOSED'))
    expect(await job).toBe(0)
  })

  test('each has an identity map of its own', async () => {
    await handled(async (tx) => persist(tx, 'a'))
    await pool.query(`update effect set id = 'b'`)
    await handled(async (tx) => expect(await tx.find(opened.Effect, {})).toMatchObject([{ id: 'b' }]))
  })

  test('its transaction is not to be ended', async () => {
    await expect(handled((tx) => tx.commit())).rejects.toMatchObject(code('HANDLER_COMMITTED'))
  })

  test.for<[string, (tx: Em) => Em]>([
    ['tx', (tx) => tx],
    ['one that a service was given', () => opened.orm.em],
  ])('begin() leaves its transaction by no EntityManager: %s', async ([, of]) => {
    const write = async (em: Em) => {
      await em.begin()
      await em.insert(opened.Effect, effect('left'))
      await em.commit()
      throw new Error('of the handler')
    }
    await expect(handled((tx) => write(of(tx)))).rejects.toMatchObject(code('HANDLER_COMMITTED'))
    await expect(handled((tx) => of(tx).transactional(write))).rejects.toMatchObject(code('HANDLER_COMMITTED'))
    expect(await ids()).toEqual([])
    // Swallowed, it has changed nothing.
    await handled(async (tx) => {
      await of(tx)
        .begin()
        .catch(() => {})
      await of(tx).insert(opened.Effect, effect('inside'))
      expect(await ids()).toEqual([])
    })
    expect(await ids()).toEqual(['inside'])
  })

  test('a transaction within it is not ended by its EntityManager', async () => {
    const failing = handled((tx) =>
      tx.transactional(async (inner) => {
        await inner.commit().catch(() => {})
        await inner.insert(opened.Effect, effect('left'))
        throw new Error('of the handler')
      }),
    )
    await expect(failing).rejects.toThrow('of the handler')
    expect(await ids()).toEqual([])
  })

  test('a fork, and a transaction that is told to be new, are others, and commit on their own', async () => {
    const failing = handled(async (tx) => {
      const fork = tx.fork()
      await fork.begin()
      await fork.insert(opened.Effect, effect('fork'))
      await fork.commit()
      const options = { propagation: 'requires_new' }
      await tx.transactional((em) => em.insert(opened.Effect, effect('new')), options)
      throw new Error('of the handler')
    })
    await expect(failing).rejects.toThrow('of the handler')
    expect(await ids()).toEqual(['fork', 'new'])
  })

  test('an EntityManager that is kept is refused', async () => {
    let kept: Em | undefined
    await handled(async (tx) => void (kept = tx))
    const error = await kept!.count(opened.Effect, {}).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject(code('TRANSACTION_CLOSED'))
  })
})

describe('the schema generator', () => {
  const boxOn = (schema: string) =>
    createBox({ db: driver, schema, logger: { debug() {}, info() {}, warn() {}, error() {} } })

  test('leaves the tables alone whose schema it is told to ignore, and would drop others', async () => {
    await boxOn('oncebox').migrate()
    expect(await opened.orm.schema.getUpdateSchemaSQL()).not.toContain('oncebox')
    const settings = opened.orm.config.get('schemaGenerator') as { ignoreSchema: string[] }
    const { ignoreSchema } = settings
    try {
      settings.ignoreSchema = []
      expect(await opened.orm.schema.getUpdateSchemaSQL()).toMatch(/drop table if exists "oncebox"/)
      // So a box says no, before and after its tables are there.
      const words = expect.objectContaining({
        ...code('OPTION_INVALID'),
        message: expect.stringContaining(`ignoreSchema: ['oncebox']`) as string,
      })
      await expect(boxOn('oncebox').migrate()).rejects.toEqual(words)
      await expect(boxOn('oncebox').start()).rejects.toEqual(words)
    } finally {
      settings.ignoreSchema = ignoreSchema
    }
  })
})

test('a session context that is set when a connection is taken from the pool is refused by a box', async () => {
  const { config } = opened.orm
  const before = config.get('sessionContext')
  onTestFinished(() => config.set('sessionContext', before))
  config.set('sessionContext', 'connection')
  const box = createBox({ db: driver, logger: { debug() {}, info() {}, warn() {}, error() {} } })
  const words = expect.objectContaining({
    ...code('OPTION_INVALID'),
    message: expect.stringContaining(`sessionContext: 'transaction'`) as string,
  })
  await expect(box.migrate()).rejects.toEqual(words)
  await expect(box.start()).rejects.toEqual(words)
})

describe('group.together', () => {
  /** Declared before anything is known of the pool. */
  const declared = (orm: Orm) => {
    const box = createBox({ db: fromMikroOrm(orm), logger: { debug() {}, info() {}, warn() {}, error() {} } })
    box.consumer('c', { put: async () => {} }, { group: { together: true } })
    return box
  }

  test('may be asked for before the pool is known', async () => {
    const box = declared(opened.orm)
    await box.migrate()
    await box.start()
    await box.stop()
  })

  test('is refused at the start if its client cannot do it', async () => {
    class Old extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super(config)
        delete (this as { pipeline?: boolean }).pipeline
      }
    }
    const old = new pg.Pool({ connectionString: database.url, max: 2, Client: Old })
    onTestFinished(() => old.end())
    const real = opened.orm.em.getConnection()
    const connection = { getClient: () => real.getClient(), getNativeClient: async () => old }
    const em = Object.create(opened.orm.em, { getConnection: { value: () => connection } }) as Em
    await createBox({ db: driver }).migrate()
    const words = expect.stringContaining('group.together needs a client') as string
    await expect(declared({ ...opened.orm, em, config: opened.orm.config }).start()).rejects.toMatchObject({
      ...code('OPTION_INVALID'),
      message: words,
    })
  })
})

describe('fromMikroOrm refuses', () => {
  test.for<[string, () => unknown, RegExp]>([
    ['a connection string', () => fromMikroOrm('postgres://' as never), /connection string/],
    ['a pool', () => fromMikroOrm(pool as never), /a pool of pg/],
    ['an EntityManager', () => fromMikroOrm(opened.orm.em as never), /MikroORM\.init/],
    [
      'a version without a member that it needs',
      () => {
        const em = Object.create(opened.orm.em, { setTransactionContext: { value: undefined } }) as Em
        return fromMikroOrm({ em, config: opened.orm.config })
      },
      /has no em\.setTransactionContext\(\)/,
    ],
  ])('%s', ([, call, words]) => {
    expect(call).toThrow(
      expect.objectContaining({ ...code('OPTION_INVALID'), message: expect.stringMatching(words) as string }),
    )
  })

  test('MikroORM 6', async () => {
    const { MikroORM } = await import('@mikro-orm/postgresql')
    const six = await MikroORM.init({
      dbName: 'x',
      entities: [],
      connect: false,
      discovery: { warnWhenNoEntities: false },
    })
    expect(() => fromMikroOrm(six)).toThrow(/MikroORM 6/)
    expect(() => fromPg(six as never)).toThrow(/fromMikroOrm of oncebox\/mikro-orm/)
  })
})

function withResolvers(): { promise: Promise<void>; resolve(): void } {
  let resolve!: () => void
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}
