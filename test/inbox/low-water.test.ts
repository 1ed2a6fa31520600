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

interface Taken {
  /** How long it takes the server. */
  readonly tookMs?: number
  readonly left?: boolean
  /** How long it takes here. */
  readonly ms?: number
  readonly until?: Promise<unknown>
}

/** Claims on a clock of their own, which note from where they looked, in ms since 1970: undefined for everything. */
function claims() {
  let clock = 0
  const low = new LowWater(() => clock)
  const asked: (number | undefined)[] = []
  return {
    low,
    asked,
    passes(ms: number) {
      clock += ms
    },
    /** Finds what has fallen due then. */
    claim: (earliest: number | undefined, { tookMs = 0, left = false, ms = 0, until }: Taken = {}) =>
      low.claim(async (hint) => {
        asked.push(hint === undefined ? undefined : Date.parse(hint))
        clock += ms
        await until
        return earliest === undefined ? undefined : { earliest, tookMs, left }
      }),
    /** Asks what falls due next, and nothing does. */
    next: (now: number, tookMs: number) =>
      low.lookAtAll(
        () => Promise.resolve(),
        () => ({ now, tookMs }),
      ),
  }
}

type Held = (until: Promise<unknown>) => Promise<unknown>

/** Both begin, and end in the same order. */
async function sideBySide(...both: [Held, Held]): Promise<void> {
  const begun = both.map((begin) => {
    const { open, opened } = gate()
    return { open, over: begin(opened) }
  })
  for (const { open, over } of begun) {
    open()
    await over
  }
}

const AT = Date.now()

test('a claim that began with a hint, and ends after its time, says nothing about what lies below it', async () => {
  const { asked, claim } = claims()
  await claim(AT)
  // It has the hint, and takes longer than that is good for.
  await claim(AT + 60_000, { ms: 1_200 })
  await claim(AT)
  expect(asked).toEqual([undefined, AT - 250, undefined])
})

test('the hint rises with what was claimed above it, and keeps some room for late commits', async () => {
  const { asked, claim } = claims()
  await claim(AT)
  await claim(AT + 10_000)
  await claim(AT + 5_000)
  await claim(AT + 20_000)
  expect(asked).toEqual([undefined, AT - 250, AT + 9_750, AT + 9_750])
})

test('but not over what a look has found below it meanwhile', async () => {
  const { asked, claim, passes } = claims()
  await claim(AT)
  passes(1_000)
  await sideBySide(
    (until) => claim(AT - 60_000, { until }),
    (until) => claim(AT + 5_000, { until }),
  )
  await claim(AT)
  expect(asked).toEqual([undefined, undefined, AT - 250, AT - 60_250])
})

test('nor over what a claim has locked and not taken, whichever ends first', async () => {
  const { asked, claim } = claims()
  await claim(AT)
  await sideBySide(
    (until) => claim(AT + 1_000, { left: true, until }),
    (until) => claim(AT + 5_000, { until }),
  )
  await claim(AT + 2_000)
  await claim(AT + 1_000, { left: true })
  await claim(AT + 2_000)
  expect(asked).toEqual([undefined, AT - 250, AT - 250, AT - 250, AT + 1_750, AT + 750])
})

test('while one claim looks at everything, the others go on above the hint, but not for ever', async () => {
  const { asked, claim, passes } = claims()
  await claim(AT)
  passes(1_000)
  const slow = gate()
  const looking = claim(AT, { until: slow.opened })
  await claim(AT)
  passes(5_000)
  await claim(AT)
  slow.open()
  await looking
  expect(asked).toEqual([undefined, undefined, AT - 250, undefined])
})

test('where everything is cheap to look at, that is done as soon as there is nothing above the hint, whoever else does', async () => {
  const { asked, claim, passes } = claims()
  await claim(AT, { tookMs: 50 })
  await claim(undefined)
  expect(asked).toEqual([undefined, AT - 250, undefined])
  // Nothing was found, so nothing is known.
  await claim(AT)
  passes(1_000)
  const slow = gate()
  const looking = claim(AT, { until: slow.opened })
  await claim(undefined)
  slow.open()
  await looking
  expect(asked.slice(3)).toEqual([undefined, undefined, AT - 250, undefined])
})

