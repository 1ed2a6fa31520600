/** Kafka into a box, on PostgreSQL: what the group has committed is in the database, at every moment. */
import { describe, expect, test } from 'vitest'
import { useServer } from '../../inbox/fixture.js'
import { waitUntil } from '../../support/wait.js'
import { backlog, committedOffsets, publish, source } from './adapter.mjs'
import { numbered, useBroker } from './fixture.js'

const broker = useBroker()
const server = useServer('kafka')
const TIMEOUT = { timeout: 400_000 }
const PATIENCE = { timeoutMs: 120_000 }

describe.for(['inline', 'stored'] as const)('%s', TIMEOUT, (mode) => {
  test('no offset is ever ahead of the rows, with failures and a second member', async () => {
    const settings = await broker.create()
    const total = 600
    await publish(
      settings,
      numbered(total, (n) => `k${n % 40}`),
    )
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        note: async (message, { tx }) => {
          // Some fail at first, so that there are gaps.
          if (++runs % 50 === 0) throw new Error('not now')
          await box.write(tx, 'a', message)
        },
      },
      { mode, retry: { baseMs: 20, maxMs: 50, attempts: 50 } },
    )
    const options = { type: 'note', batch: 20 }
    box.from(source(settings, options))

    const committedRows = async (): Promise<Set<string>> => {
      const kept = mode === 'inline' ? 'select id from ob.test_ledger' : 'select id from ob.message'
      return new Set((await box.sql(kept)).map(({ id }) => id as string))
    }
    let looks = 0
    const isNeverAhead = async (): Promise<void> => {
      const committed = await committedOffsets(settings)
      const rows = await committedRows()
      for (const [partition, end] of committed) {
        for (let offset = 0; offset < end; offset++) expect(rows).toContain(`${settings.topic}:${partition}:${offset}`)
      }
      looks++
    }
    await box.start()
    await waitUntil(async () => (await isNeverAhead(), looks > 3), PATIENCE)
    box.from(source(settings, options))
    await waitUntil(async () => (await isNeverAhead(), (await backlog(settings)) === 0), PATIENCE)
    await box.drain()
    expect(new Set(await box.ids()).size).toBe(total)
    expect((await box.ids()).length).toBe(total)
  })
})
