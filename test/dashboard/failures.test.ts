/** Failures: what is recorded of an attempt, how failures are grouped and found again, and which message blocks a key. */
import { hostname } from 'node:os'
import { beforeEach, describe, expect, test } from 'vitest'
import { Reject, type Filter } from 'oncebox'
import type { Doctor, Failures, Keys, MessageAnswer, Messages, Tally } from 'oncebox/dashboard/client'
import { fingerprintOf } from '../../src/fingerprint.js'
import { ask, message, open, useShop } from './fixture.js'

const shop = useShop('dashboard_failures')
const WORKER = `${hostname()}:${process.pid}`

const at = { box: 'shop' }

async function get<A>(name: Parameters<typeof ask>[1], input: object): Promise<A> {
  const { status, answer } = await ask(shop.ops, name, { ...at, ...input } as never)
  expect(status).toBe(200)
  return answer
}

describe('an attempt', () => {
  test.for([
    ['stored', {}, {}],
    ['stored, in the order of its key', { order: 'key' }, { key: 'k' }],
    ['run on arrival', { mode: 'inline' }, {}],
  ] as const)('has how long it took and where it ran, if it was %s', async ([, options, rest]) => {
    shop.box.consumer('mail', { fails: () => Promise.reject(new Reject('no')) }, options)
    await shop.box.receive([message('a', 'fails', rest)])
    await shop.box.drain()
    const [entry] = await shop.box.admin.message({ id: 'a' })
    expect(entry).toMatchObject({ state: 'dead', attempts: [{ attempt: 1, worker: WORKER, ms: expect.any(Number) }] })
    expect(entry!.attempts![0]!.ms).toBeGreaterThanOrEqual(0)
    const { fates } = await get<MessageAnswer>('message', { id: 'a' })
    const { ms, worker } = entry!.attempts![0]!
    expect(fates[0]!.history).toEqual([expect.objectContaining({ ms, worker })])
  })

  test('that ran nothing took no time, and what an older version recorded is told without', async () => {
    shop.box.consumer('mail', { other: () => Promise.resolve() })
    await shop.box.sql(`insert into ob.consumer (name, retain_ms) values ('mail', 86400000) on conflict do nothing`)
    await shop.box.sql(`insert into ob.subscription (consumer, type) values ('mail', 'lost')`)
    await shop.box.receive([message('a', 'lost')])
    await shop.box.drain()
    await shop.box.sql(
      `insert into ob.attempt (consumer, source, id, attempt, error) values ('mail', 'shop', 'a', 2, '{"name":"Old","message":"no"}')`,
    )
    const [entry] = await shop.box.admin.message({ id: 'a' })
    const [missing] = entry!.attempts!
    const old = entry!.attempts!.find(({ error }) => error.name === 'Old')
    expect(missing).toMatchObject({ worker: WORKER, error: { code: 'HANDLER_MISSING' } })
    expect(missing).not.toHaveProperty('ms')
    expect(Object.keys(old!).sort()).toEqual(['at', 'attempt', 'error'])
  })
})

/** Dead: three of one kind, one of another, one on a key with one that waits behind it. */
async function fail(): Promise<void> {
  shop.box.consumer('mail', {
    note: () => Promise.resolve(),
    fails: ({ id }) => Promise.reject(new Reject(id.startsWith('t') ? `no answer after ${id.length} ms` : 'no such table')),
  }) // prettier-ignore
  shop.box.consumer('ledger', { entry: () => Promise.reject(new Reject('no account')) }, { order: 'key' })
  await shop.box.receive([
    ...['t1', 't22', 't333', 'other'].map((id) => message(id, 'fails')),
    message('fine', 'note'),
    message('k1', 'entry', { key: 'acct' }),
  ])
  await shop.box.drain()
  await shop.box.receive([message('k2', 'entry', { key: 'acct' })])
}

const ALIKE = fingerprintOf({ name: 'Reject', code: null, message: 'no answer after 1 ms' })
const idsOf = ({ entries }: { entries: readonly { message: { id: string } }[] }): string[] =>
  entries.map(({ message: { id } }) => id).sort()

