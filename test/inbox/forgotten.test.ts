/** What retention deleted stays forgotten: whatever `retainMs` says later, or in another process, a copy is not new. */
import type pg from 'pg'
import type { Incoming } from 'oncebox'
import { link } from 'oncebox/link'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { PRUNE } from '../../src/postgres/sql/retain.js'
import { open, type Opened } from '../admin/open.js'
import { scratchSchemaName } from '../support/postgres.js'
import { inTransaction } from '../support/transaction.js'
import { waitUntil } from '../support/wait.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

let opened: Opened
let schema: string
beforeAll(async () => {
  opened = await open('forgotten')
})
afterAll(() => opened.close())
beforeEach(() => {
  schema = scratchSchemaName('forgotten')
})

/** A process of its own, as far as the library can tell. */
function processWith(retainMs: number, options: { mode?: 'inline'; isolation?: 'serializable' } = {}) {
  const box = opened.box({ schema })
  box.consumer('c', { t: ({ id }, { tx }) => tx.query(`insert into "${schema}".ledger values ($1)`, [id]) }, { retainMs, ...options }) // prettier-ignore
  return box
}
type Process = ReturnType<typeof processWith>

async function openLedger(box: Process): Promise<void> {
  await box.migrate()
  await opened.sql(schema, 'create table ob.ledger (id text)')
}

const effects = async (): Promise<string[]> =>
  (await opened.sql(schema, 'select id from ob.ledger order by id')).map(({ id }) => id as string)
const at = (ms: number): Date => new Date(Date.now() + ms)
const message = (id: string, sentMs = 0): Incoming => ({ id, type: 't', source: 's', time: at(sentMs), data: 1 })

function once(box: Process, copy: Incoming, begin = 'begin') {
  return inTransaction(opened.pool, (client) => onceIn(box, client, copy), begin)
}

function onceIn(box: Process, client: pg.PoolClient, { id, time }: Incoming) {
  return box.once(client, 'c', { id: id!, source: 's', type: 't', time: time!, data: 1 }, () =>
    client.query(`insert into "${schema}".ledger values ($1)`, [id]).then(() => null),
  )
}

/** Every way in. Each answers with what it made of the copy. */
const DOORS: Record<string, (retainMs: number, copy: Incoming) => Promise<{ status: string; reason?: string }>> = {
  async receive(retainMs, copy) {
    const box = processWith(retainMs)
    const outcome = await box.receive(copy)
    await box.drain()
    return outcome
  },
  handle: (retainMs, copy) => processWith(retainMs, { mode: 'inline' }).handle(copy),
  'handle, redelivered': (retainMs, copy) =>
    processWith(retainMs, { mode: 'inline' }).handle({ ...copy, redelivered: true } as Incoming),
  once: (retainMs, copy) => once(processWith(retainMs), copy),
  async link(retainMs, copy) {
    const box = processWith(retainMs)
    const sender = opened.box({ schema: `${schema}_sender`, source: 's' })
    sender.to(link({ to: box, name: 'link' }))
    await sender.migrate()
    await inTransaction(opened.pool, (client) => sender.send(client, 't', 1, { id: copy.id! }))
    await opened.sql(`${schema}_sender`, `update ob.outbox set envelope = $1`, [
      JSON.stringify({ time: new Date(copy.time!).toISOString() }),
    ])
    await sender.drain()
    await box.drain()
    const [row] = await opened.sql(schema, `select 'quarantined' status, reason from ob.quarantine`)
    return (row ?? { status: 'stored' }) as { status: string; reason?: string }
  },
}

describe.each(Object.keys(DOORS))('by %s', (door) => {
  test('a message that was handled and forgotten under a short horizon is too old under a long one', async () => {
    const brief = processWith(HOUR)
    await openLedger(brief)
    const first = message('m')
    expect(await brief.handle(first)).toMatchObject({ status: 'handled' })
    await opened.setClock(schema, 2 * HOUR)
    expect(await brief.admin.prune()).toBe(1)

    expect(await DOORS[door]!(30 * DAY, first)).toMatchObject({ status: 'quarantined', reason: 'too-old' })
    expect(await effects()).toEqual(['m'])
  })

  test('a message that is younger than all that was forgotten is new', async () => {
    const brief = processWith(HOUR)
    await openLedger(brief)
    await brief.handle(message('m'))
    await opened.setClock(schema, 2 * HOUR)
    await brief.admin.prune()

    await DOORS[door]!(30 * DAY, message('young', 20 * MINUTE))
    expect(await effects()).toEqual(['m', 'young'])
  })
})

