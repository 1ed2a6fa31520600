/** Mistakes that other systems shipped. */
import { describe, expect, test } from 'vitest'
import { createBox, type Message } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { waitUntil } from '../support/wait.js'
import { note, notes, recorder, useServer } from './fixture.js'

const server = useServer('peers', { max: 20 })

describe('mistakes that other systems shipped', () => {
  test('a full page of messages that cannot run hides none behind it', async () => {
    await using box = await server.open()
    const old = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    box.consumer('a', { note: () => undefined, unknown: () => undefined })
    old.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { group: { messages: 10 } })
    await box.receive([...notes(40, { type: 'unknown' }), note('good')])
    await old.drain()
    expect(await box.ids()).toEqual(['good'])
  })

  test('a full page of unrouted messages hides none behind it from a new consumer', async () => {
    await using box = await server.open()
    await box.receive([...notes(600, { type: 'other' }), note('mine')])
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await box.migrate()
    await box.drain()
    expect(await box.ids()).toEqual(['mine'])
    expect(await box.quarantine()).toHaveLength(600)
  })

  test('a message that puts itself off under its own id is not dropped as its own duplicate', async () => {
    await using box = await server.open()
    const runs: Message[] = []
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          runs.push(message)
          expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate' })
          if (message.attempt === 1) throw new Error('again')
          await box.write(tx, 'a', message)
        },
      },
      { retry: { baseMs: 0 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(runs).toHaveLength(2)
    expect(await box.ids()).toEqual(['1'])
  })

  test('a delay and a result of zero are a delay and a result', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note(message) {
          if (message.attempt === 1) throw new Error('again')
          return 0
        },
      },
      { retry: () => 0 },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate', result: 0 })
  })

  test('what is received while a worker falls asleep is not overlooked', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { concurrency: 1 })
    await box.start()
    for (let n = 1; n <= 30; n++) {
      await box.receive(note(`n${n}`))
      await waitUntil(async () => (await box.ids()).length === n, { everyMs: 1 })
    }
    await box.stop()
  })
})
