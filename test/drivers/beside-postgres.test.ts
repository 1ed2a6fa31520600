/** What queries of postgres.js may send beside others: all that is put into them is looked at. */
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPostgres } from 'oncebox/postgres'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'

let database: ScratchDatabase
let pool: postgres.Sql
beforeAll(async () => {
  database = await scratchDatabase('beside_postgres')
  pool = postgres(database.url, { max: 2, onnotice: () => {} })
  await pool`create table account (id serial primary key, balance int, note text, more jsonb)`
})
afterAll(async () => {
  await pool.end({ timeout: 5 })
  await database.close()
})

type Tx = postgres.TransactionSql
type Send = (tx: Tx) => PromiseLike<unknown>

/** Whether it was refused, and not sent; any error of the database is the caller's. */
async function refused(send: Send): Promise<boolean> {
  const driver = fromPostgres(pool)
  let left = 0
  await driver
    .transaction(async (tx) => {
      const loan = driver.lendTogether!(tx, () => void (left += 1))
      await send(loan.tx as Tx)
      await loan.giveBack()
    })
    .catch((error: { code?: string }) => {
      if (error.code !== 'GROUP_ABANDONED') throw error
    })
  return left > 0
}

/** What is built is no concern of the types. */
const build = (tx: Tx, ...args: unknown[]): never => (tx as unknown as (...args: unknown[]) => never)(...args)
const last = (tx: Tx) => tx`lastval()`

class Row {
  readonly #tx: Tx
  constructor(tx: Tx) {
    this.#tx = tx
  }
  get balance() {
    return last(this.#tx)
  }
}

/** Not of postgres.js, or of one to come. */
const unknown = { then: () => undefined, build: () => 'for update' } as never

const APART: Record<string, Send> = {
  'a part': (tx) => tx`select ${last(tx)}`,
  'a part that completes a word before it': (tx) => tx`select * from account for ${tx`update`}`,
  'a part of a part': (tx) => tx`select * from account ${tx`where true ${tx`for update`}`}`,
  'a part made of text': (tx) => tx`select * from account ${tx.unsafe('for update')}`,
  'a list of parts': (tx) => tx`select * from account where true ${[tx`and true`, tx`for update`] as never}`,
  'a row to insert': (tx) => tx`insert into account ${build(tx, { balance: last(tx) })}`,
  'one of the rows to insert': (tx) => tx`insert into account ${build(tx, [{ balance: 1 }, { balance: last(tx) }])}`,
  'a named column of a row': (tx) => tx`insert into account ${build(tx, { balance: last(tx), x: 1 }, 'balance')}`,
  'a column that a class computes': (tx) => tx`insert into account ${build(tx, new Row(tx), 'balance')}`,
  'a part of a part in a row': (tx) => tx`insert into account ${build(tx, { balance: tx`1 + ${last(tx)}` })}`,
  'a list of parts in a row': (tx) => tx`insert into account ${build(tx, { balance: [last(tx)] })}`,
  'a row to update': (tx) => tx`update account set ${build(tx, { balance: last(tx) })}`,
  'columns to select': (tx) => tx`select ${build(tx, { balance: last(tx) })}`,
  'lists of values': (tx) => tx`select * from (values ${build(tx, [[1], [last(tx)]])}) x`,
  'values to search for': (tx) => tx`select * from account where balance in ${build(tx, [1, last(tx)])}`,
  'a list of parts to search for': (tx) => tx`select * from account where balance in ${build(tx, [1, [last(tx)]])}`,
  'a builder in a part': (tx) => tx`insert into account ${tx`${build(tx, { balance: last(tx) })}`}`,
  'a name': (tx) => tx`select ${tx('lastval')}()`,
  'a list of names': (tx) => tx`select ${build(tx, ['pg_catalog.lastval'])}()`,
  'an unknown part': (tx) => tx`select * from account ${unknown}`,
  'an unknown part of a row': (tx) => tx`insert into account ${build(tx, { balance: unknown })}`,
  'a row that cannot be read': (tx) => {
    const row = {
      get balance(): never {
        throw new Error('no')
      },
    }
    return tx`insert into account ${build(tx, row)}`
  },
}
test.each(Object.entries(APART))('%s with what cannot run beside others is refused', async (_, send) => {
  expect(await refused(send)).toBe(true)
})

const WORDS = 'for update; select lastval()'
const BESIDE: Record<string, Send> = {
  'a row': (tx) => tx`insert into account ${build(tx, { balance: 1, note: WORDS, more: tx.json({ WORDS }) })}`,
  'a row with a part': (tx) => tx`insert into account ${build(tx, { balance: tx`1 + ${1}`, note: WORDS }, 'balance')}`,
  rows: (tx) => tx`insert into account ${build(tx, [{ note: WORDS }, { note: WORDS }])}`,
  'values to search for': (tx) => tx`select * from account where note in ${build(tx, [WORDS, 'b'])}`,
  'a list as a value': (tx) => tx`select * from account where note = any(${[WORDS, 'b']})`,
  'names and values': (tx) => tx`select ${tx(['id', 'note'])} from ${tx('account')} where note = ${WORDS}`,
  'an array of a type': (tx) => tx`select * from account where note = any(${tx.array([WORDS])})`,
  'an update': (tx) => tx`update account set ${build(tx, { note: WORDS, balance: null })} where id = ${1}`,
  'parts of a condition': (tx) => tx`select * from account where true ${[tx`and id = ${1}`, tx`and true`] as never}`,
  'a date and bytes': (tx) => tx`select ${new Date()}::timestamptz, ${Buffer.from(WORDS)}::bytea`,
}
test.each(Object.entries(BESIDE))('%s that can run beside others: sent', async (_, send) => {
  expect(await refused(send)).toBe(false)
})