describe('failures', () => {
  test('are grouped by what they have in common, with their times, hours and a sample', async () => {
    await fail()
    const { groups, complete, examined } = await get<Failures>('failures', {})
    expect({ complete, examined }).toEqual({ complete: true, examined: 5 })
    expect(groups.map(({ consumer, count }) => [consumer, count])).toEqual([['mail', 3], ['ledger', 1], ['mail', 1]].sort((a, b) => Number(b[1]) - Number(a[1]))) // prettier-ignore
    const [largest] = groups
    expect(largest).toMatchObject({
      fingerprint: ALIKE,
      types: ['fails'],
      message: 'no answer after ‹n› ms',
      sample: { source: 'shop', id: 't333' },
    })
    expect(largest).not.toHaveProperty('atLeast')
    expect(largest!.hours).toEqual([...new Array<number>(23).fill(0), 3])
    expect(Date.parse(largest!.lastAt)).toBeGreaterThanOrEqual(Date.parse(largest!.firstAt))
    const alone = await get<Failures>('failures', { consumer: 'ledger' })
    expect(alone.groups.map(({ count }) => count)).toEqual([1])
  })

  test('say how many keys they block, those alone whose front died of it', async () => {
    shop.box.consumer(
      'ledger',
      { entry: ({ id }) => Promise.reject(new Reject(id.startsWith('a') ? 'no account' : 'no bank')) },
      { order: 'key', onDead: 'block' },
    )
    await shop.box.receive(['a-1', 'a-2', 'b-3'].map((id) => message(id, 'entry', { key: id })))
    await shop.box.receive([message('a-loose', 'entry')])
    await shop.box.drain()
    const blocks = async () =>
      (await get<Failures>('failures', {})).groups.map((one) => [one.message, one.count, one.blocks])
    expect(await blocks()).toEqual([
      ['no account', 3, { keys: 2, atLeast: false }],
      ['no bank', 1, { keys: 1, atLeast: false }],
    ])
    await shop.box.admin.discard({ id: 'b-3' }, { reason: 'gone' })
    await shop.box.admin.discard({ id: 'a-1' }, { reason: 'gone' })
    expect(await blocks()).toEqual([['no account', 2, { keys: 1, atLeast: false }]])
  })

  test('are in the bar of the hour in which they were', async () => {
    await fail()
    await shop.box.sql(`update ob.work set failed_at = ob.now() - interval '150 minutes' where id = 't1'`)
    await shop.box.sql(`update ob.work set failed_at = ob.now() - interval '3 days' where id = 't22'`)
    const { groups } = await get<Failures>('failures', { consumer: 'mail' })
    const hours = new Array<number>(24).fill(0)
    hours[23] = 1
    hours[21] = 1
    expect(groups[0]).toMatchObject({ count: 3, hours })
    expect(Date.now() - Date.parse(groups[0]!.firstAt)).toBeGreaterThan(3 * 86_400_000 - 60_000)
  })

  test('in many groups come in pages, the largest first, each once, and the counts are of all', async () => {
    await shop.box.sql(`insert into ob.message (consumer, source, id, type, body)
      select 'mail', 'shop', g || '-' || i, 'note', '{}' from generate_series(1, 103) g, generate_series(1, 1 + g % 5) i`)
    await shop.box.sql(`insert into ob.work (consumer, source, id, due_at, parked, error, fingerprint, failed_at)
      select consumer, source, id, 'infinity', 'dead', '{"name":"Error","message":"no"}', 'f' || split_part(id, '-', 1),
        ob.now() - case when id like '7-%' then interval '1 minute' else interval '3 hours' end from ob.message`)
    const first = await get<Failures>('failures', {})
    const second = await get<Failures>('failures', { cursor: first.cursor })
    expect([first.groups.length, second.groups.length, second.cursor]).toEqual([100, 3, undefined])
    const all = [...first.groups, ...second.groups]
    expect(all.map(({ count }) => count)).toEqual(all.map(({ count }) => count).sort((a, b) => b - a))
    expect(new Set(all.map(({ fingerprint }) => fingerprint)).size).toBe(103)
    const examined = all.reduce((sum, { count }) => sum + count, 0)
    for (const page of [first, second]) expect(page).toMatchObject({ total: 103, examined, complete: true })
    const late = await get<Failures>('failures', { minutes: 60 })
    expect(late).toMatchObject({ groups: [{ fingerprint: 'f7', count: 3 }], total: 1, examined: 3, complete: true })
    const { status } = await ask(shop.ops, 'failures', { ...at, minutes: 60, cursor: first.cursor! })
    expect(status).toBe(400)
  })

  test('are told apart by what caused them innermost, and by the property that was read', async () => {
    const refused = (code: string) => new Error('request', { cause: Object.assign(new Error('no'), { code }) })
    const failures: Record<string, () => Error> = {
      c1: () => new TypeError('fetch failed', { cause: refused('ECONNREFUSED') }),
      c2: () => new TypeError('fetch failed', { cause: refused('ECONNREFUSED') }),
      c3: () => new TypeError('fetch failed', { cause: refused('CERT_HAS_EXPIRED') }),
      p1: () => new TypeError("Cannot read properties of undefined (reading 'customer')"),
      p2: () => new TypeError("Cannot read properties of undefined (reading 'warehouse')"),
      p3: () => new TypeError("Cannot read properties of undefined (reading 'order 17')"),
      p4: () => new TypeError("Cannot read properties of undefined (reading 'order 18')"),
    }
    shop.box.consumer('calls', { call: ({ id }) => Promise.reject(failures[id]!()) }, { retry: { attempts: 1 } })
    await shop.box.receive(Object.keys(failures).map((id) => ({ id, type: 'call', source: 'shop', body: '{}' })))
    await shop.box.drain()
    const groups = async () =>
      (await get<Failures>('failures', { consumer: 'calls' })).groups.map(({ count, cause, message }) => [count, cause, message]) // prettier-ignore
    const told = expect.arrayContaining([
      [2, 'Error ECONNREFUSED', 'fetch failed'],
      [1, 'Error CERT_HAS_EXPIRED', 'fetch failed'],
      [1, undefined, 'Cannot read properties of undefined (reading customer)'],
      [1, undefined, 'Cannot read properties of undefined (reading warehouse)'],
      [2, undefined, "Cannot read properties of undefined (reading '‹text›')"],
    ]) as unknown
    expect(await groups()).toEqual(told)
    const marks = () => shop.box.sql(`select id, fingerprint from ob.work where consumer = 'calls' order by id`)
    const before = await marks()
    // What an older version has recorded gets the same.
    await shop.box.sql(`update ob.work set fingerprint = null where consumer = 'calls'`)
    expect(await groups()).toEqual(told)
    await shop.box.admin.prune()
    expect(await marks()).toEqual(before)
  })

  test('are found, counted, retried and discarded by their fingerprint, and no others', async () => {
    await fail()
    expect(idsOf(await shop.box.admin.messages({ fingerprint: ALIKE }))).toEqual(['t1', 't22', 't333'])
    expect(idsOf(await shop.box.admin.messages({ fingerprint: ALIKE, id: ['t1', 'other'] }))).toEqual(['t1'])
    expect(idsOf(await shop.box.admin.messages({ fingerprint: [ALIKE, 'ffffffffffff'], state: 'dead', consumer: 'mail' }))).toHaveLength(3) // prettier-ignore
    expect(idsOf(await shop.box.admin.messages({ fingerprint: ALIKE, state: 'handled' }))).toEqual([])
    const { items } = await get<Messages>('messages', { q: `fingerprint:${ALIKE}` })
    expect(items.map(({ id }) => id).sort()).toEqual(['t1', 't22', 't333'])
    expect(await get<Tally>('tally', { q: `state:dead fingerprint:${ALIKE}` })).toEqual({ states: { dead: { count: 3, atLeast: false } } }) // prettier-ignore
    expect(await shop.box.admin.discard({ fingerprint: ALIKE }, { limit: 1, reason: 'a test' })).toBe(1)
    expect(await shop.box.admin.retry({ fingerprint: ALIKE, state: 'dead' })).toBe(2)
    expect((await shop.box.fate('other')).state).toBe('dead')
    // What was discarded is of the same kind still; what runs again is not waiting for anybody.
    expect(idsOf(await shop.box.admin.messages({ fingerprint: ALIKE }))).toEqual(['t1'])
  })

  test('page through by cursor, each once', async () => {
    await fail()
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await shop.box.admin.messages({ fingerprint: ALIKE }, { cursor, limit: 1 })
      seen.push(...idsOf(page))
      cursor = page.cursor
    } while (cursor !== undefined)
    expect(seen).toEqual(['t333', 't22', 't1'])
  })

  test('cannot be asked for by what is no fingerprint, nor in the outbox, where there is none', async () => {
    const filters: Filter[] = [
      { fingerprint: 'ECONNREFUSED' },
      { fingerprint: '' },
      { blocking: false as never },
      { box: 'outbox', fingerprint: ALIKE },
      { box: 'outbox', blocking: true },
    ]
    for (const filter of filters) {
      await expect(shop.box.admin.messages(filter)).rejects.toMatchObject({ code: 'FILTER_INVALID' })
    }
  })

  test('that an older version has recorded are in their group at once, and found by it after the janitor has passed', async () => {
    await fail()
    await shop.box.sql(`update ob.work set fingerprint = null, failed_at = null where id in ('t1', 't22', 'k1')`)
    const { groups } = await get<Failures>('failures', {})
    expect(groups.map(({ count }) => count)).toEqual([3, 1, 1])
    expect(idsOf(await shop.box.admin.messages({ fingerprint: ALIKE }))).toEqual(['t333'])
    await shop.box.admin.prune()
    expect(idsOf(await shop.box.admin.messages({ fingerprint: ALIKE }))).toEqual(['t1', 't22', 't333'])
    const left = await shop.box.sql(`select id from ob.work where error is not null and (fingerprint is null or failed_at is null)`)
    expect(left).toEqual([])
  }) // prettier-ignore

  test('keep no fingerprint of another failure, if an older version records one over it', async () => {
    await fail()
    await shop.box.sql(`update ob.work set error = '{"name":"Other","message":"quite another"}' where id = 't1'`)
    expect(idsOf(await shop.box.admin.messages({ fingerprint: ALIKE }))).toEqual(['t22', 't333'])
    await shop.box.admin.prune()
    const other = fingerprintOf({ name: 'Other', code: null, message: 'quite another' })
    expect(idsOf(await shop.box.admin.messages({ fingerprint: other }))).toEqual(['t1'])
  })

  test('that fail otherwise after a retry are in another group', async () => {
    let words = 'first'
    shop.box.consumer('mail', { fails: () => Promise.reject(new Reject(words)) })
    await shop.box.receive([message('a', 'fails')])
    await shop.box.drain()
    words = 'second'
    await shop.box.admin.retry({ id: 'a' })
    await shop.box.drain()
    const { groups } = await get<Failures>('failures', {})
    expect(groups.map(({ message: text, count }) => [text, count])).toEqual([['second', 1]])
  })
})

