/**
 * What every driver must keep, as cases for any test runner:
 *
 *     for (const { name, run } of driverConformance({ open })) test(name, run)
 *
 * Each case opens the driver anew and works in tables of its own. A case that the client cannot pass by its nature
 * is left out by `capabilities`, so that what is missing stands in the test file.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { OnceboxError, type OnceboxErrorCode } from '../errors.js'
import type { Driver, Loan } from '../postgres/driver.js'
import { isConnectionLoss, isUnavailable, sqlState } from '../postgres/errors.js'

export interface DriverUnderTest<Tx, TxIn = Tx> {
  readonly driver: Driver<Tx, TxIn>
  /** The handle that is not a transaction: pool, `sql`, `db`. */
  readonly root: unknown
  /** Runs a statement without values on the transaction in the client's own way, as a handler does. */
  native(tx: Tx, text: string): Promise<unknown>
  /** Runs a statement on another connection, past the driver. */
  outside(text: string): Promise<readonly Record<string, unknown>[]>
  /** A client or handle that is connected but not inside a transaction, where there is such a thing. */
  idle?(): Promise<{ tx: TxIn; close(): Promise<void> }>
  /** Required unless `capabilities` says `faults: false`. */
  readonly faults?: DriverFaults<Tx, TxIn>
  close(): Promise<void>
}

/** What can go wrong between the driver and its server: through a proxy that sits between them, for instance. */
export interface DriverFaults<Tx, TxIn = Tx> {
  /** Nothing passes any more on the connections that exist, in either direction, and nobody is told. New ones work. */
  swallow(): void
  /** The connections that exist are ended, or reset (ECONNRESET). New ones work. */
  cut(how: 'ended' | 'reset'): void
  /** New connections are refused (ECONNREFUSED), until `accept`. */
  refuse(): Promise<void>
  accept(): Promise<void>
  /** The same client, told of a unix socket that is not there (ENOENT), or a role that may not log in (SQLSTATE 28…). */
  lacking(what: 'unix socket' | 'role'): Promise<{ readonly driver: Driver<Tx, TxIn>; close(): Promise<void> }>
}

export interface DriverCapabilities {
  /** Several transactions at once, on connections that the server can kill. Default true. */
  parallel?: boolean
  /** A warning during COMMIT is noticed. Default true. */
  commitWarnings?: boolean
  /** Several commands in one text without values. Default true. */
  scripts?: boolean
  /** There is a network between client and server, and `faults` breaks it. Default true. */
  faults?: boolean
}

export interface ConformanceCase {
  readonly name: string
  run(): Promise<void>
}

export interface DriverConformance<Tx, TxIn = Tx> {
  open(): Promise<DriverUnderTest<Tx, TxIn>>
  capabilities?: DriverCapabilities
}

export function driverConformance<Tx, TxIn = Tx>(suite: DriverConformance<Tx, TxIn>): ConformanceCase[] {
  const capabilities = { parallel: true, commitWarnings: true, scripts: true, faults: true, ...suite.capabilities }
  const cases: { name: string; needs: (keyof DriverCapabilities)[]; run: (bench: Bench<Tx, TxIn>) => Promise<void> }[] =
    []
  const promise = (
    name: string,
    run: (bench: Bench<Tx, TxIn>) => Promise<void>,
    ...needs: (keyof DriverCapabilities)[]
  ) => cases.push({ name, run, needs })

  statements(promise)
  transactions(promise)
  failures(promise)
  losses(promise)
  silences(promise)
  listening(promise)
  lending(promise)

  return cases
    .filter(({ needs }) => needs.every((need) => capabilities[need]))
    .map(({ name, run }) => ({
      name,
      async run() {
        const subject = await suite.open()
        const bench = new Bench(subject, capabilities)
        try {
          await bench.create()
          await run(bench)
        } finally {
          await bench.clean()
          await subject.close()
        }
      },
    }))
}

type Add<Tx, TxIn> = (
  name: string,
  run: (bench: Bench<Tx, TxIn>) => Promise<void>,
  ...needs: (keyof DriverCapabilities)[]
) => unknown

