/**
 * The cliff: a worker runs on an empty table long enough for its connections to keep generic plans, then a million rows
 * appear in one commit, before anything could analyse the table. A plan that was right for no rows must be right for a
 * million. Answers the rate in each of the first seconds, and after.
 */
import pg from 'pg'
import { Library } from './library.mjs'
import { orders, SOURCE, TYPE } from './messages.mjs'

const SECONDS = 20

/** Past the front door, into the library's own tables: nothing else makes them appear all at once. */
const LOAD = `
with m as (
  insert into lib.message (consumer, source, id, type, body)
  select 'bench', '${SOURCE}', gen_random_uuid()::text, '${TYPE}',
    jsonb_build_object('orderId', i::text, 'sku', i % 1000, 'quantity', 1)::text from generate_series(1, $1::int) i
  returning consumer, source, id)
insert into lib.work (consumer, source, id, due_at) select consumer, source, id, now() from m`

export async function measureBacklog(url, count, say) {
  const box = new Library(url, 'lib')
  await box.open({})
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let handled = 0
    await box.start(() => handled++)
    // Enough claims, found and empty, for generic plans on every connection.
    for (let i = 0; i < 50; i++) {
      await box.receive(orders(20), { size: 5 })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    say(`loading ${count} rows`)
    await client.query(LOAD, [count])
    const perSecond = []
    for (let second = 0; second < SECONDS; second++) {
      const before = handled
      const started = performance.now()
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      perSecond.push(Math.round(((handled - before) * 1_000) / (performance.now() - started)))
      say(`second ${second + 1}: ${perSecond.at(-1)}/s`)
    }
    await box.stop()
    return perSecond
  } finally {
    await client.end()
    await box.close()
  }
}
