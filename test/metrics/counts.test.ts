/** What a box counts, as a scrape of it tells. */
import { expect, test } from 'vitest'
import { Reject, RetryLater, type Sink } from 'oncebox'
import { link } from 'oncebox/link'
import { note, notes, useServer } from '../inbox/fixture.js'
import { Bounded } from '../../src/metrics/registry.js'
import { waitUntil } from '../support/wait.js'
import { scrape } from './scrape.js'

const server = useServer('metrics_counts')

test('messages that come in, run and are settled are counted by source, type and outcome', async () => {
  await using box = await server.open()
  box.consumer('ledger', { note: (message, { tx }) => box.write(tx, 'ledger', message) })
  box.from({ name: 'queue', start: (deliver) => deliver(notes(3)).then(() => undefined), stop: async () => {} })
  await box.start()
  await waitUntil(async () => (await box.ids()).length === 3, { what: 'the messages of the source' })
  await box.receive(notes(5))
  await box.drain()
  const told = await scrape(box)
  const consumed = 'messaging_client_consumed_messages_total'
  expect(told.value(consumed, { source: 'queue', type: 'note', outcome: 'stored' })).toBe(3)
  expect(told.value(consumed, { source: '(call)', type: 'note', outcome: 'stored' })).toBe(2)
  expect(told.value(consumed, { source: '(call)', type: 'note', outcome: 'duplicate' })).toBe(3)
  const labels = { consumer: 'ledger', type: 'note' }
  expect(told.value('oncebox_consumer_outcomes_total', { ...labels, outcome: 'handled' })).toBe(5)
  expect(told.value('messaging_process_duration_seconds_count', { ...labels, outcome: 'ok' })).toBe(5)
  expect(told.value('oncebox_group_size_sum', { consumer: 'ledger' })).toBe(5)
  const groups = told.value('oncebox_group_size_count', { consumer: 'ledger' })!
  expect(groups).toBeGreaterThan(0)
  expect(told.value('oncebox_group_duration_seconds_count', { consumer: 'ledger' })).toBe(groups)
})

test('failures are counted by what became of their message', async () => {
  await using box = await server.open()
  const thrown: Record<string, () => Error> = {
    n1: () => new Error('no'),
    n2: () => new Reject('never'),
    n3: () => new RetryLater({ afterMs: 60_000 }),
  }
  const note = ({ id }: { id: string }): void => {
    const fault = thrown[id]
    if (fault) throw fault()
  }
  box.consumer('fails', { note }, { retry: () => 3_600_000 })
  await box.migrate()
  await box.receive(notes(4))
  await box.drain()
  const told = await scrape(box)
  const of = (outcome: string) => told.value('oncebox_consumer_outcomes_total', { consumer: 'fails', outcome })
  expect({ failed: of('failed'), dead: of('dead'), postponed: of('postponed'), handled: of('handled') }).toEqual({
    ...{ failed: 1, dead: 1, postponed: 1, handled: 1 },
  })
  expect(told.value('oncebox_dead_letters_total', { consumer: 'fails' })).toBe(1)
  const errors = { consumer: 'fails', outcome: 'error' }
  expect(told.value('messaging_process_duration_seconds_count', errors)).toBeGreaterThanOrEqual(3)
  expect(told.value('oncebox_messages', { consumer: 'fails', state: 'pending' })).toBe(2)
  expect(told.value('oncebox_messages', { consumer: 'fails', state: 'dead' })).toBe(1)
})

test('series of a consumer are there before anything happens to it, so that an alert sees the first dead letter', async () => {
  await using box = await server.open()
  box.consumer('new', { note: () => undefined })
  const told = await scrape(box)
  for (const name of ['oncebox_dead_letters_total', 'oncebox_duplicates_total', 'oncebox_claims_lost_total']) {
    expect(told.value(name, { consumer: 'new' }), name).toBe(0)
  }
  expect(told.value('oncebox_quarantined_total', { consumer: 'new', reason: 'conflict' })).toBe(0)
  const outcome = { consumer: 'new', type: 'note', outcome: 'handled' }
  expect(told.value('oncebox_consumer_outcomes_total', outcome)).toBe(0)
})

