/** What TypeORM keeps beyond what every client does: its repositories, subscribers, logger and schema tool. */
import { DataSource, EntitySchema, type EntityManager, type EntitySubscriberInterface, type InsertEvent } from 'typeorm'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromTypeOrm } from 'oncebox/typeorm'
import { createTestBox } from 'oncebox/testing'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { promisesOf } from './suite.js'

describe('TypeORM 1', () => promisesOf({ name: 'typeorm' }))

interface Account {
  id: string
  cents: number
}

const Account = new EntitySchema<Account>({
  name: 'Account',
  tableName: 'account',
  columns: { id: { type: 'text', primary: true }, cents: { type: 'int', name: 'balance_in_cents' } },
})

/** Tells what it saw, and by which manager. */
class Watcher implements EntitySubscriberInterface<Account> {
  readonly seen: [id: string, manager: EntityManager][] = []
  listenTo = () => 'Account'
  afterInsert({ entity, manager }: InsertEvent<Account>): void {
    this.seen.push([entity.id, manager])
  }
}

const messages = defineMessages({ opened: unchecked<{ id: string }>() })
const one = { id: 'a', type: 'opened', data: { id: 'ada' } } as const

describe('TypeORM, in a handler', () => {
  let database: ScratchDatabase
  let dataSource: DataSource
  const statements: string[] = []
  const watcher = new Watcher()

  beforeAll(async () => {
    database = await scratchDatabase('typeorm')
    const keep = (text: string): void => void statements.push(text)
    dataSource = new DataSource({
      ...{ type: 'postgres', url: database.url, entities: [Account], synchronize: true },
      logging: true,
      logger: {
        ...{ logQuery: keep, log: () => {}, logMigration: () => {}, logQueryError: () => {} },
        ...{ logQuerySlow: () => {}, logSchemaBuild: () => {} },
      },
    })
    await dataSource.initialize()
    dataSource.subscribers.push(watcher)
  })
  afterAll(async () => {
    await dataSource?.destroy()
    await database?.close()
  })

  /** What became of the one message, whose handler does this. */
  async function handling(work: (tx: EntityManager) => Promise<unknown>) {
    await using box = await createTestBox({ db: fromTypeOrm(dataSource), messages })
    box.consumer('c', { opened: async (_, { tx }) => void (await work(tx)) }, { retry: { attempts: 1 } })
    await dataSource.manager.clear(Account)
    statements.length = 0
    await box.receive(one)
    await box.drain()
    const [entry] = await box.admin.message({ id: 'a' })
    return { ...entry!, accounts: await dataSource.manager.find(Account, { order: { id: 'ASC' } }) }
  }

  test('repositories that were made elsewhere take part by withRepository', async () => {
    const elsewhere = dataSource.getRepository(Account)
    const { state, accounts } = await handling(async (tx) => {
      await tx.withRepository(elsewhere).save({ id: 'ada', cents: 5 })
      await tx.getRepository(Account).increment({ id: 'ada' }, 'cents', 2)
      await tx.createQueryBuilder().insert().into(Account).values({ id: 'bob', cents: 1 }).execute()
    })
    expect([state, accounts]).toEqual(['handled', [{ id: 'ada', cents: 7 }, { id: 'bob', cents: 1 }]]) // prettier-ignore
    await expect(
      handling(async (tx) => {
        await tx.withRepository(elsewhere).save({ id: 'ada', cents: 5 })
        throw new Error('of the handler')
      }),
    ).resolves.toMatchObject({ state: 'dead', accounts: [] })
  })

  test('subscribers are told, and get the handler’s own manager', async () => {
    watcher.seen.length = 0
    let lent: EntityManager | undefined
    await handling(async (tx) => {
      lent = tx
      await tx.save(Account, { id: 'ada', cents: 5 })
    })
    expect(watcher.seen).toEqual([['ada', lent]])
  })

  test('the logger sees the statements of handlers, and none of the box’s', async () => {
    await handling((tx) => tx.insert(Account, { id: 'ada', cents: 5 }))
    const inserted = statements.filter((text) => text.startsWith('INSERT'))
    expect(inserted).toEqual([expect.stringContaining('"balance_in_cents"')])
    expect(statements.filter((text) => /oncebox|BEGIN|START|COMMIT/i.test(text))).toEqual([])
  })

  test.each(['commitTransaction', 'rollbackTransaction', 'release'] as const)(
    '%s() is refused, awaited or not',
    async (call) => {
      const { state, error, accounts } = await handling(async (tx) => {
        await tx.insert(Account, { id: 'ada', cents: 5 })
        void tx.queryRunner![call]()
      })
      expect([state, accounts]).toEqual(['dead', []])
      expect(error).toMatchObject({ code: 'HANDLER_COMMITTED', message: expect.stringContaining('return to commit') })
    },
  )

  test('a refusal that the handler swallows does no harm', async () => {
    const { state, accounts } = await handling(async (tx) => {
      expect(() => tx.queryRunner!.release()).toThrow('release()')
      await tx.insert(Account, { id: 'ada', cents: 5 })
    })
    expect([state, accounts.length]).toEqual(['handled', 1])
  })

  test('a statement that nobody awaited is found, behind a transaction of its own too', async () => {
    for (const forget of [
      (tx: EntityManager) => tx.save(Account, { id: 'ada', cents: 5 }),
      (tx: EntityManager) => tx.transaction((nested) => nested.insert(Account, { id: 'ada', cents: 5 })),
    ]) {
      const { state, error, accounts } = await handling(async (tx) => void forget(tx).catch(() => {}))
      expect([state, error?.code, accounts]).toEqual(['dead', 'UNAWAITED_QUERY', []])
    }
  })

  test.each<[string, (tx: EntityManager) => PromiseLike<unknown>]>([
    ['save of the manager', (tx) => tx.save(Account, { id: 'ada', cents: 5 })],
    ['insert of the manager', (tx) => tx.insert(Account, { id: 'ada', cents: 5 })],
    ['save of a repository', (tx) => tx.getRepository(Account).save({ id: 'ada', cents: 5 })],
    [
      'a query builder',
      (tx) => tx.createQueryBuilder().insert().into(Account).values({ id: 'ada', cents: 5 }).execute(),
    ],
  ])('a call that nobody awaited is found while a subscriber takes its time: %s', async (_, forget) => {
    const slow = { listenTo: () => 'Account', beforeInsert: () => new Promise<void>((done) => setTimeout(done, 30)) }
    dataSource.subscribers.push(slow)
    onTestFinished(() => void dataSource.subscribers.splice(dataSource.subscribers.indexOf(slow), 1))
    const { state, error, accounts } = await handling(async (tx) => void forget(tx))
    expect([state, error?.code, accounts]).toEqual(['dead', 'UNAWAITED_QUERY', []])
  })

  test('what fails without a statement, and is awaited by nobody, fails the message and not the process', async () => {
    for (const forget of [
      (tx: EntityManager) => tx.save('Unknown', { id: 'ada' }),
      (tx: EntityManager) => tx.transaction(() => Promise.reject(new Error('of the nested one'))),
    ]) {
      const { state, error } = await handling(async (tx) => void forget(tx))
      expect([state, error?.code]).toEqual(['dead', 'UNAWAITED_QUERY'])
    }
  })

  test('neither synchronize nor dropSchema, nor a generated migration, touches the tables of a box', async () => {
    const box = createBox({ db: fromTypeOrm(dataSource), messages })
    box.consumer('c', { opened: async ({ data }, { tx }) => void (await tx.insert(Account, { ...data, cents: 0 })) })
    await box.migrate()
    const { upQueries, downQueries } = await dataSource.driver.createSchemaBuilder().log()
    expect([...upQueries, ...downQueries].map(({ query }) => query)).toEqual([])
    await dataSource.synchronize()
    expect(await box.handle(one)).toMatchObject({ status: 'handled' })
    await dataSource.synchronize(true)
    expect(await box.handle(one)).toMatchObject({ status: 'duplicate' })
    expect(await dataSource.manager.count(Account)).toBe(0)
    await box.stop()
  })

  test('what is no transaction is named, with the call to make', async () => {
    const box = createBox({ db: fromTypeOrm(dataSource), messages })
    const runner = dataSource.createQueryRunner()
    const handles = [dataSource, dataSource.manager, runner, runner.manager, dataSource.getRepository(Account)]
    for (const handle of handles) {
      await expect(box.send(handle as EntityManager, 'opened', { id: 'ada' })).rejects.toMatchObject({
        code: 'TRANSACTION_REQUIRED',
        message: expect.stringContaining('dataSource.transaction()'),
      })
    }
    await runner.release()
  })
})

