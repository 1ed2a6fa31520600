/** What pg's driver promises beyond the conformance suite. */
import type { Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { fromPg } from 'oncebox/pg'
import type { OnceboxErrorCode } from '../../src/errors.js'
import { isConnectionLoss } from '../../src/postgres/errors.js'
import { environment } from '../support/environments.js'
import { type ScratchDatabase, scratchDatabase, startPostgres } from '../support/postgres.js'
import { slowProxy } from './slow-proxy.js'

let database: ScratchDatabase
beforeAll(async () => {
  database = await scratchDatabase('pg')
})
afterAll(() => database.close())

/** Before 8.23 pg has no pipeline mode: correct, with a trip for each statement. */
const PIPELINES = typeof (new pg.Client() as { pipeline?: unknown }).pipeline === 'boolean'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

function newPool(config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: database.url, ...config })
  open.push(() => pool.end())
  return pool
}

async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'resolved',
    (error: { code?: unknown }) => error.code,
  )
}

/** A client class that remembers its instances. */
function spy() {
  const clients: pg.Client[] = []
  class Client extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config)
      clients.push(this)
    }
  }
  return { Client, clients }
}

function socketOf(client: pg.Client): Socket & { _handle?: { hasRef(): boolean } } {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}

const code = (value: OnceboxErrorCode) => value
const SELECT = 'select $1::text as x'

describe('trips', () => {
  async function tripsOf(
    work: (driver: ReturnType<typeof fromPg<pg.PoolClient>>) => Promise<unknown>,
  ): Promise<number> {
    const proxy = await slowProxy(database.url, 20)
    open.push(() => proxy.close())
    const driver = fromPg(newPool({ connectionString: proxy.url }))
    // Connects, and parses the statement.
    await driver.transaction((tx) => driver.query(SELECT, ['x'], tx))
    proxy.reset()
    await work(driver)
    return proxy.trips()
  }

  test.runIf(PIPELINES)('BEGIN travels with the first statement', async () => {
    const trips = await tripsOf((driver) => driver.transaction((tx) => driver.query(SELECT, ['x'], tx)))
    expect(trips).toBe(2)
  })

  test.runIf(PIPELINES)('COMMIT travels with the last statement if nobody awaits it', async () => {
    const trips = await tripsOf((driver) =>
      driver.transaction(async (tx) => {
        await driver.query(SELECT, ['first'], tx)
        void driver.query(SELECT, ['last'], tx)
      }),
    )
    expect(trips).toBe(2)
  })

  test.runIf(PIPELINES)('lending and giving back cost none', async () => {
    const trips = await tripsOf((driver) =>
      driver.transaction(async (tx) => {
        await driver.query(SELECT, ['first'], tx)
        for (let round = 0; round < 3; round += 1) await driver.lend!(tx).giveBack()
        void driver.query(SELECT, ['last'], tx)
      }),
    )
    expect(trips).toBe(2)
  })
})

describe('statements', () => {
  const prepared = `select count(*)::text as count from pg_prepared_statements where name like 'oncebox_%'`

  test('are prepared once by name, and not with `prepare: false`', async () => {
    const pool = newPool({ max: 1 })
    const count = async () => (await pool.query(prepared)).rows[0].count
    const unnamed = fromPg(pool, { prepare: false })
    await unnamed.query(SELECT, ['x'])
    expect(await count()).toBe('0')
    const driver = fromPg(pool)
    for (const value of ['a', 'b', 'c']) await driver.query(SELECT, [value])
    await driver.transaction((tx) => driver.query(SELECT, ['d'], tx))
    expect(await count()).toBe('1')
  })

  test('go on after a migration changed what they answer', async () => {
    const driver = fromPg(newPool({ max: 1 }))
    await driver.query('create table changing (a text)', [])
    const select = 'select * from changing where $1::text is not null'
    await driver.query(select, ['x'])
    await driver.query('alter table changing add column b text', [])
    // The plan of this connection is stale, so the statement never began and is sent again.
    expect(await codeOf(driver.query(select, ['x']))).toBe('resolved')
    expect(await codeOf(driver.query(select, ['x']))).toBe('resolved')
  })

  test('a refused statement does not cost the connection', async () => {
    const pool = newPool({ max: 1 })
    const driver = fromPg(pool)
    const pid = () => driver.query('select pg_backend_pid()::text as pid', [])
    const before = await pid()
    expect(await codeOf(driver.query('select 1 / $1::int', [0]))).toBe('22012')
    expect(await codeOf(driver.transaction((tx) => driver.query('select 1 / $1::int', [0], tx)))).toBe('22012')
    expect(await pid()).toEqual(before)
  })

  test('neither does one whose error arrives before the server says that it is ready', async () => {
    const { Client, clients } = spy()
    const pool = newPool({ max: 1, Client })
    const driver = fromPg(pool)
    const pid = () => driver.query('select pg_backend_pid()::text as pid', [])
    const before = await pid()
    arriveApart(socketOf(clients[0]!))
    expect(await codeOf(driver.transaction((tx) => driver.query('select 1 / $1::int', [0], tx)))).toBe('22012')
    expect(await pid()).toEqual(before)
  })
})

