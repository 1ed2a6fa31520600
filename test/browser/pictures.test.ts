/**
 * The pictures of the README and the docs, in docs/pictures. `npm run pictures` makes them anew, from the boxes of seed.ts with
 * more in them; `npm test` only looks whether those that the pages show are there, and small.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { openDashboard, PHONE, waitUntil, type OpenedDashboard } from './harness.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PICTURES = path.join(ROOT, 'docs/pictures')
const MOST_BYTES = 250_000
const SCREEN = { width: 1280, height: 800 }

const HOUR_MS = 3_600_000

interface Shot {
  readonly name: string
  readonly at: string
  /** What is there when the page is. */
  readonly shows: string
  readonly viewport?: { width: number; height: number }
}

const SHOTS: readonly Shot[] = [
  { name: 'overview', at: '/overview/payments', shows: 'main .chart-canvas canvas' },
  { name: 'messages', at: '/messages/payments?q=state%3Adead', shows: 'main tbody tr' },
  { name: 'message', at: '/message/payments?id=pay-null&consumer=charge-card', shows: 'main .panel' },
  { name: 'failures', at: '/failures/payments', shows: 'main .panel' },
  { name: 'quarantine', at: '/quarantine/payments', shows: '[data-l=Difference]:has-text("differs")' },
  { name: 'keys', at: '/keys/payments', shows: 'main .panel' },
  { name: 'phone', at: '/overview/payments', shows: 'main .chart-canvas canvas', viewport: PHONE },
]

test('every picture that a page shows is there, small, and shown in both themes', async () => {
  const pages = ['README.md', ...(await readdir(path.join(ROOT, 'docs'))).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)]
  const shown = new Set<string>()
  for (const page of pages) {
    const text = await readFile(path.join(ROOT, page), 'utf8')
    for (const [, name] of text.matchAll(/pictures\/([\w-]+\.png)/g)) shown.add(name!)
  }
  const there = await readdir(PICTURES)
  expect([...shown].filter((name) => !there.includes(name))).toEqual([])
  expect(there.toSorted()).toEqual(SHOTS.flatMap(({ name }) => [`${name}-dark.png`, `${name}-light.png`]).toSorted())
  for (const name of there) expect([name, (await stat(path.join(PICTURES, name))).size < MOST_BYTES]).toEqual([name, true])
}) // prettier-ignore

test.runIf(process.env['ONCEBOX_PICTURES'] === 'write')('takes them', async () => {
  const ops = await openDashboard({ title: 'payments' })
  await fillMore(ops)
  // Somebody is at it, and slow: what is due has a process that runs it.
  const slow = createBox({ db: fromPg(ops.pool), schema: ops.payments.schema })
  const busy = { concurrency: 4, group: { messages: 1 }, timeoutMs: 3_600_000 }
  slow.consumer('charge-card', { 'payment.requested': () => new Promise(() => undefined) }, busy)
  await slow.start()
  await waitUntil(async () => (await ops.payments.admin.status()).consumers['charge-card']!.processing > 0)
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const { name, at, shows, viewport = SCREEN } of SHOTS) {
      const page = await ops.open(at, { colorScheme, viewport })
      await page.locator(shows).first().waitFor()
      await waitUntil(async () => (await page.locator('main [aria-busy=true]').count()) === 0)
      await page.screenshot({ path: path.join(PICTURES, `${name}-${colorScheme}.png`), animations: 'disabled' })
      await page.close()
    }
  }
  await slow.stop({ timeoutMs: 100 })
})

/** As many messages as make a picture, and a day to look back on: a gateway that has been slow for 25 minutes. */
async function fillMore({ payments, pool }: OpenedDashboard): Promise<void> {
  const body = '{"amount":9007199254740993,"currency":"EUR"}'
  const many = (count: number, id: string, type: string) =>
    Array.from({ length: count }, (_, at) => ({ id: `${id}-${at + 100}`, type, source: 'stripe', key: `order-${at % 8}`, body })) // prettier-ignore
  const hours = 20
  await payments.clock.advance(-hours * HOUR_MS)
  for (let n = 0; n < hours; n++) {
    await payments.receive([...many(3 + (n % 4), `declined-${n}`, 'payment.requested'), ...many(30, `mail-${n}`, 'payment.captured')]) // prettier-ignore
    await payments.drain()
    await payments.clock.advance(HOUR_MS)
  }
  await payments.clock.advance(-25 * 60_000)
  await payments.receive(many(1_192, 'late', 'payment.requested'))
  await payments.receive(many(8, 'ship', 'order.paid'))
  await payments.drain()
  await payments.receive(many(700, 'ship-more', 'order.paid'))
  // What came since is still to be handled.
  await payments.clock.advance(13 * 60_000)
  await payments.receive(many(2_400, 'pay-next', 'payment.requested'))
  await payments.clock.advance(12 * 60_000)
  await pool.query(PAST.replaceAll('ob.', `"${payments.schema}".`))
}

const PAST = `
with minutes as (
  select at, m, 600 + 120 * sin(m / 90.0) + 25 * sin(m * 1.7) as rate, greatest(0, 25 - m) as slow
  from generate_series(0, 1439) m, lateral (select date_trunc('minute', ob.now()) - m * interval '1 minute' as at) t
), shares (consumer, share) as (values ('', 1.0), ('charge-card', 0.4), ('email-receipt', 0.35), ('ship-order', 0.2)),
published as (
  insert into ob.sink_minute (sink, at, published)
  select sink, at, (rate * share)::int from minutes, (values ('link-warehouse', 0.2), ('rabbitmq-events', 0.35)) sinks (sink, share)
  on conflict do nothing
)
insert into ob.minute (consumer, at, received, handled, failed, duplicates, pending, lag_ms)
select consumer, at, (rate * share)::int,
  (rate * share * case when consumer in ('', 'charge-card') and slow > 0 then 0.8 else 1 end)::int,
  case when consumer in ('', 'charge-card') then slow * 3 else 0 end,
  (rate * share * case when m between 320 and 340 then 0.03 else 0.004 end)::int,
  (rate * share / 50 + case when consumer in ('', 'charge-card') then slow * 110 else 0 end)::int,
  case when consumer in ('', 'charge-card') then 900 + slow * 29000 else 700 + 300 * sin(m * 2.1) end::int
from minutes, shares on conflict do nothing`
