/** What Sequelize keeps beyond what every client does: its async context, its hooks, its logging, its schema tool. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { DataTypes, type Model, type ModelStatic, Sequelize, type Transaction } from 'sequelize'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromSequelize } from 'oncebox/sequelize'
import { createTestBox, type TestBox } from 'oncebox/testing'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { promisesOf } from './suite.js'

describe('Sequelize 6', () => promisesOf({ name: 'sequelize' }))

const messages = defineMessages({ opened: unchecked<{ id: string }>() })

/** What cls-hooked does, for `Sequelize.useCLS`. */
class Namespace {
  readonly #storage = new AsyncLocalStorage<Map<string, unknown>>()
  run = (work: () => void): void => this.#storage.run(new Map(this.#storage.getStore()), work)
  bind = (work: () => unknown) => work
  get = (name: string): unknown => this.#storage.getStore()?.get(name)
  set = (name: string, value: unknown): void => void this.#storage.getStore()?.set(name, value)
}

describe('Sequelize, in a handler', () => {
  let database: ScratchDatabase
  let sequelize: Sequelize
  let Account: ModelStatic<Model>
  let box: TestBox<typeof messages, Transaction>
  let act: (tx: Transaction) => Promise<unknown>
  let count = 0
  const statements: string[] = []

  beforeAll(async () => {
    database = await scratchDatabase('sequelize')
    sequelize = new Sequelize(database.url, { logging: (text) => void statements.push(text) })
    const columns = { id: { type: DataTypes.TEXT, primaryKey: true }, balanceInCents: DataTypes.INTEGER }
    Account = sequelize.define('account', columns, { underscored: true, timestamps: false })
    await sequelize.sync()
    box = await createTestBox({ db: fromSequelize(sequelize), messages })
    box.consumer('c', { opened: async (_, { tx }) => void (await act(tx)) }, { retry: { attempts: 1 } })
  })
  afterAll(async () => {
    await box?.[Symbol.asyncDispose]()
    await sequelize?.close()
    await database?.close()
  })

  /** What became of a message whose handler does this. */
  async function handling(work: (tx: Transaction) => Promise<unknown>) {
    await Account.truncate()
    statements.length = 0
    act = work
    const id = `m-${(count += 1)}`
    await box.receive({ id, type: 'opened', data: { id } })
    await box.drain()
    const [entry] = await box.admin.message({ id })
    const accounts = await Account.findAll({ order: ['id'], raw: true })
    return { ...entry!, accounts: accounts as unknown as object[] }
  }
  const ada = { id: 'ada', balanceInCents: 5 }

  test('names are mapped in its statements, and the log has none of the box’s', async () => {
    const { state, accounts } = await handling((tx) => Account.create(ada, { transaction: tx }))
    expect([state, accounts]).toEqual(['handled', [ada]])
    expect(statements.filter((text) => text.includes('INSERT'))).toEqual([expect.stringContaining('balance_in_cents')])
    expect(statements.filter((text) => /oncebox|START|BEGIN|COMMIT/.test(text))).toEqual([])
  })

  test('with useCLS, statements and services that name no transaction take part', async () => {
    const service = { open: () => Account.create(ada) }
    Sequelize.useCLS(new Namespace())
    try {
      const { state, accounts } = await handling(async () => {
        await service.open()
        throw new Error('of the handler')
      })
      expect([state, accounts]).toEqual(['dead', []])
      await expect(handling(() => service.open())).resolves.toMatchObject({ state: 'handled', accounts: [ada] })
    } finally {
      delete (Sequelize as unknown as { _cls?: unknown })._cls
    }
  })

  test.each(['commit', 'rollback'] as const)('%s() is refused, awaited or not', async (call) => {
    const { state, error, accounts } = await handling(async (tx) => {
      await Account.create(ada, { transaction: tx })
      void tx[call]()
    })
    expect([state, error?.code, accounts]).toEqual(['dead', 'HANDLER_COMMITTED', []])
  })

  test('afterCommit, which nobody would call, is refused in words', async () => {
    const { error } = await handling(async (tx) => tx.afterCommit(() => {}))
    expect(error).toMatchObject({ code: 'HANDLER_COMMITTED', message: expect.stringContaining('send an event') })
  })

  test('a statement that nobody awaited is found', async () => {
    const forget = async (tx: Transaction) => void Account.create(ada, { transaction: tx }).catch(() => {})
    const { state, error, accounts } = await handling(forget)
    expect([state, error?.code, accounts]).toEqual(['dead', 'UNAWAITED_QUERY', []])
  })

  test('a refusal of the server is seen through its wrapper, without the values of the row', async () => {
    const secret = { id: 'secret-4711' }
    const { error } = await handling((tx) => Account.bulkCreate([secret, secret], { transaction: tx }))
    expect(error).toMatchObject({ name: 'SequelizeUniqueConstraintError', cause: { code: '23505' } })
    expect(JSON.stringify(error)).not.toContain('secret')
  })

  test('neither sync, with alter or force, nor drop touches the tables of a box', async () => {
    const own = createBox({ db: fromSequelize(sequelize), messages })
    own.consumer('c', { opened: async (_, { tx }) => void (await Account.create(ada, { transaction: tx })) })
    await own.migrate()
    const one = { id: 'a', type: 'opened', data: { id: 'ada' } }
    await sequelize.sync({ alter: true })
    await sequelize.sync({ force: true })
    expect(await own.handle(one)).toMatchObject({ status: 'handled' })
    await sequelize.drop()
    await sequelize.getQueryInterface().dropAllTables()
    await sequelize.sync()
    expect(await own.handle(one)).toMatchObject({ status: 'duplicate' })
    expect(await Account.count()).toBe(0)
    await own.stop()
  })

  test('what is no transaction is named, with the call to make', async () => {
    const over = await sequelize.transaction()
    await over.rollback()
    for (const handle of [sequelize, over, Account]) {
      await expect(box.send(handle as unknown as Transaction, 'opened', { id: 'ada' })).rejects.toMatchObject({
        code: 'TRANSACTION_REQUIRED',
        message: expect.stringContaining('sequelize.transaction()'),
      })
    }
  })

  test('a box whose instance was closed says why', async () => {
    const other = new Sequelize(database.url, { logging: false })
    const left = createBox({ db: fromSequelize(other), messages, schema: box.schema })
    await other.close()
    const { ok, reasons } = await left.health()
    expect([ok, reasons?.join()]).toEqual([false, expect.stringContaining('the pool was ended')])
    await left.stop()
  })
})

