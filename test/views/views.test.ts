/** The views say what the admin says, of messages that went every way, and read no table as a whole to say it. */
import { createBox, Reject, RetryLater, type Entry, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, test } from 'vitest'
import { MIGRATIONS } from '../../src/postgres/migrations.generated.js'
import { gate, recorder, useServer, type Bench } from '../inbox/fixture.js'
import { useFullTables } from '../plans/full-tables.js'
import { scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('views')

/** Numbers that look random, and are the same in every run. */
function dice(seed: number): () => number {
  let state = seed
  return () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648
}

/**
 * What becomes of a message is in its data: handled, dead, to be tried later, held by a handler that waits, parked by an
 * effect.
 */
async function open(seed: number) {
  const roll = dice(seed)
  const box = await server.open({ logger: recorder() })
  const held = gate()
  const fate = async ({ data }: { data: unknown }, ctx: unknown): Promise<void> => {
    const { fate } = data as { fate: string }
    if (fate === 'dead') throw new Reject('no')
    if (fate === 'later') throw new RetryLater({ afterMs: 3_600_000 })
    if (fate === 'failing') throw new Error('again')
    if (fate === 'held') await held.opened
    if (fate === 'unknown') {
      const { effect } = ctx as { effect: (name: string, run: () => never, options: object) => Promise<void> }
      await effect('call', () => { throw new Error('nobody knows') }, { onUnknown: 'park' }) // prettier-ignore
    }
  }
  const retry = { attempts: 3, baseMs: 3_600_000, jitter: 'none' } as const
  box.consumer('loose', { note: fate }, { retry, group: { messages: 1 }, concurrency: 4 })
  box.consumer('ordered', { note: fate }, { retry, order: 'key' })
  box.consumer('business', { note: fate }, { retry, identity: ({ data }) => (data as { n: number }).n.toString() })
  box.consumer('inline', { late: fate }, { retry, mode: 'inline' })
  const FATES = ['handled', 'handled', 'handled', 'dead', 'later', 'failing', 'unknown']
  const message = (n: number, fate: string) => ({
    ...{ id: `m${n}`, source: `s${n % 3}`, type: 'note', key: `k${Math.floor(roll() * 20)}` },
    data: { n, fate },
  })
  const all = Array.from({ length: 60 }, (_, n) => message(n, FATES[Math.floor(roll() * FATES.length)]!))
  await box.receive(all)
  await box.drain()
  for (let n = 0; n < 6; n++) await box.handle({ ...message(100 + n, n < 3 ? 'failing' : 'handled'), type: 'late' })
  // Conflicts, what nobody wants, what has no id.
  await box.receive(all.slice(0, 5).map((one) => ({ ...one, data: { other: true, n: -1, fate: 'handled' } })))
  await box.receive([{ id: 'u1', type: 'unheard', data: 1 }, { id: undefined, type: 'note', data: 1 }]) // prettier-ignore
  await box.admin.discard({ state: 'dead', source: 's1' }, { reason: 'a test' })
  await box.admin.discard({ reason: 'unrouted' }, { reason: 'a test' })
  await box.admin.retry({ state: 'handled', source: 's2' }, { limit: 4 })
  // What arrives now is pending, and some of it held.
  await box.receive(Array.from({ length: 9 }, (_, n) => message(200 + n, n < 3 ? 'held' : 'handled')))
  void box.start()
  await waitUntil(async () => (await box.admin.status()).consumers['loose']!.processing > 0, { what: 'a claim' })
  return { box, held }
}

const SELECT = `select consumer, source, id, type, key, state, attempts, extract(epoch from received_at) * 1000 received,
  extract(epoch from handled_at) * 1000 handled, error, reason from ob.messages`

const words = (...parts: unknown[]): string => parts.map((part) => (typeof part === 'string' ? part : '')).join(' | ')

async function everything(box: Bench, filter: object = {}): Promise<string[]> {
  const found: Entry<MessageMap>[] = []
  for (let cursor: string | undefined; ;) {
    const page = await box.admin.messages(filter, { cursor, limit: 1_000 })
    found.push(...page.entries)
    if ((cursor = page.cursor) === undefined) break
  }
  return found.map(({ consumer, state, message, handledAt, error, reason }) =>
    words(consumer, message.source, message.id, message.type, message.key, state, handledAt && 'then', error?.message, reason),
  ) // prettier-ignore
}

async function viewed(box: Bench, where = ''): Promise<string[]> {
  return (await box.sql(`${SELECT} ${where}`)).map((row) =>
    words(row['consumer'], row['source'], row['id'], row['type'], row['key'], row['state'], row['handled'] && 'then', row['error'], row['reason']),
  ) // prettier-ignore
}

test.for([1, 2])('messages has what admin.messages has, state by state (%i)', async (seed) => {
  const { box, held } = await open(seed)
  try {
    // Nothing moves while both are read: what runs is held, and what is left is later.
    await waitUntil(async () => {
      const before = await viewed(box)
      const said = await everything(box)
      return before.sort().join() === said.sort().join() && before.join() === (await viewed(box)).sort().join()
    }, { what: 'the view and the admin to agree', timeoutMs: 30_000 }).catch(() => undefined) // prettier-ignore
    expect((await viewed(box)).sort()).toEqual((await everything(box)).sort())
    const states = await box.sql('select distinct state from ob.messages order by 1')
    expect(states.map(({ state }) => state)).toEqual(['dead', 'discarded', 'handled', 'pending', 'processing', 'quarantined']) // prettier-ignore
    for (const state of ['dead', 'discarded', 'quarantined', 'processing', 'pending', 'handled']) {
      expect((await viewed(box, `where state = '${state}'`)).sort()).toEqual((await everything(box, { state })).sort())
    }
    const { consumers } = await box.admin.status()
    const counted = await box.sql('select consumer, state, count(*)::int n from ob.messages group by 1, 2')
    for (const { consumer, state, n } of counted) {
      expect([consumer, state, consumers[consumer as string]![state as 'pending']]).toEqual([consumer, state, n])
    }
    const lag = await box.sql(`select name, paused, lag_ms::float8 lag from ob.lag where box = 'inbox' order by 1`)
    expect(lag.map(({ name }) => name)).toEqual(['business', 'inline', 'loose', 'ordered'])
    for (const { name, lag: ms } of lag) {
      expect(Math.abs(consumers[name as string]!.lagMs - (ms as number))).toBeLessThan(60_000)
      expect(consumers[name as string]!.lagMs > 0).toBe((ms as number) > 0)
    }
  } finally {
    held.open()
    await box[Symbol.asyncDispose]()
  }
})

test('outbox_events has what admin.messages has of the outbox, and lag how far sinks are behind', async () => {
  await using box = await server.open({ logger: recorder() })
  const published: string[] = []
  const sink = {
    name: 'broker',
    publish: (batch: readonly { id: string }[]) => {
      published.push(...batch.map(({ id }) => id))
      return Promise.resolve(batch.map(({ id }) => (id.startsWith('bad') ? { error: new Error('refused'), retry: false } : undefined))) // prettier-ignore
    },
    close: () => Promise.resolve(),
  }
  box.to(sink as never, { types: ['wanted'], keepMs: 3_600_000, retry: { attempts: 1 } })
  await box.migrate()
  const send = async (id: string, type: string): Promise<void> => {
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      await box.send(client, type, { id }, { id })
      await client.query('commit')
    } finally {
      client.release()
    }
  }
  for (const id of ['e1', 'e2', 'bad1']) await send(id, 'wanted')
  await send('lonely', 'unwanted')
  await box.drain()
  await send('e3', 'wanted')
  const entries = (await box.admin.messages({ box: 'outbox' })).entries.map(({ consumer, state, message }) =>
    words(consumer, message.id, state),
  )
  const rows = await box.sql('select sink, id, state, published_at is not null published from ob.outbox_events')
  expect(rows.map(({ sink: to, id, state }) => words(to, id, state)).sort()).toEqual(entries.sort())
  expect(rows.map(({ state, published: at }) => at === (state === 'handled'))).not.toContain(false)
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(['pending', 'handled', 'dead']))
  expect(await box.sql(`select name, due::int, lag_ms >= 0 known from ob.lag where box = 'outbox'`)).toEqual([
    { name: 'broker', due: 1, known: true },
  ])
})

