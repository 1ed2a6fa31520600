/**
 * What goes wrong while many messages are changed, and says nothing about the change: it is carried on, and nobody is told what
 * is not so.
 */
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import type { Counted, Job, Jobs } from 'oncebox/dashboard/client'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { LEASE_MS } from '../../src/dashboard/bulk/batch.js'
import { useServer, type Bench } from '../inbox/fixture.js'
import { startProxy, type Intercepted, type PostgresProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { ask, fillDead, open } from './fixture.js'

const server = useServer('dashboard_faults')
type Ops = ReturnType<typeof open>
const endings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

const shop = { box: 'shop' }

/** Dead messages that nobody runs. */
async function dead(count: number): Promise<Bench> {
  const box = await server.open()
  await fillDead(box, count)
  return box
}

function here(box: Parameters<typeof open>[0]): Ops {
  const ops = open({ shop: box } as Parameters<typeof open>[0], { onError: () => undefined })
  endings.push(() => ops.close())
  return ops
}

/** A dashboard of the same box, whose connections can be cut. */
async function throughProxy(box: Bench): Promise<{ ops: Ops; proxy: PostgresProxy }> {
  const proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
  pool.on('error', () => undefined)
  endings.push(
    () => proxy.close(),
    () => pool.end(),
  )
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const ops = here(createBox({ db: fromPg(pool), schema: box.schema, logger: silent }))
  return { ops, proxy }
}

/** The server has answered the COMMIT that puts a change on record; the dashboard has not seen it. */
async function startingCommit(proxy: PostgresProxy): Promise<Intercepted> {
  const insert = await proxy.intercept({ at: 'before', statement: /insert into \S*bulk as/ })
  const commit = proxy.intercept({ at: 'after', connection: insert.connection })
  insert.release()
  return commit
}

async function retryAll(ops: Ops, { q = 'state:dead', perSecond = 1_000 } = {}): Promise<string> {
  const { answer } = await ask(ops, 'countRetry', { ...shop, q })
  const { confirmation } = answer as Counted
  return ((await ask(ops, 'retry', { ...shop, confirmation, perSecond })).answer as Job).id
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

/** Each of these is raised once, by a batch of its own, when it writes down where the walk stands. */
async function failWith(box: Bench, states: readonly string[]): Promise<void> {
  await box.sql('create sequence ob.test_steps')
  await box.sql(`create function ob.fail_then() returns trigger language plpgsql as $$
    declare step bigint := nextval('ob.test_steps'); begin
    if step % 2 = 0 and step / 2 <= ${states.length} then
      raise 'not now' using errcode = ('{${states.join()}}'::text[])[step / 2];
    end if; return new; end $$`)
  await box.sql(`create trigger fail before update on ob.bulk for each row
    when (old.plan is distinct from new.plan) execute function ob.fail_then()`)
}

test('what says nothing about the change does not end it, such as a transaction that the server ends while its process is frozen', async () => {
  await using box = await dead(300)
  await failWith(box, ['25P03', '57014', '57P01', '08006', '53200', '58030', 'XX000'])
  const ops = here(box)
  const id = await retryAll(ops, { perSecond: 200 })
  expect(await ended(ops, id)).toMatchObject({ state: 'done', done: 300, skipped: 0 })
})

test('what would fail for ever ends it, in words', async () => {
  await using box = await dead(60)
  await failWith(box, ['42501'])
  const ops = here(box)
  const id = await retryAll(ops, { perSecond: 100 })
  expect(await ended(ops, id)).toMatchObject({
    state: 'failed',
    done: 10,
    problem: 'the database role of this dashboard lacks a right for this',
  })
})

test('a change that meets the same obstacle again and again can be cancelled', async () => {
  await using box = await dead(60)
  await failWith(
    box,
    Array.from({ length: 1_000 }, () => '57014'),
  )
  // Every step but the first.
  await box.sql('alter sequence ob.test_steps increment by 2 restart with 2')
  const ops = here(box)
  const id = await retryAll(ops, { perSecond: 100 })
  await waitUntil(async () => Number((await box.sql('select last_value n from ob.test_steps'))[0]!['n']) > 2)
  expect((await ask(ops, 'cancelRetry', { ...shop, job: id })).status).toBe(200)
  expect(await ended(ops, id)).toMatchObject({ state: 'cancelled', done: 0 })
})

test('a change that has begun is answered, though the answer to its COMMIT was lost', async () => {
  await using box = await dead(30)
  const { ops, proxy } = await throughProxy(box)
  const { answer } = await ask(ops, 'countRetry', { ...shop, q: 'state:dead' })
  const { confirmation } = answer as Counted
  const asked = ask(ops, 'retry', { ...shop, confirmation })
  const commit = await startingCommit(proxy)
  commit.cut()
  const retried = await asked
  expect(retried).toMatchObject({ status: 200, answer: { state: 'running', total: 30 } })
  expect(await ended(ops, (retried.answer as Job).id)).toMatchObject({ state: 'done', done: 30 })
})

test('while nobody can say whether a change has begun, that is the answer, with its id', async () => {
  await using box = await dead(30)
  const { ops, proxy } = await throughProxy(box)
  const { answer } = await ask(ops, 'countRetry', { ...shop, q: 'state:dead' })
  const { confirmation } = answer as Counted
  const asked = ask(ops, 'retry', { ...shop, confirmation })
  await startingCommit(proxy)
  await proxy.refuse()
  proxy.cutAll()
  const refused = await asked
  const [begun] = await box.sql('select id::text from ob.bulk')
  expect(refused).toMatchObject({ status: 503, answer: { error: { code: 'COMMIT_UNCERTAIN' } } })
  expect(refused.text).toContain(begun!['id'])
  expect(refused.text).not.toContain('nothing was changed')
  await box.clock.advance(LEASE_MS)
  const other = here(box)
  expect(await ended(other, begun!['id'] as string)).toMatchObject({ state: 'done', done: 30 })
})

test('what a person discards before it has run has not failed again', async () => {
  await using box = await dead(60)
  const ops = here(box)
  const id = await retryAll(ops)
  await ended(ops, id)
  await box.sql(`update ob.work set parked = 'discarded', due_at = 'infinity'`)
  await waitUntil(async () => (await box.sql('select 1 from ob.bulk_message')).length === 0)
  expect(await jobOf(ops, id)).toMatchObject({ state: 'done', done: 60, handled: 0, failedAgain: 0 })
})
