/** Groups: handlers share a transaction, and none of them can hurt, double or take down its neighbours. */
import { createBox, type Context, type Message, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { type Bench, gate, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('group', { max: 20 })

type Ctx = Context<MessageMap, pg.PoolClient>

/** Three messages; the handler of the second misbehaves. Answers the errors it saw. */
async function misbehave(box: Bench, act: (ctx: Ctx, message: Message) => unknown): Promise<void> {
  box.consumer(
    'a',
    {
      async note(message, ctx) {
        await box.write(ctx.tx, 'a', message)
        if (message.id === 'n2') await act(ctx, message)
        await box.write(ctx.tx, 'a', message, 'again')
      },
    },
    { retry: { attempts: 1 } },
  )
  await box.receive(notes(3))
  await box.drain()
}

/** The neighbours of n2 are handled exactly once, and n2 left nothing but its error. */
async function expectOnlySecondDead(box: Bench, code: string): Promise<void> {
  expect((await box.effects()).map(({ id, note: text }) => `${id}${text}`).sort()).toEqual(
    ['n1', 'n1again', 'n3', 'n3again'].sort(),
  )
  expect(await box.fate('n1')).toMatchObject({ state: 'handled' })
  expect(await box.fate('n3')).toMatchObject({ state: 'handled' })
  expect(await box.fate('n2')).toMatchObject({ state: 'dead', attempts: 1, error: { code } })
}

async function transactions(box: Bench): Promise<string[][]> {
  const byTransaction = new Map<string, string[]>()
  for (const { id, note: xid } of await box.effects()) {
    byTransaction.set(xid, [...(byTransaction.get(xid) ?? []), id])
  }
  return [...byTransaction.values()]
}

/** Ends the transaction by a command that looks like part of a string, which PostgreSQL alone can tell. */
async function hide(tx: pg.PoolClient, command: string): Promise<void> {
  await tx.query('SET LOCAL standard_conforming_strings = off')
  await tx.query(`select 'a\\'';${command};--'`)
}

async function writeXid(box: Bench, tx: pg.PoolClient, message: Message): Promise<void> {
  const { rows } = await tx.query<{ xid: string }>('select pg_current_xact_id()::text xid')
  await box.write(tx, 'a', message, rows[0]!.xid)
}

describe('sharing', () => {
  test('fast handlers share a transaction', async () => {
    await using box = await server.open()
    // A generous time, so that a busy machine splits nothing, and nobody to share the messages with.
    const options = { group: { ms: 10_000 }, concurrency: 1 }
    box.consumer('a', { note: (message, { tx }) => writeXid(box, tx, message) }, options)
    await box.receive(notes(20))
    await box.drain()
    expect((await transactions(box)).map((ids) => ids.length)).toEqual([20])
  })

  test.for([
    [1, [1, 1, 1, 1, 1, 1, 1]],
    [3, [3, 3, 1]],
    [7, [7]],
  ] as const)('at most %i messages share a transaction', async ([messages, sizes]) => {
    await using box = await server.open()
    box.consumer(
      'a',
      { note: (message, { tx }) => writeXid(box, tx, message) },
      { group: { messages, ms: 10_000 }, concurrency: 1 },
    )
    await box.receive(notes(7))
    await box.drain()
    expect((await transactions(box)).map((ids) => ids.length)).toEqual(sizes)
    expect(await box.ids()).toEqual(notes(7).map(({ id }) => id))
  })

  test('handlers slower than group.ms get a transaction of their own', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await tx.query('select pg_sleep(0.02)')
          await writeXid(box, tx, message)
        },
      },
      { group: { ms: 10 } },
    )
    await box.receive(notes(6))
    await box.drain()
    expect((await transactions(box)).map((ids) => ids.length)).toEqual([1, 1, 1, 1, 1, 1])
  })

  test('one that throws fails alone, after one attempt; the others are handled once', async () => {
    await using box = await server.open()
    await misbehave(box, () => {
      throw Object.assign(new Error('no'), { code: 'MINE' })
    })
    await expectOnlySecondDead(box, 'MINE')
    expect((await box.fate('n2')).error).toMatchObject({ name: 'Error', message: 'no' })
  })

  test('what a failed message sent is not sent, what its neighbours sent is, once', async () => {
    await using box = await server.open()
    await misbehave(box, async ({ send }, message) => {
      await send('sent', { by: message.id })
      throw Object.assign(new Error('no'), { code: 'MINE' })
    })
    await expectOnlySecondDead(box, 'MINE')
    expect(await box.sent()).toEqual([])
    await box.receive(note('n4'))
    await box.drain()
  })

  test('a result stored by a group comes back to a duplicate', async () => {
    await using box = await server.open()
    box.consumer('a', { note: ({ id }) => ({ id, at: new Date(0) }) })
    await box.receive(notes(3))
    expect(await box.receive(note('n2'))).toEqual({
      id: 'n2',
      ack: true,
      status: 'duplicate',
      consumers: [{ consumer: 'a', status: 'duplicate' }],
    })
    await box.drain()
    for (const door of [box.receive, box.handle]) {
      expect(await door(note('n2'))).toMatchObject({
        status: 'duplicate',
        result: { id: 'n2', at: '1970-01-01T00:00:00.000Z' },
      })
    }
  })
})