test('where it is dear, it takes a tenth of the time at most, however long it takes here', async () => {
  const { asked, claim, passes, next } = claims()
  await claim(AT, { tookMs: 300, ms: 10 })
  await claim(undefined)
  passes(2_980)
  await claim(undefined)
  expect(asked).toEqual([undefined, AT - 250, AT - 250])
  passes(10)
  await claim(undefined, { ms: 2_000 })
  expect(asked.splice(0)).toEqual([undefined, AT - 250, AT - 250, undefined])
  // What falls due next was asked of everything.
  await next(AT + 10_000, 60_000)
  passes(4_999)
  await claim(undefined)
  passes(1)
  await claim(undefined)
  expect(asked).toEqual([AT + 9_750, undefined])
})

test('a look that fails is made again at once', async () => {
  const { low, asked, claim, passes } = claims()
  await claim(AT, { tookMs: 300 })
  passes(3_000)
  await expect(low.claim(() => Promise.reject(new Error('gone')))).rejects.toThrow('gone')
  await claim(AT)
  expect(asked).toEqual([undefined, undefined])
})

test('who drains leaves nothing out, and who forgets looks at everything, however dear it is', async () => {
  const { low, asked, claim } = claims()
  await claim(AT, { tookMs: 300 })
  let looks = 0
  await low.claimAny(async () => void looks++)
  low.forget()
  await claim(AT)
  expect([asked, looks]).toEqual([[undefined, undefined], 1])
})

test('a look that began before everything was forgotten says nothing', async () => {
  const { low, asked, claim } = claims()
  const slow = gate()
  const looking = claim(AT, { until: slow.opened })
  low.forget()
  slow.open()
  await looking
  await claim(AT)
  expect(asked).toEqual([undefined, undefined])
})

test('of two looks side by side the lower one counts, whichever began first', async () => {
  const { low, asked, claim, passes } = claims()
  await sideBySide(
    (until) => claim(AT, { left: true, until }),
    (until) => (passes(1), claim(AT + 5_000, { until })),
  )
  await claim(AT + 1_000)
  expect(asked).toEqual([undefined, undefined, AT - 250])
  // And one that came to nothing has left what it had locked.
  await claim(AT + 2_000)
  const third = gate()
  const failing = low.claim(() => third.opened.then(() => Promise.reject(new Error('gone'))))
  await claim(AT + 9_000)
  third.open()
  await expect(failing).rejects.toThrow('gone')
  await claim(AT + 9_000)
  expect(asked.slice(3)).toEqual([AT + 750, AT + 1_750, AT + 1_750])
})

test('of two looks side by side the one that began first does not raise what the other says', async () => {
  const { low, asked, claim, passes } = claims()
  const slow = gate()
  const first = low.lookAtAll(
    () => slow.opened,
    () => ({ now: AT + 10_000, tookMs: 300 }),
  )
  passes(1)
  await claim(AT, { tookMs: 300 })
  slow.open()
  await first
  await claim(AT)
  expect(asked).toEqual([undefined, AT - 250])
})

test('a worker finds what committed late, below what it has claimed', async () => {
  await using box = await server.open()
  const seen = new Set<string>()
  box.consumer('a', { note: ({ id }) => void seen.add(id) })
  await box.start()
  await box.receive(notes(5))
  await waitUntil(() => seen.size === 5)
  // As a transaction that was open for an hour.
  await box.sql(`with late as (
      insert into ob.message (consumer, source, id, type, body)
      select consumer, source, 'late', type, body from ob.message limit 1 returning *)
    insert into ob.work (consumer, source, id, due_at)
    select consumer, source, id, ob.now() - interval '1 hour' from late`)
  await waitUntil(() => seen.has('late'))
})

test('a look at what falls due next begins at the hints, of messages and of lanes', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.receive(notes(1))
  const due = async (from: object): Promise<unknown> =>
    (await box.sql(NEXT_DUE, [JSON.stringify({ consumer: 'a', ...from })]))[0]?.['ms']
  const soon = new Date(Date.now() + 60_000).toISOString()
  expect(await due({})).toBe('0')
  expect(await due({ low: new Date(0).toISOString(), lanesLow: soon })).toBe('0')
  expect(await due({ low: soon, lanesLow: soon })).toBeNull()
  await box.sql(`insert into ob.lane (consumer, key, due_at) values ('a', 'k', ob.now())`)
  expect(await due({ low: soon, lanesLow: soon })).toBeNull()
  expect(await due({ low: soon, lanesLow: new Date(0).toISOString() })).toBe('0')
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
    // Both are inside at the same time; which of them begins first is the scheduler's to say.
    expect(inside.sort()).toEqual(['with', 'without'])
  } finally {
    both.open()
    polls.open()
    await worker.stop()
  }
})
