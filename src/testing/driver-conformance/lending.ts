/** Transactions lent to handlers: what they may do, and what they are told. */
import assert from 'node:assert/strict'
import { attempt, rejectsWithCode, rejectsWithState } from './assertions.js'
import { lend } from './bench.js'
import type { AddCase } from './suite.js'

export function lending<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  addCase('a lent transaction is the client’s own, and its work is committed', async (bench) => {
    const { table } = bench
    await bench.lent(async (tx) => {
      await bench.native(tx, `insert into ${table} values ('a')`)
      await bench.driver.query(`insert into ${table} values ($1::text)`, ['b'], tx)
    })
    assert.deepEqual(await bench.values(), ['a', 'b'])
  })

  addCase('loans follow each other in one transaction', async (bench) => {
    const { driver, table } = bench
    await driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['0'], tx)
      for (const value of ['1', '2', '3']) {
        const loan = lend(driver, tx)
        await bench.native(loan.tx, `insert into ${table} values ('${value}')`)
        await loan.giveBack()
      }
    })
    assert.deepEqual(await bench.values(), ['0', '1', '2', '3'])
  })

  addCase(
    'a lent transaction that was given back is closed',
    async (bench) => {
      const { driver, table } = bench
      await driver.transaction(async (tx) => {
        await bench.touch(tx)
        const loan = lend(driver, tx)
        await bench.native(loan.tx, 'select 1')
        await loan.giveBack()
        const insert = `insert into ${table} values ('late')`
        await rejectsWithCode(
          'TRANSACTION_CLOSED',
          attempt(() => bench.native(loan.tx, insert)),
        )
        await rejectsWithCode(
          'TRANSACTION_CLOSED',
          driver.query(`insert into ${table} values ($1::text)`, ['late'], loan.tx),
        )
      })
      assert.deepEqual(await bench.values(), ['touched'])
    },
    'lend',
  )

  addCase(
    'a statement that the handler did not await is found',
    async (bench) => {
      const unawaited = bench.lent(async (tx) => {
        void bench.native(tx, 'select pg_sleep(0.2)').catch(() => {})
      })
      await rejectsWithCode('UNAWAITED_QUERY', unawaited)
      assert.deepEqual(await bench.values(), [])
    },
    'lend',
  )

  addCase(
    'statements that the handler did not await run to their end, before they are rolled back',
    async (bench) => {
      let floating: Promise<unknown> | undefined
      const early = bench.lent(async (tx) => {
        floating = (async () => {
          await bench.native(tx, 'select pg_sleep(0.1)')
          await bench.native(tx, `insert into ${bench.table} values ('floating')`)
        })()
        floating.catch(() => {})
      })
      await rejectsWithCode('UNAWAITED_QUERY', early)
      // A rejection that nobody handles would end the process.
      await floating
      assert.deepEqual(await bench.values(), [])
      await bench.recovers()
    },
    'lend',
  )

  const endings = [
    'commit',
    'COMMIT;',
    ' -- why\n/* a /* b */ */ end',
    'rollback',
    'abort',
    'begin',
    'start transaction',
  ]
  addCase(
    'a handler cannot end its transaction',
    async (bench) => {
      for (const text of endings) {
        await rejectsWithCode(
          'HANDLER_COMMITTED',
          bench.lent((tx) => attempt(() => bench.native(tx, text))),
        )
      }
      assert.deepEqual(await bench.values(), [])
      await bench.recovers()
    },
    'lend',
  )

  addCase(
    'a COMMIT or ROLLBACK hidden behind another statement is found',
    async (bench) => {
      for (const text of ['select 1; commit', 'select 1; rollback']) {
        await rejectsWithCode(
          'HANDLER_COMMITTED',
          bench.lent((tx) => bench.native(tx, text)),
        )
      }
      await bench.recovers()
    },
    'scripts',
    'lend',
  )

  addCase(
    'a handler cannot change the session',
    async (bench) => {
      for (const text of [
        'set search_path = x',
        'SET SESSION statement_timeout = 1',
        'reset all',
        'listen x',
        'discard all',
      ]) {
        await rejectsWithCode(
          'SESSION_CHANGED',
          bench.lent((tx) => attempt(() => bench.native(tx, text))),
        )
      }
      await bench.lent((tx) => bench.native(tx, `set local statement_timeout = '1min'`))
      await bench.lent((tx) => bench.native(tx, 'set constraints all deferred'))
    },
    'lend',
  )

  addCase(
    'a handler that swallows an SQL error is told so',
    async (bench) => {
      const swallowing = bench.lent((tx) => bench.native(tx, 'select 1 / 0').catch(() => {}))
      await rejectsWithCode('TRANSACTION_ABORTED', swallowing)
      assert.deepEqual(await bench.values(), [])
    },
    'lend',
  )

  addCase('an error of a handler’s statement reaches the handler and the transaction’s caller', async (bench) => {
    await rejectsWithState(
      '22012',
      bench.lent((tx) => bench.native(tx, 'select 1 / 0')),
    )
  })
}