describe('a handler that ends the transaction', () => {
  const COMMANDS = [
    'COMMIT',
    'commit work',
    'END',
    'ROLLBACK',
    'ABORT',
    'BEGIN',
    'COMMIT; BEGIN',
    'ROLLBACK; BEGIN',
    '/* hidden */ COMMIT',
    'select 1; COMMIT',
    'select 1; COMMIT; BEGIN',
    'select 1; COMMIT AND CHAIN',
    'select 1; ROLLBACK',
    'select 1; ROLLBACK; BEGIN',
    'select 1; ROLLBACK AND CHAIN',
    "PREPARE TRANSACTION 'x'",
  ]

  test.for(COMMANDS)('changes nothing and gets HANDLER_COMMITTED: %s', async (command) => {
    await using box = await server.open()
    await misbehave(box, ({ tx }) => tx.query(command))
    await expectOnlySecondDead(box, 'HANDLER_COMMITTED')
  })

  test.for(COMMANDS)('does no harm by catching the error: %s', async (command) => {
    await using box = await server.open()
    await misbehave(box, ({ tx }) => tx.query(command).catch(() => undefined))
    // It was refused before it was sent.
    expect((await box.ids()).sort()).toEqual(['n1', 'n1', 'n2', 'n2', 'n3', 'n3'])
  })

  const HIDDEN = ['COMMIT', 'COMMIT; BEGIN', 'ROLLBACK', 'ROLLBACK; BEGIN', 'ROLLBACK AND CHAIN']

  test.for(HIDDEN.flatMap((command) => [true, false].map((swallows) => [command, swallows] as const)))(
    'gets HANDLER_COMMITTED also if it hides the command, and nothing it sends later commits on its own: %s (caught: %s)',
    async ([command, swallows]) => {
      await using box = await server.open()
      await misbehave(box, async ({ tx }) => {
        const ended = hide(tx, command)
        await (swallows ? ended.catch(() => undefined) : ended)
      })
      await expectOnlySecondDead(box, 'HANDLER_COMMITTED')
    },
  )

  test.for(['COMMIT', 'ROLLBACK; BEGIN'])(
    'doubles no neighbour wherever it stands in the group: %s',
    async (command) => {
      await using box = await server.open()
      box.consumer(
        'a',
        {
          async note(message, { tx }) {
            await box.write(tx, 'a', message)
            if ((message.data as { bad?: boolean }).bad) await hide(tx, command)
          },
        },
        { retry: { attempts: 1 } },
      )
      await box.receive([1, 2, 3, 4, 5, 6].map((n) => note(`m${n}`, { data: { bad: n % 3 === 1 } })))
      await box.drain()
      expect((await box.ids()).sort()).toEqual(['m2', 'm3', 'm5', 'm6'])
      for (const id of ['m1', 'm4']) {
        expect(await box.fate(id)).toMatchObject({ state: 'dead', error: { code: 'HANDLER_COMMITTED' } })
      }
    },
  )

  test.for(['release', 'end', 'connect'] as const)('by %s() is refused too', async (method) => {
    await using box = await server.open()
    await misbehave(box, ({ tx }) => (tx as unknown as Record<string, () => void>)[method]!())
    await expectOnlySecondDead(box, 'HANDLER_COMMITTED')
  })

  test.for(HIDDEN)('inline: doubles no neighbour and is told in the outcome: %s', async (command) => {
    await using box = await server.open()
    box.consumer('a', {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        if (message.id === 'n2') await hide(tx, command).catch(() => undefined)
      },
    })
    const outcomes = await box.handle(notes(3))
    expect(outcomes.map(({ status }) => status)).toEqual(['handled', 'failed', 'handled'])
    expect(outcomes[1]).toMatchObject({ error: { code: 'HANDLER_COMMITTED' } })
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
    for (const outcome of await box.handle(notes(3).filter(({ id }) => id !== 'n2'))) {
      expect(outcome.status).toBe('duplicate')
    }
  })
})