/** ReadyForQuery is the last message of an answer, 6 bytes long: it comes in a packet of its own, a little later. */
function arriveApart(socket: Socket): void {
  const emit = socket.emit.bind(socket)
  let before: Promise<unknown> = Promise.resolve()
  socket.emit = (event: string, ...args: unknown[]): boolean => {
    const [data] = args
    if (event !== 'data' || !Buffer.isBuffer(data)) return emit(event, ...args)
    const split = Math.max(0, data.length - 6)
    before = before
      .then(() => emit('data', data.subarray(0, split)))
      .then(() => new Promise((resolve) => setTimeout(resolve, 5)))
      .then(() => emit('data', data.subarray(split)))
    return true
  }
}

describe('an exhausted pool', () => {
  const pidOf = 'select pg_backend_pid()::text as pid, $1::text as x'

  test('is relieved by a connection in reserve, which statements share', async () => {
    const driver = fromPg(newPool({ max: 1 }))
    await driver.transaction(async (tx) => {
      const [inside] = await driver.query(pidOf, ['x'], tx)
      const answers = await Promise.all(['a', 'b', 'c'].map((value) => driver.query(pidOf, [value])))
      const pids = new Set(answers.map(([row]) => row?.['pid']))
      expect(pids.size).toBe(1)
      expect(pids).not.toContain(inside?.['pid'])
      expect(await codeOf(driver.query('select 1 / $1::int', [0]))).toBe('22012')
      expect((await driver.query(pidOf, ['again']))[0]?.['pid']).toBe([...pids][0])
    })
  })

  test('gets a new one when that was killed', async () => {
    const driver = fromPg(newPool({ max: 1 }))
    await driver.transaction(async (tx) => {
      const [reserve] = await driver.query(pidOf, ['x'])
      await driver.query('select pg_terminate_backend($1::int)', [Number(reserve?.['pid'])], tx)
      await expect.poll(() => codeOf(driver.query(pidOf, ['x']))).toBe('resolved')
    })
  })

  test('its reserve does not keep the process alive, and is closed when it was idle for long', async () => {
    const { Client, clients } = spy()
    const driver = fromPg(newPool({ max: 1, Client }))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    open.push(async () => vi.useRealTimers())
    await driver.transaction(async () => {
      const pids = new Set<unknown>()
      for (let round = 0; round < 3; round += 1) {
        const [row] = await driver.query(pidOf, ['x'])
        pids.add(row?.['pid'])
        await new Promise(setImmediate)
        vi.advanceTimersByTime(6_000)
      }
      expect(pids.size).toBe(1)
      const reserve = socketOf(clients.at(-1)!)
      expect(reserve._handle?.hasRef()).toBe(false)
      const closed = new Promise((resolve) => reserve.once('close', resolve))
      vi.advanceTimersByTime(6_000)
      await closed
      expect(await codeOf(driver.query(pidOf, ['x']))).toBe('resolved')
    })
  })

  test('a pool whose class is hidden makes statements wait instead', async () => {
    const pool = newPool({ max: 1 })
    const connect: pg.Pool['connect'] = pool.connect.bind(pool)
    const driver = fromPg({ connect })
    expect(driver.capacity).toBeUndefined()
    const unsubscribe = await driver.listen!('x', () => {})
    await unsubscribe()
    expect(await codeOf(driver.query(SELECT, ['x']))).toBe('resolved')
  })
})

