/** Packets that vanish: both sides have an open connection, and wait. */
import assert from 'node:assert/strict'
import { assertLost, rejection, until, within } from './assertions.js'
import { LIMIT_MS, lend } from './bench.js'
import type { AddCase } from './suite.js'

export function silences<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  addCase(
    'a statement without an answer within its limit is rejected as lost, and the driver goes on',
    async (bench) => {
      await bench.open(2)
      bench.faults.swallow()
      const unanswered = bench.driver.query('select $1::text as x', ['x'], undefined, { limitMs: LIMIT_MS })
      const error = await rejection(within(unanswered))
      assertLost(error)
      await bench.recovers()
    },
    'faults',
  )

  addCase(
    'a BEGIN without an answer within its limit rejects the transaction as lost, and the driver goes on',
    async (bench) => {
      const { driver } = bench
      await bench.open(2)
      bench.faults.swallow()
      let answered = false
      const work = async (tx: Tx): Promise<void> => {
        await bench.touch(tx)
        answered = true
      }
      const error = await rejection(within(driver.transaction(work, { limitMs: LIMIT_MS })))
      assertLost(error)
      assert.equal(answered, false)
      await bench.recovers()
      assert.deepEqual(await bench.values(), [])
    },
    'faults',
  )

  addCase(
    'a transaction that waits for its server is told apart, and can be ended from this side',
    async (bench) => {
      const { driver } = bench
      for (const moment of ['a statement', 'a statement of the handler', 'COMMIT']) {
        let silent: Tx | undefined
        const waiting = driver.transaction(async (tx) => {
          await bench.touch(tx)
          assert.equal(driver.silentMs!(tx), 0)
          bench.faults.swallow()
          silent = tx
          if (moment === 'a statement') await driver.query('select $1::text as x', ['x'], tx)
          if (moment === 'a statement of the handler') await bench.native(lend(driver, tx).tx, 'select 1')
        })
        const error = rejection(within(waiting))
        await until(async () => silent !== undefined && driver.silentMs!(silent) > 0)
        driver.hangUp!(silent!, Object.assign(new Error('no answer'), { code: 'CONNECTION_SILENT' }))
        assertLost(await error, moment)
        await bench.recovers()
      }
      assert.deepEqual(await bench.values(), [])
    },
    'faults',
    'silent',
  )
}
