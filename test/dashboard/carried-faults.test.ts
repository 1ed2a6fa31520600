/** What goes wrong while many messages are changed, and says nothing about the change: it is carried on, and nobody is told what is not so. */
import type { Counted, Job, Jobs } from 'oncebox/dashboard/client'
import { afterEach, expect, test } from 'vitest'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { ask, open } from './fixture.js'

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
  await box.sql(`insert into ob.message (consumer, source, id, type, body, hash, envelope)
    select 'mail', 'shop', 'd' || i, 'note', '{}', '\\x00', '{}' from generate_series(1, ${count}) i`)
  await box.sql(`insert into ob.work (consumer, source, id, seq, due_at, attempts, parked, error)
    select 'mail', 'shop', 'd' || i, nextval('ob.seq'), 'infinity', 1, 'dead', '{"name":"Error","message":"no"}'
    from generate_series(1, ${count}) i`)
  return box
}

function here(box: Bench): Ops {
  const ops = open({ shop: box }, { onError: () => undefined })
  endings.push(() => ops.close())
  return ops
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
