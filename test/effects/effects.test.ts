/** Effects: calls outside the database, with a crash between the call and its record. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, onTestFinished, vi } from 'vitest'
import type { Context, MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'
import { scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

const MESSAGES = 100
const LEASE_MS = 30_000

let pool: pg.Pool
let close: () => Promise<void>
beforeAll(async () => {
  const database = await scratchDatabase('effects')
  pool = new pg.Pool({ connectionString: database.url })
  close = database.close
})
afterAll(async () => {
  await pool.end()
  await close()
})

/** A card gateway that honours idempotency keys, and counts every call. */
function gateway() {
  const ledger = new Map<string, string>()
  const calls: string[] = []
  return {
    ledger,
    calls,
    charge(id: string, idempotencyKey: string) {
      calls.push(id)
      if (!ledger.has(idempotencyKey)) ledger.set(idempotencyKey, id)
      return { charge: ledger.get(idempotencyKey) }
    },
  }
}

async function crashing(onUnknown: 'retry' | 'park') {
  const box = await createTestBox({ db: fromPg(pool) })
  const cards = gateway()
  const results: unknown[] = []
  box.consumer(
    'pay',
    {
      order: async (message, { effect }) => {
        const run = ({ idempotencyKey }: { idempotencyKey: string }) => cards.charge(message.id, idempotencyKey)
        results.push(await effect('charge', run, { onUnknown }))
      },
    },
    { concurrency: 1, leaseMs: LEASE_MS },
  )
  const ids = Array.from({ length: MESSAGES }, (_, at) => `m${at}`)
  for (const id of ids) {
    await box.receive({ id, type: 'order', data: null })
    box.crashAt('called')
    await box.drain()
    await box.clock.advance(LEASE_MS + 1_000)
    await box.drain()
  }
  return { box, cards, ids, results }
}

test.for<[string, (ctx: Context<MessageMap, pg.PoolClient>) => Promise<unknown>]>([
  ['tx', ({ tx }) => tx.query('select 1')],
  ['send', ({ send }) => send('order', 1)],
  ['another effect', ({ effect }) => effect('inner', () => 1)],
])('the call of an effect that uses %s fails, and is told that it is outside of the transaction', async ([, use]) => {
  await using box = await createTestBox({ db: fromPg(pool) })
  const order: Handler = (_, ctx) => ctx.effect('outer', async () => void (await use(ctx)))
  box.consumer('pay', { order }, { retry: { attempts: 1 } })
  const outcome = await box.handle({ id: '1', type: 'order', data: null })
  const words = expect.stringContaining('in a call of an effect') as string
  expect(outcome).toMatchObject({ status: 'dead', error: { code: 'TRANSACTION_CLOSED', message: words } })
})

type Handler = (message: unknown, ctx: Context<MessageMap, pg.PoolClient>) => Promise<unknown>

