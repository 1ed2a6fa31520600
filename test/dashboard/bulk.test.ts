/** Changes of many messages: counted, confirmed, paced, followed, cancelled, and written down. */
import { afterEach, expect, test } from 'vitest'
import type { Counted, Job, Jobs, ProblemAnswer } from 'oncebox/dashboard/client'
import { RetryLater, Reject } from 'oncebox'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { ask, open, type Who } from './fixture.js'

const server = useServer('dashboard_bulk')
let box: Bench
const opened: Ops[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((ops) => ops.close()))
  await box[Symbol.asyncDispose]()
})

/** So many dead messages, oldest first d0, d1, … Their handler does from now on what `next` says. */
async function dead(count: number, next: (id: string) => unknown = () => undefined): Promise<{ revive(): void }> {
  box = await server.open()
  let alive = false
  box.consumer('mail', {
    note: (message) => {
      if (!alive) throw new Reject(`no answer for ${message.id}`)
      return next(message.id)
    },
  })
  await box.receive(Array.from({ length: count }, (_, at) => ({ id: `d${at}`, type: 'note', data: { at } })))
  await box.drain()
  return { revive: () => void (alive = true) }
}

const shop = { box: 'shop' }
const at = (options = {}, boxes: Parameters<typeof open>[0] = { shop: box }): Ops => {
  const ops = open(boxes, options)
  opened.push(ops)
  return ops
}
type Ops = ReturnType<typeof open>

async function count(
  ops: Ops,
  q: string,
  verb: 'countRetry' | 'countDiscard' = 'countRetry',
  who: Who = 'all',
): Promise<Counted> {
  const { status, answer } = await ask(ops, verb, { ...shop, q }, { who })
  expect([status, answer]).toEqual([200, expect.anything()])
  return answer
}

async function ended(ops: Ops, id: string): Promise<Job> {
  return waitUntil(async () => {
    const { answer } = await ask(ops, 'jobs', shop)
    return (answer as Jobs).jobs.find((job) => job.id === id && job.state !== 'running')
  })
}

const states = (): Promise<Record<string, unknown>[]> => box.sql(
  `select coalesce(w.parked, 'pending') state, count(*)::int n from ob.work w group by 1 order by 1`,
) // prettier-ignore

test('what was counted and confirmed is retried, and the audit says by whom, what, how many and why', async () => {
  const { revive } = await dead(30)
  revive()
  const ops = at()
  const counted = await count(ops, 'state:dead')
  expect(counted).toMatchObject({ count: 30, states: { dead: 30 }, needsRate: false })
  const { status, answer } = await ask(ops, 'retry', {
    ...shop,
    confirmation: counted.confirmation,
    reason: 'it is back',
  })
  expect([status, answer]).toEqual([200, expect.objectContaining({ verb: 'retry', total: 30, by: 'all@example.com' })])
  const job = await ended(ops, (answer as Job).id)
  expect(job).toMatchObject({ state: 'done', done: 30, skipped: 0, query: 'state:dead', reason: 'it is back' })
  await box.drain()
  expect(await states()).toEqual([])
  await waitUntil(async () => ((await ask(ops, 'jobs', shop)).answer as Jobs).jobs[0]!.handled === 30)
  const { records } = await box.admin.audit()
  expect(
    records.map(({ action, by, detail }) => [action, by, detail['count'], detail['filter'], detail['reason']]),
  ).toEqual([
    ['retry', 'all@example.com', 30, 'state:dead', 'it is back'],
    ['retry-started', 'all@example.com', 0, 'state:dead', 'it is back'],
  ])
})

test('a count that has changed meanwhile is refused, with the new one to confirm', async () => {
  await dead(3)
  const ops = at()
  const { confirmation } = await count(ops, 'state:dead')
  await box.receive({ id: 'more', type: 'note', data: 1 })
  await box.drain()
  const { status, answer } = await ask(ops, 'retry', { ...shop, confirmation })
  expect(status).toBe(409)
  const { error } = answer as ProblemAnswer
  expect(error).toMatchObject({ code: 'COUNT_CHANGED', counted: { count: 4 } })
  expect(await states()).toEqual([{ state: 'dead', n: 4 }])
  expect((await ask(ops, 'retry', { ...shop, confirmation: error.counted!.confirmation })).status).toBe(200)
})

