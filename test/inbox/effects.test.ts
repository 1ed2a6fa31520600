/** Effects of messages whose lane or worker is going away. */
import { expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, useServer } from './fixture.js'

const server = useServer('effects', { max: 20 })

test('the answer to an effect finds a message whose lane is gone', async () => {
  await using box = await server.open()
  let known = false
  box.consumer(
    'a',
    {
      async note(message, { tx, effect }) {
        await effect(
          'call',
          () => {
            throw new Error('no answer')
          },
          { onUnknown: 'park' },
        )
        await box.write(tx, 'a', message)
        known = true
      },
    },
    { order: 'key', onDead: 'skip' },
  )
  await box.receive(note('1', { key: 'k' }))
  await box.drain()
  expect(await box.fate('1')).toMatchObject({ state: 'quarantined', reason: 'effect-unknown' })
  await box.admin.prune()
  expect(await box.sql('select key from ob.lane')).toEqual([])
  await box.admin.answer({ consumer: 'a', id: '1', effect: 'call' }, { happened: true })
  await box.drain()
  expect(known).toBe(true)
  expect(await box.fate('1')).toMatchObject({ state: 'handled' })
})

test('an effect whose worker is told to stop while its intent is written is not called', async () => {
  await using box = await server.open()
  let calls = 0
  let signalled = false
  box.consumer('a', {
    async note(_message, { effect }) {
      await effect('call', ({ signal }) => (calls++, (signalled = signal.aborted)), { onUnknown: 'park' })
    },
  })
  const blocker = await server.pool.connect()
  try {
    await blocker.query('begin')
    await blocker.query(`lock table ${box.schema}.effect in share mode`)
    await box.start()
    await box.receive(note('1'))
    await waitUntil(async () => {
      const waiting = await box.sql(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return waiting.length > 0
    })
    const stopped = box.stop({ timeoutMs: 50 })
    await new Promise((resolve) => setTimeout(resolve, 200))
    await blocker.query('commit')
    await stopped
  } finally {
    blocker.release()
  }
  expect(calls).toBe(0)
  await box.start()
  await waitUntil(async () => (await box.fate('1')).state === 'handled', { what: 'the message' })
  expect({ calls, signalled }).toEqual({ calls: 1, signalled: false })
})