describe('a transaction', () => {
  test.runIf(PIPELINES)('leaves pipeline mode as its owner had it', async () => {
    for (const pipeline of [true, false]) {
      const pool = newPool({ max: 1, pipeline })
      const driver = fromPg(pool)
      expect(driver.pipelines).toBe(true)
      const failing = driver.transaction(async () => {
        throw new Error('x')
      })
      await failing.catch(() => {})
      await driver.transaction(async (tx) => {
        expect(tx.pipeline).toBe(true)
        await driver.query(SELECT, ['x'], tx)
        const loan = driver.lend!(tx)
        expect(loan.tx.pipeline).toBe(pipeline)
        await loan.giveBack()
        expect(tx.pipeline).toBe(true)
      })
      const client = await pool.connect()
      expect(client.pipeline).toBe(pipeline)
      client.release()
    }
  })

  test.runIf(PIPELINES)('whose BEGIN fails rejects with its error, and so do its statements', async () => {
    class BrokenBegin extends pg.Client {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any
      override query(...args: any[]): any {
        if (String(args[0]?.text ?? args[0]).startsWith('BEGIN')) args[0] = 'BEGIN TO FAIL'
        // eslint-disable-next-line @typescript-eslint/no-explicit-any
        return (super.query as any)(...args)
      }
    }
    const driver = fromPg(newPool({ Client: BrokenBegin }))
    let inside: unknown
    const awaiting = driver.transaction(async (tx) => {
      inside = await codeOf(driver.query(SELECT, ['x'], tx))
    })
    expect(await codeOf(awaiting)).toBe('42601')
    expect(inside).toBe('42601')
    expect(await codeOf(driver.transaction(async () => 'nothing'))).toBe('42601')
    expect(await codeOf(driver.transaction(() => Promise.reject(new Error('mine'))))).toBe('42601')
  })

  test('in which a raw COMMIT was sent rejects with HANDLER_COMMITTED', async () => {
    const driver = fromPg(newPool())
    const committing = driver.transaction(async (tx) => {
      await tx.query('commit')
    })
    expect(await codeOf(committing)).toBe(code('HANDLER_COMMITTED'))
  })

  test('given up under a statement is closed at once, even if the server cannot be asked to stop it', async () => {
    const { Client, clients } = spy()
    const driver = fromPg(newPool({ max: 1, Client }))
    const failing = driver.transaction(async (tx) => {
      Object.assign(tx, { processID: null })
      await driver.query(SELECT, ['x'], tx)
      void driver.query('select pg_sleep($1::int)', [2], tx)
      throw new Error('deadline')
    })
    await expect(failing).rejects.toThrow('deadline')
    expect(socketOf(clients[0]!).destroyed).toBe(true)
  })

  test('turns jit off for itself alone', async () => {
    const driver = fromPg(newPool({ max: 1, options: '-c jit=on' }))
    const show = `select current_setting('jit') as jit`
    expect(await driver.transaction((tx) => driver.query(show, [], tx))).toEqual([{ jit: 'off' }])
    expect(await driver.query(show, [])).toEqual([{ jit: 'on' }])
  })

  test('passes connections back, whatever happens', async () => {
    const pool = newPool({ max: 2 })
    const driver = fromPg(pool)
    for (let round = 0; round < 5; round += 1) {
      await driver.transaction((tx) => driver.query(SELECT, ['x'], tx))
      await codeOf(driver.transaction(() => Promise.reject(new Error('x'))))
      await codeOf(driver.transaction((tx) => driver.query('select 1 / $1::int', [0], tx)))
      await codeOf(driver.transaction(async (tx) => void driver.query('select 1 / $1::int', [0], tx)))
      await codeOf(
        driver.transaction(async (tx) => {
          void driver.query('select pg_sleep($1::int)', [60], tx)
          throw new Error('deadline')
        }),
      )
    }
    await expect.poll(() => pool.totalCount - pool.idleCount).toBe(0)
    expect(pool.waitingCount).toBe(0)
  })
})