describe('a blocked key', () => {
  test('is found by the message in front of it', async () => {
    await fail()
    expect(idsOf(await shop.box.admin.messages({ blocking: true }))).toEqual(['k1'])
    const { items } = await get<Messages>('messages', { q: 'blocking:true consumer:ledger' })
    expect(items.map(({ id }) => id)).toEqual(['k1'])
    expect((await ask(shop.ops, 'messages', { ...at, q: 'blocking:no' })).status).toBe(400)
    const { keys } = await get<Keys>('keys', {})
    expect(keys).toMatchObject([{ key: 'acct', waiting: 1, front: { id: 'k1', state: 'dead' }, next: [{ id: 'k2' }] }])
    expect(Math.abs(Date.now() - Date.parse(keys[0]!.blockedAt))).toBeLessThan(600_000)
    expect(await shop.box.admin.retry({ blocking: true })).toBe(1)
    expect(idsOf(await shop.box.admin.messages({ blocking: true }))).toEqual([])
  })

  test('is blocked by the one that failed last, whatever else of it is dead', async () => {
    await fail()
    // As if another of the key, stored later, had been dead before.
    await shop.box
      .sql(`update ob.work set parked = 'dead', due_at = 'infinity', error = '{"name":"Error","message":"x"}',
      failed_at = ob.now() - interval '1 hour' where id = 'k2'`)
    expect(idsOf(await shop.box.admin.messages({ blocking: true }))).toEqual(['k1'])
    expect((await get<Keys>('keys', {})).keys.map(({ front }) => front.id)).toEqual(['k1'])
  })

  test('is one of many: pages have each once, and the count is of all', async () => {
    await shop.box.sql(`insert into ob.message (consumer, source, id, type, key, body)
      select 'ledger', 'shop', 'm' || i, 'entry', 'k' || i, '{}' from generate_series(1, 103) i`)
    await shop.box.sql(`insert into ob.work (consumer, source, id, lane, due_at, parked)
      select consumer, source, id, key, 'infinity', 'dead' from ob.message`)
    await shop.box.sql(
      `insert into ob.lane (consumer, key, due_at, blocked) select consumer, lane, 'infinity', true from ob.work`,
    )
    const first = await get<Keys>('keys', {})
    const second = await get<Keys>('keys', { cursor: first.cursor })
    expect([first.keys.length, second.keys.length, second.cursor]).toEqual([100, 3, undefined])
    expect(new Set([...first.keys, ...second.keys].map(({ key }) => key)).size).toBe(103)
    expect(idsOf(await shop.box.admin.messages({ blocking: true }, { limit: 200 }))).toHaveLength(103)
    const overview = await get<{ blocked: unknown }>('overview', {})
    expect(overview.blocked).toEqual({ keys: 103, complete: true, waiting: 0, atLeast: false })
  })
})

