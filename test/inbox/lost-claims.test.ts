/**
 * A claim whose answer never came may stand all the same. Its worker lives, and gives it back as soon as the database
 * answers: left to its lease it would keep its messages for half a minute, and make them suspects.
 */
import pg from 'pg'
import { createBox, defineMessages, unchecked, type Logger } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { CLAIM } from '../../src/postgres/sql/claim.js'
import { CLAIM_LANES, READ_LANES } from '../../src/postgres/sql/lanes.js'
import { startPostgres } from '../support/postgres.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { useServer } from './fixture.js'

const server = useServer('lost_claims')
const messages = defineMessages({ note: unchecked() })
/** Nobody waits that long: whatever is handled before was given back. */
const LEASE_MS = 600_000

/** Keeps count of messages whose lease had to run out. */
function takeovers(): { readonly logger: Logger; readonly count: number } {
  let count = 0
  const ignore = (): void => undefined
  const warn = (about: { messages?: number }, text?: string): void => {
    if (text?.includes('taken over')) count += about.messages ?? 1
  }
  return {
    logger: { debug: ignore, info: ignore, warn, error: ignore },
    get count() {
      return count
    },
  }
}

function exactly(text: string): RegExp {
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
}

const LOST = [
  ['CLAIM', CLAIM, 'none'],
  ['CLAIM_LANES', CLAIM_LANES, 'key'],
  ['READ_LANES', READ_LANES, 'key'],
] as const

test.each(LOST)('what %s claimed is given back if its answer is lost', async (_, statement, order) => {
  await using box = await server.open()
  await using proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
  pool.on('error', () => undefined)
  const { logger } = takeovers()
  const worker = createBox({ db: fromPg(pool), schema: box.schema, messages, logger })
  const handled = new Set<string>()
  const handlers = { note: ({ id }: { id: string }) => void handled.add(id) }
  worker.consumer('a', handlers, { order, leaseMs: LEASE_MS, concurrency: 1 })
  await worker.migrate()
  const ids = Array.from({ length: 20 }, (_, at) => `m${at}`)
  await worker.receive(ids.map((id) => ({ id, type: 'note', key: `k${id}`, data: null })))
  const cut = proxy
    .intercept({ at: 'after', statement: exactly(bindTo(box.schema)(statement)) })
    .then((held) => held.cut())
  try {
    await worker.start()
    await cut
    await waitUntil(() => handled.size === ids.length, { timeoutMs: 60_000, what: 'all to be handled' })
  } finally {
    await worker.stop({ timeoutMs: 5_000 })
    await pool.end()
  }
})

test('a server that is restarted at once under load takes no message from a worker that lives', async () => {
  await using own = await startPostgres()
  const pool = new pg.Pool({ connectionString: own.url, max: 10 })
  pool.on('error', () => undefined)
  const told = takeovers()
  const box = createBox({ db: fromPg(pool), messages, logger: told.logger })
  await box.migrate()
  const handled = new Set<string>()
  const handle = ({ id }: { id: string }): void => void handled.add(id)
  box.consumer('loose', { note: handle }, { leaseMs: LEASE_MS })
  box.consumer('keyed', { note: handle }, { leaseMs: LEASE_MS, order: 'key' })
  await box.start()
  const left = async (): Promise<boolean> => (await pool.query('select from oncebox.work limit 1')).rows.length > 0
  try {
    for (let round = 0; round < 3; round++) {
      const ids = Array.from({ length: 2_000 }, (_, at) => `r${round}-${at}`)
      await box.receive(ids.map((id, at) => ({ id, type: 'note', key: `k${at % 50}`, data: null })))
      await waitUntil(() => ids.some((id) => handled.has(id)), { timeoutMs: 60_000, what: 'some to be handled' })
      await own.kill('SIGQUIT')
      await own.restart()
      await waitUntil(
        () =>
          left().then(
            (some) => !some,
            () => false,
          ),
        { timeoutMs: 60_000, what: 'all to be handled' },
      )
    }
    expect(told.count).toBe(0)
  } finally {
    await box.stop({ timeoutMs: 5_000 })
    await pool.end()
  }
}, 300_000)
