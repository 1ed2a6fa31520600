/** Handlers of a group side by side: what they share, what stays their own, and who is told what went wrong. */
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Context, Driver, Incoming, Message, MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { createTestBox, type TestBox } from 'oncebox/testing'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { gate, note, notes } from './fixture.js'

/** A client, and how a handler sends a statement with it. */
interface Client {
  readonly name: string
  readonly driver: Driver<unknown>
  ask(tx: unknown, text: string, values?: unknown[]): Promise<readonly Record<string, unknown>[]>
  /** A part that may fail: a savepoint, a statement that is refused, and back. */
  savepoint(tx: unknown): Promise<unknown>
  close(): Promise<void>
}

const CLIENTS: Record<string, (url: string) => Client> = {
  pg(url) {
    const pool = new pg.Pool({ connectionString: url, max: 10 })
    pool.on('error', () => {})
    return {
      name: 'pg',
      driver: fromPg(pool),
      ask: async (tx, text, values) => (await (tx as pg.PoolClient).query(text, values)).rows as never,
      async savepoint(tx) {
        const { query } = tx as pg.PoolClient
        await query('savepoint own')
        await query('select 1/0').catch(() => undefined)
        await query('rollback to savepoint own')
      },
      close: () => pool.end(),
    }
  },
  'postgres.js'(url) {
    const sql = postgres(url, { max: 10, onnotice: () => {} })
    return {
      name: 'postgres',
      driver: fromPostgres(sql),
      ask: async (tx, text, values) => [...(await (tx as postgres.Sql).unsafe(text, values as never[]))],
      savepoint: (tx) => (tx as postgres.TransactionSql).savepoint((own) => own`select 1/0`).catch(swallowDivision),
      close: () => sql.end({ timeout: 5 }),
    }
  },
}

/** Whatever else happened is not its to catch. */
function swallowDivision(error: { code?: string }): void {
  if (error.code !== '22012') throw error
}

let database: ScratchDatabase
let side: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('together')
  side = new pg.Pool({ connectionString: database.url, max: 2 })
  await side.query(`
    create table effect (n bigserial primary key, place text, id text, xid text, note text);
    create table account (id text primary key, balance int not null default 0);
    create table picky (id text unique deferrable initially deferred)`)
})
afterAll(async () => {
  await side.end()
  await database.close()
})

type Ctx = Context<MessageMap, unknown>
type Handle = (message: Message, ctx: Ctx) => unknown

/** Nothing but what a test is about decides the size of a group; nobody shares its messages. */
const OPTIONS = { group: { together: true, ms: 60_000 }, concurrency: 1, retry: { attempts: 1 } } as const

