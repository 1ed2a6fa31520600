/** Transactions: what they write, how they end, and what is told of it. */
import assert from 'node:assert/strict'
import { nameOf, rejection, rejectsWithCode, rejectsWithState } from './assertions.js'
import type { AddCase } from './suite.js'

export function transactions<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  addCase('what a transaction wrote is visible after it resolved, and its result is handed on', async (bench) => {
    const { driver, table } = bench
    const result = await driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      await bench.native(tx, `insert into ${table} values ('b')`)
      if (bench.capabilities.parallel) assert.deepEqual(await bench.values(), [])
      return { any: ['thing'] }
    })
    assert.deepEqual(result, { any: ['thing'] })
    assert.deepEqual(await bench.values(), ['a', 'b'])
  })

  addCase('a transaction whose work rejects leaves nothing, and rejects with the same error', async (bench) => {
    const { driver, table } = bench
    for (const thrown of [new Error('mine'), 'a string', undefined, null]) {
      const failing = driver.transaction(async (tx) => {
        await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
        throw thrown
      })
      assert.equal(await rejection(failing), thrown)
    }
    assert.equal(
      await rejection(driver.transaction(() => Promise.reject(new RangeError('at once')))).then(nameOf),
      'RangeError',
    )
    assert.deepEqual(await bench.values(), [])
  })

  addCase('the isolation level is the one asked for, read committed by default', async ({ driver }) => {
    const level = (tx: Tx) => driver.query(`select current_setting('transaction_isolation') as level`, [], tx)
    assert.equal((await driver.transaction(level))[0]?.['level'], 'read committed')
    for (const isolation of ['read committed', 'repeatable read', 'serializable'] as const) {
      assert.equal((await driver.transaction(level, { isolation }))[0]?.['level'], isolation)
    }
  })

  addCase('a root handle is refused where a transaction is required', async ({ driver, root, table }) => {
    const query = (tx: unknown) => driver.query(`insert into ${table} values ($1::text)`, ['a'], tx as Tx)
    for (const wrong of [root, null, {}, 'tx']) await rejectsWithCode('TRANSACTION_REQUIRED', query(wrong))
  })

  addCase('a client outside a transaction is refused, and nothing runs', async (bench) => {
    const { driver, table } = bench
    const idle = await bench.subject.idle?.()
    if (idle) {
      const query = driver.query(`insert into ${table} values ($1::text)`, ['a'], idle.tx)
      await rejectsWithCode('TRANSACTION_REQUIRED', query).finally(() => idle.close())
    }
    let over: Tx | undefined
    await driver.transaction(async (tx) => {
      over = tx
    })
    await rejectsWithCode('TRANSACTION_REQUIRED', driver.query(`insert into ${table} values ($1::text)`, ['b'], over))
    assert.deepEqual(await bench.values(), [])
  })

  addCase('statements still unanswered when work resolves are committed with it', async (bench) => {
    const { driver, table } = bench
    await driver.transaction(async (tx) => {
      for (const value of ['a', 'b', 'c']) void driver.query(`insert into ${table} values ($1::text)`, [value], tx)
    })
    assert.deepEqual(await bench.values(), ['a', 'b', 'c'])
  })

  addCase('a statement that fails after work resolved rejects the transaction with its error', async (bench) => {
    const { driver, table } = bench
    const failing = driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      // Not even caught: it must not be reported as unhandled either.
      void driver.query('select 1 / $1::int as x', [0], tx)
    })
    await rejectsWithState('22012', failing)
    assert.deepEqual(await bench.values(), [])
  })

  addCase('a transaction with a swallowed SQL error never resolves', async (bench) => {
    const { driver, table } = bench
    const swallow = async (tx: Tx, failing: () => Promise<unknown>) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      await failing().catch(() => {})
      return 'done'
    }
    const own = driver.transaction((tx) => swallow(tx, () => driver.query('select 1 / $1::int as x', [0], tx)))
    await rejectsWithCode('ROLLED_BACK', own)
    const natively = driver.transaction((tx) => swallow(tx, () => bench.native(tx, 'select 1 / 0')))
    await rejectsWithCode('ROLLED_BACK', natively)
    assert.deepEqual(await bench.values(), [])
  })

  addCase('a deferred constraint that fails at COMMIT rejects with its SQLSTATE', async (bench) => {
    const { driver, table } = bench
    await bench.subject.outside(
      `alter table ${table} add constraint ${table}_once unique (value) deferrable initially deferred`,
    )
    const insert = (tx: Tx) => driver.query(`insert into ${table} values ($1::text), ($1::text)`, ['twice'], tx)
    await rejectsWithState('23505', driver.transaction(insert))
    assert.deepEqual(await bench.values(), [])
    await driver.transaction((tx) => driver.query(`insert into ${table} values ($1::text)`, ['once'], tx))
    assert.deepEqual(await bench.values(), ['once'])
  })

  addCase(
    'a warning during COMMIT rejects with COMMIT_UNCERTAIN',
    async (bench) => {
      const { driver, table } = bench
      await bench.atCommit(`raise warning 'canceling wait for synchronous replication'`)
      const insert = (tx: Tx) => driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      await rejectsWithCode('COMMIT_UNCERTAIN', driver.transaction(insert))
      // The same while the last statement is still unanswered, and for a statement that warns itself.
      await rejectsWithCode(
        'COMMIT_UNCERTAIN',
        driver.transaction(async (tx) => void insert(tx)),
      )
    },
    'commitWarnings',
  )

  addCase('a notice during COMMIT, or a warning before it, is no reason to reject', async (bench) => {
    const { driver, table } = bench
    await bench.atCommit(`raise notice 'nothing to see'`)
    const warn = `do $$ begin raise warning 'before'; end $$`
    await driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      void driver.query(warn, [], tx)
    })
    assert.deepEqual(await bench.values(), ['a'])
  })

  addCase(
    'transactions run in parallel',
    async (bench) => {
      const { driver } = bench
      let arrived = 0
      let open: () => void = () => {}
      const both = new Promise<void>((resolve) => (open = resolve))
      const meet = (tx: Tx) =>
        driver.query('select $1::text as x', ['x'], tx).then(() => {
          arrived += 1
          if (arrived === 2) open()
          return both
        })
      await Promise.all([driver.transaction(meet), driver.transaction(meet)])
    },
    'parallel',
  )

  addCase(
    'statements outside go through while a transaction is open',
    async ({ driver }) => {
      await driver.transaction(async (tx) => {
        await driver.query('select $1::text as x', ['x'], tx)
        await driver.query('select $1::text as x', ['y'])
      })
    },
    'parallel',
  )
}
