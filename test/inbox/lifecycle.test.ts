/** Migrate, start, stop, drain, health; and what the box says when it cannot. */
import { createBox, type Message, type Source } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { createSources, type WatchSource } from '../../src/worker/sources.js'
import { createTrouble } from '../../src/worker/trouble.js'
import { scratchSchemaName } from '../support/postgres.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { type Bench, gate, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('lifecycle', { max: 20 })

/** Dispose of it with `await using`: a schema that is in use is not dropped in peace, and would hide why a test failed. */
function another(box: Bench) {
  const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
  return Object.assign(other, { [Symbol.asyncDispose]: () => other.stop() })
}

describe('the schema', () => {
  test('start() on a schema that does not exist is SCHEMA_OUTDATED, and migrate() makes it', async () => {
    const box = createBox({ db: fromPg(server.pool), schema: scratchSchemaName(), logger: recorder() })
    box.consumer('a', { note: () => undefined })
    await expect(box.start()).rejects.toMatchObject({ code: 'SCHEMA_OUTDATED' })
    const { from, to } = await box.migrate()
    expect(from).toBe(0)
    expect(to).toBeGreaterThan(0)
    expect(await box.migrate()).toEqual({ from: to, to })
    await box.start()
    expect(await box.receive(note('1'))).toMatchObject({ status: 'stored' })
    await box.stop()
  })

  test('an older one is SCHEMA_OUTDATED, a newer one that breaks is SCHEMA_NEWER, one that does not is fine', async () => {
    await using box = await server.open()
    const [{ version }] = (await box.sql('select version from ob.schema_version')) as [{ version: number }]
    await box.sql('update ob.schema_version set version = 0')
    const consumer = box.consumer('a', { note: () => undefined })
    await expect(box.start()).rejects.toMatchObject({ code: 'SCHEMA_OUTDATED' })
    await expect(consumer.start()).rejects.toMatchObject({ code: 'SCHEMA_OUTDATED' })
    await box.sql(`update ob.schema_version set version = ${version + 1}, compatible_from = ${version + 1}`)
    await expect(box.start()).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
    await expect(box.migrate()).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
    await box.sql(`update ob.schema_version set compatible_from = ${version}`)
    await box.start()
    expect(await box.migrate()).toEqual({ from: version + 1, to: version + 1 })
  })

  test('many processes may migrate at once', async () => {
    const schema = scratchSchemaName()
    const boxes = Array.from({ length: 6 }, () => createBox({ db: fromPg(server.pool), schema, logger: recorder() }))
    const moved = await Promise.all(boxes.map((box) => box.migrate()))
    expect(moved.filter(({ from }) => from === 0).length).toBeGreaterThanOrEqual(1)
    boxes[0]!.consumer('a', { note: () => undefined })
    expect(await boxes[0]!.receive(note('1'))).toMatchObject({ status: 'stored' })
  })

  test('two services in one database do not see each other', async () => {
    await using one = await server.open()
    await using two = await server.open()
    one.consumer('a', { note: (message, { tx }) => one.write(tx, 'one', message) })
    two.consumer('a', { note: (message, { tx }) => two.write(tx, 'two', message) })
    await one.receive(note('1'))
    await two.drain()
    expect(await two.ids()).toEqual([])
    await one.drain()
    expect(await one.ids()).toEqual(['1'])
  })
})