describe('the deepest lanes', () => {
  const DEEP = `insert into ob.message (consumer, source, id, type, key, body, received_at)
    select 'ledger', 'shop', key || '-' || i, 'entry', key, '{}', ob.now() - interval '1 hour' + i * interval '1 second'
    from (values ('deep', 1500), ('busy', 4), ('some', 3), ('alone', 1), ('stuck', 9)) k (key, n), generate_series(1, n) i`

  beforeEach(async () => {
    await shop.box.sql(DEEP)
    await shop.box
      .sql(`insert into ob.work (consumer, source, id, lane, due_at) select consumer, source, id, key, received_at
      from ob.message order by received_at`)
    await shop.box.sql(`insert into ob.lane (consumer, key, due_at, token, blocked) select 'ledger', key,
      case key when 'busy' then ob.now() + interval '1 hour' when 'stuck' then 'infinity' else ob.now() end,
      case when key = 'busy' then gen_random_uuid() end, key = 'stuck' from (select distinct key from ob.message) k`)
  })

  test('are those that move and have most waiting, with what runs and since when', async () => {
    const { deepest, sampled } = await get<Keys>('keys', {})
    expect(deepest.map(({ key, waiting, atLeast, running }) => [key, waiting, atLeast, running])).toEqual([
      ['deep', 1_001, true, false],
      ['busy', 3, false, true],
      ['some', 3, false, false],
    ])
    expect(sampled).toBeUndefined()
    const hourAgo = Date.now() - 3_600_000
    for (const { oldestAt } of deepest) expect(Math.abs(Date.parse(oldestAt) - hourAgo)).toBeLessThan(600_000)
    expect((await get<Keys>('keys', { consumer: 'mail' })).deepest).toEqual([])
  })

  test('of very many are looked for in a part of them, and counted', async () => {
    await shop.box.sql(`insert into ob.message (consumer, source, id, type, key, body)
      select 'ledger', 'shop', 'many-' || i, 'entry', 'many-' || i, '{}' from generate_series(1, 40000) i`)
    await shop.box
      .sql(`insert into ob.work (consumer, source, id, lane, due_at) select consumer, source, id, key, received_at
      from ob.message where id like 'many-%'`)
    await shop.box.sql(
      `insert into ob.lane (consumer, key, due_at) select consumer, key, ob.now() from ob.message where id like 'many-%'`,
    )
    await shop.box.sql(`insert into ob.message (consumer, source, id, type, key, body)
      select 'ledger', 'shop', 'again-' || i, 'entry', 'some', '{}' from generate_series(1, 400) i`)
    await shop.box
      .sql(`insert into ob.work (consumer, source, id, lane, due_at) select consumer, source, id, key, received_at
      from ob.message where id like 'again-%' order by random()`)
    const { deepest, sampled } = await get<Keys>('keys', {})
    expect(sampled).toBe(true)
    expect(deepest[0]).toMatchObject({ key: 'deep', waiting: 1_001, atLeast: true })
  })

  test('have their keys as redact leaves them', async () => {
    const hidden = open({ shop: shop.box }, { redact: ({ key: _, ...rest }) => rest })
    const { answer } = await ask(hidden, 'keys', at)
    await hidden.close()
    expect((answer as Keys).deepest.map(({ key }) => key)).toEqual(['[redacted]', '[redacted]', '[redacted]'])
  })
})