describe('a copy that arrives while retention deletes', () => {
  const wait = () =>
    waitUntil(async () => {
      const rows = await opened.sql(
        schema,
        `select 1 from pg_locks where not granted and locktype = 'transactionid' and database is null`,
      )
      return rows.length > 0
    })

  test.for<[how: string, (box: Process, copy: Incoming) => Promise<{ status: string }>]>([
    ['receive', (box, copy) => box.receive(copy)],
    ['handle', (box, copy) => box.handle(copy)],
    ['once', (box, copy) => once(box, copy).catch((error: { code: string }) => ({ status: error.code.toLowerCase() }))],
  ])('by %s waits for it, and is not new', async ([, deliver]) => {
    const brief = processWith(HOUR)
    await openLedger(brief)
    const first = message('m')
    await brief.handle(first)
    await opened.setClock(schema, 2 * HOUR)

    const janitor = await opened.pool.connect()
    await janitor.query('begin')
    const prune = PRUNE.replaceAll('ob.', `"${schema}".`)
    await janitor.query(prune, [JSON.stringify({ consumer: 'c', retainMs: HOUR, wait: '1s', keys: [['s', 'm']] })])
    const long = processWith(30 * DAY)
    const arriving = deliver(long, first)
    await Promise.race([wait(), arriving])
    await janitor.query('commit')
    janitor.release()

    // Whoever gave up waiting says busy, and delivers it again.
    let outcome = await arriving
    if (outcome.status === 'busy') outcome = await deliver(long, first)
    expect(outcome).toMatchObject({ status: 'quarantined', reason: 'too-old' })
    await long.drain()
    expect(await effects()).toEqual(['m'])
  })

  test.for(['repeatable read', 'serializable'])(
    'is not new for a transaction under %s that began before',
    async (isolation) => {
      const brief = processWith(HOUR)
      await openLedger(brief)
      const long = processWith(30 * DAY)
      // Once with nothing forgotten before, and once more.
      for (const [id, hours] of [
        ['m1', 0],
        ['m2', 10],
      ] as const) {
        await opened.setClock(schema, hours * HOUR)
        const first = message(id, hours * HOUR)
        await brief.handle(first)
        const late = inTransaction(
          opened.pool,
          async (client) => {
            await client.query('select 1 from pg_class')
            await opened.setClock(schema, (hours + 2) * HOUR)
            expect(await brief.admin.prune()).toBe(1)
            return onceIn(long, client, first)
          },
          `begin isolation level ${isolation}`,
        )
        await expect(late).rejects.toMatchObject({ code: 'BUSY' })
        expect(await once(long, first, `begin isolation level ${isolation}`)).toMatchObject({ reason: 'too-old' })
      }
      expect(await effects()).toEqual(['m1', 'm2'])
    },
  )
})

