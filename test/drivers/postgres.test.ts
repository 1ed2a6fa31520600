/** What the driver for postgres.js promises beyond the conformance suite. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { fromPostgres } from 'oncebox/postgres'
import type { OnceboxErrorCode } from '../../src/errors.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

let database: ScratchDatabase
beforeAll(async () => {
  database = await scratchDatabase('postgres')
})
afterAll(() => database.close())

const open: postgres.Sql[] = []
afterEach(async () => {
  for (const sql of open.splice(0)) await sql.end({ timeout: 0.1 })
})

function connect(options: postgres.Options<Record<string, never>> = {}): postgres.Sql {
  const sql = postgres(database.url, { max: 4, onnotice: () => {}, ...options }) as postgres.Sql
  open.push(sql)
  return sql
}

async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'resolved',
    (error: { code?: unknown }) => error.code,
  )
}

const code = (value: OnceboxErrorCode) => value
const SELECT = 'select $1::text as x'

describe('a lent sql', () => {
  async function lent(handler: (tx: postgres.TransactionSql) => unknown): Promise<void> {
    const driver = fromPostgres(connect())
    await driver.transaction(async (tx) => {
      await driver.query('select pg_current_xact_id()::text as xid', [], tx)
      const loan = driver.lend!(tx)
      await handler(loan.tx)
      await loan.giveBack()
    })
  }

  test('is the sql of postgres.js in each of its forms', async () => {
    await lent(async (tx) => {
      const two = tx`select ${2}::int as x`
      expect([...(await tx`select x from (${two}) as fragment where ${tx('x')} = 2`)]).toEqual([{ x: 2 }])
      await tx`create temp table people ${tx.unsafe('(name text, data jsonb)')} on commit drop`
      await tx`insert into people ${tx([{ name: 'a', data: tx.json({ b: 1 }) as never }])}`
      expect([...(await tx`select * from people`.values())]).toEqual([['a', { b: 1 }]])
      const rows: unknown[] = []
      for await (const part of tx`select generate_series(1, 5) as x`.cursor(2)) rows.push(...part)
      expect(rows).toHaveLength(5)
      await tx`select generate_series(1, 3) as x`.forEach((row) => rows.push(row))
      expect(rows).toHaveLength(8)
      const failed = tx.savepoint(async (inner) => {
        await inner`insert into people (name) values ('gone')`
        await inner`select 1 / 0`
      })
      expect(await codeOf(failed)).toBe('22012')
      expect(await tx.savepoint((inner) => inner`select count(*)::int as count from people`)).toMatchObject([
        { count: 1 },
      ])
    })
  })

  test('knows unanswered statements and open cursors', async () => {
    const forms: ((tx: postgres.TransactionSql) => unknown)[] = [
      (tx) => void tx`select pg_sleep(0.2)`.execute(),
      (tx) => void tx`select pg_sleep(0.2)`.catch(() => {}),
      (tx) => void tx.savepoint((inner) => inner`select pg_sleep(0.2)`).catch(() => {}),
      async (tx) => {
        await tx`select generate_series(1, 5) as x`.cursor(2)[Symbol.asyncIterator]().next()
      },
    ]
    for (const form of forms) expect(await codeOf(lent(form))).toBe(code('UNAWAITED_QUERY'))
  })

  test('copies, in and out', async () => {
    await lent(async (tx) => {
      await tx`create temp table people (name text) on commit drop`
      await pipeline(Readable.from(['a\n', 'b\n']), await tx`copy people from stdin`.writable())
      const lines: string[] = []
      for await (const line of await tx`copy people to stdout`.readable()) lines.push(String(line))
      expect(lines.join('')).toBe('a\nb\n')
    })
  })

  test('gives up its connection for a COPY that it has left open, whether it returns or throws', async () => {
    const sql = connect({ max: 2 })
    const driver = fromPostgres(sql)
    await sql`create table copied (name text)`
    const copying = (handler: (tx: postgres.TransactionSql) => Promise<unknown>): Promise<void> =>
      driver.transaction(async (tx) => {
        const loan = driver.lend!(tx)
        await handler(loan.tx)
        await loan.giveBack()
      })
    const begin = async (tx: postgres.TransactionSql): Promise<void> => {
      const copy = await tx`copy copied from stdin`.writable()
      copy.write('a\n')
    }
    // More often than there are connections.
    for (let time = 0; time < 3; time += 1) {
      expect(await codeOf(copying(begin))).toBe(code('UNAWAITED_QUERY'))
      const failing = copying(async (tx) => {
        await begin(tx)
        throw new Error('of its source')
      })
      await expect(failing).rejects.toThrow('of its source')
    }
    expect(await driver.transaction((tx) => driver.query(SELECT, ['next'], tx))).toEqual([{ x: 'next' }])
    const copies = `select from pg_stat_activity where datname = current_database() and query like 'copy copied%'`
    await waitUntil(async () => (await sql.unsafe(copies)).length === 0, { what: 'the sessions to end' })
    expect([...(await sql`select name from copied`)]).toEqual([])
  })

  test('takes a COPY that was broken off for the end of the transaction', async () => {
    const swallowed = lent(async (tx) => {
      await tx`create temp table people (name text) on commit drop`
      const copy = await tx`copy people from stdin`.writable()
      await pipeline(new Readable({ read: (): never => { throw new Error('of its source') } }), copy).catch(() => {}) // prettier-ignore
    })
    expect(await codeOf(swallowed)).toBe(code('TRANSACTION_ABORTED'))
  })

  test('knows statements that nobody awaited, which postgres.js never sends', async () => {
    const forms: ((tx: postgres.TransactionSql) => unknown)[] = [
      (tx) => void tx`insert into people values (${'a'})`,
      (tx) => void tx.unsafe("insert into people values ('a')"),
      (tx) => void tx` -- why\n insert into people ${tx([{ name: 'a' }])}`.values(),
      (tx) => void tx`select 1`.cursor(2),
      (tx) => void tx.file('never-read.sql'),
      (tx) => tx.savepoint((inner) => void inner`insert into people values ('a')`),
      async (tx) => {
        void tx`insert into people values (${'a'})`
        await tx`select 1`
      },
    ]
    for (const form of forms) expect(await codeOf(lent(form))).toBe(code('UNAWAITED_QUERY'))
  })

  test('takes no fragment for a statement, used or not', async () => {
    await lent(async (tx) => {
      await tx`create temp table people (name text, at timestamptz) on commit drop`
      const names = [tx`select 'a' as name`, tx`union select 'b'`]
      const now = tx`select now()`
      await tx`insert into people ${tx({ name: 'c', at: tx`(${now})` } as never)}`
      expect([...(await tx`select name from (${names as never}) as x order by ${tx`name`}`)]).toHaveLength(2)
      const filter = tx`where name = ${'c'}`
      const none = tx``
      expect([...(await tx`select name from people ${none}`)]).toEqual([{ name: 'c' }])
      expect(filter).toBeDefined()
    })
  })

  test('waits for nothing of a cursor that was read to its end, or left early', async () => {
    const driver = fromPostgres(connect())
    const ways: ((tx: postgres.TransactionSql) => Promise<unknown>)[] = [
      async (tx) => {
        for await (const rows of tx`select generate_series(1, 10)`.cursor(3)) expect(rows.length).toBeLessThanOrEqual(3)
      },
      async (tx) => {
        for await (const rows of tx`select generate_series(1, 10)`.cursor(3)) if (rows.length > 0) break
      },
      async (tx) => tx`select generate_series(1, 10)`.cursor(3, (rows) => expect(rows.length).toBeLessThanOrEqual(3)),
    ]
    for (const way of ways) {
      let last: Promise<unknown> | undefined
      await driver.transaction(async (tx) => {
        const loan = driver.lend!(tx)
        await way(loan.tx)
        await loan.giveBack()
        // Like a settlement, which travels with COMMIT.
        last = driver.query(SELECT, ['settled'], tx)
      })
      expect(await last).toEqual([{ x: 'settled' }])
    }
  })

  test('takes a cursor that was read to its end for no silence of the server, whatever its handler does next', async () => {
    const driver = fromPostgres(connect())
    await driver.transaction(async (tx) => {
      const loan = driver.lend!(tx)
      for await (const rows of loan.tx`select generate_series(1, 10)`.cursor(3)) expect(rows.length).toBeLessThan(4)
      expect(driver.silentMs!(tx)).toBe(0)
      await loan.tx`select 1`
      expect(driver.silentMs!(tx)).toBe(0)
      await loan.giveBack()
    })
  })

  test('takes an error for the end of the transaction, unless it is within its own savepoint()', async () => {
    const byHand = lent(async (tx) => {
      await tx`savepoint a`
      expect(await codeOf(tx`select 1 / 0`)).toBe('22012')
      await tx`rollback to savepoint a`
    })
    expect(await codeOf(byHand)).toBe(code('TRANSACTION_ABORTED'))
    const own = lent(async (tx) => {
      expect(await codeOf(tx.savepoint((inner) => inner`select 1 / 0`))).toBe('22012')
    })
    expect(await codeOf(own)).toBe('resolved')
  })

  test('refuses to end the transaction or to change the session', async () => {
    const refused = lent(async (tx) => {
      expect(await codeOf(tx`commit`)).toBe(code('HANDLER_COMMITTED'))
      expect(await codeOf(tx`rollback`)).toBe(code('HANDLER_COMMITTED'))
      expect(await codeOf(tx.savepoint((inner) => inner`commit`))).toBe(code('HANDLER_COMMITTED'))
      expect(await codeOf(tx`set search_path = x`)).toBe(code('SESSION_CHANGED'))
      expect(await codeOf(tx`select set_config('app.tenant', ${'ada'}, false)`)).toBe(code('SESSION_CHANGED'))
      const kept = tx`set_config('app.tenant', ${'ada'}, false)`
      expect(await codeOf(tx`select ${kept}`)).toBe(code('SESSION_CHANGED'))
      const end = tx`commit`
      expect(await codeOf(tx`${end}`)).toBe(code('HANDLER_COMMITTED'))
      expect(() => tx.prepare('x')).toThrow(expect.objectContaining({ code: 'HANDLER_COMMITTED' }))
    })
    // Nothing of that reached the server.
    expect(await codeOf(refused)).toBe('resolved')
  })
})

test('work that outlives its connection can send nothing more', async () => {
  const sql = connect({ max: 2 })
  const driver = fromPostgres(sql)
  await sql`create table outlived (x text)`
  let late: Promise<unknown> | undefined
  const failing = driver.transaction(async (tx) => {
    const [row] = await driver.query('select pg_backend_pid()::int as pid', [], tx)
    await sql`select pg_terminate_backend(${row?.['pid'] as number})`
    late = (async () => {
      // The slot of the lost connection is used again by then.
      await expect.poll(() => codeOf(failing)).toBe('CONNECTION_CLOSED')
      await Promise.all([sql`select 1`, sql`select 1`])
      await tx`insert into outlived values ('late')`
    })()
    await late
  })
  expect(await codeOf(failing)).toBe('CONNECTION_CLOSED')
  // The transaction may be over before its work has come that far.
  await vi.waitUntil(() => late !== undefined, { timeout: 30_000 })
  expect(await codeOf(late!)).toBe(code('TRANSACTION_CLOSED'))
  expect([...(await sql`select * from outlived`)]).toEqual([])
})

describe('a transaction that is said to be committed', () => {
  const INSERT = 'insert into committed values ($1) returning x'

  async function table(): Promise<postgres.Sql> {
    const sql = connect({ max: 1 })
    await sql`create table if not exists committed (x text)`
    await sql`truncate committed`
    return sql
  }

  test('is, where the names of statements were lost on the way, as behind a pooler', async () => {
    const sql = await table()
    const driver = fromPostgres(sql)
    const insert = (x: string, lost: string) =>
      driver.transaction(async (tx) => {
        await driver.query(lost, [], tx)
        await driver.query(`${INSERT} /* ${x}, new on this connection */`, [x], tx)
      })
    for (const x of ['1', '2', '3', '4']) await insert(x, x === '1' ? 'select 1' : 'deallocate all')
    expect((await sql`select x from committed order by x`).map(({ x }) => x as string)).toEqual(['1', '2', '3', '4'])
  })

  test('is, where its statement was sent again without a name', async () => {
    const sql = await table()
    const driver = fromPostgres(sql)
    const settings = 'set local statement_timeout = 60000'
    const insert = (x: string) => driver.query(INSERT, [x], undefined, { settings })
    await insert('1')
    await driver.transaction((tx) => driver.query('select 1', [], tx))
    await sql.unsafe('deallocate all')
    expect(await insert('2')).toEqual([{ x: '2' }])
    expect((await sql`select x from committed order by x`).map(({ x }) => x as string)).toEqual(['1', '2'])
  })

  test('was not answered with ROLLBACK', async () => {
    const sql = await table()
    const driver = fromPostgres(sql)
    const unnoticed = driver.transaction(async (tx) => {
      await driver.query(INSERT, ['1'], tx)
      let inner: postgres.TransactionSql | undefined
      await tx.savepoint((given) => void (inner = given))
      // Nobody rolls back to the savepoint any more.
      await codeOf(inner!`select 1 / 0`)
    })
    expect(await codeOf(unnoticed)).toBe(code('ROLLED_BACK'))
    expect([...(await sql`select x from committed`)]).toEqual([])
  })

  test('had its settings', async () => {
    const driver = fromPostgres(connect())
    const settings = "set local statement_timeout = 'never'"
    expect(await codeOf(driver.transaction(() => Promise.resolve(), { settings }))).toBe('22023')
  })

  test('keeps what its constraints say at the end, and leaves its connection to others', async () => {
    const sql = await table()
    const driver = fromPostgres(sql)
    await sql`create table unique_at_commit (x text unique deferrable initially deferred)`
    const twice = driver.transaction(async (tx) => {
      for (const x of ['a', 'a']) await driver.query('insert into unique_at_commit values ($1)', [x], tx)
    })
    // It has the only connection next, and must not be rolled back in the place of the first.
    const next = driver.transaction((tx) => driver.query(INSERT, ['next'], tx))
    expect(await codeOf(twice)).toBe('23505')
    expect(await next).toEqual([{ x: 'next' }])
    expect([...(await sql`select x from committed`)]).toEqual([{ x: 'next' }])
  })
})

test('a name that a handler itself made up says nothing of a pooler', async () => {
  const sql = connect()
  const driver = fromPostgres(sql)
  for (let time = 0; time < 3; time += 1) {
    expect(await codeOf(driver.transaction((tx) => tx.unsafe('execute nobody_prepared_it')))).toBe('26000')
  }
  expect(sql.options.prepare).toBe(true)
})

test('transactions leave one connection for statements outside them', async () => {
  const driver = fromPostgres(connect({ max: 3 }))
  expect(driver.capacity).toBe(2)
  let finish = (): void => {}
  const finished = new Promise<void>((resolve) => (finish = resolve))
  const running = [1, 2, 3, 4].map(() => driver.transaction(() => finished))
  expect(await codeOf(driver.query(SELECT, ['x']))).toBe('resolved')
  finish()
  await Promise.all(running)
})

describe("a user's own transaction", () => {
  test('is used as it is, until it is over', async () => {
    const sql = connect()
    const driver = fromPostgres(sql)
    let over: postgres.TransactionSql | undefined
    await sql.begin(async (tx) => {
      over = tx
      expect(await driver.query(SELECT, ['x'], tx)).toMatchObject([{ x: 'x' }])
      await tx.savepoint(async (inner) => {
        expect(await driver.query(SELECT, ['y'], inner)).toMatchObject([{ x: 'y' }])
      })
    })
    expect(await codeOf(driver.query(SELECT, ['x'], over))).toBe(code('TRANSACTION_REQUIRED'))
  })

  test('is refused on a reserved connection, which has none', async () => {
    const sql = connect()
    const reserved = await sql.reserve()
    const query = fromPostgres(sql).query(SELECT, ['x'], reserved as unknown as postgres.TransactionSql)
    expect(await codeOf(query)).toBe(code('TRANSACTION_REQUIRED'))
    reserved.release()
  })
})

test('columns keep their names whatever the owner makes of them', async () => {
  for (const transform of [postgres.camel, postgres.pascal, postgres.kebab, { column: postgres.toCamel }]) {
    const driver = fromPostgres(connect({ transform }))
    expect(await driver.query('select $1::text as one_two_three, 1::text as x', ['a'])).toEqual([
      { one_two_three: 'a', x: '1' },
    ])
  }
})
