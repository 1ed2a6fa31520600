/** Work that fails while its statement runs, and connections that the server ends. */
import assert from 'node:assert/strict'
import { isConnectionLoss } from '../../postgres/errors.js'
import { assertLost, rejection, until } from './assertions.js'
import { MOMENTS } from './bench.js'
import type { AddCase } from './suite.js'

export function failures<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  addCase(
    'work that rejects while a statement runs is rejected at once, and the statement is stopped',
    async (bench) => {
      const { driver, table } = bench
      const marker = `/* ${table} */`
      const started = Date.now()
      const failing = driver.transaction(async (tx) => {
        await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
        void bench.native(tx, `select pg_sleep(60) ${marker}`).catch(() => {})
        await until(async () => (await bench.running(marker)) === 1)
        throw new Error('deadline')
      })
      assert.equal(((await rejection(failing)) as Error).message, 'deadline')
      assert.ok(Date.now() - started < 20_000)
      await until(async () => (await bench.running(marker)) === 0)
      assert.deepEqual(await bench.values(), [])
      await driver.transaction((tx) => driver.query(`insert into ${table} values ($1::text)`, ['b'], tx))
      assert.deepEqual(await bench.values(), ['b'])
    },
    'parallel',
  )

  addCase(
    'a connection killed in mid transaction rejects it, and the driver goes on',
    async (bench) => {
      for (const moment of MOMENTS) {
        const error = await bench.losing(moment, (pid) => bench.kill(pid))
        assertLost(error, moment)
      }
      assert.deepEqual(await bench.values(), [])
      await bench.recovers()
    },
    'parallel',
  )

  addCase(
    'a connection killed during COMMIT rejects with an error that says nothing of the outcome',
    async (bench) => {
      const { driver, table } = bench
      await bench.atCommit(`perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10)`)
      const error = await rejection(
        driver.transaction((tx) => driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)),
      )
      // Not along its causes: what a handler's error has for a cause says nothing of the COMMIT.
      assert.ok(isConnectionLoss(error), `not seen as a lost connection: ${String(error)}`)
      await bench.recovers()
    },
    'parallel',
  )

  addCase(
    'a connection killed under a statement outside a transaction rejects it, and the driver goes on',
    async (bench) => {
      const { driver } = bench
      const error = await rejection(
        driver.query('select pg_terminate_backend(pg_backend_pid()), pg_sleep($1::int)', [10]),
      )
      assertLost(error)
      await bench.recovers()
    },
    'parallel',
  )

  addCase(
    'idle connections that are killed do not end the process, and the driver goes on',
    async (bench) => {
      const pids = await Promise.all([1, 2].map(() => bench.driver.transaction((tx) => bench.pid(tx))))
      for (const pid of pids) await bench.kill(pid)
      await bench.recovers()
    },
    'parallel',
  )
}
