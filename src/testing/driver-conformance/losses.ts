/** Connections that break, and connections that cannot be had. */
import assert from 'node:assert/strict'
import type { Driver } from '../../postgres/driver.js'
import { isUnavailable, sqlState } from '../../postgres/errors.js'
import { assertLost, rejection, until, within } from './assertions.js'
import { MOMENTS, RECOVERY_MS } from './bench.js'
import type { AddCase } from './suite.js'

export function losses<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  for (const how of ['ended', 'reset'] as const) {
    addCase(
      `a connection that is ${how} in mid transaction rejects it as lost, and the driver goes on`,
      async (bench) => {
        for (const moment of MOMENTS) {
          const error = await bench.losing(moment, async () => bench.faults.cut(how))
          assertLost(error, moment)
          await bench.recovers()
        }
        assert.deepEqual(await bench.values(), [])
      },
      'faults',
    )
  }

  addCase(
    'a connection that is reset under a statement outside a transaction rejects it as lost, and the driver goes on',
    async (bench) => {
      const sleeping = bench.driver.query(`select pg_sleep($1::int) ${bench.marker}`, [60])
      const error = rejection(within(sleeping))
      await until(async () => (await bench.running(bench.marker)) === 1)
      bench.faults.cut('reset')
      assertLost(await error)
      await bench.recovers()
    },
    'faults',
  )

  addCase(
    'idle connections that are reset do not end the process, and the driver goes on',
    async (bench) => {
      for (const how of ['ended', 'reset'] as const) {
        await bench.open(2)
        bench.faults.cut(how)
        await bench.recovers()
      }
    },
    'faults',
  )

  addCase(
    'without a connection nothing is called, and it is told as a lost connection',
    async (bench) => {
      await bench.faults.refuse()
      assertLost(await uncalled(bench.driver), 'connections are refused')
      await bench.faults.accept()
      await bench.recovers()
    },
    'faults',
  )

  addCase(
    'without a unix socket nothing is called, and it is told as a lost connection',
    async (bench) => {
      const { driver, close } = await bench.faults.lacking('unix socket')
      const error = await uncalled(driver).finally(close)
      assertLost(error)
    },
    'faults',
  )

  addCase(
    'a role that is refused is told by its SQLSTATE, and nothing is called',
    async (bench) => {
      const { driver, close } = await bench.faults.lacking('role')
      const error = await uncalled(driver).finally(close)
      assert.match(sqlState(error) ?? '', /^28/, `got ${String(error)}`)
      assert.ok(isUnavailable(error))
    },
    'faults',
  )
}

/** Why neither a statement nor a transaction of this driver can be had; the work of the transaction is not called. */
async function uncalled<Tx, TxIn>(driver: Driver<Tx, TxIn>): Promise<unknown> {
  const limits = { limitMs: RECOVERY_MS }
  await rejection(within(driver.query('select $1::text as x', ['x'], undefined, limits)))
  let called = false
  const work = async (): Promise<void> => {
    called = true
  }
  const error = await rejection(within(driver.transaction(work, limits)))
  assert.equal(called, false, 'work was called')
  return error
}