describe('start and stop', () => {
  test('what was stored before start() runs, and what comes after it', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await box.receive(note('1'))
    await box.start()
    await box.start()
    await box.receive(note('2'))
    await waitUntil(async () => (await box.ids()).length === 2)
    await box.stop()
    await box.stop()
    await box.receive(note('3'))
    expect((await box.ids()).sort()).toEqual(['1', '2'])
    await box.start()
    await waitUntil(async () => (await box.ids()).length === 3)
  })

  test.for(['itself', 'its box', 'both'])(
    'a consumer that is started while %s is being stopped runs after it',
    async (who) => {
      await using box = await server.open()
      const running = gate()
      const released = gate()
      const consumer = box.consumer('a', {
        async note(message, { tx }) {
          running.open()
          await released.opened
          await box.write(tx, 'a', message)
        },
      })
      await box.start()
      await box.receive(note('1'))
      await running.opened
      const stopped: Promise<void>[] = []
      if (who !== 'itself') stopped.push(box.stop())
      if (who !== 'its box') stopped.push(consumer.stop())
      const started = consumer.start()
      // It gets as far as it can while the handler holds the stop up.
      for (let look = 0; look < 50; look++) await box.sql('select 1')
      released.open()
      await Promise.all([...stopped, started])
      await box.receive(note('2'))
      await waitUntil(async () => (await box.ids()).length === 2)
    },
  )

  test('a second consumer of one name is CONSUMER_EXISTS', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    expect(() => box.consumer('a', { note: () => undefined })).toThrow(
      expect.objectContaining({ code: 'CONSUMER_EXISTS' }),
    )
  })

  test('a consumer declared after start() takes effect at once, also for what nobody wanted before', async () => {
    await using box = await server.open()
    await box.start()
    expect(await box.receive(note('1'))).toMatchObject({ reason: 'unrouted' })
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await box.receive(note('2'))
    await waitUntil(async () => (await box.ids()).length === 2)
    expect(await box.quarantine()).toEqual([])
  })

  test('a consumer declared while the box stops does not start behind its back', async () => {
    await using box = await server.open()
    await box.start()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await box.stop()
    await box.receive(note('1'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await box.ids()).toEqual([])
  })

  test('equal names in several processes are one consumer: each message runs once', async () => {
    await using box = await server.open()
    await using second = another(box)
    await using third = another(box)
    const ran = new Set<number>()
    const shared = gate()
    const all = [box, second, third]
    for (const [at, each] of all.entries()) {
      each.consumer(
        'a',
        {
          async note(message, { tx }) {
            ran.add(at)
            // What one of them holds is not done before another one has something too.
            if (ran.size > 1) shared.open()
            await shared.opened
            return box.write(tx, 'a', message)
          },
        },
        { group: { messages: 5 } },
      )
      await each.start()
    }
    await box.receive(notes(300))
    await waitUntil(async () => (await box.ids()).length >= 300, { timeoutMs: 20_000 })
    for (const each of all) await each.stop()
    expect(new Set(await box.ids()).size).toBe(300)
    expect(await box.ids()).toHaveLength(300)
  })

  test('a message that arrives in one process wakes the worker in another', async () => {
    await using box = await server.open()
    await using other = another(box)
    other.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await other.start()
    await box.receive(note('1'))
    await waitUntil(async () => (await box.ids()).length === 1)
    await other.stop()
  })

  test('stop() finishes what runs, gives the rest back at once, burns no attempt, and leaves the pool open', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          started.open()
          await finish.opened
          await box.write(tx, 'a', message)
        },
      },
      { group: { messages: 10, ms: 0 }, concurrency: 1 },
    )
    await box.receive(notes(10))
    await box.start()
    await started.opened
    const stopping = box.stop()
    finish.open()
    await stopping
    const done = await box.ids()
    expect(done.length).toBeGreaterThanOrEqual(1)
    expect(done.length).toBeLessThan(10)
    for (const { id } of notes(10)) {
      const fate = await box.fate(id!)
      if (!done.includes(id!)) expect(fate).toMatchObject({ state: 'pending', attempts: 0 })
      if (!done.includes(id!)) expect(fate.dueInMs).toBeLessThanOrEqual(0)
    }
    const attempts: number[] = []
    await using other = another(box)
    other.consumer('a', {
      note(message, { tx }) {
        attempts.push(message.attempt)
        return box.write(tx, 'a', message)
      },
    })
    await other.drain()
    expect((await box.ids()).sort()).toEqual(
      notes(10)
        .map(({ id }) => id)
        .sort(),
    )
    expect(new Set(attempts)).toEqual(new Set([1]))
  })

  test('after timeoutMs what still runs is aborted, rolled back, and not counted', async () => {
    await using box = await server.open()
    const started = gate()
    let reason: unknown
    box.consumer(
      'a',
      {
        async note(message, { tx, signal }) {
          await box.write(tx, 'a', message)
          signal.addEventListener('abort', () => (reason = signal.reason))
          started.open()
          await new Promise(() => {})
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(note('1'))
    await box.start()
    await started.opened
    await box.stop({ timeoutMs: 50 })
    expect(reason).toMatchObject({ code: 'STOPPED' })
    expect(await box.ids()).toEqual([])
    expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 0 })
  })

  test('it ends even if the database does not answer any more', { timeout: 240_000 }, async () => {
    const proxy = await startProxy(server.url)
    const pool = new pg.Pool({ connectionString: proxy.url })
    pool.on('error', () => {})
    const box = createBox({ db: fromPg(pool), schema: scratchSchemaName(), logger: recorder() })
    const started = gate()
    box.consumer('a', {
      async note(_message, { tx }) {
        started.open()
        await tx.query('select pg_sleep(1)')
      },
    })
    await box.migrate()
    await box.start()
    await box.receive(note('1'))
    await started.opened
    proxy.pause()
    await box.stop({ timeoutMs: 200 })
    proxy.resume()
    await proxy.close()
    await pool.end()
  })

  test('a logger that throws stops nothing', async () => {
    const broken = (): never => {
      throw new Error('the log is full')
    }
    await using box = await server.open({ logger: { debug: broken, info: broken, warn: broken, error: broken } })
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (message.attempt === 1) throw new Error('bad luck')
          await box.write(tx, 'a', message)
        },
      },
      { retry: { baseMs: 1 }, concurrency: 1 },
    )
    await box.start()
    await box.receive(note('1'))
    await waitUntil(async () => (await box.ids()).length === 1)
  })

  test('no signal handlers are installed, and nothing keeps the process alive', async () => {
    const before = process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.start()
    expect(process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')).toBe(before)
  })

  test('one consumer may be started, drained and stopped on its own', async () => {
    await using box = await server.open()
    const a = box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    const b = box.consumer('b', { note: (message, { tx }) => box.write(tx, 'b', message) })
    expect([a.name, b.name]).toEqual(['a', 'b'])
    await box.receive(note('1'))
    await a.drain()
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['a'])
    await b.start()
    await waitUntil(async () => (await box.effects()).length === 2)
    await b.stop()
    await box.receive(note('2'))
    await a.drain()
    expect((await box.effects()).map(({ consumer }) => consumer)).toEqual(['a', 'b', 'a'])
  })

  test('a consumer that was paused waits, and goes on when it is resumed', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await box.admin.pause('a')
    await box.receive(note('1'))
    await box.drain()
    expect(await box.ids()).toEqual([])
    await box.admin.resume('a')
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
  })
})

