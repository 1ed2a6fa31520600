/** Consume → send → consume → send → consume, over three boxes and two databases, in processes that are killed. */
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { useServer } from '../outbox/fixture.js'
import { spawnChild, waitUntil } from '../support/processes.js'

const COUNT = Number(process.env['CHAIN_MESSAGES'] ?? 4_000)
const KILLS = Number(process.env['CHAIN_KILLS'] ?? 10)
const KEYS = 40
const CHILD = new URL('./chain-child.mjs', import.meta.url)
const here = useServer('chain_here')
const elsewhere = useServer('chain_elsewhere')

test(`${COUNT} messages through three boxes have ${COUNT} effects, in order, though processes die ${KILLS} times`, async () => {
  const first = await here.open()
  const second = await here.open()
  const third = await elsewhere.open()
  await elsewhere.pool.query(
    'drop table if exists effect; create table effect (n bigserial primary key, key text not null, data int not null, correlation text not null)',
  )
  const env = {
    HERE: here.url,
    ELSEWHERE: elsewhere.url,
    FIRST: first.schema,
    SECOND: second.schema,
    THIRD: third.schema,
  }
  const effects = async () => Number((await elsewhere.pool.query('select count(*) from effect')).rows[0].count)

  let kills = 0
  const keepDying = async () => {
    for (;;) {
      const child = spawnChild(CHILD, { env })
      await child.next('ready', { timeoutMs: 60_000 })
      if (kills >= KILLS) return child
      kills++
      await new Promise((resolve) => setTimeout(resolve, randomInt(400)))
      await child.kill()
    }
  }
  const dying = [keepDying(), keepDying()]
  await waitUntil(async () => (await here.sql(first.schema, 'select 1 from ob.subscription')).length > 0, {
    timeoutMs: 60_000,
  })
  for (let n = 0; n < COUNT; n += 50) {
    await first.receive(
      Array.from({ length: 50 }, (_, at) => ({
        id: `m${n + at}`,
        source: 'test',
        type: 'start',
        key: `k${(n + at) % KEYS}`,
        data: { n: n + at },
      })),
    )
  }
  const survivors = await Promise.all(dying)
  await waitUntil(async () => (await effects()) >= COUNT, { timeoutMs: 240_000, everyMs: 200 })
  for (const child of survivors) child.send('stop')
  await Promise.all(survivors.map((child) => child.exited))

  expect(await effects()).toBe(COUNT)
  const { rows } = await elsewhere.pool.query<{ numbers: number[]; own: boolean }>(
    `select array_agg(data order by n) numbers, bool_and(correlation = 'm' || data) own from effect group by key`,
  )
  expect(rows).toHaveLength(Math.min(KEYS, COUNT))
  for (const { numbers, own } of rows) {
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(own).toBe(true)
  }
  for (const box of [first, second]) expect(await here.sql(box.schema, 'select 1 from ob.delivery')).toEqual([])
}, 360_000)