describe('fromSequelize', () => {
  const invalid = (words: string) =>
    expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(words) })
  const instance = () => new Sequelize('postgres://localhost/none', { logging: false })
  const manager = (without: string) => {
    const { connectionManager } = instance() as unknown as { connectionManager: object }
    return Object.assign(instance(), { connectionManager: Object.create(connectionManager, { [without]: { value: undefined } }) }) // prettier-ignore
  }

  const WRONG: Record<string, [given: unknown, words: string]> = {
    'a connection string': ['postgres://localhost/none', 'a text'],
    nothing: [undefined, 'undefined'],
    'another ORM’s object': [{ createQueryRunner() {}, manager: {} }, 'fromTypeOrm'],
    'a transaction': [{ commit() {}, rollback() {}, prepareEnvironment() {} }, 'an object that is none'],
    'an instance for another database': [{ connectionManager: {}, options: { dialect: 'mysql' } }, 'mysql'],
    'a version without its pool': [manager('pool'), 'connectionManager.pool'],
    'a version without its library': [manager('lib'), 'connectionManager.lib'],
    'a version without transactions': [
      Object.create(instance(), { constructor: { value: {} } }),
      'Sequelize.Transaction',
    ],
  }
  test.each(Object.entries(WRONG))('refuses %s in words', (_, [given, words]) => {
    expect(() => fromSequelize(given as Sequelize)).toThrow(invalid(words))
  })
})