test('a schema of an older version gets the views, and their columns are those of the page', async () => {
  const schema = scratchSchemaName('old_views')
  const sql = async (text: string) => (await server.pool.query(text.replaceAll('ob.', `${schema}.`))).rows as object[]
  await sql(`create schema ${schema}; create table ob.schema_version (version int not null, compatible_from int not null)`)
  for (const migration of MIGRATIONS.slice(0, 13)) await sql(migration.sql)
  await sql(`insert into ob.schema_version values (13, 1); insert into ob.message (consumer, source, id, type, body) values ('a', '', 'x', 't', '1')`)
  await createBox({ db: fromPg(server.pool), schema, logger: recorder() }).migrate()
  expect(await sql('select consumer, id, state from ob.messages')).toEqual([{ consumer: 'a', id: 'x', state: 'handled' }])
  const columns = `select table_name "view", string_agg(column_name, ' ' order by ordinal_position) columns
    from information_schema.columns where table_schema = '${schema}' and table_name in ('messages', 'outbox_events', 'lag') group by 1 order by 1`
  expect(await sql(columns)).toEqual([
    { view: 'lag', columns: 'box name paused lag_ms due' },
    { view: 'messages', columns: 'consumer source id type key state attempts received_at handled_at due_at error reason' },
    { view: 'outbox_events', columns: 'sink source id type key state attempts sent_at published_at due_at error' },
  ])
}) // prettier-ignore