describe("a user's own transaction", () => {
  async function client(): Promise<pg.Client> {
    const mine = new pg.Client(database.url)
    await mine.connect()
    open.push(() => mine.end())
    return mine
  }

  test('is used as it is, be it with statements under way', async () => {
    const driver = fromPg(newPool())
    const mine = await client()
    await mine.query('begin')
    expect(await driver.query(SELECT, ['x'], mine)).toEqual([{ x: 'x' }])
    void mine.query('select pg_sleep(0.05)')
    expect(await driver.query(SELECT, ['y'], mine)).toEqual([{ x: 'y' }])
    await mine.query('commit')
    expect(await codeOf(driver.query(SELECT, ['z'], mine))).toBe(code('TRANSACTION_REQUIRED'))
  })

  test('counts from the moment its BEGIN is answered, until its COMMIT is sent', async () => {
    const driver = fromPg(newPool())
    const mine = await client()
    const began = mine.query('begin')
    expect(await codeOf(driver.query(SELECT, ['x'], mine))).toBe('resolved')
    await began
    const committed = mine.query('commit')
    expect(await codeOf(driver.query(SELECT, ['x'], mine))).toBe(code('TRANSACTION_REQUIRED'))
    await committed
  })

  test('takes statements behind a pooler that gives its server connection to others', async () => {
    await using env = await environment('pgbouncer', { settings: { default_pool_size: 1 } })
    const pool = new pg.Pool({ ...env.connection, max: 2 })
    const driver = fromPg(pool)
    const clients = [await pool.connect(), await pool.connect()]
    try {
      for (let round = 0; round < 2; round += 1) {
        for (const client of clients) {
          await client.query('begin')
          expect(await driver.query(SELECT, ['x'], client)).toEqual([{ x: 'x' }])
          await client.query('commit')
        }
      }
    } finally {
      for (const client of clients) client.release()
      await pool.end()
    }
  })

  test('is refused on a client that never connected', async () => {
    const driver = fromPg(newPool())
    expect(await codeOf(driver.query(SELECT, ['x'], new pg.Client()))).toBe(code('TRANSACTION_REQUIRED'))
  })
})