function statements<Tx, TxIn>(promise: Add<Tx, TxIn>): void {
  promise('a statement answers with rows by column name', async ({ driver }) => {
    assert.deepEqual(
      (await driver.query('select $1::text as one, $2::text as two', ['1', '2'])).map((row) => ({ ...row })),
      [{ one: '1', two: '2' }],
    )
    assert.deepEqual([...(await driver.query('select $1::text as none where false', ['1']))], [])
  })

  promise('text comes back as it was sent', async ({ driver }) => {
    const texts = [
      '',
      ' ',
      "o'clock",
      '"quoted"',
      'back\\slash \\n \\u0041',
      'line\nbreak\ttab\r',
      'żółć 日本語 🎈',
      '$1 ? :x %s',
    ]
    texts.push('{"a":[1,2,{"b":"\\u0041"}]}', 'x'.repeat(1024 * 1024), 'ż🎈'.repeat(100_000))
    for (const text of texts) {
      const [row] = await driver.query('select $1::text as text', [text])
      assert.ok(row?.['text'] === text, `sent ${JSON.stringify(text.slice(0, 40))}`)
    }
  })

  promise('a JSON text is read by the server as JSON', async ({ driver }) => {
    const [row] = await driver.query(
      `select (element ->> 'a') as a from jsonb_array_elements($1::text::jsonb) as element`,
      [JSON.stringify([{ a: 'b"c' }])],
    )
    assert.equal(row?.['a'], 'b"c')
  })

  promise('numbers, booleans and null are values too', async ({ driver }) => {
    const text = 'select ($1::int + 1)::text as number, (not $2::bool)::text as boolean, $3::text as nothing'
    const [row] = await driver.query(text, [41, false, null])
    assert.deepEqual({ ...row }, { number: '42', boolean: 'true', nothing: null })
  })

  promise(
    'several commands in one text run in order',
    async ({ driver, table }) => {
      const rows = await driver.query(
        `insert into ${table} values ('a'); insert into ${table} values ('b'); select count(*)::text as count from ${table}`,
        [],
      )
      assert.equal(rows[0]?.['count'], '2')
      const inside = driver.transaction((tx) =>
        driver.query(`delete from ${table}; select count(*)::text as count from ${table}`, [], tx),
      )
      assert.equal((await inside)[0]?.['count'], '0')
    },
    'scripts',
  )

  promise('an error of the server carries its SQLSTATE, and the driver goes on', async (bench) => {
    const { driver, table } = bench
    for (let round = 0; round < 3; round += 1) {
      await rejectsWithState('22012', driver.query('select 1 / $1::int as x', [0]))
      await rejectsWithState('42601', driver.query('selekt', []))
      await rejectsWithState(
        '22012',
        driver.transaction((tx) => driver.query('select 1 / $1::int as x', [0], tx)),
      )
    }
    await driver.query(`insert into ${table} values ($1::text)`, ['after'])
    assert.deepEqual(await bench.values(), ['after'])
  })
}