describe('a handler that misuses its transaction', () => {
  test.for([
    'SET search_path = x',
    'SET SESSION statement_timeout = 1',
    'SET ROLE postgres',
    'RESET ALL',
    'DISCARD ALL',
    'LISTEN x',
    'UNLISTEN *',
    'DEALLOCATE ALL',
    "-- c\nSET x.y = '1'",
  ])('by changing the session gets SESSION_CHANGED: %s', async (command) => {
    await using box = await server.open()
    await misbehave(box, ({ tx }) => tx.query(command))
    await expectOnlySecondDead(box, 'SESSION_CHANGED')
  })

  test('SET LOCAL, SET CONSTRAINTS and savepoints are fine', async () => {
    await using box = await server.open()
    box.consumer('a', {
      async note(message, { tx }) {
        await tx.query(`SET LOCAL statement_timeout = '10s'`)
        await tx.query('SAVEPOINT s')
        await tx.query('select 1/0').catch(() => undefined)
        await tx.query('ROLLBACK TO SAVEPOINT s')
        await box.write(tx, 'a', message)
      },
    })
    await box.receive(notes(3))
    await box.drain()
    expect(await box.ids()).toEqual(['n1', 'n2', 'n3'])
  })

  test('by swallowing an SQL error gets TRANSACTION_ABORTED, with the error as its cause', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'n2') await tx.query('select 1/0').catch(() => undefined)
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
    expect(await box.fate('n2')).toMatchObject({
      state: 'dead',
      error: { code: 'TRANSACTION_ABORTED', cause: { code: '22012' } },
    })
  })

  test('by not awaiting a query gets UNAWAITED_QUERY', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'n2') void tx.query('select pg_sleep(0.1)')
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
    expect(await box.fate('n2')).toMatchObject({ state: 'dead', error: { code: 'UNAWAITED_QUERY' } })
  })

  test('by using it after its return gets TRANSACTION_CLOSED, and writes nothing', async () => {
    await using box = await server.open()
    const later = gate()
    const late: Promise<unknown>[] = []
    box.consumer('a', {
      async note(message, { tx, send }) {
        await box.write(tx, 'a', message)
        const outcome = (use: () => Promise<unknown>) => later.opened.then(use).catch((error: unknown) => error)
        late.push(outcome(() => box.write(tx, 'late', message)))
        late.push(outcome(() => send('sent', {})))
      },
    })
    await box.receive(notes(3))
    await box.drain()
    later.open()
    for (const error of await Promise.all(late)) expect(error).toMatchObject({ code: 'TRANSACTION_CLOSED' })
    expect(await box.ids()).toEqual(['n1', 'n2', 'n3'])
    expect(await box.sent()).toEqual([])
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

describe('the deadline', () => {
  test('a handler beyond timeoutMs fails with HANDLER_TIMEOUT, its signal is aborted, its neighbours are handled', async () => {
    await using box = await server.open()
    const reasons: unknown[] = []
    box.consumer(
      'a',
      {
        async note(message, { tx, signal }) {
          await box.write(tx, 'a', message)
          if (message.id !== 'n2') return
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          reasons.push(signal.reason)
        },
      },
      { timeoutMs: 100, retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
    expect(await box.fate('n2')).toMatchObject({ state: 'dead', attempts: 1, error: { code: 'HANDLER_TIMEOUT' } })
    await waitUntil(() => reasons.length > 0)
    expect(reasons[0]).toMatchObject({ code: 'HANDLER_TIMEOUT' })
  })

  test('also while a statement runs: it is cancelled, and no backend of it is left', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      { note: (_message, { tx }) => tx.query("select pg_sleep(60), 'deadline'") },
      {
        timeoutMs: 100,
        retry: { attempts: 1 },
      },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'dead', error: { code: 'HANDLER_TIMEOUT' } })
    await waitUntil(async () => {
      const left = await box.sql(
        `select 1 from pg_stat_activity where query like '%''deadline''%' and state <> 'idle' and pid <> pg_backend_pid()`,
      )
      return left.length === 0
    })
  })

  test.for(['stored', 'inline', 'direct'] as const)(
    'a handler that goes on after its deadline can write nothing any more: %s',
    async (mode) => {
      await using box = await server.open()
      const resume = gate()
      const outcome = gate<unknown>()
      box.consumer(
        'a',
        {
          async note(message, { tx, send, signal }) {
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
            await resume.opened
            await box.write(tx, 'zombie', message).then(outcome.open, outcome.open)
            await send('sent', {})
          },
        },
        { mode, timeoutMs: 50, retry: { attempts: 1 } },
      )
      if (mode === 'stored') {
        await box.receive(note('1'))
        await box.drain()
      } else expect(await box.handle(note('1'))).toMatchObject({ error: { code: 'HANDLER_TIMEOUT' } })
      resume.open()
      expect(await outcome.opened).toMatchObject({ code: 'TRANSACTION_CLOSED' })
      expect(await box.effects()).toEqual([])
      expect(await box.sent()).toEqual([])
    },
  )

  test.for(['stored', 'inline'] as const)(
    'a handler that failed while another of its promises goes on can write nothing any more: %s',
    async (mode) => {
      await using box = await server.open()
      const resume = gate()
      const outcome = gate<unknown>()
      box.consumer(
        'a',
        {
          note(message, { tx }) {
            void resume.opened.then(() => box.write(tx, 'zombie', message)).then(outcome.open, outcome.open)
            throw new Error('no')
          },
        },
        { mode, retry: { attempts: 1 } },
      )
      if (mode === 'stored') {
        await box.receive(note('1'))
        await box.drain()
      } else await box.handle(note('1'))
      resume.open()
      expect(await outcome.opened).toMatchObject({ code: 'TRANSACTION_CLOSED' })
      expect(await box.effects()).toEqual([])
    },
  )
})

describe('locks', () => {
  test('a row that somebody holds costs no attempt, and the neighbours do not wait for it', async () => {
    await using box = await server.open()
    await box.sql('create table ob.stock (sku text primary key, n int)')
    await box.sql(`insert into ob.stock values ('n1', 0), ('n2', 0), ('n3', 0)`)
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await tx.query(`update ${box.schema}.stock set n = n + 1 where sku = $1`, [message.id])
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    const holder = await server.pool.connect()
    await holder.query('begin')
    await holder.query(`update ${box.schema}.stock set n = n where sku = 'n2'`)
    const drained = box.drain()
    await waitUntil(async () => (await box.fate('n1')).state === 'handled')
    expect((await box.fate('n2')).state).not.toBe('handled')
    await holder.query('commit')
    holder.release()
    await drained
    await box.waitUntilHandled('n1', 'n2', 'n3')
    const rows = await box.sql('select n from ob.stock')
    expect(rows.map(({ n }) => n)).toEqual([1, 1, 1])
  })

  test('groups that update shared rows in opposite order all get through, once, with no attempt burnt', async () => {
    await using box = await server.open()
    await box.sql('create table ob.account (id int primary key, n int)')
    await box.sql('insert into ob.account select i, 0 from generate_series(0, 4) i')
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          const n = Number(message.id.slice(1))
          for (const id of n % 2 ? [n % 5, (n + 2) % 5] : [(n + 2) % 5, n % 5]) {
            await tx.query(`update ${box.schema}.account set n = n + 1 where id = $1`, [id])
          }
        },
      },
      { retry: { attempts: 1 }, group: { messages: 10 } },
    )
    await box.receive(notes(100))
    await box.waitUntilHandled(...notes(100).map(({ id }) => id!))
    expect(await box.sql('select sum(n)::int total from ob.account')).toEqual([{ total: 200 }])
  })
})

