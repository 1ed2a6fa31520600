/** What a case works on. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { someCause } from '../../failure.js'
import type { Driver, Loan } from '../../postgres/driver.js'
import { isConnectionLoss } from '../../postgres/errors.js'
import { rejection, until, within } from './assertions.js'
import type { DriverCapabilities, DriverFaults, DriverUnderTest } from './suite.js'

/** When a connection may break. */
export const MOMENTS = ['before a statement', 'before COMMIT', 'under a statement', 'under a native statement'] as const

/** Nothing answers, so nobody is cut short by it. */
export const LIMIT_MS = 1_000
/** Enough for a server that is busy. */
export const RECOVERY_MS = 5_000

/** One case at work: the subject, a table of its own, and what several cases do. */
export class Bench<Tx, TxIn> {
  readonly subject: DriverUnderTest<Tx, TxIn>
  readonly capabilities: Required<DriverCapabilities>
  readonly #table = `conformance_${randomBytes(6).toString('hex')}`
  #created: Promise<unknown> | undefined
  readonly driver: Driver<Tx, TxIn>

  constructor(subject: DriverUnderTest<Tx, TxIn>, capabilities: Required<DriverCapabilities>) {
    this.subject = subject
    this.capabilities = capabilities
    this.driver = subject.driver
  }

  get root(): unknown {
    return this.subject.root
  }

  get table(): string {
    return this.#table
  }

  /** A comment that marks the statements of this case. */
  get marker(): string {
    return `/* ${this.#table} */`
  }

  get faults(): DriverFaults<Tx, TxIn> {
    assert.ok(this.subject.faults, 'give `faults`, or say why not: `capabilities: { faults: false }`')
    return this.subject.faults
  }

  async create(): Promise<void> {
    await (this.#created ??= this.subject.outside(`create table ${this.#table} (value text)`))
  }

  native(tx: Tx, text: string): Promise<unknown> {
    return this.subject.native(tx, text)
  }

  /** What is committed. */
  async values(): Promise<unknown[]> {
    const rows = await this.subject.outside(`select value from ${this.#table} order by value`)
    return rows.map((row) => row['value'])
  }

  /** Gives the transaction an id, as oncebox does before it lends. */
  async touch(tx: Tx): Promise<void> {
    await this.driver.query(`insert into ${this.#table} values ($1::text)`, ['touched'], tx)
  }

  /** A transaction in which `handler` gets a lent one. */
  async lent(handler: (tx: Tx) => Promise<unknown>): Promise<void> {
    await this.driver.transaction(async (tx) => {
      await this.driver.query('select pg_current_xact_id()::text as xid', [], tx)
      const loan = lend(this.driver, tx)
      await handler(loan.tx)
      await loan.giveBack()
    })
  }

  /** Runs PL/pgSQL within every COMMIT that follows an insert. */
  async atCommit(body: string): Promise<void> {
    const trigger = `${this.#table}_at_commit`
    await this.subject.outside(
      `create function ${trigger}() returns trigger language plpgsql as $f$ begin ${body}; return null; end $f$`,
    )
    await this.subject.outside(
      `create constraint trigger ${trigger} after insert on ${this.#table} deferrable initially deferred ` +
        `for each row execute function ${trigger}()`,
    )
  }

  async pid(tx: Tx): Promise<string> {
    const [row] = await this.driver.query('select pg_backend_pid()::text as pid', [], tx)
    return String(row?.['pid'])
  }

  /** Opens so many connections. */
  async open(count: number): Promise<void> {
    let arrived = 0
    const meet = async (tx: Tx): Promise<void> => {
      await this.pid(tx)
      arrived += 1
      await until(async () => arrived === count)
    }
    await Promise.all(Array.from({ length: count }, () => this.driver.transaction(meet)))
  }

  /** How a transaction ends that loses its connection at this moment. */
  losing(moment: (typeof MOMENTS)[number], lose: (pid: string) => Promise<void>): Promise<unknown> {
    const { driver, table, marker } = this
    const sleep = `select pg_sleep(60) ${marker}`
    const transaction = driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      const pid = await this.pid(tx)
      let running: Promise<unknown> | undefined
      if (moment === 'under a statement') running = driver.query(sleep, [], tx)
      if (moment === 'under a native statement') running = this.native(tx, sleep)
      if (running) await until(async () => (await this.running(marker)) === 1)
      await Promise.all([running, lose(pid).finally(() => running && this.kill(pid))])
      if (moment === 'before a statement') await driver.query('select $1::text as x', ['x'], tx)
    })
    return rejection(within(transaction))
  }

  /** Kills a backend, and waits until it is gone. */
  async kill(pid: string): Promise<void> {
    await this.subject.outside(`select pg_terminate_backend(${pid})`)
    await until(async () => {
      const rows = await this.subject.outside(`select 1 from pg_stat_activity where pid = ${pid}`)
      return rows.length === 0
    })
  }

  /** How many backends run a statement with this marker. */
  async running(marker: string): Promise<number> {
    const rows = await this.subject.outside(
      `select 1 from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and query like '%${marker}'`,
    )
    return rows.length
  }

  /** Statements and transactions succeed again. The first few may still meet a connection that is dying. */
  async recovers(): Promise<void> {
    await until(async () => {
      try {
        const limits = { limitMs: RECOVERY_MS }
        await within(this.driver.query('select $1::text as x', ['x'], undefined, limits))
        await within(this.driver.transaction((tx) => this.driver.query('select $1::text as x', ['x'], tx), limits))
        return true
      } catch (error) {
        if (!someCause(error, isConnectionLoss)) throw error
        return false
      }
    })
  }

  async clean(): Promise<void> {
    if (this.capabilities.parallel) {
      // Whose client is gone without a word still holds its locks.
      await this.subject.outside(
        `select pg_terminate_backend(pid) from pg_locks where relation = to_regclass('${this.#table}') and pid <> pg_backend_pid()`,
      )
    }
    await this.subject.outside(`drop table if exists ${this.#table} cascade`)
    await this.subject.outside(`drop function if exists ${this.#table}_at_commit()`)
  }
}

export function lend<Tx, TxIn>(driver: Driver<Tx, TxIn>, tx: Tx): Loan<Tx> {
  return driver.lend ? driver.lend(tx) : { tx, giveBack() {} }
}
