/** The logger of a box that was given none: one line on the console for each event. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { note, useServer } from './fixture.js'

const server = useServer('console')

function watchConsole(): string[] {
  const lines: string[] = []
  for (const level of ['warn', 'error'] as const) {
    const spy = vi.spyOn(console, level).mockImplementation((...given: unknown[]) => {
      // What is no text would be printed over several lines.
      lines.push(
        given.every((one) => typeof one === 'string') ? given.join(' ') : `not a text: ${JSON.stringify(given)}`,
      )
    })
    onTestFinished(() => spy.mockRestore())
  }
  return lines
}

test('a failure is one line: what happened, to which message of which consumer, in whole milliseconds', async () => {
  const lines = watchConsole()
  const box = createBox({ db: fromPg(server.pool), schema: scratchSchemaName('console') })
  await box.migrate()
  const retry = { baseMs: 123_456.789, jitter: 'none' } as const
  const failing = () => Promise.reject(new Error('no stock\nof "a" left'))
  box.consumer('reserve stock', { note: failing }, { retry })
  await box.receive(note('m-1'))
  await box.drain()
  expect(lines).toEqual([
    'oncebox: message failed; the box retries it (id m-1, type note, correlationId m-1, consumer "reserve stock", attempt 1, ' +
      'error "no stock\\nof \\"a\\" left", retryBy box, retryInMs 123457)',
  ])
  await box.stop()
})

test('a source and a sink that fail are called by their names', async () => {
  const lines = watchConsole()
  const box = createBox({ db: fromPg(server.pool), schema: scratchSchemaName('console') })
  await box.migrate()
  const away = () => Promise.reject(new Error('out of reach'))
  box.from({ name: 'orders', start: away, stop: async () => undefined })
  box.to({ name: 'billing', publish: away, close: async () => undefined } as never)
  await box.start()
  const client = await server.pool.connect()
  await client.query('begin')
  await box.send(client, 'note', 1)
  await client.query('commit')
  client.release()
  await waitUntil(() => lines.length >= 2)
  expect(lines.sort()).toEqual([
    'oncebox: sink billing fails, and is tried again (sink billing, error "out of reach")',
    'oncebox: source orders fails, and is tried again (source orders, error "out of reach")',
  ])
  await box.stop()
})
