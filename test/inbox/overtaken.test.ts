/** A stop that comes while the box starts. */
import { createBox, type Driver } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { REGISTER } from '../../src/postgres/sql/registry.js'
import { ENCODING } from '../../src/postgres/sql/server.js'
import { cancelling, delaying } from '../support/cancelling.js'
import { waitUntil } from '../support/wait.js'
import { type Bench, gate, note, recorder, useServer } from './fixture.js'

const server = useServer('overtaken')

/** A pool of its own, which may end before the test does. */
function ownPool(): pg.Pool & AsyncDisposable {
  const pool = new pg.Pool({ connectionString: server.url, max: 3 })
  return Object.assign(pool, {
    async [Symbol.asyncDispose]() {
      if (!pool.ending) await pool.end()
    },
  })
}

function boxOn(db: Driver<pg.PoolClient, PgClient>, { schema }: Bench) {
  const box = createBox({ db, schema, logger: recorder() })
  let runs = 0
  box.consumer('a', { note: () => void runs++ })
  return Object.assign(box, { runs: () => runs })
}

/** A box whose start has come to where it registers its consumers, and goes on when it is told to. */
async function starting(pool: pg.Pool, bench: Bench) {
  const reached = gate()
  const goOn = gate()
  const held = delaying(fromPg(pool), bindTo(bench.schema)(REGISTER), () => {
    reached.open()
    return goOn.opened
  })
  const box = boxOn(held, bench)
  const started = box.start()
  started.catch(() => undefined)
  await reached.opened
  return { box, started, goOn }
}

describe('a stop that overtakes a start', () => {
  test('waits for the step that the start is at, which is the last one', async () => {
    await using bench = await server.open()
    // Nobody takes it: a start with a consumer of its type would release it.
    await bench.receive(note('1'))
    await using pool = ownPool()
    const { box, started, goOn } = await starting(pool, bench)
    const over: string[] = []
    const all = [started.then(() => over.push('start')), box.stop().then(() => over.push('stop'))]
    goOn.open()
    await Promise.all(all)
    expect(over).toEqual(['start', 'stop'])
    expect(await bench.quarantine()).toMatchObject([{ id: '1', reason: 'unrouted' }])
    await box.start()
    await waitUntil(() => box.runs() === 1)
    await box.stop()
  })

  test('waits no longer than it was told to, and what the start lacks afterwards fails nothing', async () => {
    await using bench = await server.open()
    await using pool = ownPool()
    const { box, started, goOn } = await starting(pool, bench)
    await box.stop({ timeoutMs: 20 })
    await pool.end()
    goOn.open()
    expect(await started).toBeUndefined()
  })

  test('keeps a start that has not begun from asking anything', async () => {
    await using bench = await server.open()
    await using pool = ownPool()
    const box = boxOn(fromPg(pool), bench)
    const started = box.start()
    await box.stop()
    await pool.end()
    expect(await started).toBeUndefined()
  })
})

test('a start that cannot look for what it would warn of starts all the same', async () => {
  await using bench = await server.open()
  const box = boxOn(cancelling(fromPg(server.pool), bindTo(bench.schema)(ENCODING)), bench)
  await box.start()
  await box.receive(note('1'))
  await waitUntil(() => box.runs() === 1)
  await box.stop()
})