describe('drain', () => {
  test('runs until nothing is due, retries and what handlers bring about included; works without start()', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message) {
          runs++
          if (message.attempt < 3) throw new Error('not yet')
          if (message.id === '1') await box.receive(note('2'))
        },
      },
      { retry: { baseMs: 0 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
    expect(await box.fate('2')).toMatchObject({ state: 'handled' })
    expect(runs).toBe(6)
  })

  test('waits for what this process has in flight', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    box.consumer('a', {
      async note(message, { tx }) {
        started.open()
        await finish.opened
        await box.write(tx, 'a', message)
      },
    })
    await box.start()
    await box.receive(note('1'))
    await started.opened
    const drained = box.drain()
    finish.open()
    await drained
    expect(await box.ids()).toEqual(['1'])
  })

  test('leaves timers their turn, also on an embedded database that answers at once', async () => {
    await using box = await createTestBox()
    let late = false
    const untilLate = (): void => {
      if (!late) throw new Error('again, at once')
    }
    box.consumer('a', { note: untilLate }, { retry: () => 0 })
    await box.receive(note('1'))
    const timer = setTimeout(() => (late = true), 50)
    await box.drain()
    clearTimeout(timer)
    expect(late).toBe(true)
  })

  test('an empty box is drained at once', async () => {
    await using box = await server.open()
    await box.drain()
    box.consumer('a', { note: () => undefined })
    await box.drain()
  })
})

describe('health', () => {
  test('is ok when all is well', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    expect(await box.health()).toEqual({ ok: true, database: true, sources: true, lagMs: 0 })
  })

  test('shows the age of the oldest message that is due, and is not ok beyond the limit', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined }, { retry: { baseMs: 86_400_000, jitter: 'none' } })
    box.consumer('b', { note: () => undefined }, { order: 'key' })
    await box.migrate()
    await box.receive(note('1', { key: 'k' }))
    await box.clock.advance(60_000)
    const { lagMs } = await box.health()
    expect(lagMs).toBeGreaterThanOrEqual(60_000)
    expect(lagMs).toBeLessThan(120_000)
    expect(await box.health({ maxLagMs: 30_000 })).toMatchObject({ ok: false, database: true })
    expect(await box.health({ maxLagMs: 600_000 })).toMatchObject({ ok: true })
    await box.drain()
    expect(await box.health({ maxLagMs: 1 })).toMatchObject({ ok: true, lagMs: 0 })
  })

  test('shows the age of the oldest event that its sink does not take', async () => {
    await using box = await server.open()
    box.to({
      publish: () => Promise.reject(new Error('the broker is away')),
      close: () => Promise.resolve(),
    })
    await box.migrate()
    const client = await server.pool.connect()
    await client.query('begin')
    await box.send(client, 'note', null)
    await client.query('commit')
    client.release()
    await box.clock.advance(90_000)
    const { ok, lagMs } = await box.health({ maxLagMs: 60_000 })
    expect(ok).toBe(false)
    expect(lagMs).toBeGreaterThan(89_000)
  })

  test('says so when the database cannot be reached', async () => {
    const pool = new pg.Pool({ host: '127.0.0.1', port: 1, connectionTimeoutMillis: 1_000 })
    const box = createBox({ db: fromPg(pool), logger: recorder() })
    expect(await box.health()).toMatchObject({ ok: false, database: false })
    await pool.end()
  })
})

