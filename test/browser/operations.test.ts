/** Failures, quarantine, keys, outbox, doctor, audit and settings in a real browser: what they show is what is in the database. */
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { expectAccessible, openDashboard, PHONE, picture, waitUntil, type OpenedDashboard } from './harness.js'

let ops: OpenedDashboard
beforeAll(async () => {
  ops = await openDashboard()
})

const PAGES = ['failures', 'quarantine', 'keys', 'outbox', 'doctor', 'audit', 'settings'] as const
const at = (page: (typeof PAGES)[number]): string => (page === 'settings' ? '/settings' : `/${page}/payments`)
const title = (page: Page): Promise<string> => page.locator('h1').innerText()
const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

/** All of it is there: no skeleton, and nothing on its way. */
async function settled(page: Page): Promise<void> {
  await page.locator('h1').waitFor()
  await expect.poll(() => page.locator('#main [aria-busy]').count(), { timeout: 30_000 }).toBe(0)
}

async function parked(): Promise<Record<string, string>> {
  const { rows } = await ops.pool.query<{ id: string; parked: string | null }>(
    `select id, coalesce(parked::text, 'pending') parked from "${ops.payments.schema}".work`,
  )
  return Object.fromEntries(rows.map(({ id, parked }) => [id, String(parked)]))
}

test.each([
  { name: 'light, wide', viewport: { width: 1440, height: 900 }, colorScheme: 'light' as const },
  { name: 'dark, on a phone', viewport: PHONE, colorScheme: 'dark' as const, hasTouch: true },
])('every page of operations can be used by everybody: $name', async ({ name, ...options }) => {
  const page = await ops.open(at('failures'), options)
  for (const one of PAGES) {
    if (one !== 'failures') await page.goto(ops.url + at(one))
    await settled(page)
    await expectAccessible(page)
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await picture(page, `${one} ${name}`)
  }
})

test('failures are in groups, the largest first, and each leads to its messages', async () => {
  const page = await ops.open(at('failures'))
  await settled(page)
  expect(await title(page)).toBe('19 dead, in 4 groups')
  expect(await page.locator('.group h2').allInnerTexts()).toEqual([
    'GatewayTimeout ETIMEDOUT',
    'CardError card_declined',
    'Reject',
    'TypeError ← RangeError',
  ])
  const blocking = page.getByRole('link', { name: 'blocks 2 keys' })
  expect(await page.locator('.group', { hasText: 'Reject' }).getByRole('link').allInnerTexts()).toContain(
    'blocks 2 keys',
  )
  expect(await blocking.getAttribute('href')).toBe(at('keys'))
  expect(await page.locator('.group .var').first().innerText()).toBe('‹n›')
  // By the keyboard: the second row, then its messages.
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/messages\/payments\?q=consumer%3Acharge-card\+state%3Adead\+fingerprint%3A/)
})

test('a link to one consumer shows what is its alone, says so, and leads to all of them', async () => {
  const page = await ops.open(`${at('failures')}?consumer=ship-order`)
  await settled(page)
  expect(await title(page)).toBe('2 dead, in 1 group')
  expect(await page.locator('.group h2').allInnerTexts()).toEqual(['Reject'])
  await expectAccessible(page)
  const all = page.getByRole('button', { name: 'Show all consumers, not ship-order alone' })
  await all.click()
  await page.getByRole('heading', { name: '19 dead, in 4 groups' }).waitFor()
  expect(await all.count()).toBe(0)

  await page.goto(`${ops.url}${at('keys')}?consumer=charge-card`)
  await page.getByRole('heading', { name: 'No key of charge-card is blocked' }).waitFor()
  await page.getByRole('button', { name: 'Show all consumers, not charge-card alone' }).click()
  await page.getByRole('heading', { name: '2 keys are blocked' }).waitFor()
  await page.goto(`${ops.url}${at('keys')}?consumer=ship-order`)
  await page.getByRole('button', { name: 'Retry all 2 in front…' }).click()
  await page.getByText(/Blocking messages.*ship-order/).waitFor()
})

test('whoever may only read sees every button, with the reason why it does nothing', async () => {
  const page = await ops.open(at('failures'), { may: ['read'] })
  await settled(page)
  const before = await parked()
  for (const one of ['failures', 'quarantine', 'keys', 'outbox'] as const) {
    if (one !== 'failures') await page.goto(ops.url + at(one))
    await settled(page)
    const buttons = page.locator('#main').getByRole('button', { name: /Retry|Discard/ })
    await waitUntil(async () => (await buttons.count()) > 0)
    for (const button of await buttons.all()) {
      expect([await button.getAttribute('aria-disabled'), await button.getAttribute('title')]).toEqual([
        'true',
        expect.stringMatching(/You may not|Read-only/),
      ])
      await button.click({ force: true })
    }
    expect(await page.locator('dialog[open]').count()).toBe(0)
  }
  await page.goto(`${ops.url}/failures/payments`)
  await page.getByText('Message hidden').first().waitFor()
  await expectAccessible(page)
  expect(await parked()).toEqual(before)
})

