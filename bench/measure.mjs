/** Measures a shape: every contender in turn, several times over; the median counts. */
import pg from 'pg'
import { watchCpu } from './cpu.mjs'
import { BUSINESS } from './handlers.mjs'

export async function measureShape(shape, { server, count, repeats, say }) {
  const { url, pid } = server
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  const sides = []
  try {
    await admin.query(BUSINESS)
    for (const [name, contender] of Object.entries(shape.contenders)) {
      const it = contender.make(url, `lib_${sides.length}`)
      await contender.open(it)
      sides.push({ name, contender, it, samples: [] })
    }
    // Plans, code and buffers warm up.
    for (const side of sides) await measureOnce(admin, pid, shape, side, shape.make(Math.max(5_000, count / 2)))
    for (let repeat = 1; repeat <= repeats; repeat++) {
      const list = shape.make(count)
      for (const side of sides) {
        const sample = await measureOnce(admin, pid, shape, side, list)
        side.samples.push(sample)
        say(`${shape.name} ${repeat}/${repeats} ${side.name}: ${Math.round(sample.rate)}/s`)
      }
    }
  } finally {
    for (const { it } of sides) await it.close()
    await admin.query('drop schema if exists bench cascade')
    await admin.end()
  }
  return sides.map(({ name, samples }) => ({ name, samples }))
}

async function measureOnce(admin, pid, shape, { name, contender, it }, list) {
  await admin.query(`truncate ${it.tables.join(', ')}, bench.effect, bench.stock`)
  let messages = contender.only ? list.filter(contender.only) : list
  if (contender.sleeping) await it.addLanes(admin, contender.sleeping)
  if (contender.stock) {
    await admin.query('insert into bench.stock (sku) select generate_series(0, $1::int - 1)', [contender.stock])
    messages = messages.map((one) => ({ ...one, data: { ...one.data, sku: one.data.sku % contender.stock } }))
  }
  if (contender.load) await it.receive(messages)
  await admin.query(`vacuum analyze ${it.tables.join(', ')}, bench.effect, bench.stock`)
  // A role without the right to it has checkpoints in the middle of a measurement.
  await admin.query('checkpoint').catch(() => {})

  const left = async () => (await admin.query(it.leftQuery)).rows[0].n
  const walBefore = await walAt(admin)
  const cpu = watchCpu(pid)
  const started = performance.now()
  const { ended = performance.now(), others } = (await contender.run(it, messages, left)) ?? {}
  const rate = (messages.length * 1_000) / (ended - started)
  const spent = cpu(messages.length)
  const wal = ((await walAt(admin)) - walBefore) / messages.length
  await verify(admin, shape, name, contender, await left(), messages.length)
  return { rate, cpu: spent, wal, ...(others && { others: (others.count * 1_000) / (others.ended - started) }) }
}

/** A fast wrong answer is none. */
async function verify(admin, shape, name, { stock }, left, count) {
  const { rows } = await admin.query(
    `select (select count(*)::int from bench.effect) effects, (select count(distinct id)::int from bench.effect) ids,
      (select coalesce(sum(reserved), 0)::int from bench.stock) reserved`,
  )
  const [{ effects, ids, reserved }] = rows
  const done = stock ? reserved === count : effects === count && ids === count
  const right = shape.stays ? left === count && effects === 0 : left === 0 && done
  if (right) return
  throw new Error(
    `${shape.name}, ${name}: ${count} messages, ${effects} effects of ${ids}, ${reserved} reserved, ${left} left`,
  )
}

/** How far the write-ahead log has come, in bytes. */
async function walAt(admin) {
  const { rows } = await admin.query(`select (pg_current_wal_insert_lsn() - '0/0')::text at`)
  return Number(rows[0].at)
}