test('what is quarantined is counted once, by reason', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.migrate()
  await box.receive(note('n1'))
  for (let n = 0; n < 2; n++) await box.receive(note('n1', { data: { text: 'another' } }))
  await box.receive({ id: 'stray', type: 'unknown', data: 1 })
  const told = await scrape(box)
  expect(told.value('oncebox_quarantined_total', { consumer: 'a', reason: 'conflict' })).toBe(1)
  expect(told.value('oncebox_quarantined_total', { consumer: '(none)', reason: 'unrouted' })).toBe(1)
  expect(told.value('oncebox_quarantine', { reason: 'conflict' })).toBe(1)
  expect(told.value('oncebox_messages', { consumer: 'a', state: 'quarantined' })).toBe(1)
  expect(told.value('oncebox_messages', { consumer: '(none)', state: 'quarantined' })).toBe(1)
})

test('a copy counts with its age, whichever way it came, and apart when its message is nearly forgotten', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined }, { retainMs: 1_000_000 })
  await box.migrate()
  await box.handle(note('n1'))
  await box.receive(note('n1'))
  await box.clock.advance(500_000)
  await box.handle(note('n1'))
  const before = await scrape(box)
  expect(before.value('oncebox_duplicates_total', { consumer: 'a' })).toBe(2)
  expect(before.value('oncebox_duplicates_near_horizon_total', { consumer: 'a' })).toBe(0)
  await box.clock.advance(400_000)
  await box.receive(note('n1'))
  const told = await scrape(box)
  expect(told.value('oncebox_duplicates_near_horizon_total', { consumer: 'a' })).toBe(1)
  const bucket = (le: string) => told.value('oncebox_duplicate_age_seconds_bucket', { consumer: 'a', le })
  expect([bucket('60'), bucket('600'), bucket('3600'), bucket('+Inf')]).toEqual([1, 2, 3, 3])
})

test('effects count by what is known of them', async () => {
  await using box = await server.open()
  box.consumer(
    'pays',
    {
      async note({ id }, { effect }) {
        await effect('pay', () => {
          if (id === 'n2') throw new Error('declined')
          if (id === 'n3') throw new Error('no answer')
        }, { onUnknown: 'park', isDefinite: (error) => (error as Error).message === 'declined' }) // prettier-ignore
      },
    },
    { retry: { attempts: 1 } },
  )
  await box.receive(notes(3))
  await box.drain()
  const told = await scrape(box)
  const of = (outcome: string) => told.value('oncebox_effects_total', { consumer: 'pays', outcome })
  expect([of('succeeded'), of('failed'), of('unknown')]).toEqual([1, 1, 1])
  expect(told.value('oncebox_quarantined_total', { consumer: 'pays', reason: 'effect-unknown' })).toBe(1)
})

test('a claim that is taken by another worker counts as lost by the one, and as taken over by the other', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { leaseMs: 1_000 })
  await box.receive(note('n1'))
  const crash = box.crashAt('claimed')
  await box.drain().catch(() => undefined)
  crash()
  await box.clock.advance(5_000)
  await box.drain()
  expect((await scrape(box)).value('oncebox_takeovers_total', { consumer: 'a' })).toBe(1)

  let stolen = false
  box.consumer(
    'b',
    {
      async other() {
        if (stolen) return
        stolen = true
        await box.sql(`update ob.work set token = gen_random_uuid() where consumer = 'b'`)
      },
    },
    { leaseMs: 1_000 },
  )
  await box.receive(note('n2', { type: 'other' }))
  await box.drain()
  expect((await scrape(box)).value('oncebox_claims_lost_total', { consumer: 'b' })).toBe(1)
})

