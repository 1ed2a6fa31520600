/** A million messages wait instead of a thousand: how long a claim takes, how fast a worker is, and what it holds in memory. */
import { randomUUID } from 'node:crypto'
import { bindTo } from '../../dist/postgres/database.js'
import { CLAIM } from '../../dist/postgres/sql/claim.js'
import { compare, load, openBox } from './measure.mjs'

const MANY = 1_000_000
const FEW = 1_000
const CLAIM_SIZE = 100
const SECONDS = 10

export async function measurePending(bench) {
  const { admin, repeats, say } = bench
  const few = await openBox(bench, 'growth_few')
  const many = await openBox(bench, 'growth_many')
  say(`loading ${MANY} messages`)
  await load(admin, many.schema, MANY)
  const claims = { small: [], large: [] }
  for (let at = 0; at <= repeats; at++) {
    await admin.query(`truncate ${few.box.tables.join(', ')}`)
    await load(admin, few.schema, FEW)
    for (const [name, { schema }] of [
      ['small', few],
      ['large', many],
    ]) {
      for (let n = 0; n < FEW / CLAIM_SIZE; n++) {
        const ms = await claim(admin, schema)
        if (at > 0) claims[name].push(ms)
      }
    }
  }
  const rows = [
    compare('pending', `a claim of ${CLAIM_SIZE}, ${FEW} and ${MANY} pending`, { ...claims, unit: 'ms', target: 1.5 }),
  ]
  rows.push(...(await work(many, say)))
  await few.box.close()
  await many.box.close()
  return rows
}

/** As a worker asks, for a lease that nobody waits for. */
async function claim(admin, schema) {
  const asked = {
    consumer: 'bench',
    token: randomUUID(),
    leaseMs: 3_600_000,
    limit: CLAIM_SIZE,
    bytes: 1 << 20,
    calm: false,
  }
  const started = performance.now()
  const { rowCount } = await admin.query({
    name: `claim_${schema}`,
    text: bindTo(schema)(CLAIM),
    values: [JSON.stringify(asked)],
  })
  if (rowCount !== CLAIM_SIZE) throw new Error(`${rowCount} messages were claimed`)
  return performance.now() - started
}

/** A worker on the million: its rate in each second, and its memory at the end beside that at the beginning. */
async function work({ box }, say) {
  let handled = 0
  await box.start(() => handled++)
  const perSecond = []
  const memory = []
  for (let second = 0; second < SECONDS; second++) {
    const before = handled
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    perSecond.push(handled - before)
    memory.push(Math.round(process.memoryUsage().rss / 2 ** 20))
    say(`second ${second + 1}: ${perSecond.at(-1)}/s, ${memory.at(-1)} MB`)
  }
  await box.stop()
  const third = Math.ceil(SECONDS / 3)
  const ends = (list) => ({ small: list.slice(0, third), large: list.slice(-third) })
  return [
    compare('pending', `a worker on ${MANY}, first and last seconds`, { ...ends(perSecond), target: 0.7 }),
    compare('pending', 'its memory, first and last seconds', { ...ends(memory), unit: 'MB' }),
  ]
}
