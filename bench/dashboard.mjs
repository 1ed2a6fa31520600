/* global Request -- of Node.js */
/**
 * The dashboard on a large box: the time of every page on the server, by count of retained messages. A tenth of them wait, and a
 * hundredth are dead, in 500 groups.
 *
 *   npm run build && node bench/dashboard.mjs [retained = 1000000]
 */
import pg from 'pg'
import { createBox } from 'oncebox'
import { dashboard } from 'oncebox/dashboard'
import { fromPg } from 'oncebox/pg'
import { startServer } from './server.mjs'

const retained = Number(process.argv[2] ?? 1_000_000)
const REPEATS = 5

/** Past the front door, into the library's own tables. Errors have a stack, as those of handlers do. */
const FILL = `
insert into ob.message (consumer, source, id, type, key, body, hash, envelope, received_at, n)
select (array['orders', 'ledger', 'mail'])[i % 3 + 1], 'shop', i::text, 't' || i % 20, 'k' || i % 50000, '{"n":' || i || ',"text":"' || repeat('x', 100) || '"}',
  decode(md5(i::text), 'hex'), '{"headers":{"causationid":"' || i - 1 || '"}}', now() - i * interval '100 ms', i from generate_series(1, ${retained}) i;
insert into ob.work (consumer, source, id, seq, lane, due_at, attempts, parked, error)
select consumer, source, id, n, case when consumer = 'ledger' then key end, case when n % 10 = 0 then 'infinity' else now() end, n % 3,
  case when n % 10 = 0 then 'dead' end, case when n % 10 = 0 then jsonb_build_object('name', 'GatewayTimeout', 'message',
    'POST /charges/' || chr(97 + (n / 10 % 20)::int) || chr(97 + (n / 200 % 25)::int) || ' gave no answer to ' || n || ' within 10000 ms', 'stack', repeat('at charge (src/gateway.ts:88:13) ', 40))::text end
from ob.message where n <= ${retained / 10};
insert into ob.attempt (consumer, source, id, attempt, error, at) select consumer, source, id, 1, error, now() - seq * interval '1 s' from ob.work where parked is not null;
insert into ob.lane (consumer, key, due_at, blocked)
select 'ledger', lane, case when bool_or(parked = 'dead') then 'infinity' else now() end, bool_or(coalesce(parked, '') = 'dead') from ob.work where lane is not null group by lane;
insert into ob.handled (n, at) select n, received_at from ob.message where n > ${retained / 10};
insert into ob.quarantine (consumer, source, id, type, reason, detail, body, hash)
select 'orders', 'shop', i::text, 't1', (array['conflict', 'invalid', 'too-old'])[i % 3 + 1], 'why', '{}', decode(md5(i::text), 'hex') from generate_series(1, 20000) i;
insert into ob.outbox (source, id, type, key, body, envelope) select 'box', i::text, 't1', 'k', '{}', '{}' from generate_series(1, 100000) i;
select setval('ob.seq', ${retained});
insert into ob.sink (name) values ('broker');
insert into ob.delivery (n, sink, shard, key, due_at) select n, 'broker', n % 32, 'k', now() from ob.outbox;`

const PAGES = [
  ...['overview', 'vocabulary', 'failures', 'quarantine', 'keys', 'outbox', 'audit', 'jobs'],
  ...['messages', 'messages?q=state:dead', 'messages?q=state:pending', 'messages?q=consumer:mail', 'messages?q=key:k77', 'messages?q=type:t7%20state:handled'],
  ...['messages?q=error:nothing', 'messages?q=data.n:77', 'messages?q=state:dead%20fingerprint:000000000000', 'messages?q=77', 'message?id=77', 'conversation?id=77'],
] // prettier-ignore

const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: 8 })
try {
  const box = createBox({ db: fromPg(pool), schema: 'bench_dashboard' })
  await box.migrate()
  for (const [name, options] of [['orders', {}], ['ledger', { order: 'key' }], ['mail', {}]]) box.consumer(name, { '*': () => undefined }, options) // prettier-ignore
  await box.migrate()
  console.error(`filling ${retained} messages`)
  for (const statement of FILL.split(';\n')) await pool.query(statement.replaceAll('ob.', 'bench_dashboard.'))
  await pool.query('vacuum analyze')
  let reader = 0
  for (const page of PAGES) {
    const times = []
    let status
    for (let n = 0; n < REPEATS; n++) {
      // Another reader each time: searches are counted. Another dashboard: an overview is kept for a second.
      const ops = dashboard({ shop: box }, { authorize: () => ({ may: 'all', by: `r${reader++}` }) })
      const began = performance.now()
      const response = await ops.fetch(new Request(`http://localhost/api/v1/boxes/shop/${page}`))
      await response.text()
      times.push(performance.now() - began)
      status = response.status
    }
    times.sort((a, b) => a - b)
    console.log(
      `${page.padEnd(60)} ${status} ${times[REPEATS >> 1].toFixed(0).padStart(6)} ms, at most ${times.at(-1).toFixed(0)} ms`,
    )
  }
  const ops = dashboard({ shop: box }, { authorize: () => 'all' })
  const headers = { origin: 'http://localhost', 'content-type': 'application/json' }
  const began = performance.now()
  const counted = await ops.fetch(
    new Request('http://localhost/api/v1/boxes/shop/retry/count', {
      method: 'POST',
      headers,
      body: '{"q":"state:dead"}',
    }),
  )
  const { count } = await counted.json()
  console.log(`count of ${count} dead messages, exact: ${(performance.now() - began).toFixed(0)} ms`)
} finally {
  await pool.query('drop schema if exists bench_dashboard cascade').catch(() => undefined)
  await pool.end()
  await server.stop()
}
