/** Notifications. */
import assert from 'node:assert/strict'
import { until } from './assertions.js'
import type { AddCase } from './suite.js'

export function listening<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  addCase(
    'a listener is woken at once, by each notification, and not after it has unsubscribed',
    async (bench) => {
      const channel = `${bench.table} Mixed-Case`
      let wakes = 0
      const unsubscribe = await bench.driver.listen!(channel, () => (wakes += 1))
      await until(async () => wakes >= 1)
      const before = wakes
      await bench.driver.query('select pg_notify($1::text, $2::text)::text as x', [channel, ''])
      await until(async () => wakes > before)
      let others = 0
      const unsubscribeOther = await bench.driver.listen!(channel, () => (others += 1))
      await until(async () => others >= 1)
      await unsubscribe()
      await unsubscribe()
      const after = wakes
      // What reaches the other would have reached this one: the second time at the latest, on a connection of its own.
      for (let round = 0; round < 2; round++) {
        const heard = others
        await bench.driver.query('select pg_notify($1::text, $2::text)::text as x', [channel, ''])
        await until(async () => others > heard)
      }
      assert.equal(wakes, after)
      await unsubscribeOther()
    },
    'listen',
  )

  addCase(
    'a listener whose connection is killed listens again, and is woken then',
    async (bench) => {
      let wakes = 0
      const unsubscribe = await bench.driver.listen!(bench.table, () => (wakes += 1))
      await until(async () => wakes >= 1)
      const before = wakes
      const killed = await bench.subject.outside(
        `select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%${bench.table}%'`,
      )
      assert.equal(killed.length, 1)
      await until(async () => wakes > before)
      const again = wakes
      await bench.driver.query('select pg_notify($1::text, $2::text)::text as x', [bench.table, ''])
      await until(async () => wakes > again)
      await unsubscribe()
    },
    'parallel',
    'listen',
  )
}
