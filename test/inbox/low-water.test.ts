/** From where claims begin to look, and what that must not hide. */
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { LowWater } from '../../src/inbox/low-water.js'
import { bindTo } from '../../src/postgres/database.js'
import { CLAIM, NEXT_DUE } from '../../src/postgres/sql/claim.js'
import { CLAIM_LANES } from '../../src/postgres/sql/lanes.js'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('low_water')

test('a claim that began with a hint, and ends after its time, says nothing about what lies below it', async () => {
  const low = new LowWater()
  const asked: (string | undefined)[] = []
  const at = Date.now()
  const claim = (earliest: number, takeMs = 0) =>
    low.claim(async (hint) => {
      asked.push(hint)
      if (takeMs > 0) await waitUntil(() => performance.now() > started + takeMs)
      return { earliest }
    })
  const started = performance.now()
  await claim(at)
  // It has the hint, and takes longer than that is good for.
  await claim(at + 60_000, 1_200)
  await claim(at)
  expect(asked.map((hint) => hint !== undefined)).toEqual([false, true, false])
})

test('what a stopped worker gives back goes ahead of the backlog, all of it', async () => {
  await using box = await server.open()
  const order: string[] = []
  box.consumer('a', { note: ({ id }) => void order.push(id) }, { group: { messages: 10 }, concurrency: 1 })
  await box.receive(notes(60))
  // As a stop leaves them.
  await box.sql(
    `update ob.work set due_at = ob.now() - interval '1 hour' where id in (select 'n' || i from generate_series(31, 60) i)`,
  )
  await box.drain()
  expect(order.slice(0, 30).sort()).toEqual(
    notes(60)
      .slice(30)
      .map(({ id }) => id)
      .sort(),
  )
})

test('a consumer that keeps no order any more looks at its lanes while other messages keep it busy', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined }, { order: 'key' })
  await box.receive(note('old', { key: 'k' }))
  const later = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
  const seen: string[] = []
  let next = 0
  const handler = async ({ id }: { readonly id: string }): Promise<void> => {
    seen.push(id)
    // There is always one more, until the old one has come.
    if (!seen.includes('old')) await later.receive(note(`n${++next}`))
  }
  later.consumer('a', { note: handler }, { concurrency: 1, group: { messages: 1 } })
  await later.receive([note('first'), note('second')])
  await later.start()
  try {
    await waitUntil(() => seen.includes('old'))
  } finally {
    await later.stop()
  }
})

test('an ordered consumer that has found messages without a key rouses somebody for those with one', async () => {
  await using box = await server.open()
  const polls = gate()
  const db = fromPg(server.pool)
  const bind = bindTo(box.schema)
  let looks = 0
  const query: typeof db.query = async (text, ...rest) => {
    if (text === bind(NEXT_DUE)) await polls.opened
    const rows = await db.query(text, ...rest)
    if (text === bind(CLAIM) || text === bind(CLAIM_LANES)) looks++
    return rows
  }
  // Without polls and notifications, which would find it too.
  const deaf = new Proxy(db, {
    get(_, name) {
      const member: unknown = Reflect.get(db, name, db)
      if (name === 'listen') return undefined
      if (name === 'query') return query
      return typeof member === 'function' ? (member.bind(db) as unknown) : member
    },
  })
  const worker = createBox({ db: deaf, schema: box.schema, logger: recorder() })
  const both = gate()
  const inside: string[] = []
  const handler = async ({ id }: { readonly id: string }): Promise<void> => {
    inside.push(id)
    if (inside.length === 2) both.open()
    await both.opened
  }
  // Slots look at messages and at lanes in turn: after four that found nothing, at messages first.
  worker.consumer('a', { note: handler }, { order: 'key', concurrency: 4, leaseMs: 60_000 })
  await worker.start()
  try {
    await waitUntil(() => looks === 8)
    await worker.receive([note('without'), note('with', { key: 'k' })])
    await waitUntil(() => inside.length === 2, { timeoutMs: 15_000 })
    expect(inside).toEqual(['without', 'with'])
  } finally {
    both.open()
    polls.open()
    await worker.stop()
  }
})