test('events count when they are written, published and given up; the lag of a sink is that of its oldest', async () => {
  await using box = await server.open()
  let up = false
  const sink: Sink = {
    publish: (batch) => {
      if (!up) return Promise.reject(new Error('down'))
      const refuse = ({ type }: { type: string }) =>
        type === 'bad' ? { error: new Error('never'), retry: false } : undefined
      return Promise.resolve(batch.map(refuse))
    },
    close: async () => {},
  }
  box.to(sink, { name: 'broker' })
  box.consumer('a', { note: (_, { send }) => send('good', {}) })
  await box.receive(notes(3))
  await box.drain().catch(() => undefined)
  const tx = await server.pool.connect()
  await tx.query('begin')
  await box.send(tx, 'bad', {})
  await tx.query('commit')
  tx.release()
  await box.clock.advance(100_000)
  const down = await scrape(box)
  expect(down.value('oncebox_outbox_written_total', { type: 'good' })).toBe(3)
  expect(down.value('oncebox_outbox_written_total', { type: 'bad' })).toBe(1)
  expect(down.value('oncebox_outbox_events', { sink: 'broker', state: 'pending' })).toBe(4)
  expect(down.value('oncebox_relay_lag_seconds', { sink: 'broker' })).toBeGreaterThanOrEqual(100)
  up = true
  await box.drain()
  await box.clock.advance(100_000)
  const told = await waitUntil(async () => {
    const now = await scrape(box)
    return now.value('oncebox_outbox_events', { sink: 'broker', state: 'dead' }) === 1 && now
  })
  expect(told.value('messaging_client_sent_messages_total', { sink: 'broker', outcome: 'published' })).toBe(3)
  expect(told.value('messaging_client_sent_messages_total', { sink: 'broker', outcome: 'dead' })).toBe(1)
  expect(told.value('oncebox_relay_dead_letters_total', { sink: 'broker' })).toBe(1)
  expect(told.value('oncebox_relay_lag_seconds', { sink: 'broker' })).toBe(0)
  expect(told.value('oncebox_relay_duration_seconds_count', { sink: 'broker' })).toBeGreaterThan(1)
})

test('events that wait for a sink which no process has started yet are in the figures', async () => {
  await using box = await server.open()
  box.to({ publish: () => Promise.reject(new Error('down')), close: async () => {} }, { name: 'unborn' })
  const tx = await server.pool.connect()
  await tx.query('begin')
  await box.send(tx, 'event', {})
  await box.send(tx, 'event', {}, { deliverAt: new Date(Date.now() + 3_600_000) })
  await tx.query('commit')
  tx.release()
  await box.clock.advance(100_000)
  const told = await scrape(box)
  expect(told.value('oncebox_outbox_events', { sink: 'unborn', state: 'pending' })).toBe(2)
  expect(told.value('oncebox_relay_lag_seconds', { sink: 'unborn' })).toBeGreaterThanOrEqual(100)
})

test('what a link moves inside one database is counted by both boxes', async () => {
  await using from = await server.open()
  await using into = await server.open()
  into.consumer('a', { note: () => undefined })
  await into.migrate()
  from.to(link({ to: into }), { name: 'into' })
  await from.migrate()
  const tx = await server.pool.connect()
  await tx.query('begin')
  await from.sendMany(tx, [1, 2].map((n) => ({ type: 'note', data: { n } }))) // prettier-ignore
  await tx.query('commit')
  tx.release()
  await from.drain()
  const sent = { sink: 'into', outcome: 'published' }
  expect((await scrape(from)).value('messaging_client_sent_messages_total', sent)).toBe(2)
  expect((await scrape(into)).sum('messaging_client_consumed_messages_total')).toBe(2)
})

test('what retention deletes is counted', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined }, { retainMs: 60_000 })
  await box.migrate()
  await box.receive(notes(3))
  await box.drain()
  await box.clock.advance(10 * 60_000)
  await box.admin.prune()
  const told = await scrape(box)
  expect(told.value('oncebox_retention_deleted_total', { what: 'messages' })).toBe(3)
  expect(told.value('oncebox_retention_horizon_seconds', { consumer: 'a' })).toBe(60)
})

test('whoever makes up types, or names for once, adds no more series than there may be', async () => {
  await using box = await server.open()
  box.consumer('all', { '*': () => undefined })
  await box.receive(Array.from({ length: 250 }, (_, n) => ({ id: `${n}`, type: `t${n}`, data: n })))
  await box.drain()
  const told = await scrape(box)
  const types = (name: string) =>
    new Set(told.samples.filter((sample) => sample.name === name).map(({ labels }) => labels['type']))
  expect(types('messaging_client_consumed_messages_total').size).toBe(101)
  expect(types('oncebox_consumer_outcomes_total').size).toBe(101)
  expect(told.sum('oncebox_consumer_outcomes_total', { consumer: 'all', outcome: 'handled' })).toBe(250)
  const outcome = { source: '(call)', type: 'other', outcome: 'stored' }
  expect(told.value('messaging_client_consumed_messages_total', outcome)).toBe(150)
})

