// A handler whose connection dies inside a savepoint, in each of the ways in which that can meet postgres.js. Prints what
// became of each transaction; an error that nobody catches ends the process.
import pg from 'pg'
import postgres from 'postgres'
import { fromPostgres } from 'oncebox/postgres'

const url = process.env.DATABASE_URL
const sql = postgres(url, { max: 10, onnotice: () => {} })
const driver = fromPostgres(sql)
const other = new pg.Pool({ connectionString: url, max: 1 })
const end = (pid) => other.query('select pg_terminate_backend($1)', [pid])
const gone = async (pid) => {
  while ((await other.query('select from pg_stat_activity where pid = $1', [pid])).rowCount > 0);
}
const pidOf = async (tx) => (await tx`select pg_backend_pid() pid`)[0].pid

const WAYS = {
  'in a statement of the savepoint': (tx) =>
    tx.savepoint((inner) => inner`select pg_terminate_backend(pg_backend_pid())`),
  'while a statement of the savepoint waits': (tx) =>
    tx.savepoint(async (inner) => {
      const pid = await pidOf(inner)
      await Promise.all([inner`select pg_sleep(30)`, end(pid)])
    }),
  'between two statements of the savepoint': (tx) =>
    tx.savepoint(async (inner) => {
      const pid = await pidOf(inner)
      await end(pid)
      await gone(pid)
      await inner`select 1`
    }),
  'before the savepoint is released': (tx) =>
    tx.savepoint(async (inner) => {
      const pid = await pidOf(inner)
      await end(pid)
      await gone(pid)
    }),
  'after the work in it has failed': (tx) =>
    tx.savepoint(async (inner) => {
      const pid = await pidOf(inner)
      await end(pid)
      await gone(pid)
      throw new Error('failed')
    }),
  'before the savepoint is made': async (tx) => {
    const pid = await pidOf(tx)
    await end(pid)
    await gone(pid)
    await tx.savepoint((inner) => inner`select 1`)
  },
  'in a savepoint of a savepoint': (tx) =>
    tx.savepoint((inner) => inner.savepoint((innermost) => innermost`select pg_terminate_backend(pg_backend_pid())`)),
  'in a savepoint that is caught': (tx) =>
    tx.savepoint((inner) => inner`select pg_terminate_backend(pg_backend_pid())`).catch(() => undefined),
}

for (const [way, work] of Object.entries(WAYS)) {
  const transaction = driver
    .transaction(async (tx) => {
      const loan = driver.lend(tx)
      await work(loan.tx)
      await loan.giveBack()
    })
    .then(
      () => 'committed',
      (error) => error.code ?? error.message,
    )
  // A statement that postgres.js writes to a connection which it takes for alive may have no answer. A box ends its handler
  // then, by its timeout.
  const noAnswer = new Promise((resolve) => setTimeout(resolve, 10_000, 'no answer').unref())
  const outcome = await Promise.race([transaction, noAnswer])
  console.log(JSON.stringify({ way, outcome }))
  // The driver goes on, on another connection.
  for (let tries = 0; ; tries++) {
    const works = await driver.query('select $1::text one', ['1']).catch((error) => error)
    if (!(works instanceof Error)) break
    if (tries > 50) throw works
  }
}
await other.end()
await sql.end({ timeout: 0 })
console.log('ended')