describe.each(Object.entries(CLIENTS))('%s', (_, make) => {
  let client: Client
  let box: TestBox<MessageMap, unknown, unknown>
  let cases = 0
  /** The consumer of a test, which is the type of its messages too. */
  let name: string
  beforeAll(async () => {
    client = make(database.url)
    box = await createTestBox<unknown, unknown, MessageMap>({ db: client.driver })
  })
  beforeEach(() => void (name = `${client.name}-${++cases}`))
  afterAll(async () => {
    await box[Symbol.asyncDispose]()
    await client.close()
  })

  async function leave({ tx }: Ctx, { id }: Message, text = ''): Promise<void> {
    const values = [name, id, text]
    await client.ask(
      tx,
      'insert into effect (place, id, xid, note) values ($1, $2, pg_current_xact_id()::text, $3)',
      values,
    )
  }
  const effects = async (): Promise<{ id: string; xid: string; note: string }[]> =>
    (await side.query('select id, xid, note from effect where place = $1 order by n', [name])).rows as never
  const ids = async (): Promise<string[]> => (await effects()).map(({ id }) => id)
  const stateOf = async (id: string) => {
    const [found] = (await box.admin.messages({ id, consumer: name })).entries
    const { rows } = await side.query<{ attempts: number }>(
      `select attempts from ${box.schema}.work where consumer = $1 and id = $2`,
      [name, id],
    )
    return { state: found?.state, attempts: rows[0]?.attempts, code: found?.error?.code }
  }
  const allOf = (count: number): string[] => notes(count).map(({ id }) => id!)

  /** Runs these messages of one consumer, to their end. */
  async function run(handle: Handle, messages: readonly Incoming[], options: object = {}): Promise<void> {
    const consumer = box.consumer(name, { [name]: handle }, { ...OPTIONS, ...options })
    await box.receive(own(messages))
    await consumer.drain()
  }
  const own = (messages: readonly Incoming[]): Incoming[] => messages.map((message) => ({ ...message, type: name }))
  const sent = async (): Promise<unknown[]> =>
    (await box.sent()).filter(({ type }) => type === `sent-${name}`).map(({ data }) => data)

  test('handlers of a group run at the same time, in one transaction', async () => {
    const all = gate()
    let started = 0
    await run(async (message, ctx) => {
      if (++started === 20) all.open()
      await all.opened
      await leave(ctx, message)
    }, notes(20))
    const left = await effects()
    expect(left.map(({ id }) => id).sort()).toEqual(allOf(20).sort())
    expect(new Set(left.map(({ xid }) => xid)).size).toBe(1)
  })

  test.each(['none', 'key'] as const)('with order %s, messages of one key follow each other', async (order) => {
    const running = new Set<string>()
    const keys: string[][] = []
    const messages = notes(12).map((message, at) => ({ ...message, key: `key-${at % 3}` }))
    await run(
      async (message, ctx) => {
        expect(running).not.toContain(message.key)
        running.add(message.key!)
        await leave(ctx, message, message.key)
        keys.push([...running])
        await leave(ctx, message, message.key)
        running.delete(message.key!)
      },
      messages,
      { order },
    )
    for (const key of ['key-0', 'key-1', 'key-2']) {
      const own = (await effects()).filter((effect) => effect.note === key).map(({ id }) => id)
      const sent = messages.filter((message) => message.key === key).flatMap(({ id }) => [id, id])
      expect(own).toEqual(sent)
    }
    // Others ran meanwhile, or this shows nothing.
    expect(keys.some((together) => together.length === 3)).toBe(true)
  })

  /** What the second of five handlers does, and what is on record of it when it has run alone. */
  const FAILURES: Record<string, [act: (ctx: Ctx) => unknown, code: string | undefined]> = {
    throws: [
      () => {
        throw Object.assign(new Error('no'), { code: 'MINE' })
      },
      'MINE',
    ],
    'sends a statement that fails': [({ tx }) => client.ask(tx, 'select 1/0'), '22012'],
    'swallows the error of a statement': [
      ({ tx }) => client.ask(tx, 'select 1/0').catch(() => undefined),
      'TRANSACTION_ABORTED',
    ],
    'leaves a statement unanswered': [
      ({ tx }) => void client.ask(tx, 'select pg_sleep(0.1)').catch(() => undefined),
      'UNAWAITED_QUERY',
    ],
    'does not wait for what it sends': [({ send }) => void send(`sent-${name}`, {}), 'UNAWAITED_CALL'],
    'ends the transaction': [({ tx }) => client.ask(tx, 'commit'), 'HANDLER_COMMITTED'],
    'leaves a check to the COMMIT that fails': [
      async ({ tx }) => {
        await client.ask(tx, "insert into picky values ('same')")
        await client.ask(tx, "insert into picky values ('same')")
      },
      '23505',
    ],
    'exceeds its time': [
      ({ signal }) => new Promise((end) => signal.addEventListener('abort', end)),
      'HANDLER_TIMEOUT',
    ],
    'has a statement that exceeds its time': [({ tx }) => client.ask(tx, 'select pg_sleep(60)'), 'HANDLER_TIMEOUT'],
  }
  test.each(Object.entries(FAILURES))(
    'one that %s fails alone; its neighbours are handled once',
    async (_, failure) => {
      const [act, code] = failure
      await run(
        async (message, ctx) => {
          await leave(ctx, message)
          if (message.id === 'n2') await act(ctx)
          else await ctx.send(`sent-${name}`, { by: message.id })
        },
        notes(5),
        { timeoutMs: code === 'HANDLER_TIMEOUT' ? 1_000 : 30_000 },
      )
      expect((await ids()).sort()).toEqual(['n1', 'n3', 'n4', 'n5'])
      expect(await sent()).toEqual(['n1', 'n3', 'n4', 'n5'].map((by) => ({ by })))
      for (const id of ['n1', 'n3', 'n4', 'n5']) expect(await stateOf(id)).toMatchObject({ state: 'handled' })
      expect(await stateOf('n2')).toEqual({ state: 'dead', attempts: 1, code })
    },
  )

  test('no handler is still running when its message runs again', async () => {
    const running = new Set<string>()
    let doubles = 0
    await run(async (message, ctx) => {
      if (running.has(message.id)) doubles++
      running.add(message.id)
      if (message.id === 'n1') {
        running.delete('n1')
        throw new Error('at once')
      }
      for (let turn = 0; turn < 5; turn++) await client.ask(ctx.tx, 'select 1')
      await leave(ctx, message)
      running.delete(message.id)
    }, notes(10))
    expect(doubles).toBe(0)
    expect((await ids()).sort()).toEqual(allOf(10).slice(1).sort())
  })

  test('one that ends its connection does not take its neighbours with it', async () => {
    const consumer = box.consumer(
      name,
      {
        async [name](message: Message, ctx: Ctx) {
          await leave(ctx, message)
          if (message.id === 'n2') await client.ask(ctx.tx, 'select pg_terminate_backend(pg_backend_pid())')
        },
      },
      OPTIONS,
    )
    await box.receive(own(notes(5)))
    await expect
      .poll(
        async () => {
          await consumer.drain().catch(() => undefined)
          return (await stateOf('n2')).state
        },
        { timeout: 60_000 },
      )
      .toBe('dead')
    await consumer.drain()
    expect((await ids()).sort()).toEqual(['n1', 'n3', 'n4', 'n5'])
  })

  test('what neighbours send is written in the order of their messages, whoever ends first', async () => {
    const last = gate()
    await run(async ({ id }, { send }) => {
      if (id === 'n5') last.open()
      if (id === 'n1') await last.opened
      await send(`sent-${name}`, { by: id })
    }, notes(5))
    expect(await sent()).toEqual(allOf(5).map((by) => ({ by })))
  })

  test('an effect moves its message out of the group, and is called once', async () => {
    const called: string[] = []
    await run(async (message, ctx) => {
      await leave(ctx, message)
      await ctx.effect('call', () => void called.push(message.id))
    }, notes(4))
    expect(called.sort()).toEqual(allOf(4))
    expect((await ids()).sort()).toEqual(allOf(4))
  })

  test('on arrival too: every message has its own outcome, in order', async () => {
    const all = gate()
    let started = 0
    const handle: Handle = async (message, ctx) => {
      if (++started === 5) all.open()
      await all.opened
      await leave(ctx, message)
      if (message.id === 'n2') throw new Error('no')
      return message.id
    }
    box.consumer(name, { [name]: handle }, { ...OPTIONS, mode: 'inline' })
    const outcomes = await box.handle(own(notes(5)))
    expect(outcomes.map(({ status }) => status)).toEqual(['handled', 'dead', 'handled', 'handled', 'handled'])
    expect((await ids()).sort()).toEqual(['n1', 'n3', 'n4', 'n5'])
  })

  /** What cannot be done while neighbours use the transaction. */
  const APART: Record<string, (ctx: Ctx, message: Message) => Promise<unknown>> = {
    'sets a savepoint': ({ tx }) => client.savepoint(tx),
    'sets something for its transaction': ({ tx }) => client.ask(tx, "set local app.tenant = 'a'"),
    'sets something by a function': ({ tx }) => client.ask(tx, "select set_config('app.tenant', 'a', true)"),
    'locks a row to read it': ({ tx }) => client.ask(tx, 'select * from account for update'),
    'takes an advisory lock': ({ tx }) => client.ask(tx, 'select pg_advisory_xact_lock(1)'),
    'asks for the last value of a sequence': ({ tx }) => client.ask(tx, "select currval('effect_n_seq')"),
    'declares a cursor': ({ tx }) =>
      client.ask(tx, 'declare c cursor for select 1').then(() => client.ask(tx, 'close c')),
    'calls once': ({ tx }, { id }) => box.once(tx, `inner-${name}`, { id }, () => undefined),
    'catches the refusal': ({ tx }) => client.ask(tx, "set local app.tenant = 'a'").catch(() => undefined),
  }
  test.each(Object.entries(APART))('handlers of a type that %s run one after the other', async (_, act) => {
    let running = 0
    let most = 0
    const consumer = box.consumer(
      name,
      {
        async [name](message: Message, ctx: Ctx) {
          running += 1
          most = Math.max(most, running)
          await leave(ctx, message)
          await act(ctx, message)
          running -= 1
        },
      },
      OPTIONS,
    )
    await box.receive(own(notes(4)))
    await consumer.drain()
    running = most = 0
    await box.receive(own(notes(4).map(({ id }) => note(`m-${id}`))))
    await consumer.drain()
    expect(most).toBe(1)
    const left = await effects()
    expect(left.map(({ id }) => id)).toEqual([...allOf(4), ...allOf(4).map((id) => `m-${id}`)])
    // In groups all the same, the first one included.
    expect(new Set(left.map(({ xid }) => xid)).size).toBe(2)
  })

  describe('read, decide, write', () => {
    /** Two neighbours book 10 each on an account that has nothing. */
    async function book(how: Handle, rest: { keys?: string[]; together?: boolean } = {}): Promise<number> {
      await side.query('insert into account (id) values ($1)', [name])
      const { keys = [], together = true } = rest
      await run(
        how,
        notes(2).map((message, at) => ({ ...message, key: keys[at] })),
        { group: { ...OPTIONS.group, together } },
      )
      const { rows } = await side.query<{ balance: number }>('select balance from account where id = $1', [name])
      return rows[0]!.balance
    }
    const readThenWrite =
      (lock = ''): Handle =>
      async (_message, { tx }) => {
        const [row] = await client.ask(tx, `select balance from account where id = $1 ${lock}`, [name])
        const balance = (row!['balance'] as number) + 10
        await client.ask(tx, 'update account set balance = $2 where id = $1', [name, balance])
      }
    const add: Handle = (_message, { tx }) =>
      client.ask(tx, 'update account set balance = balance + 10 where id = $1', [name])

    test('loses an update side by side: this is what `together` is not for', async () => {
      expect(await book(readThenWrite())).toBe(10)
    })
    test('loses none one after the other', async () => {
      expect(await book(readThenWrite(), { together: false })).toBe(20)
    })
    test('loses none where the messages have the same key', async () => {
      expect(await book(readThenWrite(), { keys: ['alice', 'alice'] })).toBe(20)
    })
    test('loses none where the row is locked when it is read', async () => {
      expect(await book(readThenWrite('for update'))).toBe(20)
    })
    test('loses none where one statement does it all', async () => {
      expect(await book(add)).toBe(20)
    })
  })
})

describe('what is refused when it is declared', () => {
  const declare = (driver: Driver<unknown>, options: object): Promise<unknown> =>
    createTestBox<unknown, unknown, MessageMap>({ db: driver }).then(async (box) => {
      await using open = box
      open.consumer('a', { note: () => undefined }, options)
    })

  test.each(['repeatable read', 'serializable'] as const)('isolation %s', async (isolation) => {
    const client = CLIENTS['pg']!(database.url)
    const declared = declare(client.driver, { isolation, group: { together: true } })
    await expect(declared).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await client.close()
  })

  test('a client that waits for each answer', async () => {
    class Waiting extends pg.Client {
      constructor(config: pg.ClientConfig) {
        super(config)
        // As before 8.23.
        delete (this as { pipeline?: boolean }).pipeline
      }
    }
    const pool = new pg.Pool({ connectionString: database.url, max: 5, Client: Waiting } as never)
    await expect(declare(fromPg(pool) as never, { group: { together: true } })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await declare(fromPg(pool), { group: { together: false } })
    await pool.end()
  })
})
