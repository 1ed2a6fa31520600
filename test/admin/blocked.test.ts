/** A key that a dead message blocks stays blocked until that message leaves, whatever becomes of others of the key. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { Reject, type Box, type MessageMap } from 'oncebox'
import { open, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('blocked')
})
afterAll(() => opened.close())

const of = (id: string, type = 'note') => ({ id, type, source: 'shop', key: 'k', data: 1 })

/** A process that takes the messages of `c` in order, and blocks or skips behind what is dead. */
function processOf(onDead: 'block' | 'skip', schema?: string) {
  const ran: string[] = []
  const box = opened.box(schema === undefined ? {} : { schema })
  box.consumer(
    'c',
    {
      note: ({ id }) => void ran.push(id),
      bad({ id }) {
        ran.push(id)
        throw new Reject('no')
      },
      async paid({ id }, { effect }) {
        await effect('pay', () => Promise.reject(new Error('nobody knows')), { onUnknown: 'park' })
        ran.push(id)
      },
    },
    { order: 'key', onDead, group: { messages: 1 } },
  )
  return Object.assign(box, { ran })
}

const BLOCKED = `select blocked from ob.lane where consumer = 'c' and key = 'k'`

/** `old` was skipped by a release that skips; this one blocks behind `front`, and `last` waits. */
async function behindTwo(old: 'bad' | 'paid' = 'bad') {
  const before = processOf('skip')
  await before.migrate()
  await before.receive(of('old', old))
  await before.drain()
  const box = processOf('block', before.schema)
  await box.receive([of('front', 'bad'), of('last')])
  await box.drain()
  expect(box.ran.splice(0)).toEqual(['front'])
  return box
}

test('a discarded message that is marked as handled frees no key that another one blocks', async () => {
  const box = processOf('block')
  await box.migrate()
  await box.receive(of('old', 'bad'))
  await box.drain()
  await box.admin.discard({ id: 'old' }, { reason: 'no use' })
  await box.receive([of('front', 'bad'), of('last')])
  await box.drain()
  expect(await box.admin.markHandled('c', ['old'], { source: 'shop' })).toBe(1)
  await box.drain()
  expect(box.ran).toEqual(['old', 'front'])
  expect(await box.admin.markHandled('c', ['front'], { source: 'shop' })).toBe(1)
  await box.drain()
  expect(box.ran).toEqual(['old', 'front', 'last'])
})

describe('where a release that skipped what is dead left one behind, its key is freed by the message that blocks it alone', () => {
  const WAYS: Record<string, (box: Box<MessageMap, never, unknown>, id: string) => Promise<unknown>> = {
    retry: (box, id) => box.admin.retry({ id }),
    discard: (box, id) => box.admin.discard({ id }, { reason: 'no use' }),
    markHandled: (box, id) => box.admin.markHandled('c', [id], { source: 'shop' }),
  }
  test.for(Object.keys(WAYS))('%s', async (way) => {
    const box = await behindTwo()
    await WAYS[way]!(box, 'old')
    await box.drain()
    expect(box.ran).toEqual([])
    expect(await opened.sql(box.schema, BLOCKED)).toEqual([{ blocked: true }])
    await box.admin.discard({ id: 'front' }, { reason: 'no use' })
    await box.drain()
    // The one that was retried was before the others, and blocks them now.
    expect(box.ran).toEqual(way === 'retry' ? ['old'] : ['last'])
  })

  test('an answer for an effect', async () => {
    const box = await behindTwo('paid')
    await box.admin.answer({ consumer: 'c', id: 'old', effect: 'pay' }, { happened: true, result: 1 })
    await box.drain()
    expect(box.ran).toEqual([])
    await box.admin.discard({ id: 'front' }, { reason: 'no use' })
    await box.drain()
    expect(box.ran).toEqual(['old', 'last'])
  })

  test('all that are dead at once', async () => {
    const box = await behindTwo()
    expect(await box.admin.discard({ state: 'dead' }, { reason: 'no use' })).toBe(2)
    await box.drain()
    expect(box.ran).toEqual(['last'])
  })
})

describe('while another has its lane', () => {
  /** Runs these while a transaction has the lane, and then what that transaction does before it commits. */
  async function behindALock(schema: string, waiting: readonly (() => Promise<unknown>)[], sql?: string) {
    const holder = await opened.pool.connect()
    onTestFinished(() => holder.release())
    const run = (text: string) => holder.query(text.replaceAll('ob.', `"${schema}".`))
    await run('begin')
    await run(`select 1 from ob.lane where consumer = 'c' and key = 'k' for update`)
    const [{ pid }] = (await run('select pg_backend_pid() pid')).rows as [{ pid: number }]
    const all = Promise.all(waiting.map((one) => one()))
    const others = `select count(*)::int n from pg_stat_activity where wait_event_type = 'Lock'
      and datname = current_database() and pid <> ${pid}`
    await expect
      .poll(async () => (await opened.pool.query(others)).rows as unknown, { timeout: 30_000 })
      .toEqual([{ n: waiting.length }])
    if (sql !== undefined) await run(sql)
    await run('commit')
    await all
  }

  test('two people who discard both messages leave the key free', async () => {
    const box = await behindTwo()
    const discard = (id: string) => () => box.admin.discard({ id }, { reason: 'no use' })
    await behindALock(box.schema, [discard('front'), discard('old')])
    await box.drain()
    expect(box.ran).toEqual(['last'])
  })

  test('who discards one that was skipped frees no key that is blocked meanwhile', async () => {
    const box = processOf('skip')
    await box.migrate()
    await box.receive(of('old', 'bad'))
    await box.drain()
    box.ran.length = 0
    await box.receive([of('front', 'bad'), of('last')])
    const blocks = `
      update ob.work set parked = 'dead', due_at = 'infinity', error = '{}', failed_at = clock_timestamp() where id = 'front';
      update ob.lane set blocked = true, due_at = 'infinity'`
    await behindALock(box.schema, [() => box.admin.discard({ id: 'old' }, { reason: 'no use' })], blocks)
    expect(await opened.sql(box.schema, BLOCKED)).toEqual([{ blocked: true }])
    await box.admin.discard({ id: 'front' }, { reason: 'no use' })
    await box.drain()
    expect(box.ran).toEqual(['last'])
  })
})