test('both bodies of a conflict are side by side, and the second is discarded for a reason', async () => {
  const page = await ops.open(at('quarantine'))
  await page.locator('.diff').waitFor()
  expect(await title(page)).toBe('5 messages wait for a decision')
  await row(page, 'pay-1').getByText('1 value differs').waitFor()
  expect(await page.locator('.diff ins').allInnerTexts()).toEqual(['"note": "sent again"'])
  expect(await page.locator('.diff .fold').innerText()).toBe('⋯ 9 equal lines: amount, currency, customer')
  await page.getByRole('button', { name: 'Discard second body…' }).click()
  const discard = page.getByRole('button', { name: /^Discard 1 message/ })
  // Without a reason nothing happens.
  await expect.poll(() => discard.getAttribute('aria-disabled')).toBe('true')
  await discard.click({ force: true })
  await page.getByLabel(/^Why/).fill('stripe was told')
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Discard 1 message', exact: true }).click()
  await page.getByRole('heading', { name: 'Discarded 1 message' }).waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('heading', { name: '4 messages wait for a decision' }).waitFor()
  const { entries } = await ops.payments.admin.messages({ id: 'pay-1', reason: 'conflict' })
  expect(entries.map(({ state }) => state)).not.toContain('quarantined')
  expect((await ops.payments.admin.audit()).records[0]).toMatchObject({
    action: 'discard',
    by: 'ines@acme.example',
    detail: { count: 1, reason: 'stripe was told' },
  })
})

test('somebody who looked it up answers for an effect, and the handler goes on with its result', async () => {
  const page = await ops.open(`${at('quarantine')}?reason=effect-unknown`)
  const record = page.getByRole('button', { name: /^Record answer/ })
  await record.waitFor()
  expect(await record.getAttribute('aria-disabled')).toBe('true')
  expect(await page.getByRole('radio', { checked: true }).count()).toBe(0)
  await page.getByRole('radio', { name: /^It happened/ }).check()
  const result = page.getByLabel('Its result, as JSON')
  await result.fill('ch_1')
  expect(await record.getAttribute('aria-disabled')).toBe('true')
  await result.fill('{ "charge": "ch_1", "n": 9007199254740993 }')
  await page.getByLabel(/^Why/).fill('seen in the gateway')
  await record.click()
  await page.getByText(/Recorded: .* happened/).waitFor()
  ops.mend()
  await ops.payments.drain()
  const { rows } = await ops.pool.query<{ result: string }>(
    `select e.result from "${ops.payments.schema}".effect e where e.id = 'pay-unknown' and e.name = 'charge'`,
  )
  // As it was written: to parse it would round the number.
  expect(rows).toEqual([{ result: expect.stringContaining('9007199254740993') }])
  expect(await ops.payments.admin.messages({ id: 'pay-unknown' })).toMatchObject({ entries: [{ state: 'handled' }] })
})

test('on a narrow screen a lane keeps its size, and nothing scrolls sideways', async () => {
  const page = await ops.open(at('keys'), { viewport: { width: 1024, height: 768 } })
  await settled(page)
  expect((await page.locator('.lane').first().boundingBox())!.width).toBeGreaterThan(180)
  const beyond = '[...document.querySelectorAll(".scroll")].map((one) => one.scrollWidth - one.clientWidth)'
  expect(await page.evaluate(`Math.max(...${beyond})`)).toBe(0)
})

test('a blocked key says why and what waits; the one in front is retried, and the others follow', async () => {
  const page = await ops.open(at('keys'))
  await settled(page)
  expect(await title(page)).toBe('2 keys are blocked')
  const order = row(page, 'order-7')
  expect(await order.innerText()).toContain('no parcel service for ship-7-1')
  await order.getByRole('button', { name: /^3 wait behind order-7/ }).click()
  expect(await page.locator('.behind-list a').allInnerTexts()).toEqual(['ship-7-2', 'ship-7-3', 'ship-7-4'])
  // By the keyboard alone: to the row, retry, and confirm.
  await page.locator('.row-link', { hasText: 'order-7' }).focus()
  await page.keyboard.press('r')
  const confirm = page.getByRole('button', { name: 'Retry 1 message', exact: true })
  await confirm.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Retried 1 message' }).waitFor()
  expect(await parked()).toMatchObject({ 'ship-7-1': 'pending', 'ship-9-1': 'dead' })
  ops.mend()
  await ops.payments.drain()
  const { entries } = await ops.payments.admin.messages({ key: 'order-7', state: 'handled' })
  expect(entries).toHaveLength(4)
  await page.keyboard.press('Escape')
  await page.getByRole('heading', { name: '1 key is blocked' }).waitFor()
  // All that are in front at once.
  await page.getByRole('button', { name: 'Retry all 1 in front…' }).click()
  await page.getByRole('heading', { name: 'Retry 1 message in front?' }).waitFor()
  await page.getByText('Blocking messages.').waitFor()
  await page.getByRole('button', { name: 'Retry 1 message', exact: true }).click()
  await page.getByRole('heading', { name: 'Retried 1 message' }).waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('heading', { name: 'No key is blocked' }).waitFor()
  expect(await parked()).toMatchObject({ 'ship-9-1': 'pending' })
})

