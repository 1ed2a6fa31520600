/** Notifications. */
import assert from 'node:assert/strict'
import { until } from './assertions.js'
import type { AddCase } from './suite.js'

export function listening<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  addCase('a listener is woken at once, by each notification, and not after it has unsubscribed', async (bench) => {
    if (!bench.driver.listen) return
    const channel = `${bench.table} Mixed-Case`
    let wakes = 0
    const unsubscribe = await bench.driver.listen(channel, () => (wakes += 1))
    await until(async () => wakes >= 1)
    const before = wakes
    await bench.driver.query('select pg_notify($1::text, $2::text)::text as x', [channel, ''])
    await until(async () => wakes > before)
    await unsubscribe()
    await unsubscribe()
    const after = wakes
    await bench.driver.query('select pg_notify($1::text, $2::text)::text as x', [channel, ''])
    await bench.driver.query('select 1', [])
    assert.equal(wakes, after)
  })

  addCase(
    'a listener whose connection is killed listens again, and is woken then',
    async (bench) => {
      if (!bench.driver.listen) return
      let wakes = 0
      const unsubscribe = await bench.driver.listen(bench.table, () => (wakes += 1))
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
  )
}
