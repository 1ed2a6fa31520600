/** What a driver can do around the call of a handler, as those of ORMs have to: `Loan.run`. */
import { createTestBox } from 'oncebox/testing'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { driverConformance } from '../../src/testing/driver-conformance/index.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { fromUnits, UnitOfWork } from './unit-of-work.js'

let database: ScratchDatabase
let pool: pg.Pool
/** Past the driver and its pool. */
let side: pg.Client
beforeAll(async () => {
  database = await scratchDatabase('driver_units')
  pool = new pg.Pool({ connectionString: database.url, max: 6 })
  side = new pg.Client(database.url)
  await side.connect()
  await pool.query('create table written (note text unique)')
})
beforeEach(() => pool.query('truncate written'))
afterAll(async () => {
  await pool.end()
  await side.end()
  await database.close()
})

const MODES = ['stored', 'inline'] as const
const message = (id: string) => ({ id, source: 'test', type: 'noted', body: '{}' })

async function written(): Promise<string[]> {
  return (await pool.query<{ note: string }>('select note from written order by note')).rows.map(({ note }) => note)
}

async function open(handler: (unit: UnitOfWork, id: string) => Promise<void>, mode: (typeof MODES)[number]) {
  const box = await createTestBox({ db: fromUnits(pool) })
  box.consumer('a', { noted: ({ id }, { tx }) => handler(tx, id) }, { mode, timeoutMs: 1_000, retry: { attempts: 1 } })
  const deliver = async (...ids: string[]): Promise<unknown[]> => {
    if (mode === 'stored') for (const id of ids) await box.deliver(message(id))
    else await box.handle(ids.map(message))
    await box.drain()
    const { rows } = await pool.query<{ error: string }>(`select error from ${box.schema}.work order by id`)
    return rows.map(({ error }) => JSON.parse(error) as unknown)
  }
  return Object.assign(box, { handled: deliver })
}

describe.each(MODES)('%s', (mode) => {
  test('a handler runs in the async context of its client', async () => {
    const seen: unknown[] = []
    await using box = await open(async (unit, id) => {
      await unit.query('select 1')
      seen.push(UnitOfWork.current === unit)
      UnitOfWork.current?.keep(`insert into written values ('${id}')`)
    }, mode)
    expect(await box.handled('1', '2')).toEqual([])
    expect(seen).toEqual([true, true])
    expect(UnitOfWork.current).toBeUndefined()
    // What was kept back is a part of the same commit.
    expect(await written()).toEqual(['1', '2'])
  })

  test('what fails when a handler has returned is the failure of its message alone', async () => {
    await using box = await open(async (unit, id) => {
      unit.keep(`insert into written values ('${id === '2' ? '1' : id}')`)
    }, mode)
    expect(await box.handled('1', '2', '3')).toMatchObject([{ cause: { code: '23505' } }])
    expect(await written()).toEqual(['1', '3'])
  })

  test('what is sent when a handler has returned has no longer than the handler', async () => {
    await using box = await open(async (unit) => unit.keep('select pg_sleep(60)'), mode)
    expect(await box.handled('1')).toMatchObject([{ code: 'HANDLER_TIMEOUT' }])
  })

  test('an error that the client wraps is judged by what it wraps: a conflict is no failed attempt', async () => {
    let calls = 0
    await using box = await open(async (unit, id) => {
      calls += 1
      if (calls < 3) await unit.query(`do $$ begin raise exception using errcode = '40001'; end $$`)
      unit.keep(`insert into written values ('${id}')`)
    }, mode)
    expect(await box.handled('1')).toEqual([])
    await box.waitFor('1', 'handled')
    expect(await written()).toEqual(['1'])
  })
})

describe('a client that wraps errors', () => {
  const cases = driverConformance<UnitOfWork>({
    async open() {
      return {
        driver: fromUnits(pool),
        root: pool,
        native: (unit, text) => unit.query(text).catch(caused),
        outside: async (text) => (await side.query<Record<string, unknown>>(text)).rows,
        close: async () => {},
      }
    },
    capabilities: { faults: false, together: false },
  })
  for (const { name, run } of cases) test(name, run)
})

function caused(error: Error & { original?: unknown }): never {
  throw Object.assign(error, { cause: error.original })
}