test('a type that was refused names no series, and neither does one that is too long', async () => {
  await using box = await server.open()
  box.consumer('known', { note: () => undefined })
  await box.migrate()
  const strange = Array.from({ length: 20 }, (_, n) => ({ id: `r${n}`, type: `${n}${'x'.repeat(100_000)}`, data: n }))
  const outcomes = await box.receive(strange)
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['quarantined']))
  await box.receive([{ id: 'stray', type: 'nobody takes it', data: 1 }, note('n1'), note('n1', { data: 'another' })])
  // Somebody takes it, so that it is not refused.
  box.consumer('all', { '*': () => undefined })
  await box.receive({ id: 'long', type: 'y'.repeat(201), data: 1 })
  await box.drain()
  const told = await scrape(box)
  const consumed = told.samples.filter(({ name }) => name === 'messaging_client_consumed_messages_total')
  const counted = consumed.map(({ labels, value }) => [labels['type'], labels['outcome'], value])
  expect(counted.filter(([, outcome]) => outcome === 'quarantined')).toEqual([
    ['other', 'quarantined', 21],
    ['note', 'quarantined', 1],
  ])
  const types = new Set(told.samples.flatMap(({ labels }) => labels['type'] ?? []))
  expect([...types].sort()).toEqual(['note', 'other'])
  expect(told.text.length).toBeLessThan(50_000)
})

test('types that differ in what is no character are one series', () => {
  const labels = new Bounded([])
  expect(labels.of('\ud800')).toBe('\ufffd')
  expect(labels.of('\ud801')).toBe('\ufffd')
  expect(new Bounded(['\ud800']).of('\udfff')).toBe('\ufffd')
})

test('a name with quotes, backslashes and line ends does not break the text', async () => {
  await using box = await server.open()
  box.consumer('all', { '*': () => undefined })
  const type = 'a"b\\c'
  await box.receive({ id: '1', type, data: 1 })
  await box.drain()
  const told = await scrape(box)
  expect(told.value('oncebox_consumer_outcomes_total', { type, outcome: 'handled' })).toBe(1)
})

test('no consumer, no sink and no reason of quarantine is left out of the figures, however many there are', async () => {
  await using box = await server.open()
  await box.sql(`insert into ob.consumer (name, retain_ms) select 'a' || n, 60000 from generate_series(1, 1200) n`)
  await box.sql(`insert into ob.sink (name) select 'a' || n from generate_series(1, 300) n`)
  await box.sql(`insert into ob.quarantine (consumer, source, type, reason, detail, hash)
    select 'a' || n, 's', 't', 'conflict', 'no', sha256(n::text::bytea) from generate_series(1, 1200) n`)
  box.consumer('zz', { note: ({ id }) => Promise.reject(id === 'n1' ? new Reject('no') : new Error('no')) })
  box.to({ publish: () => Promise.reject(new Error('down')), close: async () => {} }, { name: 'zz' })
  await box.migrate()
  await box.receive(note('n1'))
  await box.receive(note('n1', { data: 'another' }))
  await box.drain()
  await box.receive(note('n2'))
  const tx = await server.pool.connect()
  await tx.query('begin')
  await box.send(tx, 'event', {})
  await tx.query('commit')
  tx.release()
  await box.drain().catch(() => undefined)
  const told = await scrape(box)
  const of = (state: string) => told.value('oncebox_messages', { consumer: 'zz', state })
  expect([of('dead'), of('pending'), of('quarantined')]).toEqual([1, 1, 1])
  expect(told.value('oncebox_quarantine', { reason: 'conflict' })).toBe(1_201)
  expect(told.value('oncebox_outbox_events', { sink: 'zz', state: 'pending' })).toBe(1)
})

test('a box that cannot reach its database tells what the process knows, and how old the rest is', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.migrate()
  await box.receive(note('n1'))
  const before = await scrape(box)
  expect(before.value('oncebox_messages', { consumer: 'a', state: 'pending' })).toBe(1)
  const age = before.value('oncebox_reading_age_seconds')!
  await box.sql('alter table ob.reading rename to away')
  const told = await waitUntil(async () => {
    const now = await scrape(box)
    return (now.value('oncebox_reading_failures_total') ?? 0) > 0 && now
  })
  expect(told.value('oncebox_messages', { consumer: 'a', state: 'pending' })).toBe(1)
  expect(told.value('oncebox_reading_age_seconds')).toBeGreaterThan(age)
  await box.sql('alter table ob.away rename to reading')
})