test('a number that was asked for is that number, the oldest first, though there are more by now', async () => {
  await dead(3)
  const ops = at()
  const { confirmation } = await count(ops, 'state:dead')
  await box.receive({ id: 'more', type: 'note', data: 1 })
  await box.drain()
  const { answer } = await ask(ops, 'retry', { ...shop, confirmation, limit: 2 })
  expect(await ended(ops, (answer as Job).id)).toMatchObject({ state: 'done', done: 2, total: 2 })
  expect((await box.sql(`select id from ob.work where parked is null order by seq`)).map(({ id }) => id)).toEqual([
    'd0',
    'd1',
  ])
})

test('a confirmation is good for its verb, its reader, its box and its server, and for nothing else', async () => {
  await dead(2)
  const ops = at()
  const { confirmation } = await count(ops, 'state:dead')
  const tampered = `${confirmation.slice(0, -2)}AA`
  const written = JSON.stringify({ q: '', zone: 0, nowMs: 0, count: 2, at: Date.now() })
  const other = Buffer.from(written).toString('base64url')
  const refused = { status: 409, code: 'CONFIRMATION_INVALID' }
  const tries: [Ops, string, Who][] = [
    [ops, tampered, 'all'],
    [ops, other, 'all'],
    [ops, `${confirmation.slice(0, 40)}${other}`, 'all'],
    [ops, `${confirmation}.`, 'all'],
    [ops, confirmation.slice(0, -4), 'all'],
    [ops, 'x', 'all'],
    [ops, confirmation, 'retry'],
    [at({ secret: 's'.repeat(32) }), confirmation, 'all'],
  ]
  for (const [of, token, who] of tries) {
    const { status, answer } = await ask(of, 'retry', { ...shop, confirmation: token }, { who })
    expect({ status, code: (answer as ProblemAnswer).error.code }).toEqual(refused)
  }
  const asDiscard = await ask(ops, 'discard', { ...shop, confirmation, reason: 'why' })
  expect(asDiscard.status).toBe(409)
  const elsewhere = at({}, { shop: box, other: box })
  expect((await ask(elsewhere, 'retry', { box: 'other', confirmation })).status).toBe(409)
  expect(await states()).toEqual([{ state: 'dead', n: 2 }])
})

test('processes that have one secret take each other’s confirmations', async () => {
  await dead(2)
  const secret = 'a secret of more than 32 characters'
  const { confirmation } = await count(at({ secret }), 'state:dead')
  expect((await ask(at({ secret }), 'retry', { ...shop, confirmation })).status).toBe(200)
})

test('above a thousand messages a rate is needed; it can be changed, and a cancel leaves exact counts', async () => {
  await dead(1_200)
  const ops = at()
  const counted = await count(ops, 'state:dead')
  expect(counted).toMatchObject({ count: 1_200, needsRate: true })
  const { confirmation } = counted
  const without = await ask(ops, 'retry', { ...shop, confirmation })
  expect([without.status, without.answer]).toEqual([400, { error: expect.objectContaining({ code: 'RATE_REQUIRED' }) }])
  const { answer } = await ask(ops, 'retry', { ...shop, confirmation, perSecond: 1 })
  const { id } = answer as Job
  const paced = await ask(ops, 'paceRetry', { ...shop, job: id, perSecond: 200 })
  expect(paced.answer).toMatchObject({ perSecond: 200, state: 'running' })
  await waitUntil(async () => ((await ask(ops, 'jobs', shop)).answer as Jobs).jobs[0]!.done >= 20)
  // A retry is not a discard's to cancel.
  expect((await ask(ops, 'cancelDiscard', { ...shop, job: id })).status).toBe(404)
  expect((await ask(ops, 'cancelRetry', { ...shop, job: id })).status).toBe(200)
  const job = await ended(ops, id)
  expect(job.state).toBe('cancelled')
  expect(job.done).toBeLessThan(1_200)
  expect(await states()).toEqual([
    { state: 'dead', n: 1_200 - job.done },
    { state: 'pending', n: job.done },
  ])
  expect((await box.admin.audit()).records[0]).toMatchObject({
    action: 'retry',
    detail: { count: job.done, of: 1_200, state: 'cancelled' },
  })
  expect((await ask(ops, 'cancelRetry', { ...shop, job: id })).status).toBe(409)
})