describe('a tally', () => {
  test('has each state that a query leaves possible, as the box has it', async () => {
    await fail()
    const all = await get<Tally>('tally', { q: '' })
    expect(all.states).toMatchObject({ dead: { count: 5, atLeast: false }, handled: { count: 1, atLeast: false } })
    const some = await get<Tally>('tally', { q: 'type:fails' })
    expect(some.states).toEqual({
      ...Object.fromEntries(['pending', 'processing', 'handled', 'quarantined', 'discarded'].map((s) => [s, { count: 0, atLeast: false }])),
      dead: { count: 4, atLeast: false },
    }) // prettier-ignore
    expect(await get<Tally>('tally', { q: 'consumer:ledger state:dead,pending' })).toEqual({
      states: { dead: { count: 1, atLeast: false }, pending: { count: 1, atLeast: false } },
    })
  })

  test('counts no further than is cheap, and says so', async () => {
    shop.box.consumer('mail', { note: () => Promise.resolve() })
    await shop.box.receive([message('first', 'note')])
    await shop.box.sql(`insert into ob.message (consumer, source, id, type, body)
      select 'mail', 'shop', 'm' || i, 'note', '{}' from generate_series(1, 5000) i`)
    const { states } = await get<Tally>('tally', { q: 'type:note state:handled' })
    expect(states.handled!.atLeast).toBe(true)
    expect(states.handled!.count).toBeLessThanOrEqual(2_000)
  })
})

