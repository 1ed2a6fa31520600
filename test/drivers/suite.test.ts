/** The conformance suite itself: a driver that lacks something, or breaks a promise, does not pass. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Driver } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { driverConformance, type DriverCapabilities } from '../../src/testing/driver-conformance/index.js'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'

type Pg = Driver<pg.PoolClient, unknown>

let database: ScratchDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('driver_suite')
  pool = new pg.Pool({ connectionString: database.url, max: 4 })
})
afterAll(async () => {
  await pool.end()
  await database.close()
})

/** The driver with other members; undefined for none. */
const changed = (driver: Pg, members: Partial<Pg>): Pg =>
  new Proxy(driver, {
    get(target, name) {
      if (name in members) return members[name as keyof Pg]
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
const cases = (change: (driver: Pg) => Partial<Pg>, capabilities: DriverCapabilities = {}) =>
  driverConformance<pg.PoolClient, unknown>({
    async open() {
      const driver = fromPg(pool) as Pg
      return {
        driver: changed(driver, change(driver)),
        root: pool,
        native: (tx, text) => tx.query(text),
        outside: async (text) => (await pool.query<Record<string, unknown>>(text)).rows,
        close: async () => {},
      }
    },
    capabilities: { faults: false, ...capabilities },
  })

test.for<[capability: keyof DriverCapabilities, without: Partial<Record<keyof Pg, undefined>>, faults: boolean]>([
  ['lend', { lend: undefined }, false],
  ['listen', { listen: undefined }, false],
  ['silent', { silentMs: undefined }, true],
  ['silent', { hangUp: undefined }, true],
  ['together', { together: undefined }, false],
])(
  'a driver that lacks %s, %j, passes no case by that, unless its test says so',
  async ([capability, without, faults]) => {
    const lacking = cases(() => without, { faults })
    const left = new Set(cases(() => without as Partial<Pg>, { faults, [capability]: false }).map(({ name }) => name))
    const asking = lacking.filter(({ name }) => !left.has(name))
    expect(asking).not.toHaveLength(0)
    for (const { run } of asking) await expect(run()).rejects.toThrow(`capabilities: { ${capability}: false }`)
  },
)

test('a listener that goes on after it has unsubscribed is found, also where notifications take their time', async () => {
  const open: (() => Promise<void>)[] = []
  const slow = (driver: Pg, isDeaf: boolean): Partial<Pg> => ({
    async listen(channel, wake) {
      let isListening = true
      const unsubscribe = await driver.listen!(channel, () => setTimeout(() => (isListening ? wake() : undefined), 100))
      open.push(unsubscribe)
      return async () => void (isListening = isDeaf)
    },
  })
  const of = (isDeaf: boolean) =>
    cases((driver) => slow(driver, isDeaf)).find(({ name }) => name.includes('unsubscribed'))!
  await expect(of(true).run()).rejects.toThrow()
  await of(false).run()
  for (const unsubscribe of open) await unsubscribe()
})
