/** Bulk changes in a real browser: counted, confirmed, seen by everybody, stopped in the middle, and exact to the last message. */
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { expectAccessible, openDashboard, PHONE, picture, waitUntil, type OpenedDashboard } from './harness.js'

let ops: OpenedDashboard
beforeAll(async () => {
  ops = await openDashboard()
})

const FAILURES = '/failures/payments'

/** Of charge-card, by what has become of them. */
async function states(): Promise<Record<string, number>> {
  const { rows } = await ops.pool.query<{ state: string; n: number }>(
    `select coalesce(parked::text, 'pending') state, count(*)::int n from "${ops.payments.schema}".work
     where consumer = 'charge-card' group by 1`,
  )
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]))
}

/** Opens the dialog of a group, once it is counted. */
async function ask(page: Page, button: string | RegExp, question: string): Promise<void> {
  await page.getByRole('button', { name: button }).first().click()
  await page.getByRole('heading', { name: question }).waitFor()
}

test('a count that has changed meanwhile is shown, and nothing is changed until it is confirmed again', async () => {
  // The refusal of the first try.
  const page = await ops.open(FAILURES, { allow: [/409/] })
  await ask(page, 'Retry 4…', 'Retry 4 dead messages?')
  await ops.payments.admin.discard({ id: 'declined-4' }, { reason: 'meanwhile', by: 'somebody else' })
  await page.getByRole('button', { name: 'Retry 4 messages' }).click()
  await page.getByText('There were 4 when you looked, and there are 3 now.').waitFor()
  await page.getByRole('heading', { name: 'Retry 3 dead messages?' }).waitFor()
  expect(await states()).toMatchObject({ dead: 16 })
  // Only one of them, at no limit.
  await page.getByRole('button', { name: 'Only 1' }).click()
  await page.getByRole('button', { name: 'No limit' }).click()
  await page.getByRole('button', { name: 'Retry 1 message', exact: true }).click()
  await page.getByRole('heading', { name: 'Retried 1 message' }).waitFor()
  expect(await states()).toMatchObject({ dead: 15, pending: 1 })
  // What becomes of it is followed.
  ops.mend()
  await ops.payments.drain()
  await page.getByRole('img', { name: '1 of 1: 1 handled, 0 failed again, 0 to run, 0 not touched' }).waitFor()
  await picture(page, 'bulk done')
})

test('a retry is seen live in two tabs, its rate is changed in one, and it is stopped in the other with exact counts', async () => {
  const [one, other] = [await ops.open(FAILURES), await ops.open(FAILURES)]
  const before = await states()
  await ask(one, 'Retry 12…', 'Retry 12 dead messages?')
  await expectAccessible(one)
  await picture(one, 'bulk confirm')
  await one.getByRole('button', { name: '1/s', exact: true }).click()
  await one.getByText('About 12 s.').waitFor()
  await one.getByLabel(/^Why/).fill('gateway is back, INC-2291')
  await one.getByLabel(/^Why/).press('Enter')
  await one.getByRole('heading', { name: 'Retrying' }).waitFor()
  await expectAccessible(one)
  await picture(one, 'bulk progress')
  // Whoever starts it may leave: it goes on, and says so.
  await one.getByRole('button', { name: 'Leave' }).click()
  await one.getByRole('region', { name: 'Running' }).getByText(/Retrying \d+ of 12/).waitFor()
  // The other tab sees it without having asked.
  const line = other.getByRole('region', { name: 'Running' })
  await line.getByText(/Retrying \d+ of 12/).waitFor()
  await line.getByRole('button', { name: 'Open' }).click()
  await other.getByText(/started by ines@acme\.example/).waitFor()
  const pace = other.getByRole('group', { name: 'How fast, while it runs' })
  await pace.getByRole('button', { name: '10/s' }).click()
  await expect.poll(() => pace.getByRole('button', { name: '10/s' }).getAttribute('aria-pressed')).toBe('true')
  await pace.getByRole('button', { name: '1/s', exact: true }).click()
  await other.getByRole('button', { name: 'Stop here' }).click()
  const result = other.getByRole('heading', { name: /^Stopped at \d+ of 12$/ })
  await result.waitFor()
  const done = Number(/at (\d+) of/.exec(await result.innerText())![1])
  await expectAccessible(other)
  await picture(other, 'bulk result')
  expect(done).toBeLessThan(12)
  expect(await states()).toEqual({ ...before, dead: before['dead']! - done, pending: (before['pending'] ?? 0) + done })
  expect((await ops.payments.admin.audit()).records[0]).toMatchObject({
    action: 'retry',
    detail: { count: done, of: 12, state: 'cancelled', reason: 'gateway is back, INC-2291' },
  })
  await other.getByRole('button', { name: `Retry the other ${12 - done}…` }).waitFor()
  // The list of the first tab is read again by itself, and its toast says how it ended.
  await one.getByText(new RegExp(`^Stopped at ${done} of 12`)).first().waitFor()
  await one.getByRole('button', { name: `Retry ${12 - done}…` }).waitFor()
}) // prettier-ignore

test('a discard on a phone needs a reason, and then takes exactly what it said', async () => {
  const page = await ops.open(FAILURES, { viewport: PHONE, hasTouch: true, colorScheme: 'dark' })
  const before = await states()
  await page.locator('.group', { hasText: 'TypeError' }).getByRole('button', { name: 'Discard…' }).click()
  await page.getByRole('heading', { name: 'Discard 1 dead message?' }).waitFor()
  await page.getByText('They will not run. You can retry them until retention deletes them.').waitFor()
  const button = page.locator('dialog .btn-risk')
  expect(await button.getAttribute('aria-disabled')).toBe('true')
  await button.click({ force: true })
  expect(await states()).toEqual(before)
  await page.getByLabel(/^Why/).fill('test order')
  await expectAccessible(page)
  await picture(page, 'bulk discard phone')
  await button.click()
  await page.getByRole('heading', { name: 'Discarded 1 message' }).waitFor()
  expect(await states()).toMatchObject({ dead: before['dead']! - 1 })
  await page.getByRole('button', { name: 'Close' }).click()
  await expect.poll(() => page.locator('.group', { hasText: 'TypeError' }).count(), { timeout: 30_000 }).toBe(0)
})

test('what nothing matches any more says so, and what is refused says why', async () => {
  const page = await ops.open(FAILURES, { allow: [/40\d/] })
  await page
    .getByRole('button', { name: /^Retry \d+…/ })
    .first()
    .waitFor()
  await ops.payments.admin.discard({ consumer: 'charge-card', state: 'dead' }, { reason: 'meanwhile' })
  await page
    .getByRole('button', { name: /^Retry \d+…/ })
    .first()
    .click()
  await page.getByRole('heading', { name: 'No message to retry' }).waitFor()
  await expectAccessible(page)
  await page.keyboard.press('Escape')
  await waitUntil(async () => (await page.locator('dialog[open]').count()) === 0)
  // The focus is back where it was.
  expect(await page.evaluate('document.activeElement.className')).toContain('act-retry')
})