describe('a process that dies between the call and its record', () => {
  test('calls again with the same key, and the gateway charges once', { timeout: 300_000 }, async () => {
    const { box, cards, ids, results } = await crashing('retry')
    await using _ = box
    expect([...cards.ledger.values()].sort()).toEqual([...ids].sort())
    expect(cards.calls.length).toBe(MESSAGES * 2)
    expect(results.length).toBe(MESSAGES)
    expect((await box.admin.status()).consumers['pay']).toMatchObject({ handled: MESSAGES, pending: 0, dead: 0 })
  })

  test('with park nothing is called twice, and a person’s answer goes on', { timeout: 300_000 }, async () => {
    const { box, cards, ids, results } = await crashing('park')
    await using _ = box
    expect([...cards.calls].sort()).toEqual([...ids].sort())
    expect(results).toEqual([])
    expect((await box.admin.status()).consumers['pay']).toMatchObject({ quarantined: MESSAGES, handled: 0 })
    for (const [at, id] of ids.entries()) {
      const answer = at % 2 === 0 ? { happened: true as const, result: { told: id } } : { happened: false as const }
      await box.admin.answer({ consumer: 'pay', id, effect: 'charge' }, answer)
    }
    await box.drain()
    expect(results.length).toBe(MESSAGES)
    expect(cards.calls.length).toBe(MESSAGES * 1.5)
    expect((await box.admin.status()).consumers['pay']).toMatchObject({ handled: MESSAGES, quarantined: 0 })
    await expect(
      box.admin.answer({ consumer: 'pay', id: ids[0]!, effect: 'charge' }, { happened: false }),
    ).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

test('a recorded effect is not called again, whatever happens to the handler after it', async () => {
  await using box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  box.consumer(
    'pay',
    {
      order: async (message, { effect }) => {
        await effect('charge', () => ++calls)
        if (message.attempt < 3) throw new Error('after the effect')
      },
    },
    { retry: { baseMs: 1_000, jitter: 'none' } },
  )
  await box.receive(['a', 'b', 'c'].map((id) => ({ id, type: 'order', data: null })))
  for (let attempt = 0; attempt < 3; attempt++) {
    await box.drain()
    await box.clock.advance(10_000)
  }
  expect(calls).toBe(3)
  expect((await box.admin.status()).consumers['pay']).toMatchObject({ handled: 3 })
})

test('a failure that is vouched for is retried as if nothing had been called', async () => {
  await using box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  const refused = new Error('refused')
  box.consumer('pay', {
    order: (_message, { effect }) =>
      effect(
        'charge',
        () => {
          if (++calls === 1) throw refused
          return 'done'
        },
        { onUnknown: 'park', isDefinite: (error) => error === refused },
      ),
  })
  await box.receive({ id: 'a', type: 'order', data: null })
  await box.drain()
  await box.clock.advance(60_000)
  await box.drain()
  expect(calls).toBe(2)
  expect((await box.admin.status()).consumers['pay']).toMatchObject({ handled: 1, quarantined: 0 })
})

test.for<[problem: string, args: unknown[]]>([
  ['an unknown option', [() => 1, { onunknown: 'park' }]],
  ['another value', [() => 1, { onUnknown: 'prak' }]],
  ['a deadline that is no number', [() => 1, { timeoutMs: 'soon' }]],
  ['a deadline at once', [() => 1, { timeoutMs: 0 }]],
  ['no function to vouch', [() => 1, { isDefinite: 'yes' }]],
  ['options that are none', [() => 1, null]],
  ['no function', []],
  ['the options first', [{ onUnknown: 'park' }, () => 1]],
])('an effect with %s is refused before anything is called', async ([, args]) => {
  await using box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  const counted = args.map((arg) => (typeof arg === 'function' ? () => void calls++ : arg))
  box.consumer(
    'pay',
    { order: (_message, { effect }) => (effect as (...args: unknown[]) => Promise<unknown>)('charge', ...counted) },
    { retry: { attempts: 1 } },
  )
  await box.receive({ id: 'a', type: 'order', data: null })
  await box.drain()
  expect(await box.admin.message({ id: 'a' })).toMatchObject([{ state: 'dead', error: { code: 'OPTION_INVALID' } }])
  expect(calls).toBe(0)
})

test('a result that JSON cannot hold is kept as a description, and nothing is called again', async () => {
  await using box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  box.consumer('pay', {
    order: (_message, { effect }) => effect('count', () => (calls++, { cents: 10n })),
  })
  expect(await box.handle({ id: 'a', type: 'order', data: null })).toMatchObject({
    status: 'handled',
    result: { unserializable: '{ cents: 10n }' },
  })
  expect(calls).toBe(1)
})

test('a result that is too large to be stored is kept as its size, and nothing is called again', async () => {
  await using box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  box.consumer('pay', {
    order: (_message, { effect }) => effect('export', () => (calls++, 'x'.repeat(64 * 1024 * 1024))),
  })
  expect(await box.handle({ id: 'a', type: 'order', data: null })).toMatchObject({
    status: 'handled',
    result: { tooLarge: 64 * 1024 * 1024 + 2 },
  })
  expect(calls).toBe(1)
})

test('an outcome that the database will not take yet is recorded later, and nothing is called again', async () => {
  await using box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  const refuse = `create trigger "full" before insert or update on ${box.schema}.effect for each row
    when (new.state = 'done') execute function ${box.schema}.disk_is_full()`
  await pool.query(`create function ${box.schema}.disk_is_full() returns trigger language plpgsql as $$
    begin raise exception using errcode = '53100'; end $$`)
  box.consumer('pay', {
    async order(_message, { effect }) {
      await effect('charge', async () => {
        calls++
        await pool.query(refuse)
        return 'done'
      })
    },
  })
  await box.receive({ id: 'a', type: 'order', data: null })
  const draining = box.drain()
  await waitUntil(async () => {
    const { rows } = await pool.query(`select 1 from pg_trigger where tgname = 'full'
      and tgrelid = '${box.schema}.effect'::regclass`)
    return rows.length > 0
  })
  await pool.query(`drop trigger "full" on ${box.schema}.effect`)
  await draining
  expect(calls).toBe(1)
  expect((await box.admin.status()).consumers['pay']).toMatchObject({ handled: 1 })
})

test('an outcome that the database does not take for minutes is recorded when it does, and nobody has to answer for it', async () => {
  await using box = await createTestBox({ db: fromPg(pool) })
  let calls = 0
  await pool.query(`create function ${box.schema}.disk_is_full() returns trigger language plpgsql as $$
    begin raise exception using errcode = '53100'; end $$`)
  const now = performance.now.bind(performance)
  const charge = async (): Promise<string> => {
    calls++
    await pool.query(`create trigger "full" before insert or update on ${box.schema}.effect for each row
      when (new.state = 'done') execute function ${box.schema}.disk_is_full()`)
    // The second refusal comes a minute after the first.
    setTimeout(() => vi.spyOn(performance, 'now').mockImplementation(() => now() + 61_000), 20)
    return 'done'
  }
  onTestFinished(() => void vi.restoreAllMocks())
  box.consumer('pay', { order: (_message, { effect }) => effect('charge', charge, { onUnknown: 'park' }) })
  await box.receive({ id: 'a', type: 'order', data: null })
  const state = async () => (await box.admin.messages({})).entries[0]?.state
  await waitUntil(async () => {
    await box.drain().catch(() => undefined)
    return (await state()) === 'quarantined'
  })
  await pool.query(`drop trigger "full" on ${box.schema}.effect`)
  await waitUntil(async () => {
    await box.drain().catch(() => undefined)
    return (await state()) === 'handled'
  })
  expect(calls).toBe(1)
})

describe('an effect whose name is another one in every run', () => {
  const start = async (name: (run: number) => string) => {
    const box = await createTestBox({ db: fromPg(pool) })
    let runs = 0
    let calls = 0
    const order = async (_message: unknown, { effect }: Context<MessageMap, pg.PoolClient>) => {
      const result = await effect(name(++runs), () => {
        // Nothing else would end it.
        if (++calls > 100) throw new Error('called without end')
        return calls
      })
      return effect('last', () => result)
    }
    box.consumer('pay', { order }, { retry: { attempts: 2, baseMs: 0, jitter: 'none' } })
    await box.receive({ id: 'a', type: 'order', data: null })
    return Object.assign(box, { calls: () => calls })
  }

  test('fails the attempt after a few calls, so that attempts count', async () => {
    await using box = await start((run) => `charge ${run}`)
    await waitUntil(async () => {
      await box.drain()
      return (await box.admin.messages({})).entries[0]?.state === 'dead'
    })
    expect((await box.admin.messages({})).entries[0]!.error).toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(/^effect 'charge \d+' .* effect 'charge \d+'/),
    })
    expect(box.calls()).toBeLessThanOrEqual(50)
  })

  test('is called again where that ends', async () => {
    await using box = await start((run) => `charge ${Math.min(run, 3)}`)
    await box.drain()
    expect((await box.admin.messages({})).entries).toMatchObject([{ state: 'handled' }])
    expect(box.calls()).toBe(3)
  })
})

test('effects begun side by side behind other work may come in any order', async () => {
  const box = await createTestBox({ db: fromPg(pool) })
  const calls: number[] = []
  let runs = 0
  const order = async (_message: unknown, { effect }: Context<MessageMap, pg.PoolClient>) => {
    const turn = runs++
    const items = Array.from({ length: 12 }, (_, n) => n)
    const one = async (n: number): Promise<void> => {
      // In another order in every run, the later ones first.
      for (let wait = (n + turn) % items.length; wait > 0; wait--) await new Promise(setImmediate)
      await effect(`item ${n}`, () => void calls.push(n))
    }
    await Promise.all(items.map(one))
  }
  box.consumer('pay', { order }, { retry: { attempts: 1 } })
  await box.receive({ id: 'a', type: 'order', data: null })
  await box.drain()
  expect((await box.admin.messages({})).entries).toMatchObject([{ state: 'handled' }])
  expect(calls.sort((one, other) => one - other)).toEqual(Array.from({ length: 12 }, (_, n) => n))
  await box[Symbol.asyncDispose]()
})
