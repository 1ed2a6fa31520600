/** What processes write down of each minute, and what charts and rates are made of it. */
import { createBox, Reject } from 'oncebox'
import type { History, Outbox, Overview } from 'oncebox/dashboard/client'
import { fromPg } from 'oncebox/pg'
import type { PoolClient } from 'pg'
import { expect, test } from 'vitest'
import { stepsOf } from '../../src/dashboard/history.js'
import { createMinutes } from '../../src/metrics/minutes.js'
import { partsOf } from '../../src/parts.js'
import { watch, type Runtime } from '../../src/runtime.js'
import { ask, open } from '../dashboard/fixture.js'
import { gate, useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('minutes')
const note = (id: string) => ({ id, type: 'note', data: 1 })

/** Another process of the same box, as far as the database can tell. */
function beside(bench: Bench, options: { history?: boolean } = {}) {
  const box = createBox({ db: fromPg(server.pool), schema: bench.schema, ...options })
  box.consumer('mail', { note: ({ id }) => (id.startsWith('bad') ? Promise.reject(new Reject('no')) : undefined) })
  return box
}

const sums = (bench: Bench) =>
  bench.sql(`select consumer, sum(received)::int received, sum(handled)::int handled, sum(failed)::int failed,
    sum(duplicates)::int duplicates from ob.minute group by 1 order by 1`)

test('processes add what they have counted, by consumer and minute, and one that stops leaves nothing out', async () => {
  await using bench = await server.open()
  const boxes = [beside(bench), beside(bench)]
  for (const [at, box] of boxes.entries()) {
    await box.start()
    await box.receive([note(`a${at}`), note(`b${at}`), note(`bad${at}`)])
    await box.receive([note(`a${at}`), note(`a${at}`)])
  }
  await waitUntil(async () => (await bench.sql(`select from ob.work where parked is null`)).length === 0)
  for (const box of boxes) await box.stop()
  const counted = { received: 6, handled: 4, failed: 2, duplicates: 4 }
  expect(await sums(bench)).toEqual([
    { consumer: '', ...counted },
    { consumer: 'mail', ...counted },
  ])
})

test('processes add what they have published, by sink, and it is a rate of the sink and of no consumer', async () => {
  await using bench = await server.open()
  const boxes = [beside(bench), beside(bench)]
  for (const [at, box] of boxes.entries()) {
    box.to(
      {
        name: 'mail',
        publish: (events) => Promise.resolve(events.map(() => undefined)),
        close: () => Promise.resolve(),
      },
      { types: ['ev'] },
    )
    await box.start()
    await inTransaction((tx) => box.send(tx, 'ev', {}, { id: `e${at}` }))
  }
  await inTransaction((tx) => boxes[0]!.send(tx, 'ev', {}, { id: 'e2' }))
  await waitUntil(async () => (await bench.sql(`select from ob.delivery`)).length === 0)
  for (const box of boxes) await box.stop()
  const published = await bench.sql(`select sink, sum(published)::int published from ob.sink_minute group by 1`)
  expect(published).toEqual([{ sink: 'mail', published: 3 }])
  expect(await sums(bench)).toEqual([{ consumer: '', received: 0, handled: 0, failed: 0, duplicates: 0 }])
  await bench.sql(`delete from ob.minute`)
  await bench.sql(`delete from ob.sink_minute`)
  await fill(bench, [['', 0, {}]])
  await bench.sql(`insert into ob.sink_minute (sink, at, published) select 'mail', at, 90 from ob.minute`)
  const ops = open({ shop: bench })
  const { sinks } = (await ask(ops, 'overview', { box: 'shop' })).answer as Overview
  expect(sinks).toMatchObject([{ name: 'mail', publishedPerSecond: 1.5 }])
  expect((await ask(ops, 'outbox', { box: 'shop' })).answer).toMatchObject({ sinks: [{ publishedPerSecond: 1.5 }] })
  const { consumers } = (await ask(ops, 'history', { box: 'shop', minutes: 15 })).answer as History
  expect(Object.keys(consumers)).toEqual([])
  await bench.sql(`delete from ob.minute`)
  const later = (await ask(open({ shop: bench }), 'overview', { box: 'shop' })).answer as Overview
  expect(later.sinks[0]).not.toHaveProperty('publishedPerSecond')
})

async function inTransaction(work: (tx: PoolClient) => Promise<unknown>): Promise<void> {
  const tx = await server.pool.connect()
  try {
    await tx.query('begin')
    await work(tx)
    await tx.query('commit')
  } finally {
    tx.release()
  }
}

test('a box that is not started writes nothing, nor does one that is told not to, nor one that did nothing', async () => {
  await using bench = await server.open()
  const idle = beside(bench)
  const silent = beside(bench, { history: false })
  await idle.receive(note('a'))
  await idle.drain()
  await silent.start()
  await silent.receive(note('b'))
  await silent.drain()
  await silent.stop()
  const started = beside(bench)
  await started.start()
  await started.stop()
  expect(await sums(bench)).toEqual([])
})

test('a minute has what waits, for how long, and what is dead, read once for all processes', async () => {
  await using bench = await server.open()
  const box = beside(bench)
  // Registers the consumer.
  await box.migrate()
  await box.receive(note('bad'))
  await box.drain()
  await box.receive([note('w1'), note('w2')])
  await bench.sql(`update ob.message set received_at = received_at - interval '5 min' where id = 'w1'`)
  const runtime = partsOf(box)!.runtime as Runtime
  const { createMetered } = await import('../../src/metrics/index.js')
  const trouble = watch(runtime, { name: 'history', where: { part: 'history' }, of: 'the database' })
  const { read } = createMetered({ ...runtime, trouble })
  const minutes = createMinutes({ ...runtime, trouble, read, everyMs: 50 })
  minutes.start()
  await waitUntil(async () => (await bench.sql(`select from ob.minute where pending = 2`)).length >= 2)
  await minutes.stop(5_000)
  const rows = await bench.sql(`select consumer, max(pending)::int pending, max(lag_ms)::int lag, max(dead)::int dead,
    sum(received)::int received from ob.minute group by 1 order by 1`)
  expect(rows).toMatchObject(['', 'mail'].map((consumer) => ({ consumer, pending: 2, dead: 1, received: 3 })))
  for (const { lag } of rows) expect(lag).toBeGreaterThanOrEqual(300_000)
})

test('what could not be written is written later, and nothing is counted twice', async () => {
  await using bench = await server.open()
  const box = beside(bench)
  await box.receive([note('a'), note('b')])
  const runtime = partsOf(box)!.runtime as Runtime
  const failures: unknown[] = []
  const trouble = {
    ...watch(runtime, { name: 'history', where: { part: 'history' }, of: 'the database' }),
    failed: (error: unknown) => void failures.push(error),
  }
  await bench.sql('alter table ob.minute rename to minute_away')
  const minutes = createMinutes({ ...runtime, trouble, read: () => Promise.resolve(undefined), everyMs: 50 })
  minutes.start()
  await waitUntil(() => failures.length > 1)
  await bench.sql('alter table ob.minute_away rename to minute')
  await waitUntil(async () => (await sums(bench)).length === 2)
  await minutes.stop(5_000)
  expect((await sums(bench)).map(({ received }) => received)).toEqual([2, 2])
})

test('a stop and a start during a slow write leave one timer, which the next stop ends', async () => {
  await using bench = await server.open()
  const runtime = partsOf(beside(bench))!.runtime as Runtime
  const trouble = watch(runtime, { name: 'history', where: { part: 'history' }, of: 'the database' })
  const slow = gate()
  let reads = 0
  const read = async (): Promise<undefined> => {
    reads++
    await slow.opened
  }
  const minutes = createMinutes({ ...runtime, trouble, read, everyMs: 50 })
  minutes.start()
  await waitUntil(() => reads === 1)
  await minutes.stop(0)
  minutes.start()
  slow.open()
  await waitUntil(() => reads > 3)
  await minutes.stop(5_000)
  const before = reads
  // For as long as another one writes five times.
  let others = 0
  const clock = createMinutes({ ...runtime, trouble, read: async () => void others++, everyMs: 50 })
  clock.start()
  await waitUntil(() => others > 4)
  await clock.stop(5_000)
  expect(reads).toBe(before)
})

test('the janitor keeps seven days', async () => {
  await using bench = await server.open()
  await bench.sql(`insert into ob.minute (consumer, at) select c, ob.now() - d * interval '1 day'
    from unnest(array['', 'mail']) c, generate_series(0, 20) d`)
  await bench.admin.prune()
  expect(await bench.sql(`select consumer, count(*)::int n from ob.minute group by 1 order by 1`)).toEqual([
    { consumer: '', n: 7 },
    { consumer: 'mail', n: 7 },
  ])
})

/** Minutes of the past, as processes would have written them: `back` is how many minutes ago. */
async function fill(
  bench: Bench,
  rows: readonly (readonly [consumer: string, back: number, figures: object])[],
): Promise<void> {
  const { from, count } = stepsOf(60, Date.now())
  const last = from + count - 1
  for (const [consumer, back, figures] of rows) {
    const names = Object.keys(figures).map((name) => `, ${name}`)
    const values = Object.values(figures).map((value) => `, ${String(value)}`)
    await bench.sql(`insert into ob.minute (consumer, at${names.join('')})
      values ('${consumer}', 'epoch'::timestamptz + ${last - back} * interval '1 min'${values.join('')})`)
  }
}

test('what an older version beside this one has published counts for its sink, which is no consumer', async () => {
  await using bench = await server.open()
  await fill(bench, [['', 0, {}]])
  await bench.sql(`insert into ob.sink (name) values ('mail')`)
  await bench.sql(`insert into ob.sink_minute (sink, at, published) select 'mail', at, 30 from ob.minute`)
  await bench.sql(`insert into ob.minute (consumer, at, handled) select E'\\x1fmail', at, 60 from ob.minute`)
  const ops = open({ shop: bench })
  const { sinks } = (await ask(ops, 'outbox', { box: 'shop' })).answer as Outbox
  expect(sinks).toMatchObject([{ name: 'mail', publishedPerSecond: 1.5 }])
  const { consumers } = (await ask(ops, 'history', { box: 'shop', minutes: 15 })).answer as History
  expect(Object.keys(consumers)).toEqual([])
})

test('history has a gap where nobody recorded, a zero where a consumer had nothing to do, and whole steps', async () => {
  await using bench = await server.open()
  await fill(bench, [
    ['', 2, { received: 7, pending: 3, lag_ms: 900 }],
    ['mail', 2, { received: 7, handled: 5, pending: 3, lag_ms: 900 }],
    ['', 1, { pending: 0, lag_ms: 0 }],
    ['', 0, { received: 2, handled: 1, failed: 1, duplicates: 4 }],
    ['mail', 0, { received: 2, handled: 1, failed: 1, duplicates: 4 }],
  ])
  const { answer } = await ask(open({ shop: bench }), 'history', { box: 'shop', minutes: 15 })
  const { stepMs, times, total, consumers } = answer as History
  expect([stepMs, times.length]).toEqual([60_000, 15])
  expect(times.at(-1)! - times[0]!).toBe(14 * 60)
  expect(total.received).toEqual([...Array<null>(12).fill(null), 7, 0, 2])
  expect(total.pending.slice(-3)).toEqual([3, 0, null])
  expect(total.lagMs.slice(-3)).toEqual([900, 0, null])
  expect(Object.keys(consumers)).toEqual(['mail'])
  expect(consumers['mail']!.handled).toEqual([...Array<null>(12).fill(null), 5, 0, 1])
  expect(consumers['mail']!.duplicates.slice(-3)).toEqual([0, 0, 4])
  expect(consumers['mail']!.lagMs.slice(-3)).toEqual([900, 0, null])
})

test('a week is put together in at most 300 steps: sums of what was counted, the most of what was read', async () => {
  await using bench = await server.open()
  await bench.sql(`insert into ob.minute (consumer, at, received, pending)
    select '', 'epoch'::timestamptz + ((extract(epoch from now()) / 60)::bigint - m) * interval '1 min', 1, m % 40
    from generate_series(0, 11000) m`)
  for (const minutes of [15, 60, 300, 301, 1_440, 10_080]) {
    const { answer } = await ask(open({ shop: bench }), 'history', { box: 'shop', minutes })
    const { times, stepMs, total } = answer as History
    expect(times.length).toBeLessThanOrEqual(300)
    expect(times.length * stepMs).toBeGreaterThanOrEqual(minutes * 60_000)
    // All of them are over: each has as much as any other.
    expect(new Set(total.received)).toEqual(new Set([stepMs / 60_000]))
    if (stepMs === 2_400_000) expect(new Set(total.pending)).toEqual(new Set([39]))
  }
})

test('the overview has rates of the last minute, limits, and since when something is so', async () => {
  await using bench = await server.open()
  bench.consumer('mail', { note: () => undefined })
  bench.consumer('quiet', { other: () => undefined })
  await bench.admin.status()
  await bench.receive(note('late'))
  await bench.sql(`update ob.message set received_at = received_at - interval '3 min'`)
  await bench.receive({ id: 'x', type: 'unknown', data: 1 })
  await fill(bench, [
    ['', 9, { pending: 0, dead: 0, quarantined: 0 }],
    ['', 8, { pending: 1, dead: 0, quarantined: 1 }],
    ['mail', 8, { pending: 1, lag_ms: 500_000 }],
    ['', 7, { pending: 1, dead: 0, quarantined: 2 }],
    ['mail', 7, { pending: 1, lag_ms: 600_000 }],
    ['', 6, {}],
    ['', 0, { received: 120, handled: 60, failed: 6, duplicates: 30, pending: 1, quarantined: 1 }],
    ['mail', 0, { received: 120, handled: 60, failed: 6, duplicates: 30, pending: 1, lag_ms: 700_000 }],
  ])
  const { answer } = await ask(open({ shop: bench }), 'overview', { box: 'shop' })
  const { rates, consumers, findings } = answer as Overview
  const busy = { inPerSecond: 2, outPerSecond: 1, duplicatesPerSecond: 0.5, failedPerSecond: 0.1 }
  expect(rates).toEqual(busy)
  const by = (name: string) => consumers.find((one) => one.name === name)!
  expect(by('mail')).toMatchObject({ rates: busy, limitMs: 120_000 })
  expect(by('quiet').rates).toEqual({ inPerSecond: 0, outPerSecond: 0, duplicatesPerSecond: 0, failedPerSecond: 0 })
  const { from, count } = stepsOf(60, Date.now())
  const since = new Date((from + count - 1 - 8) * 60_000).toISOString()
  expect(findings.map(({ code, since: of }) => [code, of])).toEqual([
    ['behind', since],
    ['quarantined', since],
  ])
})

test('an overview of which nobody recorded the last minute has no rates, and knows how long a consumer is behind at least', async () => {
  await using bench = await server.open()
  bench.consumer('mail', { note: () => undefined })
  await bench.receive(note('late'))
  await bench.sql(`update ob.message set received_at = received_at - interval '3 min'`)
  const { answer } = await ask(open({ shop: bench }), 'overview', { box: 'shop' })
  const { rates, findings } = answer as Overview
  expect(rates).toBeUndefined()
  const { since = '', lagMs = 0 } = findings[0]!
  expect(Math.abs(Date.now() - Date.parse(since) - (lagMs - 120_000))).toBeLessThan(30_000)
})

test('a consumer is taken for no sink, whatever its name', async () => {
  await using bench = await server.open()
  bench.consumer('\u001fmail', { note: () => undefined })
  await bench.migrate()
  await fill(bench, [
    ['', 0, {}],
    ['\u001fmail', 0, { handled: 90 }],
  ])
  const { consumers } = (await ask(open({ shop: bench }), 'history', { box: 'shop', minutes: 15 })).answer as History
  expect(Object.keys(consumers)).toEqual(['\u001fmail'])
})
