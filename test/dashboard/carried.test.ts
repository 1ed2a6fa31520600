/** Changes of many messages are rows: every process sees, cancels and paces them, and carries on what another has left. */
import { afterEach, expect, test } from 'vitest'
import type { Counted, Job, Jobs } from 'oncebox/dashboard/client'
import { LEASE_MS } from '../../src/dashboard/bulk/batch.js'
import { useServer, type Bench } from '../inbox/fixture.js'
import { spawnChild, waitUntil, type Child } from '../support/processes.js'
import { ask, fillDead, open } from './fixture.js'

const server = useServer('dashboard_carried')
type Ops = ReturnType<typeof open>
const opened: Ops[] = []
afterEach(() => Promise.all(opened.splice(0).map((ops) => ops.close())))

const shop = { box: 'shop' }

/** So many dead messages that nobody runs, and a book of each time that one of them is made pending again. */
async function dead(count: number): Promise<Bench> {
  const box = await server.open()
  await fillDead(box, count)
  await box.sql('create table ob.test_retried (id text)')
  await box.sql(`create function ob.note_retry() returns trigger language plpgsql as $$
    begin insert into ob.test_retried values (new.id); return new; end $$`)
  await box.sql(`create trigger note after update on ob.work for each row
    when (old.parked is not null and new.parked is null) execute function ob.note_retry()`)
  return box
}

/** How often messages were retried, how many of them, and how many are dead. */
async function book(box: Bench): Promise<{ times: number; messages: number; dead: number }> {
  const [row] = await box.sql(`select (select count(*)::int from ob.test_retried) times,
    (select count(distinct id)::int from ob.test_retried) messages,
    (select count(*)::int from ob.work where parked = 'dead') dead`)
  return row as { times: number; messages: number; dead: number }
}

function here(box: Bench, options = {}): Ops {
  const ops = open({ shop: box }, options)
  opened.push(ops)
  return ops
}

async function there(box: Bench, perSecond: number): Promise<{ child: Child; id: string }> {
  const child = spawnChild(new URL('./children/carrier.mjs', import.meta.url), {
    args: [server.url, box.schema, String(perSecond)],
  })
  await child.next('ready')
  child.send('retry')
  return { child, id: (await child.next('started'))['id'] as string }
}

async function jobOf(ops: Ops, id: string): Promise<Job> {
  const { answer } = await ask(ops, 'jobs', shop)
  return (answer as Jobs).jobs.find((job) => job.id === id)!
}

const ended = (ops: Ops, id: string): Promise<Job> =>
  waitUntil(async () => {
    const job = await jobOf(ops, id)
    return job.state !== 'running' && job
  })

test('when the process that carries a retry is killed, another goes on: no message is left out, and none is retried twice', async () => {
  const total = 3_000
  await using box = await dead(total)
  const { child, id } = await there(box, 600)
  const ops = here(box)
  await waitUntil(async () => (await jobOf(ops, id)).done > 300)
  await child.kill()
  // What was retried may be dead again by now.
  await box.sql(
    `update ob.work set parked = 'dead' where id in (select id from ob.work where parked is null order by seq limit 20)`,
  )
  const { done } = await jobOf(ops, id)
  expect(done).toBeLessThan(total)
  expect(await book(box)).toEqual({ times: done, messages: done, dead: total - done + 20 })
  await box.clock.advance(LEASE_MS)
  expect((await ask(ops, 'paceRetry', { ...shop, job: id, perSecond: 10_000 })).status).toBe(200)
  const job = await ended(ops, id)
  expect(job).toMatchObject({ state: 'done', done: total, skipped: 0, total, resumed: true, by: 'child' })
  expect(await book(box)).toEqual({ times: total, messages: total, dead: 20 })
  const { records } = await box.admin.audit()
  expect(records.map(({ action, by, detail }) => [action, by, detail['count'], detail['reason']])).toEqual([
    ['retry', 'child', total, 'it is back'],
    ['retry-started', 'child', 0, 'it is back'],
  ])
})