test('a retry whose messages fail again stops by itself', async () => {
  await dead(300)
  const ops = at()
  await box.start()
  const { confirmation } = await count(ops, 'state:dead')
  const { answer } = await ask(ops, 'retry', { ...shop, confirmation, perSecond: 50 })
  const job = await ended(ops, (answer as Job).id)
  expect(job.state).toBe('stopped')
  expect(job.failedAgain).toBeGreaterThan(25)
  expect(job.done).toBeLessThan(300)
})

test('messages that wait for another try are not taken for failures', async () => {
  const { revive } = await dead(60, () => {
    throw new RetryLater({ afterMs: 60_000 })
  })
  revive()
  const ops = at()
  const { confirmation } = await count(ops, 'state:dead')
  const { answer } = await ask(ops, 'retry', { ...shop, confirmation })
  await box.drain()
  expect(await ended(ops, (answer as Job).id)).toMatchObject({ state: 'done', done: 60, failedAgain: 0 })
})

test('a discard needs a reason, and takes what a query finds by what its messages died of', async () => {
  await dead(3)
  const ops = at()
  const { answer: failures } = await ask(ops, 'failures', shop)
  const { query } = (failures as { groups: { query: string }[] }).groups[0]!
  const { confirmation, count: counted } = await count(ops, query, 'countDiscard')
  expect(counted).toBe(3)
  expect((await ask(ops, 'discard', { ...shop, confirmation } as never)).status).toBe(400)
  expect((await ask(ops, 'discard', { ...shop, confirmation, reason: '  ' })).status).toBe(400)
  const { answer } = await ask(ops, 'discard', { ...shop, confirmation, reason: 'sent by mistake' })
  await ended(ops, (answer as Job).id)
  expect(await states()).toEqual([{ state: 'discarded', n: 3 }])
})

test('times of a query are those of the count', async () => {
  await dead(2)
  const ops = at()
  const { confirmation, count: counted } = await count(ops, 'state:dead before:0s')
  expect(counted).toBe(2)
  await box.receive({ id: 'later', type: 'note', data: 1 })
  await box.drain()
  const { answer } = await ask(ops, 'retry', { ...shop, confirmation })
  expect(await ended(ops, (answer as Job).id)).toMatchObject({ done: 2 })
  expect(await box.fate('later')).toMatchObject({ state: 'dead' })
})

test('an effect is answered with a result that keeps its numbers', async () => {
  box = await server.open()
  box.consumer('pay', {
    charge: (_, ctx) => ctx.effect('transfer', () => Promise.reject(new Error('cut off')), { onUnknown: 'park' }),
  })
  await box.receive({ id: 'e', type: 'charge', data: 1 })
  await waitUntil(async () => {
    await box.drain()
    return (await box.fates('e')).some(({ state }) => state === 'quarantined')
  })
  const ops = at()
  const told = { ...shop, consumer: 'pay', id: 'e', effect: 'transfer' }
  for (const result of ['{', 'NaN', '']) {
    expect((await ask(ops, 'answer', { ...told, happened: true, result })).status).toBe(400)
  }
  expect((await ask(ops, 'answer', { ...told, happened: false, result: '1' })).status).toBe(400)
  const { status } = await ask(ops, 'answer', {
    ...told,
    happened: true,
    result: '{"id":9007199254740993}',
    reason: 'looked it up',
  })
  expect(status).toBe(200)
  expect(await box.sql('select result from ob.effect')).toEqual([{ result: '{"id":9007199254740993}' }])
  expect((await box.admin.audit()).records[0]).toMatchObject({
    action: 'answer',
    by: 'all@example.com',
    detail: { reason: 'looked it up' },
  })
  await box.drain()
  expect(await box.fate('e')).toMatchObject({ state: 'handled' })
})

test('a consumer is paused and resumed, signed', async () => {
  await dead(1)
  const ops = at()
  expect(
    (await ask(ops, 'pause', { ...shop, consumer: 'mail', reason: 'a fix is coming' }, { who: 'pause' })).status,
  ).toBe(200)
  const { answer } = await ask(ops, 'overview', shop)
  expect((answer as { consumers: unknown[] }).consumers).toEqual([
    expect.objectContaining({ name: 'mail', paused: true, dead: 1 }),
  ])
  expect((await ask(ops, 'resume', { ...shop, consumer: 'mail' }, { who: 'pause' })).status).toBe(200)
  expect((await box.admin.audit()).records.map(({ action, by }) => [action, by])).toEqual([
    ['resume', 'pause@example.com'],
    ['pause', 'pause@example.com'],
  ])
  expect((await ask(ops, 'pause', { ...shop, consumer: 'mali' })).status).toBe(404)
})

