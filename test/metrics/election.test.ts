/** One process reads the figures of the database, for all. They share no session, so a pooler may be in between. */
import { beforeAll, expect, test } from 'vitest'
import { startPgBouncer } from '../../tools/services/pgbouncer.mjs'
import { notes, useServer, type Bench } from '../inbox/fixture.js'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'
import { EVERY_MS } from '../../src/metrics/reading.js'
import { parse, type Scrape } from './scrape.js'

const server = useServer('metrics_election')
let pooler: Awaited<ReturnType<typeof startPgBouncer>>

beforeAll(async () => {
  pooler = await startPgBouncer(server.url)
  return () => pooler.stop()
})

async function start(box: Bench): Promise<Child> {
  const child = spawnChild(new URL('./children/scraper.mjs', import.meta.url), { args: [pooler.url, box.schema] })
  await child.next('ready')
  return child
}

async function scraped(child: Child): Promise<Scrape> {
  child.send('scrape')
  return parse((await child.next('scraped'))['text'] as string)
}

/** Notes each reading that is kept, with the box's time. */
async function watchReadings(box: Bench): Promise<() => Promise<number[]>> {
  await box.sql('create table ob.test_reading (n bigserial, at timestamptz)')
  await box.sql(`create function ob.note_reading() returns trigger language plpgsql as $$
    begin insert into ob.test_reading (at) values (new.taken_at); return new; end $$`)
  await box.sql('create trigger note after update on ob.reading for each row execute function ob.note_reading()')
  return async () => {
    const rows = await box.sql('select extract(epoch from at)::float8 * 1000 ms from ob.test_reading order by n')
    return rows.map(({ ms }) => ms as number)
  }
}

/** By which one reading is told from another. */
async function keptDuration(box: Bench): Promise<number | undefined> {
  const [row] = await box.sql('select figures from ob.reading')
  const figures = JSON.parse(row!['figures'] as string) as [name: string, labels: string[], value: number][]
  return figures.find(([name]) => name === 'oncebox.reading.duration')?.[2]
}

test('of processes that are scraped at once one reads for an interval, and all show what it read', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.migrate()
  await box.receive(notes(7))
  const readings = await watchReadings(box)
  const children = await Promise.all([start(box), start(box), start(box)])
  const rounds = 4
  for (let round = 1; round <= rounds; round++) {
    if (round > 1) await box.clock.advance(EVERY_MS)
    // A process shows what it has seen less than a second ago once more.
    const told = await waitUntil(async () => {
      const all = await Promise.all(children.map(scraped))
      const kept = await keptDuration(box)
      const agree = all.every((one) => one.value('oncebox_reading_duration_seconds') === kept)
      return (await readings()).length >= round && agree && all
    })
    expect((await readings()).length).toBe(round)
    for (const one of told) {
      expect(one.value('oncebox_messages', { consumer: 'a', state: 'pending' })).toBe(7)
    }
  }
  const times = await readings()
  for (const [at, time] of times.entries()) if (at > 0) expect(time - times[at - 1]!).toBeGreaterThanOrEqual(EVERY_MS)
})

test('a process that is killed while it reads is replaced, and its half of a reading is not seen', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.migrate()
  const readings = await watchReadings(box)
  await box.sql(`create function ob.dawdle() returns trigger language plpgsql as $$
    begin perform pg_catalog.pg_sleep(2); return new; end $$`)
  await box.sql('create trigger dawdle before update on ob.reading for each row execute function ob.dawdle()')
  const [elected, other] = await Promise.all([start(box), start(box)])
  elected.send('scrape')
  await waitUntil(
    async () => {
      const rows = await box.sql(`select 1 from pg_stat_activity where wait_event = 'PgSleep'
        and datname = current_database() and query like '%reading%'`)
      return rows.length > 0
    },
    { what: 'the elected process to be in the midst of it' },
  )
  // Meanwhile the other is answered, and reads nothing.
  expect((await scraped(other)).value('oncebox_reading_age_seconds')).toBeUndefined()
  await elected.kill()
  expect(await readings()).toEqual([])
  const told = await waitUntil(async () => {
    const now = await scraped(other)
    return now.value('oncebox_reading_age_seconds') !== undefined && now
  })
  expect(told.value('oncebox_messages', { consumer: 'a', state: 'pending' })).toBe(0)
  expect((await readings()).length).toBe(1)
})
