/** What the parts of the growth benchmark share: a box to fill, one round of work, and a row of the report. */
import { watchCpu } from '../cpu.mjs'
import { Library } from '../library.mjs'
import { median } from '../spread.mjs'
import { orders, SOURCE, TYPE } from '../messages.mjs'

/** A box in a schema of its own, with what is asked of it. */
export async function openBox({ server, admin }, schema, options = {}) {
  const box = new Library(server.url, schema)
  await box.open(options)
  const left = async () => (await admin.query(`select count(*)::int n from ${schema}.work`)).rows[0].n
  return { box, schema, left }
}

/** Receives so many messages, then handles them: what it does per second, and the CPU of both per message. */
export async function round({ server, admin }, { box, left }, count, { keyOf } = {}) {
  const list = orders(count, { keyOf })
  await admin.query('truncate bench.effect')
  const received = await timed(server, count, () => box.receive(list))
  const handled = await timed(server, count, () => box.drain(count, left))
  return { receive: received, handle: handled }
}

async function timed(server, count, work) {
  const cpu = watchCpu(server.pid)
  const started = performance.now()
  const ended = (await work()) ?? performance.now()
  const rate = Math.round((count * 1_000) / (ended - started))
  const { node, postgres } = cpu(count)
  return { rate, cpu: Math.round(node + postgres) }
}

/** Past the front door: they appear all at once. */
export async function load(admin, schema, count) {
  await admin.query(
    `with stored as (
       insert into ${schema}.message (consumer, source, id, type, body)
       select 'bench', $2, gen_random_uuid()::text, $3,
         jsonb_build_object('orderId', i::text, 'sku', i % 1000, 'quantity', 1)::text from generate_series(1, $1::int) i
       returning consumer, source, id)
     insert into ${schema}.work (consumer, source, id, due_at) select consumer, source, id, now() from stored`,
    [count, SOURCE, TYPE],
  )
  await admin.query(`analyze ${schema}.work, ${schema}.message`)
}

/** The row of the report that says how large one does beside small, of samples taken in turn. */
export function compare(part, what, { small, large, unit = 'per second', target, note }) {
  const [one, other] = [median(small), median(large)]
  const ratio = Number((other / one).toFixed(3))
  const pass = target === undefined ? undefined : unit === 'ms' ? ratio <= target : ratio >= target
  return {
    part,
    what,
    small: shown(one),
    large: shown(other),
    unit,
    ratio,
    target,
    pass,
    note,
    samples: { small, large },
  }
}

function shown(figure) {
  return figure >= 100 ? Math.round(figure) : Number(figure.toFixed(2))
}
