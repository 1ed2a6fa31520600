/** A COMMIT that fails, is not answered, or comes with a warning. */
import pg from 'pg'
import { createBox, Reject, type Driver, type Message, type Outcome } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { SESSION_DEFAULTS } from '../../src/postgres/sql/session.js'
import { TRANSACTION_STATUS } from '../../src/postgres/sql/settle.js'
import { cancelling } from '../support/cancelling.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { type Bench, gate, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('commit', { max: 20 })
const MODES = ['stored', 'inline'] as const

/** The connection under a handler's transaction, broken as a network would. */
function cut(tx: pg.PoolClient): void {
  ;(tx as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
}

/** The same driver, with another `query`. */
function replaced<D extends Pick<Driver<unknown>, 'query'>>(driver: D, { query }: Pick<D, 'query'>): D {
  return new Proxy(driver, {
    get(_, name) {
      const member: unknown = Reflect.get(driver, name, driver)
      if (name === 'query') return query
      return typeof member === 'function' ? (member.bind(driver) as unknown) : member
    },
  })
}

test.for(MODES)(
  'a connection lost in mid-COMMIT: the message runs once, however late the commit shows: %s',
  async (mode) => {
    await using box = await server.open()
    await box.sql(
      `create function ob.late() returns trigger language plpgsql as $$ begin perform pg_sleep(0.7); return null; end $$`,
    )
    await box.sql(
      'create constraint trigger late after insert on ob.test_ledger deferrable initially deferred for each row execute function ob.late()',
    )
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          runs++
          await box.write(tx, 'a', message)
          // By then COMMIT is under way, and the server goes on with it.
          setTimeout(() => cut(tx), 250)
          return 'result'
        },
      },
      { mode, group: { messages: 1 } },
    )
    if (mode === 'inline') expect(await box.handle(note('1'))).toMatchObject({ status: 'handled', result: 'result' })
    else {
      await box.receive(note('1'))
      await box.waitUntilHandled('1')
    }
    expect(runs).toBe(1)
    expect(await box.ids()).toEqual(['1'])
    expect(await box.handle(note('1'))).toMatchObject({ status: 'duplicate', result: 'result' })
  },
)

test.for(MODES)('a connection lost before COMMIT arrived: nothing is there, and it runs again: %s', async (mode) => {
  await using box = await server.open()
  let runs = 0
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        if (++runs === 1) cut(tx)
      },
    },
    { mode, group: { messages: 1 }, retry: { attempts: 1 } },
  )
  if (mode === 'inline') {
    await box.handle(note('1')).catch(() => undefined)
    await waitUntil(async () => ['handled', 'duplicate'].includes((await box.handle(note('1'))).status))
  } else {
    await box.receive(note('1'))
    await box.drain().catch(() => undefined)
    await box.waitUntilHandled('1')
  }
  expect(runs).toBe(2)
  expect(await box.ids()).toEqual(['1'])
})

test('a lost connection counts once, also where there is no time to try again at once', async () => {
  await using box = await server.open()
  let runs = 0
  const handler = async (message: Message, { tx }: { tx: pg.PoolClient }): Promise<void> => {
    await box.write(tx, 'a', message)
    if (++runs > 2) return
    // Longer than whoever delivers it is kept waiting.
    await tx.query('select pg_sleep(0.6)')
    cut(tx)
  }
  box.consumer('a', { note: handler }, { mode: 'inline', group: { messages: 1 }, retry: { attempts: 1 } })
  while (runs < 2) await box.handle(note('1')).catch(() => undefined)
  expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
  expect(await box.sql('select error from ob.attempt')).toEqual([])
})

const CANCELLED = MODES.flatMap((mode) => [
  { mode, times: 1 },
  { mode, times: Infinity },
])

