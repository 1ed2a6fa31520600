/**
 * What every client must keep beyond the conformance suite of drivers: the user's own transactions, transactions within a
 * handler's, errors seen through what wraps them, and one effect for each message while workers and COMMITs die.
 *
 * The long form of the last: `ONCEBOX_CLIENT_MESSAGES=10000 npx vitest run test/clients`.
 */
import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createBox, defineMessages, unchecked, type Box, type Logger } from 'oncebox'
import { type DriverCapabilities, driverConformance } from '../../src/testing/driver-conformance/index.js'
import { misses, openArena, type Arena } from '../crash/arena.js'
import { besides, faultsOf, placeOf } from '../drivers/subjects.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import type { Child } from '../support/processes.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { type EffectRow, type Opened, subject } from './subject.js'

export interface ClientUnderTest {
  /** Of the module in subjects/. */
  readonly name: string
  /** Where its packages are; default: those of package.json. */
  readonly from?: () => Promise<string>
}

const MESSAGES = Number(process.env['ONCEBOX_CLIENT_MESSAGES'] ?? 400)
/** How many COMMITs are cut: 200 in the long form. */
const CUTS = Math.ceil(MESSAGES / 50)
const KILL_EVERY_MS = 1_000
/** Clients that answer the server's words to an INSERT. The others answer what they have inserted. */
const ROWLESS = new Set(['pg', 'postgres', 'drizzle-pg', 'drizzle-postgres', 'drizzle-pglite', 'knex', 'kysely'])

/** On a pg without pipeline mode, handlers cannot share a transaction side by side. */
export const OLD_PG: DriverCapabilities = { together: false }

export function conformanceOf({ name, from }: ClientUnderTest, capabilities: DriverCapabilities = {}): void {
  let database: ScratchDatabase
  beforeAll(async () => {
    database = await scratchDatabase(`client_${name}`)
  })
  afterAll(() => database?.close())
  const { parallel = true, faults = true } = capabilities
  const suite = driverConformance<object>({
    capabilities,
    async open() {
      const proxy = faults ? await startProxy(database.url) : undefined
      const packages = await from?.()
      const { open } = await subject(name)
      const openAt = (place: ReturnType<typeof placeOf>, max: number) => open({ ...place, max, name }, packages)
      const opened = await openAt(placeOf(proxy?.url ?? database.url), 4)
      const side = parallel ? await besides(database.url) : undefined
      return {
        ...opened,
        outside: side?.query ?? ((text) => opened.driver.query(text, [])),
        ...(proxy && {
          faults: faultsOf<object, object>(proxy, async (place) => {
            const { driver, close } = await openAt(place, 2)
            return { driver, close }
          }),
        }),
        async close() {
          // First, or the pool would wait for connections that are silent.
          await proxy?.close()
          await opened.close()
          await side?.close()
        },
      }
    },
  })
  for (const { name: promise, run } of suite) test(promise, run)
}

/** Fails the first insert of a key once: by a serialization failure, or by the end of its connection. */
const FAIL_ONCE = `
  create sequence failures;
  create function fail_once() returns trigger language plpgsql as $f$
    begin
      if nextval('failures') > 1 then return new; end if;
      if new.key = 'lost' then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); end if;
      raise 'could not serialize access' using errcode = '40001';
    end $f$;
  create trigger fail_once before insert on effect for each row when (new.key in ('conflict', 'lost'))
    execute function fail_once();
  create unique index one_secret on effect (seq) where key = 'secret';
  create unique index one_folded on effect (lower(id)) where key = 'folded';
  alter table effect add constraint no_overlap exclude using gist (int4range(seq, seq, '[]') with &&) where (key = 'span')`

const messages = defineMessages({ happened: unchecked<{ n: number }>(), insert: unchecked<Partial<EffectRow>>() })
type ClientBox = Box<typeof messages, object>

