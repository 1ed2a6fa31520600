/** stop() and what runs on arrival: calls of `handle`, and what sources deliver. */
import type { Deliver, Outcome, Source } from 'oncebox'
import { describe, expect, test, vi } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, useServer } from './fixture.js'

const server = useServer('stop_arrivals')

/** A source that delivers what it is given, and whose stop waits for what is in flight, as those of brokers do. */
function handSource() {
  let deliver: Deliver | undefined
  const inFlight = new Set<Promise<unknown>>()
  const source: Source = {
    async start(to) {
      deliver = to
    },
    async stop() {
      await Promise.allSettled(inFlight)
    },
  }
  const give = (batch: Parameters<Deliver>[0]): Promise<readonly Outcome[]> => {
    const work = deliver!(batch)
    inFlight.add(work)
    work.catch(() => undefined)
    return work
  }
  return { source, give, ready: () => deliver !== undefined }
}

describe.each(['inline', 'direct'] as const)('%s', (mode) => {
  test('what runs may finish, nothing behind it starts, and the sender is told to send it again', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    const ran: string[] = []
    box.consumer(
      'a',
      {
        async note({ id }) {
          ran.push(id)
          started.open()
          await finish.opened
        },
      },
      { mode },
    )
    const { source, give, ready } = handSource()
    box.from(source)
    await box.start()
    await waitUntil(ready)
    const given = give(notes(3))
    await started.opened
    const stopped = box.stop()
    finish.open()
    await stopped
    expect((await given).map(({ status, ack }) => [status, ack])).toEqual([
      ['handled', true],
      ['busy', false],
      ['busy', false],
    ])
    expect(ran).toHaveLength(1)
  })

  test('after timeoutMs it is aborted and rolled back, and stop() ends', async () => {
    await using box = await server.open()
    const started = gate()
    let aborted: unknown
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx, signal }) {
          runs++
          await box.write(tx, 'a', message)
          signal.addEventListener('abort', () => (aborted = signal.reason))
          started.open()
          await new Promise(() => undefined)
        },
      },
      { mode },
    )
    const { source, give, ready } = handSource()
    box.from(source)
    await box.start()
    await waitUntil(ready)
    const given = give(notes(2)).then(
      (outcomes) => outcomes.map(({ ack }) => ack),
      (error: { code: string }) => error.code,
    )
    await started.opened
    const begun = performance.now()
    await box.stop({ timeoutMs: 100 })
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(aborted).toMatchObject({ code: 'STOPPED' })
    // No acknowledgement either way: the whole delivery is refused, or each message of it.
    expect(['STOPPED', [false, false]]).toContainEqual(await given)
    expect(runs).toBe(1)
    expect(await box.ids()).toEqual([])
    const open =
      await box.sql(`select 1 from pg_stat_activity where datname = current_database() and xact_start is not null
      and pid <> pg_backend_pid()`)
    expect(open).toEqual([])
  })
})

test('handle() runs again after a stop() that ran out of time', async () => {
  await using box = await server.open()
  const started = gate()
  box.consumer('a', {
    async note(message, { tx }) {
      if (message.id === 'slow') {
        started.open()
        await new Promise(() => undefined)
      }
      await box.write(tx, 'a', message)
    },
  })
  await box.start()
  await box.receive(note('slow'))
  await started.opened
  await box.stop({ timeoutMs: 50 })
  expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
  expect(await box.ids()).toEqual(['1'])
})

test('the deadline of a call that was aborted keeps no process alive', async () => {
  await using box = await server.open()
  const started = gate()
  const timeoutMs = 612_345
  const deadlines: NodeJS.Timeout[] = []
  const ended = new Set<unknown>()
  const set = vi.spyOn(globalThis, 'setTimeout')
  const clear = vi.spyOn(globalThis, 'clearTimeout')
  try {
    box.consumer(
      'a',
      {
        async note() {
          started.open()
          await new Promise(() => undefined)
        },
      },
      { timeoutMs },
    )
    await box.start()
    await box.receive(note('1'))
    await started.opened
    await box.stop({ timeoutMs: 50 })
    for (const [at, call] of set.mock.calls.entries()) {
      if (call[1] === timeoutMs) deadlines.push(set.mock.results[at]!.value as NodeJS.Timeout)
    }
    for (const [timer] of clear.mock.calls) ended.add(timer)
  } finally {
    set.mockRestore()
    clear.mockRestore()
  }
  expect(deadlines).toHaveLength(1)
  expect(ended).toContain(deadlines[0])
})