test.for(CANCELLED)(
  'a COMMIT without an answer is no attempt, though somebody cancels the question what became of it: $mode, $times times',
  async ({ mode, times }) => {
    await using proxy = await startProxy(server.url)
    const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
    pool.on('error', () => {})
    onTestFinished(() => pool.end())
    await using box = await server.open()
    const db = cancelling(fromPg(pool), bindTo(box.schema)(TRANSACTION_STATUS), times)
    const other = createBox({ db, schema: box.schema, logger: recorder() })
    const attempts: number[] = []
    const handle = async (message: Message, { tx }: { tx: pg.PoolClient }): Promise<void> => {
      attempts.push(message.attempt)
      await box.write(tx, 'a', message)
    }
    other.consumer('a', { note: handle }, { mode, concurrency: 1, leaseMs: 2_000, retry: { attempts: 1 } })
    await other.drain()
    if (mode === 'stored') await other.receive(note('1'))
    void proxy.cutAtCommit('before')
    await waitUntil(async () => {
      await (mode === 'stored' ? other.drain() : other.handle(note('1'))).catch(() => undefined)
      return (await box.fates('1'))[0]?.state === 'handled'
    })
    expect(attempts).toEqual([1, 1])
    expect(await box.ids()).toEqual(['1'])
    expect(await box.sql('select 1 from ob.attempt')).toEqual([])
    await other.stop()
  },
)

describe('a COMMIT that never arrived is not taken for what a copy has done meanwhile', () => {
  /**
   * Another process, which asks what became of its COMMIT only when the gate is open: of a server that knows no transaction of
   * so high a number, if there was a failover. That may end every connection once more.
   */
  const openOther = async (box: Bench, failover: 'failover' | 'restless failover' | undefined = undefined) => {
    const proxy = await startProxy(server.url)
    const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
    pool.on('error', () => {})
    const asked = gate()
    const go = gate()
    let restless = failover === 'restless failover'
    const db = fromPg(pool)
    const query: typeof db.query = async (text, ...rest) => {
      if (text === bindTo(box.schema)(TRANSACTION_STATUS)) {
        asked.open()
        await go.opened
        if (failover) {
          const answer = db.query(text, [JSON.stringify({ xid: String(2n ** 62n + 1_000n) })])
          await answer.catch(() => undefined)
          if (restless) proxy.cutAll()
          restless = false
          return answer
        }
      }
      return db.query(text, ...rest)
    }
    const asking = replaced(db, { query })
    onTestFinished(async () => {
      await pool.end()
      await proxy.close()
    })
    return { other: createBox({ db: asking, schema: box.schema, logger: recorder() }), proxy, asked, go }
  }

  /** Who runs on arrival is tried again for half a second; a machine may be too busy for that, and then its sender delivers again. */
  const inTheEnd = (first: Promise<Outcome>, again: () => Promise<Outcome>): Promise<Outcome> => first.catch(again)

  /** The other handles as `first`, this one as `second`, and each answers which it is. */
  const declareBoth = async (other: Pick<Bench, 'consumer'>, box: Bench): Promise<void> => {
    for (const [one, by] of [
      [other, 'first'],
      [box, 'second'],
    ] as const) {
      one.consumer('a', { note: (message, { tx }) => box.write(tx, by, message).then(() => by) }, { mode: 'inline' })
    }
    await box.migrate()
  }

  test.for([false, true])('which was handled, redelivered: %s', async (redelivered) => {
    await using box = await server.open()
    const { other, proxy, asked, go } = await openOther(box)
    await declareBoth(other, box)
    void proxy.cutAtCommit('before')
    const deliver = (): Promise<Outcome> => other.handle(note('1', { redelivered }))
    const first = inTheEnd(deliver(), deliver)
    await asked.opened
    await box.clock.advance(31_000)
    expect(await box.handle(note('1', { redelivered }))).toMatchObject({ status: 'handled', result: 'second' })
    go.open()
    expect(await first).toMatchObject({ status: 'duplicate', ack: true, result: 'second' })
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['second'])
  })

  test.for([
    ['the same', 'failover', 1, { status: 'handled' }],
    ['another', 'failover', 2, { status: 'quarantined', reason: 'conflict' }],
    ['the same', 'restless failover', 1, { status: 'handled' }],
  ] as const)('which a failover has lost, where %s body of its id was handled: %s', async ([, failover, n, told]) => {
    await using box = await server.open()
    const { other, proxy, asked, go } = await openOther(box, failover)
    await declareBoth(other, box)
    void proxy.cutAtCommit('before')
    const deliver = (): Promise<Outcome> => other.handle(note('1', { data: { n: 1 } }))
    const first = n === 1 ? deliver() : inTheEnd(deliver(), deliver)
    await asked.opened
    expect(await box.handle(note('1', { data: { n } }))).toMatchObject({ status: 'handled', result: 'second' })
    go.open()
    expect(await first).toMatchObject(told)
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['second'])
  })

  test.for([undefined, 'failover'] as const)('which was rejected, and then: %s', async (failover) => {
    await using box = await server.open()
    const { other, proxy, asked, go } = await openOther(box, failover)
    other.consumer('a', { note: (message, { tx }) => box.write(tx, 'first', message) }, { mode: 'inline' })
    const reject = (): never => {
      throw new Reject('no')
    }
    box.consumer('a', { note: reject }, { mode: 'inline' })
    await box.migrate()
    void proxy.cutAtCommit('before')
    const first = other.handle(note('1', { redelivered: true }))
    await asked.opened
    await box.clock.advance(31_000)
    expect(await box.handle(note('1', { redelivered: true }))).toMatchObject({ status: 'dead' })
    go.open()
    expect(await first).toMatchObject({ status: 'dead' })
    expect(await box.effects()).toEqual([])
  })

  test('nor for a redelivered message that a failover has taken out of the journal: it runs before it is acknowledged', async () => {
    await using box = await server.open()
    const { other, proxy, asked, go } = await openOther(box, 'failover')
    await declareBoth(other, box)
    void proxy.cutAtCommit('before')
    const deliver = (): Promise<Outcome> => other.handle(note('1', { redelivered: true }))
    const first = inTheEnd(deliver(), deliver)
    await asked.opened
    // What had not reached the standby that took over.
    await box.sql('delete from ob.work')
    await box.sql('delete from ob.message')
    go.open()
    expect(await first).toMatchObject({ status: 'handled', ack: true })
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['first'])
  })
})