test('every process sees a retry, gives it another rate and cancels it, and the counts are exact', async () => {
  await using box = await dead(1_200)
  const { child, id } = await there(box, 0.01)
  const ops = here(box)
  await waitUntil(async () => (await jobOf(ops, id)).done === 1)
  const paced = await ask(ops, 'paceRetry', { ...shop, job: id, perSecond: 300 }, { who: 'retry' })
  expect(paced.answer).toMatchObject({ state: 'running', perSecond: 300 })
  await waitUntil(async () => (await jobOf(ops, id)).done > 60)
  expect((await ask(ops, 'cancelRetry', { ...shop, job: id }, { who: 'retry' })).status).toBe(200)
  const { state, done, resumed } = await ended(ops, id)
  expect([state, resumed]).toEqual(['cancelled', undefined])
  expect(done).toBeLessThan(1_200)
  expect(await book(box)).toEqual({ times: done, messages: done, dead: 1_200 - done })
  await child.kill()
})

test('a process that closes its dashboard lets go at once, and a read-only one does not take it', async () => {
  await using box = await dead(1_100)
  const { child, id } = await there(box, 100)
  const watching = here(box, { readOnly: true })
  await waitUntil(async () => (await jobOf(watching, id)).done > 0)
  child.send('close')
  await child.next('closed')
  const { done } = await jobOf(watching, id)
  expect(await jobOf(watching, id)).toMatchObject({ state: 'running', done })
  expect(await box.sql('select token from ob.bulk')).toEqual([{ token: null }])
  const ops = here(box)
  await ask(ops, 'paceRetry', { ...shop, job: id, perSecond: 10_000 })
  expect(await ended(ops, id)).toMatchObject({ state: 'done', done: 1_100, resumed: true })
  expect(await book(box)).toEqual({ times: 1_100, messages: 1_100, dead: 0 })
  await child.kill()
})

test('a process that has lost its lease changes nothing any more', async () => {
  await using box = await dead(1_100)
  const { child, id } = await there(box, 100)
  const ops = here(box)
  await waitUntil(async () => (await jobOf(ops, id)).done > 0)
  // As another one would take it over.
  await box.sql(`update ob.bulk set token = gen_random_uuid(), lease_until = ob.now() + interval '1 hour'`)
  const { done } = await jobOf(ops, id)
  // It lets go: whoever closes waits for what it carries.
  child.send('close')
  await child.next('closed')
  expect(await jobOf(ops, id)).toMatchObject({ state: 'running', done })
  expect(await book(box)).toEqual({ times: done, messages: done, dead: 1_100 - done })
  await child.kill()
})

test('what becomes of messages is counted by whoever carries on, and stops it when more than half of the last fifty failed again', async () => {
  await using box = await dead(1_500)
  const { child, id } = await there(box, 200)
  const ops = here(box)
  await waitUntil(async () => (await jobOf(ops, id)).done >= 60)
  await child.kill()
  await box.sql(`update ob.work set parked = 'dead' where parked is null`)
  await box.clock.advance(LEASE_MS)
  const { state, done, failedAgain } = await ended(ops, id)
  expect(state).toBe('stopped')
  expect(failedAgain).toBeGreaterThan(25)
  expect(await book(box)).toMatchObject({ times: done, messages: done })
})

test('what leaves the quarantine is counted exactly, though a step fails and another process carries on', async () => {
  await using box = await server.open()
  await box.receive(Array.from({ length: 120 }, (_, at) => ({ id: `q${at}`, type: 'note', data: { at } })))
  box.consumer('mail', { note: () => undefined })
  // Once, after messages have left and before the walk is written down behind them.
  await box.sql('create sequence ob.test_steps')
  await box.sql(`create function ob.fail_once() returns trigger language plpgsql as $$ begin
    if nextval('ob.test_steps') = 3 then raise 'not now' using errcode = '40001'; end if; return new; end $$`)
  await box.sql(`create trigger fail before update on ob.bulk for each row
    when (old.plan is distinct from new.plan) execute function ob.fail_once()`)
  const first = here(box, { onError: () => undefined })
  const { answer } = await ask(first, 'countRetry', { ...shop, q: 'state:quarantined' })
  const { count, confirmation } = answer as Counted
  expect(count).toBe(120)
  const { id } = (await ask(first, 'retry', { ...shop, confirmation, perSecond: 50 })).answer as Job
  await waitUntil(async () => (await jobOf(first, id)).done > 25)
  await first.close()
  const second = here(box)
  await ask(second, 'paceRetry', { ...shop, job: id, perSecond: 1_000 })
  expect(await ended(second, id)).toMatchObject({ state: 'done', done: 120, skipped: 0, resumed: true })
  const [left] = await box.sql(
    `select (select count(*)::int from ob.quarantine) held, (select count(*)::int from ob.work) work`,
  )
  expect(left).toEqual({ held: 0, work: 120 })
})

