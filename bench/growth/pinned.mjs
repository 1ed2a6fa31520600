/** A transaction somewhere stays open, so that nothing that is deleted can be vacuumed: what a thousand a second leave behind. */
import pg from 'pg'
import { orders } from '../messages.mjs'
import { compare, openBox, round } from './measure.mjs'

const PER_SECOND = 1_000
const EVERY_MS = 50

export async function measurePinned(bench) {
  const { server, messages, repeats, pinnedMs, say } = bench
  const rows = []
  for (const [what, options, keyOf] of [
    ['no order', {}, undefined],
    ['1000 keys', { order: 'key' }, (i) => `key-${i % 1_000}`],
  ]) {
    const one = await openBox(bench, 'growth_pinned', options)
    const measure = async () => {
      const rates = []
      for (let at = 0; at <= repeats; at++) {
        // Over with the last call of a handler: to count what is left takes longer, the more is dead.
        const { handle } = await round(bench, { ...one, left: async () => 0 }, messages, { keyOf })
        if (at > 0) rates.push(handle.rate)
      }
      say(`pinned, ${what}: handles ${rates.join(', ')}/s`)
      return rates
    }
    const small = await measure()
    const pin = new pg.Client({ connectionString: server.url })
    await pin.connect()
    await pin.query('begin isolation level repeatable read')
    await pin.query('select count(*) from pg_class')
    const sent = await load(one, pinnedMs, keyOf)
    say(`pinned, ${what}: ${sent} messages went through in ${pinnedMs / 1_000} s`)
    const large = await measure()
    await pin.query('rollback')
    await pin.end()
    await one.box.close()
    rows.push(compare('pinned', `handle, ${what}, ${sent} messages later`, { small, large, target: 0.7 }))
  }
  return rows
}

/** A thousand a second, for so long, and all of them handled. */
async function load({ box, left }, ms, keyOf) {
  await box.start(() => {})
  const started = performance.now()
  let sent = 0
  for (;;) {
    const elapsed = performance.now() - started
    if (elapsed >= ms) break
    const due = Math.floor((elapsed / 1_000) * PER_SECOND) - sent
    if (due > 0) await box.receive(orders(due, { keyOf: keyOf && ((i) => keyOf(i + sent)) }), { inFlight: 1 })
    sent += Math.max(0, due)
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
  while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  await box.stop()
  return sent
}
