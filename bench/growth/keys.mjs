/** One key, and up to a hundred thousand, beside the same messages in no order. */
import { compare, openBox, round } from './measure.mjs'

const KEYS = [1, 10, 100, 1_000, 10_000, 100_000]
const TARGETS = { 1_000: 0.8, 100_000: 0.6 }

export async function measureKeys(bench) {
  const { admin, messages, repeats, say } = bench
  const unkeyed = await openBox(bench, 'growth_unkeyed')
  const keyed = await openBox(bench, 'growth_keyed', { order: 'key' })
  const rows = []
  for (const keys of KEYS) {
    const samples = { small: [], large: [] }
    for (let at = 0; at <= repeats; at++) {
      for (const [name, one] of [
        ['small', unkeyed],
        ['large', keyed],
      ]) {
        await admin.query(`truncate ${one.box.tables.join(', ')}, ${one.schema}.handled`)
        if (name === 'large') await one.box.addLanes(admin, keys)
        await admin.query(`vacuum analyze ${one.box.tables.join(', ')}`)
        // Neighbours in time are far apart in the index.
        const keyOf = name === 'large' ? (i) => `key-${(i * 7_919) % keys}` : undefined
        const { handle } = await round(bench, one, messages, { keyOf })
        if (at > 0) samples[name].push(handle.rate)
      }
    }
    say(`${keys} keys: ${samples.large.join(', ')}/s, unkeyed ${samples.small.join(', ')}/s`)
    rows.push(compare('keys', `handle, no order and ${keys} keys`, { ...samples, target: TARGETS[keys] }))
  }
  await unkeyed.box.close()
  await keyed.box.close()
  return rows
}