describe('isolation', () => {
  const LEVELS = ['read committed', 'repeatable read', 'serializable'] as const

  test.for(LEVELS.flatMap((level) => (['stored', 'inline', 'direct'] as const).map((mode) => [level, mode] as const)))(
    '%s is what the handler gets: %s',
    async ([isolation, mode]) => {
      await using box = await server.open()
      const seen: unknown[] = []
      box.consumer(
        'a',
        {
          async note(_message, { tx }) {
            seen.push((await tx.query('show transaction_isolation')).rows[0].transaction_isolation)
          },
        },
        { isolation, mode },
      )
      if (mode === 'stored') {
        await box.receive(notes(2))
        await box.drain()
      } else await box.handle(notes(2))
      expect(seen).toEqual([isolation, isolation])
    },
  )

  test.for(['repeatable read', 'serializable'] as const)(
    'a serialization failure is tried again and burns no attempt: %s',
    async (isolation) => {
      await using box = await server.open()
      await box.sql('create table ob.counter (n int)')
      await box.sql('insert into ob.counter values (0)')
      const counter = `${box.schema}.counter`
      box.consumer(
        'a',
        {
          async note(_message, { tx }) {
            const { rows } = await tx.query(`select n from ${counter}`)
            await tx.query(`update ${counter} set n = $1`, [rows[0].n + 1])
          },
        },
        { isolation, retry: { attempts: 1 }, group: { messages: 1 }, concurrency: 4 },
      )
      await box.receive(notes(20))
      await box.waitUntilHandled(...notes(20).map(({ id }) => id!))
      expect(await box.sql('select n from ob.counter')).toEqual([{ n: 20 }])
    },
  )

  test.for(LEVELS.flatMap((level) => (['none', 'key'] as const).map((order) => [level, order] as const)))(
    'a handler longer than its lease settles under %s, order %s',
    async ([isolation, order]) => {
      await using box = await server.open()
      let runs = 0
      box.consumer(
        'a',
        {
          async note(message, { tx }) {
            runs++
            await tx.query('select pg_sleep(1.3)')
            await box.write(tx, 'a', message)
          },
        },
        { isolation, order, leaseMs: 1_000, timeoutMs: 10_000, retry: { attempts: 1 } },
      )
      await box.receive(note('1', { key: 'k' }))
      await box.drain()
      expect(await box.fate('1')).toMatchObject({ state: 'handled' })
      expect(await box.ids()).toEqual(['1'])
      expect(runs).toBe(1)
    },
  )
})