test('the outbox says which sinks need somebody, and dead events are retried', async () => {
  const minutes = `select date_trunc('minute', now()) - m * interval '1 min' as at from generate_series(0, 3) m`
  await ops.pool
    .query(`insert into "${ops.payments.schema}".minute (consumer, at, handled) select '', at, 90 from (${minutes}) m
    on conflict (consumer, at) do update set handled = excluded.handled`)
  await ops.pool.query(`insert into "${ops.payments.schema}".sink_minute (sink, at, published)
    select 'link-warehouse', at, 90 from (${minutes}) m on conflict (sink, at) do update set published = excluded.published`)
  const page = await ops.open(at('outbox'))
  await settled(page)
  expect(await title(page)).toBe('2 sinks need you')
  expect(await row(page, 'kafka-ledger').innerText()).toContain('connect ETIMEDOUT 10.0.4.17:9092')
  expect(await row(page, 'link-warehouse').locator('[data-l="Published /s"]').innerText()).toBe('1.5')
  expect(await row(page, 'kafka-ledger').locator('[data-l="Published /s"]').innerText()).toBe('0.0')
  await page.getByRole('button', { name: 'Retry 2 dead events of rabbitmq-events' }).click()
  await page.getByRole('button', { name: 'Retry 2 messages', exact: true }).click()
  await page.getByRole('heading', { name: 'Retried 2 messages' }).waitFor()
  const { entries } = await ops.payments.admin.messages({ box: 'outbox', consumer: 'rabbitmq-events', state: 'dead' })
  expect(entries).toEqual([])
})

test('the doctor’s findings have the text that mends them, to be copied', async () => {
  const page = await ops.open(at('doctor'))
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const paused = page.locator('.advice', { hasText: 'settle-invoice is paused' })
  await paused.getByRole('button', { name: /^Copy/ }).click()
  await page.getByText('Copied the fix').waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`await box.admin.resume('settle-invoice')`)
})

test('the audit says who, what, how many and why, and older records come page by page', async () => {
  for (let n = 0; n < 30; n++) {
    await ops.payments.admin.resume('settle-invoice', { by: 'cron', reason: `round ${n}` })
    await ops.payments.admin.pause('settle-invoice', { by: 'cron', reason: `round ${n}` })
  }
  const page = await ops.open(at('audit'))
  await settled(page)
  expect(await title(page)).toBe('50+ changes on record')
  expect(await page.locator('tbody tr').first().innerText()).toMatch(
    /cron\s+pause\s+–\s+consumer:settle-invoice\s+round 29\s+Done/,
  )
  await page.getByRole('button', { name: 'Show older' }).click()
  await row(page, 'the customer is gone').waitFor()
  expect(await row(page, 'the customer is gone').innerText()).toMatch(/ines@acme\.example\s+discard\s+1\s+id:mail-old/)
})

test('settings hold: theme, times, refresh and shortcuts are there after the page is opened again', async () => {
  const page = await ops.open('/settings', { timezoneId: 'Asia/Kolkata' })
  await page.getByText(/^Now it is .*\(Asia\/(Kolkata|Calcutta)\)/).waitFor()
  const choose = (group: string, name: string) => page.getByRole('group', { name: group }).getByRole('button', { name, exact: true })
  await choose('Theme', 'Dark').click()
  await choose('Times', 'UTC').click()
  await page.getByText(/^Now it is .*\(UTC\)/).waitFor()
  await choose('Refresh', 'Paused at first').click()
  await choose('Shortcuts', 'Off').click()
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  await page.reload()
  for (const [group, name] of [['Theme', 'Dark'], ['Times', 'UTC'], ['Refresh', 'Paused at first'], ['Shortcuts', 'Off']] as const) {
    await expect.poll(() => choose(group, name).getAttribute('aria-pressed')).toBe('true')
  }
  await page.keyboard.press('?')
  expect(await page.locator('dialog[open]').count()).toBe(0)
  await choose('Shortcuts', 'On').click()
  await page.keyboard.press('?')
  await page.getByRole('heading', { name: 'Keyboard', level: 2 }).waitFor()
  await expectAccessible(page)
  const search = page.waitForRequest((request) => request.url().includes('/api/v1/boxes/payments/messages?'))
  await page.goto(`${ops.url}/messages/payments?q=after%3A14%3A00`)
  expect(new URL((await search).url()).searchParams.get('zone')).toBe('0')
}) // prettier-ignore