function transactions<Tx, TxIn>(promise: Add<Tx, TxIn>): void {
  promise('what a transaction wrote is visible after it resolved, and its result is handed on', async (bench) => {
    const { driver, table } = bench
    const result = await driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      await bench.native(tx, `insert into ${table} values ('b')`)
      if (bench.capabilities.parallel) assert.deepEqual(await bench.values(), [])
      return { any: ['thing'] }
    })
    assert.deepEqual(result, { any: ['thing'] })
    assert.deepEqual(await bench.values(), ['a', 'b'])
  })

  promise('a transaction whose work rejects leaves nothing, and rejects with the same error', async (bench) => {
    const { driver, table } = bench
    for (const thrown of [new Error('mine'), 'a string', undefined, null]) {
      const failing = driver.transaction(async (tx) => {
        await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
        throw thrown
      })
      assert.equal(await rejection(failing), thrown)
    }
    assert.equal(
      await rejection(driver.transaction(() => Promise.reject(new RangeError('at once')))).then(nameOf),
      'RangeError',
    )
    assert.deepEqual(await bench.values(), [])
  })

  promise('the isolation level is the one asked for, read committed by default', async ({ driver }) => {
    const level = (tx: Tx) => driver.query(`select current_setting('transaction_isolation') as level`, [], tx)
    assert.equal((await driver.transaction(level))[0]?.['level'], 'read committed')
    for (const isolation of ['read committed', 'repeatable read', 'serializable'] as const) {
      assert.equal((await driver.transaction(level, { isolation }))[0]?.['level'], isolation)
    }
  })

  promise('a root handle is refused where a transaction is required', async ({ driver, root, table }) => {
    const query = (tx: unknown) => driver.query(`insert into ${table} values ($1::text)`, ['a'], tx as Tx)
    for (const wrong of [root, null, {}, 'tx']) await rejectsWithCode('TRANSACTION_REQUIRED', query(wrong))
  })

  promise('a client outside a transaction is refused, and nothing runs', async (bench) => {
    const { driver, table } = bench
    const idle = await bench.subject.idle?.()
    if (idle) {
      const query = driver.query(`insert into ${table} values ($1::text)`, ['a'], idle.tx)
      await rejectsWithCode('TRANSACTION_REQUIRED', query).finally(() => idle.close())
    }
    let over: Tx | undefined
    await driver.transaction(async (tx) => {
      over = tx
    })
    await rejectsWithCode('TRANSACTION_REQUIRED', driver.query(`insert into ${table} values ($1::text)`, ['b'], over))
    assert.deepEqual(await bench.values(), [])
  })

  promise('statements still unanswered when work resolves are committed with it', async (bench) => {
    const { driver, table } = bench
    await driver.transaction(async (tx) => {
      for (const value of ['a', 'b', 'c']) void driver.query(`insert into ${table} values ($1::text)`, [value], tx)
    })
    assert.deepEqual(await bench.values(), ['a', 'b', 'c'])
  })

  promise('a statement that fails after work resolved rejects the transaction with its error', async (bench) => {
    const { driver, table } = bench
    const failing = driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      // Not even caught: it must not be reported as unhandled either.
      void driver.query('select 1 / $1::int as x', [0], tx)
    })
    await rejectsWithState('22012', failing)
    assert.deepEqual(await bench.values(), [])
  })

  promise('a transaction with a swallowed SQL error never resolves', async (bench) => {
    const { driver, table } = bench
    const swallow = async (tx: Tx, failing: () => Promise<unknown>) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      await failing().catch(() => {})
      return 'done'
    }
    const own = driver.transaction((tx) => swallow(tx, () => driver.query('select 1 / $1::int as x', [0], tx)))
    await rejectsWithCode('ROLLED_BACK', own)
    const natively = driver.transaction((tx) => swallow(tx, () => bench.native(tx, 'select 1 / 0')))
    await rejectsWithCode('ROLLED_BACK', natively)
    assert.deepEqual(await bench.values(), [])
  })

  promise('a deferred constraint that fails at COMMIT rejects with its SQLSTATE', async (bench) => {
    const { driver, table } = bench
    await bench.subject.outside(
      `alter table ${table} add constraint ${table}_once unique (value) deferrable initially deferred`,
    )
    const insert = (tx: Tx) => driver.query(`insert into ${table} values ($1::text), ($1::text)`, ['twice'], tx)
    await rejectsWithState('23505', driver.transaction(insert))
    assert.deepEqual(await bench.values(), [])
    await driver.transaction((tx) => driver.query(`insert into ${table} values ($1::text)`, ['once'], tx))
    assert.deepEqual(await bench.values(), ['once'])
  })

  promise(
    'a warning during COMMIT rejects with COMMIT_UNCERTAIN',
    async (bench) => {
      const { driver, table } = bench
      await bench.atCommit(`raise warning 'canceling wait for synchronous replication'`)
      const insert = (tx: Tx) => driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      await rejectsWithCode('COMMIT_UNCERTAIN', driver.transaction(insert))
      // The same while the last statement is still unanswered, and for a statement that warns itself.
      await rejectsWithCode(
        'COMMIT_UNCERTAIN',
        driver.transaction(async (tx) => void insert(tx)),
      )
    },
    'commitWarnings',
  )

  promise('a notice during COMMIT, or a warning before it, is no reason to reject', async (bench) => {
    const { driver, table } = bench
    await bench.atCommit(`raise notice 'nothing to see'`)
    const warn = `do $$ begin raise warning 'before'; end $$`
    await driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)
      void driver.query(warn, [], tx)
    })
    assert.deepEqual(await bench.values(), ['a'])
  })

  promise(
    'transactions run in parallel',
    async (bench) => {
      const { driver } = bench
      let arrived = 0
      let open: () => void = () => {}
      const both = new Promise<void>((resolve) => (open = resolve))
      const meet = (tx: Tx) =>
        driver.query('select $1::text as x', ['x'], tx).then(() => {
          arrived += 1
          if (arrived === 2) open()
          return both
        })
      await Promise.all([driver.transaction(meet), driver.transaction(meet)])
    },
    'parallel',
  )

  promise(
    'statements outside go through while a transaction is open',
    async ({ driver }) => {
      await driver.transaction(async (tx) => {
        await driver.query('select $1::text as x', ['x'], tx)
        await driver.query('select $1::text as x', ['y'])
      })
    },
    'parallel',
  )
}

