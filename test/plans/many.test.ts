/**
 * Many rows: what a statement costs must grow with them, not with their square. Each is given thousands, with little memory
 * for a list, and no step of its plan may go through many times as many rows.
 */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { EXTEND } from '../../src/postgres/sql/claim.js'
import { MOVE } from '../../src/postgres/sql/link.js'
import { SETTLE_MARKED } from '../../src/postgres/sql/marks.js'
import { CLAIM_SHARDS, COMPLETE, COMPLETED, FINISH_SHARED, READ_SHARDS } from '../../src/postgres/sql/shards.js'
import { ASSIGN, CATCH_UP } from '../../src/postgres/sql/sinks.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { explain } from './finder.js'

const bind = bindTo('box')
const TOKEN = '00000000-0000-4000-8000-000000000001'
const ROWS = 3_000
/** A few steps over each row are fine. */
const MOST = 5 * ROWS

/** Of each kind as many: events that were told to wait, that may go, that need a sink, and that were put aside. */
const FILL = `
insert into ob.sink (name) values ('broker');
insert into ob.shard (sink, shard, token, due_at) select 'broker', g, '${TOKEN}', now() + interval '1 hour' from generate_series(0, 7) g;
insert into ob.shard (sink, shard, due_at) select 'broker', g, now() from generate_series(8, 31) g;
insert into ob.outbox (source, id, type, key, body, hash, envelope)
select 'box', i::text, 't', 'k' || i, '{}', decode(md5(i::text), 'hex'), '{}' from generate_series(1, ${4 * ROWS}) i;
insert into ob.delivery (n, sink, shard, key, due_at, waiting, attempts, error)
select n, 'broker', n % 16, key, now() + interval '1 hour', true, 1, '{}' from ob.outbox where n <= ${ROWS};
insert into ob.delivery (n, sink, shard, key, due_at)
select n, 'broker', n % 16, key, now() from ob.outbox where n > ${ROWS} and n <= ${2 * ROWS};
insert into ob.consumer (name, ordered, retain_ms) values ('orders', false, 86400000);
insert into ob.message (consumer, source, id, type, body, hash, envelope)
select 'orders', 's', i::text, 't', '{}', '', '{}' from generate_series(1, ${ROWS}) i;
insert into ob.work (consumer, source, id, seq, due_at, token)
select consumer, source, id, n, now() + interval '1 hour', '${TOKEN}' from ob.message;
insert into ob.consumer (name, ordered, retain_ms) values ('ledger', true, 86400000);
insert into ob.message (consumer, source, id, type, key, body, hash, envelope)
select 'ledger', 's', i::text, 't', 'k' || i, '{}', '', '{}' from generate_series(1, ${ROWS}) i;
insert into ob.work (consumer, source, id, seq, lane, due_at)
select consumer, source, id, n, key, now() from ob.message where consumer = 'ledger';
insert into ob.lane (consumer, key, due_at) select consumer, key, now() from ob.message where consumer = 'ledger'`

const UNASSIGNED = `
insert into ob.catch_up (sink, holds) values ('broker', false);
insert into ob.delivery (n, sink, shard, key, due_at, waiting)
select n, '', n % 16, key, now(), n > ${3 * ROWS} from ob.outbox where n > ${2 * ROWS}`

/** So many keys that wait that their index has a level more than others, and a few events of keys that do not. */
const KEYS = 80_000
const EVENTS = 300
const FILL_KEYS = `
alter table ob.delivery set (autovacuum_enabled = off);
insert into ob.sink (name) values ('broker');
insert into ob.shard (sink, shard, due_at) select 'broker', g, now() from generate_series(0, 31) g;
insert into ob.outbox (source, id, type, body, envelope) select 'box', i::text, 't', '{}', '{}' from generate_series(1, ${EVENTS}) i;
insert into ob.delivery (n, sink, shard, key, due_at) select n, 'broker', n % 16, 'free' || n, now() from ob.outbox;
insert into ob.delivery (n, sink, shard, key, due_at, waiting, attempts)
select ${EVENTS} + i, 'broker', i % 16, 'k' || i, now() + interval '1 hour', true, 1 from generate_series(1, ${KEYS}) i`

let database: ScratchDatabase
let client: pg.Client

