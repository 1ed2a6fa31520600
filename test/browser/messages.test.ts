/** The page of messages, as somebody uses it: search, rows, selection, what arrives meanwhile. */
import { beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright-core'
import { expectAccessible, openDashboard, PHONE, picture, TABLET, waitUntil, type OpenedDashboard } from './harness.js'

let ops: OpenedDashboard
beforeAll(async () => {
  ops = await openDashboard()
})

const rows = (page: Page) => page.locator('.msgs tbody tr')
const bar = (page: Page) => page.getByRole('combobox', { name: 'Search messages' })
const query = (page: Page): string | null => new URL(page.url()).searchParams.get('q')
const states = async (id: string): Promise<string[]> =>
  (await ops.payments.admin.message({ id })).map(({ state }) => state)

async function found(page: Page, count: number): Promise<void> {
  await waitUntil(async () => (await rows(page).count()) === count)
}

test('a search is made with the keyboard alone, and the address keeps it', async () => {
  const page = await ops.open('/messages/payments')
  await found(page, 47)
  await page.keyboard.press('/')
  await page.keyboard.type('st')
  await page.getByRole('option', { name: 'state:' }).waitFor()
  await expectAccessible(page)
  await page.keyboard.press('Tab')
  expect(await bar(page).inputValue()).toBe('state:')
  await page.keyboard.type('de')
  await page.keyboard.press('ArrowDown')
  expect(await page.locator('.opt[aria-selected=true]').innerText()).toMatch(/^dead\s+19$/)
  await page.keyboard.press('Enter')
  await found(page, 19)
  expect(query(page)).toBe('state:dead')
  await page.keyboard.type('consumer:ship-order')
  await page.keyboard.press('Enter')
  await found(page, 2)
  expect(query(page)).toBe('state:dead consumer:ship-order')
  await page.reload()
  await found(page, 2)
  await page.goBack()
  await found(page, 19)
  await bar(page).focus()
  await page.keyboard.press('Backspace')
  expect(await bar(page).inputValue()).toBe('state:dead')
  await found(page, 47)
})

test('a qualifier that there is not is named, with the one that was meant', async () => {
  const page = await ops.open('/messages/payments')
  await found(page, 47)
  await bar(page).fill('stat:dead')
  await page.keyboard.press('Enter')
  await page.getByText('There is no ‘stat:’.').waitFor()
  await page.keyboard.press('Enter')
  expect(await bar(page).inputValue()).toBe('state:dead')
  await page.keyboard.press('Enter')
  await found(page, 19)
})

test('states are counted for the search, and narrow it down', async () => {
  const page = await ops.open('/messages/payments?q=consumer:charge-card')
  const facet = (name: string) => page.getByRole('group', { name: 'State' }).getByRole('button', { name })
  await waitUntil(async () => /17/.test(await facet('Dead').innerText()))
  await facet('Dead').click()
  await found(page, 17)
  expect(await facet('Dead').getAttribute('aria-pressed')).toBe('true')
  await page.getByText('17 match').waitFor()
  await page.getByRole('button', { name: 'Remove consumer charge-card' }).click()
  await found(page, 19)
})

test('what cannot be read, or matches nothing, says what to do', async () => {
  const allow = [/400 /, /status of 400/]
  const page = await ops.open(`/messages/payments?q=${encodeURIComponent('after:yesterday')}`, { allow })
  await page.getByRole('heading', { name: 'The search cannot be read' }).waitFor()
  await page.getByText('is no time').waitFor()
  await page.goto(`${ops.url}/messages/payments?q=${encodeURIComponent('state:dead key:"no such key"')}`)
  await page.getByRole('heading', { name: 'No message matches' }).waitFor()
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Drop key:"no such key"' }).click()
  await found(page, 19)
})

test('rows are moved through, selected and retried by keys, and these messages alone are pending again', async () => {
  const page = await ops.open(`/messages/payments?q=${encodeURIComponent('state:dead error:"no answer"')}`)
  await found(page, 12)
  for (const key of ['j', 'x', 'j', 'j', 'x']) await page.keyboard.press(key)
  await page.getByText('2 selected').waitFor()
  const ids = await page.locator('.msgs tr:has(input:checked) [data-id]').evaluateAll((cells) =>
    cells.map((cell) => (cell as unknown as { dataset: { id: string } }).dataset.id),
  ) // prettier-ignore
  expect(ids).toHaveLength(2)
  await page.keyboard.press('r')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('heading', { name: 'Retry 2 dead messages?' }).waitFor()
  await expectAccessible(page)
  await dialog.getByLabel(/^Why/).fill('gateway is back')
  await page.keyboard.press('Enter')
  await waitUntil(async () => (await Promise.all(ids.map(states))).every(([state]) => state === 'pending'))
  const { entries } = await ops.payments.admin.messages({ consumer: 'charge-card', state: 'dead' }, { limit: 100 })
  expect(entries).toHaveLength(15)
  await page.keyboard.press('Escape')
  await found(page, 10)
})

test('all that match are discarded, with a reason', async () => {
  const page = await ops.open(`/messages/payments?q=${encodeURIComponent('error:declined')}`)
  await found(page, 4)
  await page.keyboard.press('Shift+d')
  const dialog = page.getByRole('dialog')
  const button = dialog.getByRole('button', { name: 'Discard 4 messages' })
  await button.waitFor()
  expect(await button.getAttribute('aria-disabled')).toBe('true')
  await dialog.getByLabel(/^Why/).fill('cards are gone')
  await button.click()
  await waitUntil(async () => (await states('declined-4'))[0] === 'discarded')
  await waitUntil(async () => (await states('declined-1'))[0] === 'discarded')
})

test('what arrives is counted above the list, which stays as it is until it is asked for', async () => {
  const page = await ops.open('/messages/payments?q=type:order.placed')
  await found(page, 1)
  await ops.payments.receive([1, 2, 3].map((n) => ({ id: `new-${n}`, type: 'order.placed', source: 'shop', data: {} })))
  const fresh = page.getByRole('button', { name: '3 new' })
  await fresh.waitFor()
  expect(await rows(page).count()).toBe(1)
  await fresh.click()
  await found(page, 4)
})

test('a row is a link, of the outbox too, and Enter opens it', async () => {
  const page = await ops.open(`/messages/payments?q=${encodeURIComponent('box:outbox state:dead')}`)
  await found(page, 2)
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'payment.captured' }).waitFor()
  await page.getByRole('definition').filter({ hasText: 'rabbitmq-events' }).waitFor()
})

test('who may only look sees the buttons, and why they do nothing', async () => {
  const page = await ops.open('/messages/payments', { may: ['read'] })
  await waitUntil(async () => (await rows(page).count()) > 40)
  const button = page.getByRole('button', { name: /^Retry all that match/ })
  expect(await button.getAttribute('aria-disabled')).toBe('true')
  await button.click({ force: true })
  await page.keyboard.press('r')
  await page.getByRole('status').getByText('You may not retry here.').waitFor()
  expect(await page.getByRole('dialog').count()).toBe(0)
})

test.for([
  ['phone', PHONE, 'light'],
  ['phone', PHONE, 'dark'],
  ['tablet', TABLET, 'dark'],
  ['desktop', undefined, 'light'],
] as const)('it fits a %s in both themes, and nothing scrolls sideways', async ([name, viewport, colorScheme]) => {
  const page = await ops.open('/messages/payments?q=consumer:charge-card', {
    colorScheme,
    ...(viewport && { viewport }),
  })
  await waitUntil(async () => (await rows(page).count()) > 15)
  await waitUntil(async () => (await page.locator('.facet b').count()) > 0)
  await expectAccessible(page)
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
  await picture(page, `messages ${name} ${colorScheme}`)
})
