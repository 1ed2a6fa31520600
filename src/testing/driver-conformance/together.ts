/** Transactions lent to several handlers at a time. */
import assert from 'node:assert/strict'
import type { Loan } from '../../postgres/driver.js'
import { attempt, rejectsWithCode, rejectsWithState } from './assertions.js'
import type { Bench } from './bench.js'
import type { AddCase } from './suite.js'

type Act<Tx> = (tx: Tx) => Promise<unknown>

type Outcome = PromiseSettledResult<void>

/** Lends one transaction to all of these at once; each gives it back when it is done, and `ended` hears how. */
async function sideBySide<Tx, TxIn>(
  { driver }: Bench<Tx, TxIn>,
  acts: readonly Act<Tx>[],
  ended: (outcomes: readonly Outcome[]) => void = () => {},
): Promise<void> {
  const call = async (loan: Loan<Tx>, act: Act<Tx>): Promise<void> => {
    await (loan.run ? loan.run(async () => act(loan.tx)) : act(loan.tx))
    await loan.giveBack()
  }
  await driver.transaction(async (tx) => {
    const calls = acts.map((act) =>
      call(
        driver.lendTogether!(tx, () => {}),
        act,
      ),
    )
    const outcomes = await Promise.allSettled(calls)
    ended(outcomes)
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  })
}

export function together<Tx, TxIn>(addCase: AddCase<Tx, TxIn>): void {
  const addOwn: AddCase<Tx, TxIn> = (name, run, ...needs) => addCase(name, run, 'together', ...needs)
  const insert = ({ table }: Bench<Tx, TxIn>, value: string): string => `insert into ${table} values ('${value}')`

  addOwn('loans side by side share one transaction, and all of their work is committed', async (bench) => {
    const both = async (tx: Tx, first: string, second: string): Promise<void> => {
      await bench.native(tx, insert(bench, first))
      await bench.driver.query(`insert into ${bench.table} values ($1::text)`, [second], tx)
    }
    await sideBySide(bench, [(tx) => both(tx, 'a', 'd'), (tx) => both(tx, 'b', 'e'), (tx) => both(tx, 'c', 'f')])
    assert.deepEqual((await bench.values()).sort(), ['a', 'b', 'c', 'd', 'e', 'f'])
  })

  addOwn('of loans side by side, the one that left a statement unanswered is told so', async (bench) => {
    let told: string[] = []
    const careful: Act<Tx> = (tx) => bench.native(tx, insert(bench, 'careful'))
    const careless: Act<Tx> = async (tx) => {
      void bench.native(tx, 'select pg_sleep(0.2)').catch(() => {})
    }
    const failed = sideBySide(bench, [careful, careless], (outcomes) => {
      told = outcomes.map(({ status }) => status)
    })
    await rejectsWithCode('UNAWAITED_QUERY', failed)
    assert.deepEqual(told, ['fulfilled', 'rejected'])
    assert.deepEqual(await bench.values(), [])
    await bench.recovers()
  })

  addOwn('a statement that fails in one of several loans fails them all', async (bench) => {
    const failed = sideBySide(bench, [
      (tx) => bench.native(tx, insert(bench, 'a')),
      (tx) => bench.native(tx, 'select 1/0'),
      (tx) => bench.native(tx, insert(bench, 'c')),
    ])
    await rejectsWithState('22012', failed)
    assert.deepEqual(await bench.values(), [])
    await bench.recovers()
  })

  addOwn('one that swallows its error side by side is told so', async (bench) => {
    const failed = sideBySide(bench, [
      (tx) => attempt(() => bench.native(tx, 'select 1/0')).catch(() => undefined),
      () => Promise.resolve(),
    ])
    await rejectsWithCode('TRANSACTION_ABORTED', failed)
    await bench.recovers()
  })

  addOwn('whoever lent it is told when a handler does what cannot be done beside others', async (bench) => {
    const { driver } = bench
    let left = 0
    await driver.transaction(async (tx) => {
      await bench.touch(tx)
      const loan = driver.lendTogether!(tx, () => void (left += 1))
      await bench.native(loan.tx, 'select 1')
      assert.equal(left, 0)
      await attempt(() => bench.native(loan.tx, 'savepoint x')).catch(() => undefined)
      assert.equal(left, 1)
      await rejectsWithCode(
        'GROUP_ABANDONED',
        attempt(() => loan.giveBack()),
      )
    })
  })

  const unfit = [
    'savepoint x',
    "set local application_name = 'x'",
    'select 1 for update',
    'declare c cursor for select 1',
  ]
  addOwn('what cannot run beside others is refused, also if the handler catches that', async (bench) => {
    for (const text of unfit) {
      await rejectsWithCode(
        'GROUP_ABANDONED',
        sideBySide(bench, [(tx) => attempt(() => bench.native(tx, text)).catch(() => undefined)]),
      )
    }
    assert.deepEqual(await bench.values(), [])
    await bench.recovers()
  })

  addOwn('a handler cannot end its transaction side by side', async (bench) => {
    await rejectsWithCode('HANDLER_COMMITTED', sideBySide(bench, [(tx) => attempt(() => bench.native(tx, 'commit'))]))
    await bench.recovers()
  })
}