test('the doctor finds through the dashboard what it finds without', async () => {
  await fail()
  const { findings } = await get<Doctor>('doctor', {})
  const codes = (list: readonly { code: string }[]): string[] => list.map(({ code }) => code).sort()
  expect(codes(findings)).toEqual(codes(await shop.box.admin.doctor()))
  expect(findings.every(({ fix, why, what }) => fix !== '' && why !== '' && what !== '')).toBe(true)
})

test('whoever is in a hurry gets what the doctor knows by then, and that it looks still', async () => {
  await fail()
  const codes = ({ findings }: Doctor): string[] => findings.map(({ code }) => code).sort()
  const locked = await shop.server.pool.connect()
  await locked.query('begin')
  await locked.query(`lock table "${shop.box.schema}".work in access exclusive mode`)
  const first = await get<Doctor>('doctor', { patience: 0 })
  expect(first.looking).toBe(true)
  await locked.query('rollback')
  locked.release()
  const whole = await get<Doctor>('doctor', {})
  expect(whole).not.toHaveProperty('looking')
  expect(codes(whole)).toEqual(codes({ at: '', findings: await shop.box.admin.doctor() }))
  expect(whole.findings.length).toBeGreaterThan(first.findings.length)
  expect(await get<Doctor>('doctor', { patience: 0 })).toEqual(whole)
})