describe('a lent client', () => {
  async function lent(handler: (tx: pg.PoolClient) => unknown): Promise<void> {
    const driver = fromPg(newPool())
    await driver.transaction(async (tx) => {
      await driver.query('select pg_current_xact_id()::text', [], tx)
      const loan = driver.lend!(tx)
      await handler(loan.tx)
      await loan.giveBack()
    })
  }

  test('is a client of pg, in each of its forms', async () => {
    await lent(async (tx) => {
      expect(tx).toBeInstanceOf(pg.Client)
      expect((await tx.query('select 1 as x')).rows).toEqual([{ x: 1 }])
      expect((await tx.query('select $1::int as x', [2])).rows).toEqual([{ x: 2 }])
      expect((await tx.query({ text: 'select $1::int as x', values: [3], rowMode: 'array' })).rows).toEqual([[3]])
      const byCallback = new Promise((resolve, reject) =>
        tx.query('select $1::int as x', [4], (error, result) => (error ? reject(error) : resolve(result.rows))),
      )
      expect(await byCallback).toEqual([{ x: 4 }])
      const withoutValues = new Promise((resolve) => tx.query('select 5 as x', (_, result) => resolve(result.rows)))
      expect(await withoutValues).toEqual([{ x: 5 }])
      const submitted = tx.query(new pg.Query('select 6 as x'))
      const rows: unknown[] = []
      submitted.on('row', (row) => rows.push(row))
      await new Promise((resolve, reject) => submitted.on('end', resolve).on('error', reject))
      expect(rows).toEqual([{ x: 6 }])
      expect(tx.escapeIdentifier('a"b')).toBe('"a""b"')
      let notified = 0
      const count = () => (notified += 1)
      tx.on('notice', count)
      await tx.query(`do $$ begin raise notice 'x'; end $$`)
      tx.off('notice', count)
      await tx.query(`do $$ begin raise notice 'x'; end $$`)
      expect(notified).toBe(1)
    })
  })

  test('takes named statements in each form, and leaves their configs as they were', async () => {
    await lent(async (tx) => {
      const text = 'select $1::int as x'
      const config = Object.freeze({ name: 'lent_named', text, values: [1] })
      expect((await tx.query(config)).rows).toEqual([{ x: 1 }])
      expect((await tx.query(config)).rows).toEqual([{ x: 1 }])
      expect((await tx.query({ name: 'lent_named', text, values: [2] })).rows).toEqual([{ x: 2 }])
      expect((await tx.query({ name: 'lent_named', text }, [3])).rows).toEqual([{ x: 3 }])
      expect((await tx.query(config, [4])).rows).toEqual([{ x: 4 }])
      expect((await tx.query({ ...config, rowMode: 'array' })).rows).toEqual([[1]])
      const { rows } = await tx.query(`select name, statement from pg_prepared_statements where name like 'lent_%'`)
      expect(rows).toEqual([{ name: 'lent_named', statement: text }])
      class Template {
        readonly values = [5]
        get text() {
          return text
        }
      }
      expect((await tx.query(new Template())).rows).toEqual([{ x: 5 }])
      await expect(tx.query({ name: 'lent_named', text: 'select 6 as x' })).rejects.toThrow('must be unique')
    })
  })

  test('passes on to who wraps `query` what it was asked', async () => {
    const asked: unknown[] = []
    class Wrapped extends pg.Client {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any
      override query(...args: any[]): any {
        const [{ name, text, values = args[1] }] = args
        if (String(name).startsWith('wrapped')) asked.push({ name, text, values })
        // eslint-disable-next-line @typescript-eslint/no-explicit-any
        return (super.query as any)(...args)
      }
    }
    const driver = fromPg(newPool({ Client: Wrapped }))
    const config = { name: 'wrapped', text: 'select $1::int as x', values: [1] }
    await driver.transaction(async (tx) => {
      await driver.query(SELECT, ['x'], tx)
      const loan = driver.lend!(tx)
      await loan.tx.query(config)
      await loan.giveBack()
    })
    expect(asked).toEqual([config])
  })

  test('is itself after a call that answers with the client', async () => {
    const chain = (tx: pg.PoolClient): pg.PoolClient => {
      const nothing = () => {}
      const calls: ((on: pg.PoolClient) => pg.PoolClient)[] = [
        (on) => on.on('notice', nothing),
        (on) => on.addListener('notice', nothing),
        (on) => on.prependListener('notice', nothing),
        (on) => on.once('notice', nothing),
        (on) => on.off('notice', nothing),
        (on) => on.setMaxListeners(20),
        (on) => on.removeAllListeners('notice'),
      ]
      return calls.reduce((on, call) => call(on), tx)
    }
    const kept = lent(async (tx) => {
      expect(chain(tx)).toBe(tx)
      expect(await codeOf(chain(tx).query('commit'))).toBe(code('HANDLER_COMMITTED'))
      expect(await codeOf(chain(tx).query('set x = 1'))).toBe(code('SESSION_CHANGED'))
    })
    expect(await codeOf(kept)).toBe('resolved')
    const unawaited = lent(
      (tx) =>
        void chain(tx)
          .query('select pg_sleep(0.2)')
          .catch(() => {}),
    )
    expect(await codeOf(unawaited)).toBe(code('UNAWAITED_QUERY'))
  })

  test('is itself to its listeners, which can be taken off again', async () => {
    const raise = `do $$ begin raise notice 'x'; end $$`
    const adding = ['on', 'addListener', 'prependListener', 'once', 'prependOnceListener'] as const
    const kept = lent(async (tx) => {
      for (const add of adding) {
        const heard: unknown[] = []
        const note = function (this: unknown, notice: unknown): void {
          heard.push(this, notice)
        }
        const put = (): pg.PoolClient => (tx[add] as typeof tx.on).call(tx, 'notice', note)
        expect(put() === tx).toBe(true)
        if (!/once/i.test(add)) expect(tx.listeners('notice')).toContain(note)
        await tx.query(raise)
        expect(heard).toHaveLength(2)
        expect(heard[0] === tx, add).toBe(true)
        expect(heard[1]).toMatchObject({ message: 'x' })
        tx.off('notice', note)
        // Before it was ever called, too: once wraps what it is given another time.
        put().off('notice', note)
        await tx.query(raise)
        expect(heard, add).toHaveLength(2)
      }
    })
    expect(await codeOf(kept)).toBe('resolved')
  })

  test('knows unanswered statements in each form', async () => {
    const slow = 'select pg_sleep(0.2)'
    const forms: ((tx: pg.PoolClient) => unknown)[] = [
      (tx) => void tx.query(slow).catch(() => {}),
      (tx) => void tx.query({ text: slow }).catch(() => {}),
      (tx) => void tx.query(slow, () => {}),
      (tx) => void tx.query(slow, [], () => {}),
      (tx) => void tx.query(new pg.Query(slow)).on('error', () => {}),
    ]
    for (const form of forms) expect(await codeOf(lent(form))).toBe(code('UNAWAITED_QUERY'))
  })

  test('refuses in the form it was asked', async () => {
    const failing = lent(async (tx) => {
      const byCallback = (...args: unknown[]) =>
        new Promise((_, reject) => (tx.query as (...args: unknown[]) => unknown)(...args, reject))
      expect(await codeOf(tx.query('commit'))).toBe(code('HANDLER_COMMITTED'))
      expect(await codeOf(tx.query({ text: 'set x = 1' }))).toBe(code('SESSION_CHANGED'))
      expect(await codeOf(byCallback('commit'))).toBe(code('HANDLER_COMMITTED'))
      expect(await codeOf(byCallback('commit', []))).toBe(code('HANDLER_COMMITTED'))
      expect(() => tx.query(new pg.Query('commit'))).toThrow(expect.objectContaining({ code: 'HANDLER_COMMITTED' }))
      for (const leave of [() => tx.release(), () => (tx as unknown as pg.Client).end()]) {
        expect(leave).toThrow(expect.objectContaining({ code: 'HANDLER_COMMITTED' }))
      }
    })
    // Nothing of that reached the server.
    expect(await codeOf(failing)).toBe('resolved')
  })

  test('can roll back to a savepoint of its own', async () => {
    const went = lent(async (tx) => {
      await tx.query('savepoint mine')
      expect(await codeOf(tx.query('select 1 / 0'))).toBe('22012')
      await tx.query('rollback to mine')
    })
    expect(await codeOf(went)).toBe('resolved')
  })
})