function failures<Tx, TxIn>(promise: Add<Tx, TxIn>): void {
  promise(
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

  promise(
    'a connection killed in mid transaction rejects it, and the driver goes on',
    async (bench) => {
      for (const moment of MOMENTS) {
        const error = await bench.losing(moment, (pid) => bench.kill(pid))
        assert.ok(isConnectionLoss(error), `${moment}, not seen as a lost connection: ${String(error)}`)
      }
      assert.deepEqual(await bench.values(), [])
      await bench.recovers()
    },
    'parallel',
  )

  promise(
    'a connection killed during COMMIT rejects with an error that says nothing of the outcome',
    async (bench) => {
      const { driver, table } = bench
      await bench.atCommit(`perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10)`)
      const error = await rejection(
        driver.transaction((tx) => driver.query(`insert into ${table} values ($1::text)`, ['a'], tx)),
      )
      assert.ok(isConnectionLoss(error), `not seen as a lost connection: ${String(error)}`)
      await bench.recovers()
    },
    'parallel',
  )

  promise(
    'a connection killed under a statement outside a transaction rejects it, and the driver goes on',
    async (bench) => {
      const { driver } = bench
      const error = await rejection(
        driver.query('select pg_terminate_backend(pg_backend_pid()), pg_sleep($1::int)', [10]),
      )
      assert.ok(isConnectionLoss(error), `not seen as a lost connection: ${String(error)}`)
      await bench.recovers()
    },
    'parallel',
  )

  promise(
    'idle connections that are killed do not end the process, and the driver goes on',
    async (bench) => {
      const pids = await Promise.all([1, 2].map(() => bench.driver.transaction((tx) => bench.pid(tx))))
      for (const pid of pids) await bench.kill(pid)
      await bench.recovers()
    },
    'parallel',
  )
}

/** Connections that break, and connections that cannot be had. */
function losses<Tx, TxIn>(promise: Add<Tx, TxIn>): void {
  for (const how of ['ended', 'reset'] as const) {
    promise(
      `a connection that is ${how} in mid transaction rejects it as lost, and the driver goes on`,
      async (bench) => {
        for (const moment of MOMENTS) {
          const error = await bench.losing(moment, async () => bench.faults.cut(how))
          assert.ok(isConnectionLoss(error), `${moment}, not seen as a lost connection: ${String(error)}`)
          await bench.recovers()
        }
        assert.deepEqual(await bench.values(), [])
      },
      'faults',
    )
  }

  promise(
    'a connection that is reset under a statement outside a transaction rejects it as lost, and the driver goes on',
    async (bench) => {
      const sleeping = bench.driver.query(`select pg_sleep($1::int) ${bench.marker}`, [60])
      const error = rejection(within(sleeping))
      await until(async () => (await bench.running(bench.marker)) === 1)
      bench.faults.cut('reset')
      assert.ok(isConnectionLoss(await error), `not seen as a lost connection: ${String(await error)}`)
      await bench.recovers()
    },
    'faults',
  )

  promise(
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

  promise(
    'without a connection nothing is called, and it is told as a lost connection',
    async (bench) => {
      await bench.faults.refuse()
      assert.ok(isConnectionLoss(await uncalled(bench.driver)), 'connections are refused')
      await bench.faults.accept()
      await bench.recovers()
    },
    'faults',
  )

  promise(
    'without a unix socket nothing is called, and it is told as a lost connection',
    async (bench) => {
      const { driver, close } = await bench.faults.lacking('unix socket')
      const error = await uncalled(driver).finally(close)
      assert.ok(isConnectionLoss(error), `not seen as a lost connection: ${String(error)}`)
    },
    'faults',
  )

  promise(
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

/** Packets that vanish: both sides have an open connection, and wait. */
function silences<Tx, TxIn>(promise: Add<Tx, TxIn>): void {
  promise(
    'a statement without an answer within its limit is rejected as lost, and the driver goes on',
    async (bench) => {
      await bench.open(2)
      bench.faults.swallow()
      const unanswered = bench.driver.query('select $1::text as x', ['x'], undefined, { limitMs: LIMIT_MS })
      const error = await rejection(within(unanswered))
      assert.ok(isConnectionLoss(error), `not seen as a lost connection: ${String(error)}`)
      await bench.recovers()
    },
    'faults',
  )

  promise(
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
      assert.ok(isConnectionLoss(error), `not seen as a lost connection: ${String(error)}`)
      assert.equal(answered, false)
      await bench.recovers()
      assert.deepEqual(await bench.values(), [])
    },
    'faults',
  )

  promise(
    'a transaction that waits for its server is told apart, and can be ended from this side',
    async (bench) => {
      const { driver } = bench
      if (!driver.silentMs || !driver.hangUp) return
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
        driver.hangUp(silent!, Object.assign(new Error('no answer'), { code: 'CONNECTION_SILENT' }))
        assert.ok(isConnectionLoss(await error), `${moment}, not seen as a lost connection: ${String(await error)}`)
        await bench.recovers()
      }
      assert.deepEqual(await bench.values(), [])
    },
    'faults',
  )
}

function listening<Tx, TxIn>(promise: Add<Tx, TxIn>): void {
  promise('a listener is woken at once, by each notification, and not after it has unsubscribed', async (bench) => {
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

  promise(
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

function lending<Tx, TxIn>(promise: Add<Tx, TxIn>): void {
  promise('a lent transaction is the client’s own, and its work is committed', async (bench) => {
    const { table } = bench
    await bench.lent(async (tx) => {
      await bench.native(tx, `insert into ${table} values ('a')`)
      await bench.driver.query(`insert into ${table} values ($1::text)`, ['b'], tx)
    })
    assert.deepEqual(await bench.values(), ['a', 'b'])
  })

  promise('loans follow each other in one transaction', async (bench) => {
    const { driver, table } = bench
    await driver.transaction(async (tx) => {
      await driver.query(`insert into ${table} values ($1::text)`, ['0'], tx)
      for (const value of ['1', '2', '3']) {
        const loan = lend(driver, tx)
        await bench.native(loan.tx, `insert into ${table} values ('${value}')`)
        await loan.giveBack()
      }
    })
    assert.deepEqual(await bench.values(), ['0', '1', '2', '3'])
  })

  promise('a lent transaction that was given back is closed', async (bench) => {
    const { driver, table } = bench
    if (!driver.lend) return
    await driver.transaction(async (tx) => {
      await bench.touch(tx)
      const loan = lend(driver, tx)
      await bench.native(loan.tx, 'select 1')
      await loan.giveBack()
      const insert = `insert into ${table} values ('late')`
      await rejectsWithCode(
        'TRANSACTION_CLOSED',
        attempt(() => bench.native(loan.tx, insert)),
      )
      await rejectsWithCode(
        'TRANSACTION_CLOSED',
        driver.query(`insert into ${table} values ($1::text)`, ['late'], loan.tx),
      )
    })
    assert.deepEqual(await bench.values(), ['touched'])
  })

  promise('a statement that the handler did not await is found', async (bench) => {
    if (!bench.driver.lend) return
    const unawaited = bench.lent(async (tx) => {
      void bench.native(tx, 'select pg_sleep(0.2)').catch(() => {})
    })
    await rejectsWithCode('UNAWAITED_QUERY', unawaited)
    assert.deepEqual(await bench.values(), [])
  })

  promise('statements that the handler did not await run to their end, before they are rolled back', async (bench) => {
    if (!bench.driver.lend) return
    let floating: Promise<unknown> | undefined
    const early = bench.lent(async (tx) => {
      floating = (async () => {
        await bench.native(tx, 'select pg_sleep(0.1)')
        await bench.native(tx, `insert into ${bench.table} values ('floating')`)
      })()
      floating.catch(() => {})
    })
    await rejectsWithCode('UNAWAITED_QUERY', early)
    // A rejection would end the process of whoever does not look at it.
    await floating
    assert.deepEqual(await bench.values(), [])
    await bench.recovers()
  })

  const endings = [
    'commit',
    'COMMIT;',
    ' -- why\n/* a /* b */ */ end',
    'rollback',
    'abort',
    'begin',
    'start transaction',
  ]
  promise('a handler cannot end its transaction', async (bench) => {
    if (!bench.driver.lend) return
    for (const text of endings) {
      await rejectsWithCode(
        'HANDLER_COMMITTED',
        bench.lent((tx) => attempt(() => bench.native(tx, text))),
      )
    }
    assert.deepEqual(await bench.values(), [])
    await bench.recovers()
  })

  promise(
    'a COMMIT or ROLLBACK hidden behind another statement is found',
    async (bench) => {
      if (!bench.driver.lend) return
      for (const text of ['select 1; commit', 'select 1; rollback']) {
        await rejectsWithCode(
          'HANDLER_COMMITTED',
          bench.lent((tx) => bench.native(tx, text)),
        )
      }
      await bench.recovers()
    },
    'scripts',
  )

  promise('a handler cannot change the session', async (bench) => {
    if (!bench.driver.lend) return
    for (const text of [
      'set search_path = x',
      'SET SESSION statement_timeout = 1',
      'reset all',
      'listen x',
      'discard all',
    ]) {
      await rejectsWithCode(
        'SESSION_CHANGED',
        bench.lent((tx) => attempt(() => bench.native(tx, text))),
      )
    }
    await bench.lent((tx) => bench.native(tx, `set local statement_timeout = '1min'`))
    await bench.lent((tx) => bench.native(tx, 'set constraints all deferred'))
  })

  promise('a handler that swallows an SQL error is told so', async (bench) => {
    if (!bench.driver.lend) return
    const swallowing = bench.lent((tx) => bench.native(tx, 'select 1 / 0').catch(() => {}))
    await rejectsWithCode('TRANSACTION_ABORTED', swallowing)
    assert.deepEqual(await bench.values(), [])
  })

  promise('an error of a handler’s statement reaches the handler and the transaction’s caller', async (bench) => {
    await rejectsWithState(
      '22012',
      bench.lent((tx) => bench.native(tx, 'select 1 / 0')),
    )
  })
}

/** When a connection may break. */
const MOMENTS = ['before a statement', 'before COMMIT', 'under a statement', 'under a native statement'] as const

/** Nothing answers, so nobody is cut short by it. */
const LIMIT_MS = 1_000
/** Enough for a server that is busy. */
const RECOVERY_MS = 5_000

/** One case at work: the subject, a table of its own, and what several cases do. */
class Bench<Tx, TxIn> {
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
        if (!isConnectionLoss(error)) throw error
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

function lend<Tx, TxIn>(driver: Driver<Tx, TxIn>, tx: Tx): Loan<Tx> {
  return driver.lend ? driver.lend(tx) : { tx, giveBack() {} }
}

/** Turns a throw into a rejection: a refusal may be either. */
async function attempt<T>(run: () => T): Promise<Awaited<T>> {
  return await run()
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

/** Nothing may wait for as long as TCP does. */
async function within<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: 'it did not end within 20 s' })), 20_000)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    return error
  }
  assert.fail(`expected a rejection, got ${JSON.stringify(value)}`)
}

async function rejectsWithState(state: string, promise: Promise<unknown>): Promise<void> {
  const error = await rejection(promise)
  assert.equal(sqlState(error), state, `expected SQLSTATE ${state}, got ${String(error)}`)
}

async function rejectsWithCode(code: OnceboxErrorCode, promise: Promise<unknown>): Promise<void> {
  const error = await rejection(promise)
  assert.ok(error instanceof OnceboxError, `expected ${code}, got ${String(error)}`)
  assert.equal(error.code, code)
}

function nameOf(error: unknown): unknown {
  return (error as Error).name
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, 'the condition did not come true within 15 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
