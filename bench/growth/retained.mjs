/** Receiving and handling with so many handled messages in the journal, beside a box that is empty. */
import { SOURCE, TYPE } from '../messages.mjs'
import { compare, openBox, round } from './measure.mjs'

const FULL = 'growth_full'
const AT_ONCE = 500_000

export async function measureRetained(bench) {
  const { server, admin, retained, messages, repeats, fillOnly, say } = bench
  const full = await openBox(bench, FULL)
  const rows = []
  for (const size of [...retained].sort((a, b) => a - b)) {
    await fill(admin, size, say)
    if (fillOnly) continue
    const empty = await openBox(bench, 'growth_empty')
    const samples = { small: [], large: [] }
    // The first round warms up.
    for (let at = 0; at <= repeats; at++) {
      await admin.query(`truncate ${empty.box.tables.join(', ')}, growth_empty.handled`)
      for (const [name, one] of [
        ['small', empty],
        ['large', full],
      ]) {
        const sample = await round(bench, one, messages)
        say(`${name === 'small' ? 'empty' : `${size} retained`}: ${JSON.stringify(sample)}`)
        if (at > 0) samples[name].push(sample)
      }
    }
    await empty.box.close()
    for (const step of ['receive', 'handle']) {
      const pick = (list, figure) => list.map((sample) => sample[step][figure])
      const cpu = [pick(samples.small, 'cpu'), pick(samples.large, 'cpu')].map((list) => list.join(' '))
      const rates = { small: pick(samples.small, 'rate'), large: pick(samples.large, 'rate') }
      const note = server.pid === undefined ? undefined : `CPU per message ${cpu[0]} → ${cpu[1]} µs`
      rows.push(compare('retained', `${step}, ${size} retained`, { ...rates, target: 0.8, note }))
    }
  }
  await (fillOnly || process.env.DATABASE_URL ? full.box.leave() : full.box.close())
  return rows
}

/** Handled messages with random ids, as most producers have them, up to so many. */
async function fill(admin, size, say) {
  const { rows } = await admin.query(`select count(*)::int n from ${FULL}.message`)
  if (rows[0].n >= size) return
  await admin.query('set synchronous_commit = off')
  for (let have = rows[0].n; have < size; have += AT_ONCE) {
    const count = Math.min(AT_ONCE, size - have)
    say(`filling: ${have + count} of ${size}`)
    await admin.query(
      `with stored as (
         insert into ${FULL}.message (consumer, source, id, type, body, hash, envelope, received_at)
         select 'bench', $2, gen_random_uuid()::text, $3, jsonb_build_object('orderId', i::text, 'sku', i % 1000,
           'quantity', 1, 'customer', 'customer-' || i % 997, 'placed', '2025-01-31T12:34:56.789Z')::text,
           sha256(i::text::bytea), null, now() - ($4::int - i) * interval '0.2 second'
         from generate_series($5::int + 1, $5::int + $1::int) i returning n)
       insert into ${FULL}.handled (n, at) select n, now() from stored where n is not null on conflict do nothing`,
      [count, SOURCE, TYPE, size, have],
    )
  }
  await admin.query('set synchronous_commit = on')
  say('vacuum analyze …')
  await admin.query(`vacuum analyze ${FULL}.message, ${FULL}.handled, ${FULL}.work`)
  await admin.query('checkpoint').catch(() => {})
}