/** As one that waited, and has died only now. */
const die = (id: string): Promise<unknown> =>
  box.sql(`update ob.work set parked = 'dead', due_at = 'infinity', error = '{"message":"later"}' where id = '${id}'`)
const wait = (id: string): Promise<unknown> =>
  box.sql(`update ob.work set parked = null, due_at = ob.now() + interval '1 hour' where id = '${id}'`)

test('a number that was asked for is taken of those that were counted, not of older ones that have died since', async () => {
  await dead(4)
  await wait('d0')
  const ops = at()
  const counted = await count(ops, 'state:dead', 'countDiscard')
  expect(counted.count).toBe(3)
  await die('d0')
  const order = { ...shop, confirmation: counted.confirmation, reason: 'junk' }
  expect((await ask(ops, 'discard', order)).answer).toMatchObject({
    error: { code: 'COUNT_CHANGED', counted: { count: 4 } },
  })
  const { answer } = await ask(ops, 'discard', { ...order, limit: 1 })
  expect(await ended(ops, (answer as Job).id)).toMatchObject({ state: 'done', done: 1, skipped: 0 })
  expect(await box.sql(`select id from ob.work where parked = 'discarded'`)).toEqual([{ id: 'd1' }])
})

test('as many that are others are refused too', async () => {
  await dead(3)
  await wait('d0')
  const ops = at()
  const { confirmation } = await count(ops, 'state:dead')
  await wait('d1')
  await die('d0')
  for (const limit of [undefined, 2]) {
    const { status, answer } = await ask(ops, 'retry', { ...shop, confirmation, ...(limit && { limit }) })
    expect([status, answer]).toEqual([409, expect.objectContaining({ error: expect.objectContaining({ code: 'COUNT_CHANGED', counted: expect.objectContaining({ count: 2 }) as unknown }) as unknown })]) // prettier-ignore
  }
  expect(await states()).toEqual([
    { state: 'dead', n: 2 },
    { state: 'pending', n: 1 },
  ])
})

test('a confirmation begins one job: sent again, at once or later, it answers that job', async () => {
  await dead(5)
  const ops = at()
  const { confirmation } = await count(ops, 'state:dead', 'countDiscard')
  const send = async (): Promise<Job> => {
    const { status, answer } = await ask(ops, 'discard', { ...shop, confirmation, limit: 1, reason: 'one' })
    expect([status, answer]).toEqual([200, expect.anything()])
    return answer
  }
  const [first, ...others] = await Promise.all([send(), send(), send()])
  await ended(ops, first.id)
  others.push(await send())
  expect(others.map(({ id }) => id)).toEqual([first.id, first.id, first.id])
  expect(others.at(-1)).toMatchObject({ state: 'done', done: 1 })
  expect(await states()).toEqual([
    { state: 'dead', n: 4 },
    { state: 'discarded', n: 1 },
  ])
  expect((await box.admin.audit()).records.map(({ action }) => action)).toEqual(['discard', 'discard-started'])
})

test('a replay counts and takes what a handler can run, not what once has done', async () => {
  const { revive } = await dead(0)
  revive()
  await box.receive({ id: 'm1', type: 'note', data: {} })
  await box.drain()
  const client = await server.pool.connect()
  await client.query('begin')
  await box.once(client, 'mine', { id: 'o1' }, () => 'done')
  await client.query('commit')
  client.release()
  const ops = at()
  const counted = await count(ops, 'state:handled')
  expect(counted).toMatchObject({ count: 1, states: { handled: 1 } })
  const { answer } = await ask(ops, 'retry', { ...shop, confirmation: counted.confirmation, reason: 'again' })
  expect(await ended(ops, (answer as Job).id)).toMatchObject({ state: 'done', done: 1, skipped: 0 })
  expect(await box.fate('o1')).toMatchObject({ state: 'handled' })
  const named = await ask(ops, 'countRetry', { ...shop, q: 'state:handled consumer:mine' })
  expect(named).toMatchObject({ status: 400, answer: { error: { code: 'QUERY_INVALID' } } })
})