describe('the lease', () => {
  test('is extended while a slow handler runs: nobody else runs its message', async () => {
    await using box = await server.open()
    const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    let runs = 0
    const handlers = {
      async note(message: Message, { tx }: Ctx) {
        runs++
        await tx.query('select pg_sleep(1.2)')
        await box.write(tx, 'a', message)
      },
    }
    box.consumer('a', handlers, { leaseMs: 900 })
    other.consumer('a', handlers, { leaseMs: 900 })
    await box.start()
    await other.start()
    await box.receive(notes(2))
    await waitUntil(async () => (await box.ids()).length === 2)
    await other.stop()
    await box.stop()
    expect(runs).toBe(2)
    expect((await box.ids()).sort()).toEqual(['n1', 'n2'])
  })

  test('once lost, what its holder wrote rolls back, its signal is aborted, and the effects are those of the next', async () => {
    await using box = await server.open()
    const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    const started = gate()
    const finish = gate()
    let signal: AbortSignal | undefined
    box.consumer(
      'a',
      {
        async note(message, ctx) {
          signal = ctx.signal
          started.open()
          await box.write(ctx.tx, 'zombie', message)
          await finish.opened
        },
      },
      { leaseMs: 60_000, concurrency: 1 },
    )
    const attempts: number[] = []
    other.consumer('a', {
      note(message, { tx }) {
        attempts.push(message.attempt)
        return box.write(tx, 'next', message)
      },
    })
    await box.receive(note('1'))
    const first = box.drain()
    await started.opened
    await box.clock.advance(61_000)
    await other.drain()
    finish.open()
    await first
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['next'])
    expect(attempts).toEqual([1])
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
    expect(signal).toBeDefined()
  })

  test('a lost lease aborts the signal of the handler that still runs', async () => {
    await using box = await server.open()
    const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    const started = gate()
    let reason: unknown
    box.consumer(
      'a',
      {
        async note(_message, { signal }) {
          started.open()
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          reason = signal.reason
        },
      },
      { leaseMs: 600, concurrency: 1 },
    )
    other.consumer('a', { note: () => 'next' })
    await box.receive(note('1'))
    const first = box.drain()
    await started.opened
    // Its heartbeat may come in between, and then it has its lease back.
    await waitUntil(async () => {
      await box.clock.advance(2_000)
      await other.drain()
      return (await box.fate('1')).state === 'handled'
    })
    await first
    await waitUntil(() => reason !== undefined)
    expect(reason).toMatchObject({ code: 'CLAIM_LOST' })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate', result: 'next' })
  })

  test('a worker that dies with a claim burns no attempt of the messages it had not begun', async () => {
    await using box = await server.open()
    const attempts: Record<string, number[]> = {}
    box.consumer(
      'a',
      {
        note(message, { tx }) {
          ;(attempts[message.id] ??= []).push(message.attempt)
          return box.write(tx, 'a', message)
        },
      },
      { retry: { attempts: 2 } },
    )
    await box.receive(notes(5))
    for (let time = 0; time < 4; time++) {
      box.crashAt('claimed')
      await box.drain()
      await box.clock.advance(31_000)
    }
    expect(attempts).toEqual({})
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3', 'n4', 'n5'])
  })

  test('a message that kills its worker dies alone: its neighbours are handled', async () => {
    await using box = await server.open()
    const hooked: string[] = []
    const attempts: number[] = []
    box.consumer(
      'a',
      {
        note(message, { tx }) {
          if (message.id === 'n3') {
            attempts.push(message.attempt)
            // As if the process died in the handler: nothing is recorded after it.
            box.crashAt('handled')
          }
          return box.write(tx, 'a', message)
        },
      },
      { retry: { attempts: 3 } },
    )
    await box.receive(notes(5))
    for (let time = 0; time < 8; time++) {
      await box.drain()
      await box.clock.advance(31_000)
    }
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n4', 'n5'])
    expect(await box.fate('n3')).toMatchObject({ state: 'dead', attempts: 3, error: { code: 'WORKER_DIED' } })
    expect(attempts).toEqual([1, 1, 2, 3])
    expect(hooked).toEqual([])
  })
})

