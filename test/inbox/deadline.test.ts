/** The deadline of a handler. */
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, useServer } from './fixture.js'

const server = useServer('deadline', { max: 20 })

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

  test.for([
    ['one after the other', 1],
    ['side by side', 4],
  ] as const)('also while it sends short statements, %s: its connection lives', async ([, lines]) => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(_message, { tx }) {
          const line = async (): Promise<never> => {
            for (;;) await tx.query('select 1')
          }
          await Promise.allSettled(Array.from({ length: lines }, line))
        },
      },
      { timeoutMs: 30, retry: { attempts: 1 }, group: { messages: 1 } },
    )
    await box.receive(notes(10))
    await box.drain()
    for (const { id } of notes(10)) {
      expect(await box.fate(id!)).toMatchObject({ state: 'dead', attempts: 1, error: { code: 'HANDLER_TIMEOUT' } })
    }
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