export function promisesOf({ name, from }: ClientUnderTest): void {
  let arena: Arena
  let packages: string | undefined
  let client: Opened
  let box: ClientBox
  /** Everything that was logged, or told to a hook. */
  const said: unknown[] = []

  beforeAll(async () => {
    arena = await openArena(`client_${name}`)
    await arena.pool.query(FAIL_ONCE)
    packages = await from?.()
    client = await (await subject(name)).open({ ...placeOf(arena.url), max: 6, name }, packages)
    box = newBox()
  })
  afterEach(async () => {
    await box.stop()
    await arena.clear()
    await arena.pool.query(`select setval('failures', 1, false)`)
    said.length = 0
    box = newBox()
  })
  afterAll(async () => {
    await box?.stop()
    await client?.close()
    await arena?.close()
  })

  function newBox(): ClientBox {
    const keep = (...line: unknown[]): void => void said.push(line)
    const logger: Logger = { debug: keep, info: keep, warn: keep, error: keep }
    return createBox({
      ...{ db: client.driver, schema: 'oncebox', messages, logger },
      hooks: { failed: keep, dead: keep, error: keep },
    })
  }
  const row = (id: string, also: Partial<EffectRow> = {}): EffectRow => ({
    ...{ consumer: 'c', key: null, id, seq: null, attempt: 1, pid: 0 },
    ...also,
  })
  const ids = async (): Promise<string[]> => (await arena.effects()).map(({ id }) => id)
  const outgoing = async (): Promise<number> =>
    (await arena.pool.query<{ n: number }>('select count(*)::int n from oncebox.outbox')).rows[0]!.n
  const required = { code: 'TRANSACTION_REQUIRED' }

  describe('in a transaction of the user’s own', () => {
    test('what is sent commits with it, and not without it', async () => {
      await client.own(async (tx) => {
        await client.insert(tx, row('a'))
        await box.send(tx, 'happened', { n: 1 })
        await Promise.all([box.send(tx, 'happened', { n: 2 }), box.send(tx, 'happened', { n: 3 })])
      })
      expect([await ids(), await outgoing()]).toEqual([['a'], 3])
      const failing = client.own(async (tx) => {
        await client.insert(tx, row('b'))
        await box.send(tx, 'happened', { n: 4 })
        throw new Error('of the user')
      })
      await expect(failing).rejects.toThrow('of the user')
      expect([await ids(), await outgoing()]).toEqual([['a'], 3])
    })

    test('once runs its work once, and leaves nothing of work that fails', async () => {
      const attempt = (fail: boolean) =>
        client.own(async (tx) => {
          const work = async () => {
            await client.insert(tx, row('a'))
            if (fail) throw new Error('of the work')
            return { done: true }
          }
          const outcome = await box.once(tx, 'guard', { id: 'a' }, work).catch((error: Error) => error.message)
          await box.send(tx, 'happened', { n: 1 })
          return outcome
        })
      expect(await attempt(true)).toBe('of the work')
      expect([await ids(), await outgoing()]).toEqual([[], 1])
      expect(await attempt(false)).toMatchObject({ status: 'handled', result: { done: true } })
      expect(await attempt(false)).toMatchObject({ status: 'duplicate', result: { done: true } })
      expect([await ids(), await outgoing()]).toEqual([['a'], 3])
    })

    test('no other handle is taken for one', async () => {
      let over: object | undefined
      await client.own(async (tx) => {
        over = tx
        await client.native(tx, 'select 1')
      })
      for (const handle of [client.root, over, {}, 'postgres://', null]) {
        await expect(box.send(handle as object, 'happened', { n: 1 })).rejects.toMatchObject(required)
      }
      expect(await outgoing()).toBe(0)
    })
  })

  describe('in a handler', () => {
    /** Handles one message, which may have but one attempt. */
    async function handled(id: string, handler: Parameters<ClientBox['consumer']>[1], data: Partial<EffectRow> = {}) {
      box.consumer('c', handler, { retry: { attempts: 1 } })
      await box.migrate()
      await box.start()
      await box.receive({ id, type: 'insert', data })
      const state = async () => (await box.admin.message({ id, consumer: 'c' }))[0]
      await waitUntil(async () => ['handled', 'dead'].includes((await state())?.state ?? ''), {
        what: `${id} to be handled or dead`,
        timeoutMs: 60_000,
      })
      return (await state())!
    }

    test.runIf(ROWLESS.has(name))(
      'what a statement answers may be returned, and is no result without rows',
      async () => {
        const inserted = await handled('a', { insert: (_, { tx }) => client.insert(tx, row('a')) })
        const changed = await client.own((tx) =>
          box.once(tx, 'guard', { id: 'b' }, () => client.native(tx, 'update effect set id = id')),
        )
        expect([inserted.state, changed.status]).toEqual(['handled', 'handled'])
        expect([inserted.result, (changed as { result?: unknown }).result]).toEqual([undefined, undefined])
        const selected = await client.own((tx) =>
          box.once(tx, 'guard', { id: 'c' }, () => client.native(tx, 'select id from effect')),
        )
        const kept = JSON.stringify(selected)
        expect(kept).toContain('[{"id":"a"}]')
        // Of pg's table of types.
        expect(kept).not.toContain('BYTEA')
      },
    )

    test('a transaction within it that fails takes nothing else with it', async () => {
      const { state } = await handled('a', {
        insert: async (_, { tx, send }) => {
          await client.insert(tx, row('before'))
          const inner = client.nested(tx, async (nested) => {
            await client.insert(nested, row('inner'))
            await client.native(nested, 'select 1 / 0')
          })
          await expect(inner).rejects.toThrow()
          await client.nested(tx, (nested) => client.insert(nested, row('second')))
          await client.insert(tx, row('after'))
          await send('happened', { n: 1 })
        },
      })
      expect(state).toBe('handled')
      expect([await ids(), await outgoing()]).toEqual([['before', 'second', 'after'], 1])
    })

    test('a conflict that it caught costs it no attempt, whatever it did then', async () => {
      const { state, attempts } = await handled('a', {
        insert: async ({ id, attempt }, { tx }) => {
          await client.insert(tx, row(id, { key: 'conflict', attempt })).catch(() => undefined)
          await client.insert(tx, row(`${id}, once more`, { attempt }))
        },
      })
      expect([state, attempts]).toEqual(['handled', []])
      expect(await arena.effects()).toMatchObject([{ attempt: 1 }, { attempt: 1 }])
    })

    test.for(['conflict', 'lost'])('%s: what is not the message’s fault costs it no attempt', async (key) => {
      const { state, attempts } = await handled('a', {
        insert: async ({ id, attempt }, { tx }) => void (await client.insert(tx, row(id, { key, attempt }))),
      })
      expect([state, attempts]).toEqual(['handled', []])
      expect(await arena.effects()).toMatchObject([{ id: 'a', attempt: 1 }])
    })

    const SECRET = 'secret-4711'
    const SECRETS = /secret-4711|471147114/i
    test.for<[what: string, says: string, fail: (tx: object) => Promise<unknown>]>([
      ['a row that is there', 'one_secret', (tx) => client.insert(tx, row(SECRET, { key: 'secret', seq: 1 }))],
      [
        'an expression that is there',
        'one_folded',
        async (tx) => {
          await client.insert(tx, row(SECRET, { key: 'folded' }))
          await client.insert(tx, row(SECRET.toUpperCase(), { key: 'folded' }))
        },
      ],
      [
        'a range that overlaps',
        'no_overlap',
        async (tx) => {
          await client.insert(tx, row('one', { key: 'span', seq: 471_147_114 }))
          await client.insert(tx, row('other', { key: 'span', seq: 471_147_114 }))
        },
      ],
      // Some clients see it before the server does, and say it in words of their own.
      ['a value that does not fit', '', (tx) => client.insert(tx, row('second', { seq: SECRET as never }))],
    ])('values of rows stay out of records, hooks and logs: %s', async ([, says, fail]) => {
      const { state, error } = await handled('a', {
        insert: async (_, { tx }) => {
          await client.insert(tx, row('first', { key: 'secret', seq: 1 }))
          await fail(tx)
        },
      })
      expect(state).toBe('dead')
      expect(JSON.stringify(error)).toContain(says)
      const logged = said.flat().filter((line) => typeof line === 'object' && line !== null && 'attempt' in line)
      expect(JSON.stringify(logged)).toContain(says)
      expect(inspect([error, said], { depth: 20, showHidden: true })).not.toMatch(SECRETS)
      const { rows } = await arena.pool.query(
        'select a::text from oncebox.attempt a union all select w::text from oncebox.work w',
      )
      expect(JSON.stringify(rows)).not.toMatch(SECRETS)
    })
  })

  test(
    `${MESSAGES} messages with 30 % duplicates have one effect each while workers and ${CUTS} COMMITs die`,
    { timeout: 300_000 + 60 * MESSAGES },
    async () => {
      const consumer = { name: 'crash', options: { leaseMs: 2_000, group: { messages: 10, ms: 500 } } }
      await arena.register([consumer])
      const proxy = await startProxy(arena.url)
      try {
        const start = () => arena.worker({ url: proxy.url, consumers: [consumer], client: { name, from: packages } })
        const workers: Child[] = [await start(), await start()]
        const all = Array.from({ length: MESSAGES }, (_, seq) => `m-${seq}`)
        const deliver = async (): Promise<void> => {
          for (let at = 0; at < MESSAGES; at += 50) {
            const fresh = all.slice(at, at + 50)
            const copies = fresh.map(() => all[Math.floor(Math.random() * (at + fresh.length))]!).slice(0, 15)
            await arena.box.receive([...fresh, ...copies].map((id) => ({ id, type: 'crash', data: {} })))
          }
        }
        const loaded = deliver()
        let cut = 0
        const cutting = (async () => {
          for (const moments = ['before', 'during', 'after'] as const; cut < CUTS; cut++) {
            await proxy.cutAtCommit(moments[cut % 3]!)
          }
        })().catch(() => {})
        for (let turn = 0; ; turn++) {
          await Promise.race([cutting, new Promise((resolve) => setTimeout(resolve, KILL_EVERY_MS))])
          if ((await arena.pending('crash')) === 0 && turn > 0) break
          await workers[turn % 2]!.kill('SIGKILL')
          workers[turn % 2] = await start()
        }
        await loaded
        await arena.drained({ consumer: 'crash', timeoutMs: 120_000 })
        expect(misses(await arena.effects('crash'), all)).toEqual({ doubled: [], lost: [] })
        expect(await arena.work('crash')).toEqual([])
        // Else nothing was cut, and the test has shown nothing.
        expect(cut).toBeGreaterThan(0)
      } finally {
        await arena.endWorkers()
        await proxy.close()
      }
    },
  )
}