describe('on full tables', () => {
  const tables = useFullTables('view_plans')

  interface Node {
    readonly 'Node Type': string
    readonly 'Relation Name'?: string
    readonly 'Actual Rows': number
    readonly 'Actual Loops': number
    readonly 'Rows Removed by Filter'?: number
    readonly 'Rows Removed by Index Recheck'?: number
    readonly Plans?: readonly Node[]
  }
  function* nodesOf(node: Node): Generator<Node> {
    yield node
    for (const inner of node.Plans ?? []) yield* nodesOf(inner)
  }
  /** Of the others there is a tenth of that here, which the planner rather reads as a whole; bench/scale.mjs has a million. */
  const LARGE = ['message', 'handled', 'outbox']

  test.for<[what: string, query: string]>([
    ['one message', `select * from ob.messages where consumer = 'orders' and source = 's1' and id = '100001'`],
    ['one message with a business key', `select * from ob.messages where consumer = 'mail' and id = 'o59'`],
    ['dead letters', `select * from ob.messages where state = 'dead' and consumer = 'orders' order by received_at desc`],
    ['what a consumer works at', `select * from ob.messages where state = 'processing' and consumer = 'ledger'`],
    ['the last minutes of a consumer', `select * from ob.messages where consumer = 'orders' and received_at > ob.now() - interval '5 minutes'`],
    ['handled in a span of time', `select count(*) from ob.messages where state = 'handled' and consumer = 'orders' and received_at between ob.now() - interval '25 hours' and ob.now() - interval '24 hours 50 minutes'`],
    ['one event', `select * from ob.outbox_events where source = 'box' and id = '20000'`],
    ['events that are dead', `select * from ob.outbox_events where sink = 'search' and state = 'dead'`],
  ])('%s is found without reading a table as a whole', async ([, query]) => {
    const { rows } = await tables.client.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(
      `explain (analyze, timing off, format json) ${tables.bind(query)}`,
    )
    const nodes = [...nodesOf(rows[0]!['QUERY PLAN'][0].Plan)]
    const read = new Map<string, number>()
    for (const node of nodes) {
      const table = node['Relation Name']
      if (table === undefined) continue
      const each = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)
      read.set(table, (read.get(table) ?? 0) + each * node['Actual Loops'])
    }
    const scanned = nodes.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name']!)
    expect(scanned.filter((table) => LARGE.includes(table))).toEqual([])
    expect([...read].filter(([table, count]) => LARGE.includes(table) && count > 5_000)).toEqual([])
  }) // prettier-ignore

  test('lag reads ten thousand rows of each consumer at most', async () => {
    const { rows } = await tables.client.query<{ name: string; due: string }>(tables.bind('select name, due from ob.lag order by name'))
    expect(rows.map(({ name, due }) => [name, Number(due) > 0])).toContainEqual(['orders', true])
    const plan = await tables.client.query(tables.bind('explain (costs off) select * from ob.lag'))
    const text = plan.rows.map((row) => Object.values(row as object)[0] as string).join('\n')
    expect(text).not.toMatch(/Seq Scan on (message|work|outbox|delivery) /)
  }) // prettier-ignore
})
