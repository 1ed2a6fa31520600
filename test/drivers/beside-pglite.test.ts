/** What PGlite's templates may send beside others: the whole of them is looked at. */
import { PGlite, type Transaction } from '@electric-sql/pglite'
import { identifier, raw, sql } from '@electric-sql/pglite/template'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPglite } from 'oncebox/pglite'

let db: PGlite
beforeAll(async () => {
  db = await PGlite.create()
  await db.exec('create table account (id serial primary key, balance int); insert into account (balance) values (0)')
})
afterAll(() => db.close())

type Send = (tx: Transaction) => Promise<unknown>

/** Whether it was refused, and not sent. */
async function refused(send: Send): Promise<boolean> {
  const driver = fromPglite<Transaction>(db)
  let left = 0
  await driver
    .transaction(async (tx) => {
      const loan = driver.lendTogether!(tx, () => void (left += 1))
      await send(loan.tx).catch(() => undefined)
      await loan.giveBack()
    })
    .catch((error: { code?: string }) => {
      if (error.code !== 'GROUP_ABANDONED') throw error
    })
  return left > 0
}

const APART: Record<string, Send> = {
  'a lock behind a value': (tx) => tx.sql`select * from account where id = ${1} for update`,
  'a lock in a fragment': (tx) => tx.sql`select * from account where id = ${1} ${sql`for update`}`,
  'a lock in two parts': (tx) => tx.sql`select * from account for ${raw`update`}`,
  'a lock in a fragment behind its value': (tx) => tx.sql`select * from account ${sql`where id = ${1} for update`}`,
  'the last value of a sequence': (tx) => tx.sql`select ${1}, currval('account_id_seq')`,
  'a function by its name': (tx) => tx.sql`select ${identifier`lastval`}()`,
}
test.each(Object.entries(APART))('%s is refused', async (_, send) => {
  expect(await refused(send)).toBe(true)
})

const BESIDE: Record<string, Send> = {
  'a statement with values': (tx) => tx.sql`update account set balance = balance + ${1} where id = ${1}`,
  'a statement with fragments': (tx) =>
    tx.sql`select * from ${identifier`account`} ${sql`where id = ${1}`} ${raw`order by id`}`,
  'words that are a value': (tx) => tx.sql`select ${'for update; currval'}::text`,
}
test.each(Object.entries(BESIDE))('%s is sent', async (_, send) => {
  expect(await refused(send)).toBe(false)
})

test('an end of the transaction behind a value is refused to a handler on its own, too', async () => {
  const driver = fromPglite<Transaction>(db)
  await driver.transaction(async (tx) => {
    const loan = driver.lend!(tx)
    const sent = loan.tx.sql`select ${1}::int; ${raw`commit`}`
    await expect(sent).rejects.toMatchObject({ code: 'HANDLER_COMMITTED' })
    await loan.giveBack()
  })
})