describe('the pool', () => {
  test.for<[max: number, warns: boolean]>([
    [3, true],
    [12, false],
  ])('of %i connections for 8 handlers at once: start() warns: %s', async ([max, warns]) => {
    const logger = recorder()
    const pool = new pg.Pool({ connectionString: server.url, max })
    const box = createBox({ db: fromPg(pool), schema: scratchSchemaName(), logger })
    const handled: string[] = []
    box.consumer('a', { note: ({ id }) => void handled.push(id) })
    box.consumer('b', { note: ({ id }) => void handled.push(id) })
    await box.migrate()
    await box.start()
    await box.receive(notes(20))
    await waitUntil(() => handled.length === 40)
    await box.stop()
    await pool.end()
    const warnings = logger.lines.filter(({ level, about }) => level === 'warn' && 'pool' in about)
    expect(warnings).toHaveLength(warns ? 1 : 0)
    if (warns) expect(warnings[0]!.about).toEqual({ pool: max, concurrency: 8 })
  })

  test('whose connections are all cut: the box goes on, and no attempt is burnt', async () => {
    const told: (string | undefined)[] = []
    await using box = await server.open({ hooks: { error: (_error, { consumer }) => void told.push(consumer) } })
    const started = gate()
    const attempts: number[] = []
    const handler = async (message: Message, tx: pg.PoolClient): Promise<void> => {
      attempts.push(message.attempt)
      await box.write(tx, 'a', message)
      if (attempts.length > 1) return
      started.open()
      await tx.query('select pg_sleep(60)')
    }
    box.consumer('a', { note: (message, { tx }) => handler(message, tx) }, { retry: { attempts: 1 } })
    await box.start()
    await box.receive(note('1'))
    await started.opened
    const side = new pg.Client(server.url)
    await side.connect()
    await side.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    await side.end()
    // The test's own connections are cut as well.
    await waitUntil(async () => (await box.ids().catch(() => [])).length === 1, { timeoutMs: 90_000 })
    await box.stop()
    expect(await box.ids()).toEqual(['1'])
    expect(attempts).toEqual([1, 1])
    expect(told.length).toBeGreaterThanOrEqual(1)
  })
})

/** Nobody listens to what the sources tell. */
const unheard: WatchSource = () => {
  const silent = { failed: () => undefined, recovered: () => undefined }
  return { broker: createTrouble(silent), deliveries: createTrouble(silent), warn: () => undefined }
}

describe('lifecycle', () => {
  test('stopping sources leaves no timer behind', async () => {
    const sources = createSources(unheard)
    const source: Source = { async start() {}, async stop() {} }
    sources.add(source, async () => [])
    sources.startAll()
    const before = timers()
    await sources.stopAll(60_000)
    expect(timers()).toBeLessThanOrEqual(before)
  })

  test('a source that starts after its stop is stopped', async () => {
    const sources = createSources(unheard)
    const slow = gate()
    const calls: string[] = []
    const source: Source = {
      async start() {
        await slow.opened
        calls.push('started')
      },
      async stop() {
        calls.push('stopped')
      },
    }
    sources.add(source, async () => [])
    sources.startAll()
    await sources.stopAll(1_000)
    slow.open()
    await waitUntil(() => calls.length === 3)
    expect(calls).toEqual(['stopped', 'started', 'stopped'])
  })

  test('stop during start wins', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', { note: () => void runs++ })
    const starting = box.start()
    await box.stop()
    await starting
    await box.receive(note('1'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(runs).toBe(0)
    await box.start()
    await waitUntil(() => runs === 1)
  })

  test('every stop waits for the end, and a start after it starts', async () => {
    await using box = await server.open()
    const begun = gate()
    const goOn = gate()
    let ended = 0
    box.consumer('a', {
      async note() {
        begun.open()
        await goOn.opened
        ended++
      },
    })
    await box.start()
    await box.receive(note('1'))
    await begun.opened
    const first = box.stop()
    const second = box.stop().then(() => ended)
    const restarted = box.start()
    setTimeout(() => goOn.open(), 100)
    expect(await second).toBe(1)
    await first
    await restarted
    await box.receive(note('2'))
    await waitUntil(() => ended === 2)
  })

  test('stop ends consumers that were started on their own', async () => {
    await using box = await server.open()
    let runs = 0
    const consumer = box.consumer('a', { note: () => void runs++ })
    await consumer.start()
    await box.receive(note('1'))
    await waitUntil(() => runs === 1)
    await box.stop()
    await box.receive(note('2'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(runs).toBe(1)
  })
})

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}