describe('fromTypeOrm', () => {
  const invalid = (words: string) =>
    expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(words) })
  const ready = { isInitialized: true, options: { type: 'postgres' }, driver: { master: { connect() {} } } }
  const runner = { manager: {}, transactionDepth: 0, connect: async () => ({}) }

  const WRONG: Record<string, [given: unknown, words: string]> = {
    'a connection string': ['postgres://localhost/none', 'a text'],
    nothing: [undefined, 'undefined'],
    'another ORM’s object': [Object.assign(() => {}, { raw() {}, transaction() {} }), 'fromKnex'],
    'a data source that is not initialised': [new DataSource({ type: 'postgres' }), 'await dataSource.initialize()'],
    'a data source of another database': [{ ...ready, options: { type: 'mysql' }, createQueryRunner() {} }, 'mysql'],
    'a version without a pool': [{ ...ready, driver: {}, createQueryRunner: () => runner }, 'driver.master'],
    'a version without its depth': [{ ...ready, createQueryRunner: () => ({ manager: {} }) }, 'transactionDepth'],
  }
  test.each(Object.entries(WRONG))('refuses %s in words', (_, [given, words]) => {
    expect(() => fromTypeOrm(given as DataSource)).toThrow(invalid(words))
  })

  test('refuses a version whose runners cannot be put on a connection before the first transaction', async () => {
    const driver = fromTypeOrm({ ...ready, createQueryRunner: () => runner } as unknown as DataSource)
    await expect(driver.transaction(async () => {})).rejects.toThrow(invalid('databaseConnection'))
  })
})
