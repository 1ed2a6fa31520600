/** What a handler may not do with its transaction: it is found out, told, and hurts no neighbour. */
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { expectOnlySecondDead, misbehave, gate, hide, note, notes, useServer } from './fixture.js'

const server = useServer('misuse', { max: 20 })
const MODES = ['stored', 'inline'] as const

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
    // In no order: several slots may share them.
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
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
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
    expect(await box.sent()).toEqual([])
  })
})

test('after a swallowed SQL error COMMIT answers ROLLBACK; the message is not acknowledged', async () => {
  await using box = await server.open()
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        await tx.query('select 1/0').catch(() => undefined)
      },
    },
    { mode: 'inline' },
  )
  expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: false })
  expect(await box.effects()).toEqual([])
})

test.for(MODES)(
  'COMMIT; BEGIN in a handler leaves the transaction status as it was; it is found out: %s',
  async (mode) => {
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          runs++
          await box.write(tx, 'a', message, 'before')
          await hide(tx, 'ROLLBACK; BEGIN')
          await box.write(tx, 'a', message, 'after')
        },
      },
      { mode, retry: { attempts: 2, baseMs: 0 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(runs).toBe(2)
    expect(await box.effects()).toEqual([])
    expect(await box.fate('1')).toMatchObject({ state: 'dead', error: { code: 'HANDLER_COMMITTED' } })
  },
)

test.for(['COMMIT', 'ROLLBACK', 'COMMIT; BEGIN', 'ROLLBACK; BEGIN'])(
  '%s in the middle of a group neither loses nor doubles a neighbour',
  async (command) => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'n2') await hide(tx, command).catch(() => undefined)
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
    expect(await box.fate('n2')).toMatchObject({ state: 'dead', attempts: 1 })
  },
)

describe('a handler that takes another role', () => {
  const takeRole = (tx: pg.PoolClient) => tx.query('set local role pg_monitor')

  test.for(MODES)('cannot be settled under it, and is told so: %s', async (mode) => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx, send }) {
          await box.write(tx, 'a', message)
          if (message.id === 'sends') await send('done', null)
          await takeRole(tx)
          return message.id === 'answers' ? 1 : undefined
        },
      },
      { mode, retry: { attempts: 1 } },
    )
    const ids = ['plain', 'sends', 'answers']
    await box[mode === 'stored' ? 'receive' : 'handle'](ids.map((id) => note(id)))
    await box.drain()
    for (const id of ids) {
      expect(await box.fate(id)).toMatchObject({ state: 'dead', error: { code: 'SESSION_CHANGED' } })
    }
    expect(await box.effects()).toEqual([])
  })

  test.for(MODES)('and puts it back is handled: %s', async (mode) => {
    await using box = await server.open()
    const roles: unknown[] = []
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          await takeRole(tx)
          roles.push((await tx.query<{ role: string }>('select current_user::text as role')).rows[0]!.role)
          await tx.query('set local role none')
        },
      },
      { mode },
    )
    await box[mode === 'stored' ? 'receive' : 'handle'](notes(3))
    await box.waitUntilHandled('n1', 'n2', 'n3')
    expect(roles).toEqual(['pg_monitor', 'pg_monitor', 'pg_monitor'])
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
  })

  test('and may not do what it tries there has an error of its own', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await takeRole(tx)
          await box.write(tx, 'a', message)
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'dead', error: { code: '42501' } })
  })
})