test('a restarted server ends neither the process nor the driver', { timeout: 240_000 }, async () => {
  await using server = await startPostgres({ settings: { fsync: 'off' } })
  const pool = new pg.Pool({ connectionString: server.url, max: 2 })
  const driver = fromPg(pool)
  let wakes = 0
  const unsubscribe = await driver.listen!('x', () => (wakes += 1))
  try {
    for (const ending of ['while idle in it', 'while a statement runs'] as const) {
      const before = wakes
      const failing = driver.transaction(async (tx) => {
        await driver.query(SELECT, ['x'], tx)
        const sleeping = ending === 'while a statement runs' ? tx.query('select pg_sleep(60)') : undefined
        sleeping?.catch(() => {})
        await Promise.all([server.restart(), driver.query(SELECT, ['x'])].map((promise) => promise.catch(() => {})))
        await sleeping
      })
      expect(isConnectionLoss(await failing.catch((error: unknown) => error))).toBe(true)
      await expect.poll(() => codeOf(driver.query(SELECT, ['x'])), { timeout: 20_000 }).toBe('resolved')
      await expect.poll(() => wakes, { timeout: 20_000 }).toBeGreaterThan(before)
    }
    const before = wakes
    await driver.query('select pg_notify($1::text, $2::text)::text', ['x', ''])
    await expect.poll(() => wakes).toBeGreaterThan(before)
  } finally {
    await unsubscribe()
    await pool.end()
  }
})