describe('what a handler is given', () => {
  test('send: in the same transaction, with correlation, causation and trace context; read back by sent()', async () => {
    await using box = await server.open({ source: 'me' })
    box.consumer('a', {
      async note(message, { send }) {
        const { id } = await send('first', { n: 1 }, { key: 'k', subject: 's', headers: { mine: 'x' } })
        expect(id).toMatch(/^[0-9a-f-]{36}$/)
        await send('second', { n: 2 }, { id: `${message.id}-second` })
        await send('second', { n: 2 }, { id: `${message.id}-second` })
      },
    })
    const headers = { traceparent: '00-a', tracestate: 't', baggage: 'b', correlationid: 'root', private: 'no' }
    await box.receive(note('1', { headers }))
    await box.drain()
    const trace = { traceparent: '00-a', tracestate: 't', baggage: 'b', correlationid: 'root', causationid: '1' }
    expect(await box.sent()).toMatchObject([
      { type: 'first', source: 'me', data: { n: 1 }, key: 'k', subject: 's', headers: { ...trace, mine: 'x' } },
      { type: 'second', source: 'me', id: '1-second', data: { n: 2 }, correlationId: 'root', causationId: '1' },
    ])
    expect((await box.sent())[0]!.headers).not.toHaveProperty('private')
    expect(await box.sent()).toHaveLength(2)
  })

  test('a message that starts a conversation is its own correlation', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (_message, { send }) => send('next', {}) })
    await box.receive(note('1'))
    await box.drain()
    const [sent] = await box.sent()
    expect(sent).toMatchObject({ correlationId: '1', causationId: '1' })
    expect(sent!.id).not.toBe('1')
  })

  test('log: bound to the message', async () => {
    const logger = recorder()
    await using box = await server.open({ logger })
    box.consumer('a', { note: (_message, { log }) => log.info({ more: 1 }, 'hello') })
    await box.handle(note('1', { headers: { correlationid: 'c' } }))
    expect(logger.lines.filter(({ level }) => level === 'info')).toEqual([
      {
        level: 'info',
        about: { id: '1', type: 'note', consumer: 'a', attempt: 1, correlationId: 'c', more: 1 },
        text: 'hello',
      },
    ])
  })
})