beforeAll(async () => {
  database = await scratchDatabase('many_rows')
  const pool = new pg.Pool({ connectionString: database.url })
  await createBox({ db: fromPg(pool), schema: 'box' }).migrate()
  await pool.end()
  client = new pg.Client(database.url)
  await client.connect()
  await client.query(bind(FILL))
  await client.query("set work_mem = '64kB'; set hash_mem_multiplier = 1")
})
afterAll(async () => {
  await client.end()
  await database.close()
})

const LIVE = Array.from({ length: ROWS }, (_, at) => String(ROWS + 1 + at)).filter((n) => Number(n) % 16 < 8)
const SHARDS = { sink: 'broker', token: TOKEN }
const READING = { sink: 'broker', shards: [0, 1, 2, 3, 4, 5, 6, 7], depth: ROWS, limit: ROWS, bytes: 1e9 }
const CONSUMER = {
  name: 'orders',
  ordered: false,
  retainMs: 86_400_000,
  untimed: 'accept',
  types: ['t'],
  identity: false,
}
const FAILED = LIVE.map((n) => ({ n, id: n, delayMs: 10, error: '{}' }))
const DONE = LIVE.map((n) => [n, n])

const PUBLISHING: [name: string, text: string, given: unknown][] = [
  ['CLAIM_SHARDS', CLAIM_SHARDS, { ...SHARDS, lease: 1_000, limit: 8 }],
  ['READ_SHARDS', READ_SHARDS, READING],
  ['MOVE', MOVE, { ...READING, token: TOKEN, wait: '1s', consumers: [CONSUMER] }],
  ['COMPLETE of refusals', COMPLETE, { ...SHARDS, done: [], failed: FAILED }],
  ['COMPLETE of what was published', COMPLETE, { ...SHARDS, done: DONE, failed: [] }],
  ['COMPLETED', COMPLETED, { ...SHARDS, done: [], failed: FAILED }],
  ['FINISH_SHARED', FINISH_SHARED, LIVE],
  ['EXTEND', EXTEND, { consumer: 'orders', token: TOKEN, leaseMs: 1_000, messages: LIVE.map((n) => ['s', n]) }],
]
const ASSIGNING: typeof PUBLISHING = [
  ['ASSIGN', ASSIGN, [ROWS]],
  ['CATCH_UP', CATCH_UP, { sink: 'broker', limit: ROWS }],
]

test('what marks messages as handled goes through each of many rows a few times', async () => {
  const keys = Array.from({ length: ROWS }, (_, at) => ['ledger', 's', String(at + 1)])
  expect((await explain(client, bound(SETTLE_MARKED), { keys })).most).toBeLessThan(MOST)
})

/** The picture of the tables, as it may be: drawn before they were filled, or after. */
const PICTURES = ['never', 'just now']

test.each(PICTURES)('what publishes goes through each of many rows a few times, analysed %s', async (picture) => {
  if (picture === 'just now')
    await client.query(bind('analyze ob.delivery; analyze ob.outbox; analyze ob.shard; analyze ob.work'))
  const most: Record<string, number> = {}
  for (const [name, text, given] of PUBLISHING) most[name] = (await explain(client, bound(text), given)).most
  expect(Object.entries(most).filter(([, rows]) => rows > MOST)).toEqual([])
})

test('many keys that wait are looked up by their index though nobody has analyzed the table', async () => {
  const pool = new pg.Pool({ connectionString: database.url })
  await createBox({ db: fromPg(pool), schema: 'keys' }).migrate()
  await pool.end()
  const own = bindTo('keys')
  await client.query(own(FILL_KEYS))
  for (const [text, given] of [
    [READ_SHARDS, READING],
    [CLAIM_SHARDS, { ...SHARDS, lease: 1_000, limit: 8 }],
  ] as const) {
    const { most, rows } = await explain(client, own(text), given)
    expect(most).toBeLessThan(10 * EVENTS)
    expect(rows.get('delivery')).toBeLessThan(10 * EVENTS)
  }
})

test('what finds sinks goes through each of many rows a few times', async () => {
  await client.query(bind(UNASSIGNED))
  const most: Record<string, number> = {}
  for (const [name, text, given] of ASSIGNING) most[name] = (await explain(client, bound(text), given)).most
  expect(Object.entries(most).filter(([, rows]) => rows > MOST)).toEqual([])
})

function bound(text: string): string {
  return bind(text).replaceAll('to_box.', bind('ob.'))
}