test.for(MODES)(
  'a message whose COMMIT always loses its connection dies, and its neighbours are handled: %s',
  async (mode) => {
    await using box = await server.open()
    await box.sql(
      `create function ob.die() returns trigger language plpgsql as
     $$ begin if new.id = 'n1' then perform pg_terminate_backend(pg_backend_pid()); end if; return null; end $$`,
    )
    await box.sql(
      'create constraint trigger die after insert on ob.test_ledger deferrable initially deferred for each row execute function ob.die()',
    )
    const note = (message: { id: string }, { tx }: { tx: pg.PoolClient }): Promise<void> => box.write(tx, 'a', message)
    box.consumer('a', { note }, { mode, retry: { attempts: 1 }, concurrency: 1 })
    if (mode === 'stored') await box.receive(notes(5))
    const others = ['n2', 'n3', 'n4', 'n5']
    await waitUntil(
      async () => {
        await (mode === 'stored' ? box.drain() : box.handle(notes(5))).catch(() => undefined)
        return (await box.fates('n1'))[0]?.state === 'dead' && (await box.ids()).length === others.length
      },
      { timeoutMs: 60_000 },
    )
    expect((await box.ids()).sort()).toEqual(others)
  },
)

describe('a cancelled wait for a synchronous standby is only a warning, and a failover may take the row away', () => {
  /** Warns at COMMIT, as the server does then; committed it is all the same. */
  const warnAtCommit = async (box: Bench, table: string): Promise<void> => {
    await box.sql(
      `create function ob.warn() returns trigger language plpgsql as $$ begin raise warning 'canceling wait'; return null; end $$`,
    )
    await box.sql(
      `create constraint trigger warn after insert on ob.${table} deferrable initially deferred for each row execute function ob.warn()`,
    )
  }

  test.for([1, 3])(
    'what was handled so is not acknowledged; delivered again, it is a duplicate: %i at once',
    async (count) => {
      await using box = await server.open()
      let runs = 0
      box.consumer('a', {
        async note(message, { tx }) {
          runs++
          await box.write(tx, 'a', message)
          return 'result'
        },
      })
      await warnAtCommit(box, 'test_ledger')
      for (const outcome of await box.handle(notes(count))) {
        expect(outcome).toMatchObject({ status: 'handled', ack: false, result: 'result' })
      }
      for (const outcome of await box.handle(notes(count))) {
        expect(outcome).toMatchObject({ status: 'duplicate', ack: true, result: 'result' })
      }
      expect(runs).toBe(count)
    },
  )

  describe('also where sessions hear no warnings by default', () => {
    /** As of a role that was made for a program whose log is to stay quiet, on a server that says that it has standbys. */
    const openQuiet = async (): Promise<Bench> => {
      const pool = new pg.Pool({ connectionString: server.url, max: 4, options: '-c client_min_messages=error' })
      onTestFinished(() => pool.end())
      const db = fromPg(pool)
      const query: typeof db.query = async (text, ...rest) => {
        const rows = await db.query(text, ...rest)
        return text === bindTo('any')(SESSION_DEFAULTS) ? rows.map((row) => ({ ...row, standbys: 'true' })) : rows
      }
      return server.open({ db: replaced(db, { query }) } as object)
    }

    test.for([1, 3])('what was handled is not acknowledged: %i at once', async (count) => {
      await using box = await openQuiet()
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
      await warnAtCommit(box, 'test_ledger')
      for (const outcome of await box.handle(notes(count))) {
        expect(outcome).toMatchObject({ status: 'handled', ack: false })
      }
    })

    test('nor what was stored', async () => {
      await using box = await openQuiet()
      box.consumer('a', { note: () => undefined })
      await warnAtCommit(box, 'message')
      await expect(box.receive(notes(2))).rejects.toMatchObject({ code: 'COMMIT_UNCERTAIN' })
      await expect(box.receive(note('alone'))).rejects.toMatchObject({ code: 'COMMIT_UNCERTAIN' })
    })
  })

  test('what was stored so is not acknowledged either', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await warnAtCommit(box, 'message')
    await expect(box.receive(note('1'))).rejects.toMatchObject({ code: 'COMMIT_UNCERTAIN' })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate', ack: true })
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
  })

  test('nor what was quarantined so', async () => {
    await using box = await server.open()
    await warnAtCommit(box, 'quarantine')
    await expect(box.receive(note('1'))).rejects.toMatchObject({ code: 'COMMIT_UNCERTAIN' })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'quarantined', ack: true })
  })
})

describe('a constraint that fails at COMMIT', () => {
  test.for(['stored', 'inline'] as const)('blames the right message and spares the others: %s', async (mode) => {
    await using box = await server.open()
    await box.sql('create table ob.name (id text, name text unique deferrable initially deferred)')
    const table = `${box.schema}.name`
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          const name = message.id === 'n3' ? 'taken' : message.id
          await tx.query(`insert into ${table} values ($1, $2)`, [message.id, name])
        },
      },
      { mode, retry: { attempts: 1 } },
    )
    await box.sql(`insert into ob.name values ('first', 'taken')`)
    if (mode === 'stored') {
      await box.receive(notes(5))
      await box.drain()
    } else await box.handle(notes(5))
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n4', 'n5'])
    expect(await box.fate('n3')).toMatchObject({ state: 'dead', attempts: 1, error: { code: '23505' } })
  })
})