describe('the clock of the database was behind while a message was handled', () => {
  test.for(Object.keys(DOORS))('the message is not forgotten as soon as it is put right, by %s', async (door) => {
    const box = processWith(30 * DAY)
    await openLedger(box)
    const first = message('m')
    await opened.setClock(schema, -40 * DAY)
    expect(await box.handle(first)).toMatchObject({ status: 'handled' })
    await opened.setClock(schema, 0)
    expect(await box.admin.prune()).toBe(0)
    await DOORS[door]!(30 * DAY, first)
    expect(await effects()).toEqual(['m'])

    // It goes by its own time, and a copy is too old from then on.
    await opened.setClock(schema, 30 * DAY + 10 * MINUTE)
    expect(await box.admin.prune()).toBe(1)
    expect(await DOORS[door]!(60 * DAY, first)).toMatchObject({ status: 'quarantined', reason: 'too-old' })
    expect(await effects()).toEqual(['m'])
  })

  test('a message that says to be from a future that is not there yet goes by when it was received', async () => {
    const box = processWith(HOUR)
    await openLedger(box)
    await box.handle(message('m', 365 * DAY))
    await opened.setClock(schema, HOUR + 6 * MINUTE)
    expect(await box.admin.prune()).toBe(1)
  })

  test('what a producer whose clock is ahead by less than the margins has sent goes as ever, and a copy is too old', async () => {
    const box = processWith(HOUR)
    await openLedger(box)
    const first = message('m', 9 * MINUTE)
    await box.handle(first)
    await opened.setClock(schema, HOUR + 6 * MINUTE)
    expect(await box.admin.prune()).toBe(1)
    expect(await processWith(30 * DAY).handle(first)).toMatchObject({ status: 'quarantined', reason: 'too-old' })
  })
})

describe('a transaction that stays open', () => {
  test('under repeatable read keeps neither others nor retention waiting', async () => {
    const box = processWith(HOUR)
    await openLedger(box)
    await box.handle(message('old'))
    const begin = 'begin isolation level repeatable read'
    // Before anything was forgotten, and after.
    for (const hours of [2, 4]) {
      await inTransaction(
        opened.pool,
        async (client) => {
          await opened.setClock(schema, hours * HOUR)
          expect(await onceIn(box, client, message(`open ${hours}`, hours * HOUR))).toMatchObject({ status: 'handled' })
          for (const other of ['begin', begin]) {
            const next = message(`${other} ${hours}`, hours * HOUR)
            expect(await once(box, next, other)).toMatchObject({ status: 'handled' })
          }
          expect(await box.admin.prune()).toBeGreaterThan(0)
        },
        begin,
      )
    }
  })

  test('retention passes over a consumer whose watermark somebody has locked, and comes back', async () => {
    const box = processWith(HOUR)
    box.consumer('other', { t: () => undefined }, { retainMs: HOUR })
    await openLedger(box)
    await box.receive(message('m'))
    await box.drain()
    await opened.setClock(schema, 2 * HOUR)
    await inTransaction(opened.pool, async (client) => {
      await client.query(`select from "${schema}".forgotten where consumer = 'c' for share`)
      expect(await box.admin.prune()).toBe(1)
    })
    expect(await box.admin.prune()).toBe(1)
  })
})

test(
  'retainMs raised, lowered and different in two processes: no message has two effects',
  { timeout: 240_000 },
  async () => {
    const horizons = [10 * MINUTE, HOUR, 6 * HOUR, 30 * DAY]
    const boxes = horizons.map((retainMs) => processWith(retainMs))
    await openLedger(boxes[0]!)
    let seed = 20_240_229
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((seed / 2 ** 32) * below)
    }
    const any = <T>(list: readonly T[]): T => list[random(list.length)]!
    const doors = [
      (box: Process, one: Incoming) => box.receive(one),
      (box: Process, one: Incoming) => box.handle(one),
      (box: Process, one: Incoming) => once(box, one).catch(() => undefined),
    ]
    const sent: Incoming[] = []
    let clock = 0
    for (let round = 0; round < 60; round++) {
      clock += random(30 * MINUTE)
      await opened.setClock(schema, clock)
      const next = message(`m${round}`, clock)
      sent.push(next)
      await any(doors)(any(boxes), next)
      const copies = Array.from({ length: 6 }, () => any(sent))
      // A consumer is what the last process to deploy says it is, and any of them may be the one whose janitor comes by.
      await any(boxes).migrate()
      await Promise.all([any(boxes).admin.prune(), ...copies.map((copy) => any(doors)(any(boxes), copy))])
      await any(boxes).drain()
    }
    const all = await effects()
    expect(all.filter((id, index) => all.indexOf(id) !== index)).toEqual([])
    expect(new Set(all).size).toBe(sent.length)
    expect(await opened.sql(schema, `select count(*)::int n from ob.message`)).not.toEqual([{ n: sent.length }])
  },
)
