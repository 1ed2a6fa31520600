/** A database that is away: every part of a box says so once, and once more when it works again. */
import pg from 'pg'
import { createBox, type Deliver } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { recordingSink } from '../outbox/fixture.js'
import { scratchSchemaName } from '../support/postgres.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { note, useServer } from './fixture.js'

const server = useServer('outage_log')

test('a whole box writes one line for each part while the database is away, and one when it is back', async () => {
  await using proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 10 })
  pool.on('error', () => {})
  const lines: string[] = []
  const write = (about: object, text?: string): void => void lines.push(`${text} ${JSON.stringify(about)}`)
  const logger = { debug: () => {}, info: () => {}, warn: write, error: write }
  const box = createBox({ db: fromPg(pool), schema: scratchSchemaName('outage'), logger })
  await box.migrate()
  box.consumer('stored', { note: () => undefined })
  box.consumer('inline', { note: () => undefined }, { mode: 'inline' })
  const sink = box.to(recordingSink({ name: 'broker' }))
  let failures = 0
  let handed = 0
  let stopping = false
  const pull = async (deliver: Deliver): Promise<void> => {
    for (let n = 0; !stopping; n++) {
      await deliver([note(`m${n}`)]).then(
        () => handed++,
        () => failures++,
      )
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  let pulling: Promise<void> | undefined
  box.from({
    name: 'queue',
    start: async (deliver) => void (pulling = pull(deliver)),
    stop: async () => {
      stopping = true
      await pulling
    },
  })
  try {
    await box.start()
    await waitUntil(() => handed > 3)
    lines.length = 0
    await proxy.refuse()
    proxy.cutAll()
    await waitUntil(() => failures > 60)
    const during = [...lines]
    await proxy.accept()
    const before = handed
    await waitUntil(() => handed > before + 30)
    await waitUntil(() => lines.filter((line) => line.includes('works again')).length >= 4)
    const failing = (line: string): boolean => line.includes('fails, and is tried again')
    // Two consumers, a relay, a source; and what listens to other processes, and retention, if they tried.
    expect(during.filter(failing).length).toBeGreaterThanOrEqual(4)
    expect(during.length).toBeLessThanOrEqual(6)
    expect(new Set(during).size).toBe(during.length)
    expect(lines.slice(during.length).filter(failing)).toEqual([])
    expect(sink.calls).toEqual([])
  } finally {
    await proxy.accept()
    await box.stop()
    await pool.end()
  }
})
