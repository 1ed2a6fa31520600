/**
 * One connection falls silent under a statement that runs while a lease is kept over another one: nobody else could go on
 * instead, so the statement is sent again soon, and not after the quarter of an hour that TCP takes.
 */
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createBox } from 'oncebox'
import { link } from 'oncebox/link'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { SILENT } from '../outbox/fixture.js'
import { type BlackHoleEnvironment, environment } from '../support/environments.js'
import { waitUntil } from '../support/wait.js'

const LEASE_MS = 2_000
/** How MOVE and INTEND are told from others. */
const MOVES = /'moved', /
const INTENDS = /intended as \(/

const DRIVERS = {
  pg: ({ url, proxy }: BlackHoleEnvironment) => {
    const pool = new pg.Pool({ connectionString: url, max: 6 })
    pool.on('error', () => {})
    onTestFinished(() => {
      // A connection that is silent still would never agree to end.
      proxy.cutAll()
      return pool.end()
    })
    return fromPg(pool)
  },
  'postgres.js': ({ url }: BlackHoleEnvironment) => {
    const sql = postgres(url, { max: 6, onnotice: () => {} })
    onTestFinished(() => sql.end({ timeout: 0 }))
    return fromPostgres(sql)
  },
}

async function open(driver: keyof typeof DRIVERS) {
  const env = await environment('black-hole')
  onTestFinished(() => env.close())
  const direct = new pg.Pool({ connectionString: env.direct, max: 2 })
  direct.on('error', () => {})
  onTestFinished(() => direct.end())
  const db = DRIVERS[driver](env)
  return {
    env,
    async box(schema: string) {
      const box = createBox({ db: db as never, schema, logger: SILENT })
      await box.migrate()
      onTestFinished(() => box.stop({ timeoutMs: 1_000 }))
      return box
    },
    /** Past the proxy. */
    async send(schema: string, id: string) {
      const client = await direct.connect()
      await client.query('begin')
      await createBox({ db: fromPg(direct), schema, logger: SILENT }).send(client, 'note', null, { id })
      await client.query('commit')
      client.release()
    },
  }
}

describe.each(['pg', 'postgres.js'] as const)('%s', (driver) => {
  test('a link moves its events over another connection', { timeout: 180_000 }, async () => {
    const { env, box, send } = await open(driver)
    const to = await box('arriving')
    const from = await box('leaving')
    const handled: string[] = []
    to.consumer('c', { note: ({ id }) => void handled.push(id) }, { leaseMs: LEASE_MS })
    from.to(link({ to }), { leaseMs: LEASE_MS })
    await send('leaving', 'm0')
    // It is never let go.
    const held = env.proxy.intercept({ at: 'before', statement: MOVES })
    await to.start()
    await from.start()
    await held
    await waitUntil(() => handled.length > 0)
    expect(handled).toEqual(['m0'])
  })

  test('an effect is called once its intent has gone over another connection', { timeout: 180_000 }, async () => {
    const { env, box: openBox } = await open(driver)
    const box = await openBox('effects')
    let calls = 0
    let handled = 0
    box.consumer(
      'c',
      {
        async note(_message, { effect }) {
          await effect('pay', () => void (calls += 1), { onUnknown: 'park' })
          handled += 1
        },
      },
      { leaseMs: LEASE_MS },
    )
    const held = env.proxy.intercept({ at: 'before', statement: INTENDS })
    await box.start()
    await box.receive({ id: 'm0', type: 'note', data: null })
    await held
    await waitUntil(() => handled > 0)
    expect(calls).toBe(1)
  })
})