test('what is behind a message that cannot leave the quarantine stays with it, though it is in another batch', async () => {
  await using box = await server.open({ maxBytes: 10 })
  const held = (id: string, key: string) => ({ id, key, type: 'note', data: { filler: 'x'.repeat(20) } })
  await box.receive([held('q1', 'k'), held('q2', 'k'), held('q3', 'l')])
  box.consumer('mail', { note: () => undefined }, { order: 'key' })
  const ops = here(box)
  const { confirmation } = (await ask(ops, 'countRetry', { ...shop, q: 'state:quarantined' })).answer as Counted
  const holder = await server.pool.connect()
  await holder.query('begin')
  await holder.query(
    `insert into "${box.schema}".message (consumer, source, id, type, body) values ('mail', '', 'q1', 'note', '1')`,
  )
  // One at a time.
  const { id } = (await ask(ops, 'retry', { ...shop, confirmation, perSecond: 10 })).answer as Job
  const job = await ended(ops, id)
  await holder.query('rollback')
  holder.release()
  expect(job).toMatchObject({ state: 'done', done: 1, skipped: 2 })
  expect(await box.sql('select id from ob.work')).toEqual([{ id: 'q3' }])
})

test('whoever carries on takes what was counted, and not what has died since, though that came before', async () => {
  await using box = await dead(6)
  // It runs again, and dies later.
  await box.sql(`update ob.work set parked = null, attempts = 0, due_at = ob.now() + interval '1 hour' where id = 'd3'`)
  const first = here(box)
  const { count, confirmation } = (await ask(first, 'countDiscard', { ...shop, q: 'state:dead' })).answer as Counted
  expect(count).toBe(5)
  const order = { ...shop, confirmation, perSecond: 0.01, reason: 'junk' }
  const { id } = (await ask(first, 'discard', order)).answer as Job
  await waitUntil(async () => (await jobOf(first, id)).done === 1)
  await first.close()
  await box.sql(`update ob.work set parked = 'dead', error = '{"message":"later"}' where id = 'd3'`)
  const second = here(box)
  await ask(second, 'paceDiscard', { ...shop, job: id, perSecond: 1_000 })
  expect(await ended(second, id)).toMatchObject({ state: 'done', done: 5, skipped: 0, resumed: true })
  expect(await box.sql(`select id, parked from ob.work where parked <> 'discarded'`)).toEqual([
    { id: 'd3', parked: 'dead' },
  ])
})

test('a change that was left is seen, and carried on, behind any number of newer ones that have ended', async () => {
  const total = 40
  await using box = await dead(total)
  const first = here(box)
  const { answer } = await ask(first, 'countRetry', { ...shop, q: 'state:dead' })
  const { confirmation } = answer as Counted
  const { id } = (await ask(first, 'retry', { ...shop, confirmation, perSecond: 5 })).answer as Job
  await first.close()
  await box.sql(`insert into ob.bulk (id, verb, state, query, zone, read_at, counted, secret, total, most, carriers, started_at, ended_at)
    select gen_random_uuid(), 'retry', 'done', '', 0, 0, '{}', false, 0, 0, 1, ob.now() + i * interval '1 ms', ob.now()
    from generate_series(1, 60) i`)
  await box.sql('update ob.bulk set per_second = 10000 where id = $1', [id])
  const second = here(box)
  expect((await jobOf(second, id)).state).toBe('running')
  expect(await ended(second, id)).toMatchObject({ state: 'done', done: total, resumed: true })
})
