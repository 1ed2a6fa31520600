/** What is the same on every page: ways around, keyboard, theme, live updates, and what is said when they end. */
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { expectAccessible, openDashboard, PHONE, waitUntil, type OpenedDashboard } from './harness.js'

const BASE = '/ops/inbox'
let ops: OpenedDashboard

beforeAll(async () => {
  ops = await openDashboard({ base: BASE, title: 'Acme inbox' })
})

/** The page has heard of the box. */
async function openLive(path = '/', options: Parameters<OpenedDashboard['open']>[1] = {}): Promise<Page> {
  const page = await ops.open(path, options)
  await page.getByRole('button', { name: /^Live/ }).waitFor()
  return page
}

const pathOf = (page: Page): string => new URL(page.url()).pathname
const focused = (page: Page): Promise<string> => page.evaluate('document.activeElement?.textContent ?? ""')

let sent = 0
/** One more that waits for settle-invoice, which is paused. */
async function sendOne(): Promise<void> {
  sent += 1
  await ops.payments.receive([{ id: `shell-${sent}`, type: 'invoice.due', source: 'shell', body: '{"total":1}' }])
}
const pending = (page: Page): Promise<string | null> =>
  page.getByRole('link', { name: /pending, settle-invoice/ }).textContent()

describe('ways around', () => {
  test('links, back and forward stay in one page, below the base path, and a box is a choice', async () => {
    const page = await openLive()
    await page.evaluate('globalThis.same = true')
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Failures' }).click()
    await waitUntil(() => pathOf(page) === `${BASE}/failures/payments`)
    expect(await page.title()).toBe('Failures · Acme inbox')
    await page.locator('.side').getByLabel('Box', { exact: true }).selectOption('warehouse')
    await waitUntil(() => pathOf(page) === `${BASE}/failures/warehouse`)
    await page.goBack()
    await waitUntil(() => pathOf(page) === `${BASE}/failures/payments`)
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: /need you/ }).waitFor()
    expect(await page.evaluate('globalThis.same')).toBe(true)
  })

  test('a box that is not there says so, and leads on', async () => {
    const page = await ops.open('/messages/nowhere')
    await page.getByRole('heading', { level: 1, name: 'There is no box nowhere' }).waitFor()
    await page.getByRole('main').getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { level: 1, name: /need you/ }).waitFor()
  })

  test('on a phone five pages are tabs below, and the others follow the page', async () => {
    const page = await openLive('/', { viewport: PHONE })
    const tabs = page.getByRole('navigation', { name: 'Main' })
    expect((await tabs.boundingBox())!.y).toBeGreaterThan(PHONE.height - 80)
    await page.getByRole('navigation', { name: 'Other pages' }).getByRole('link', { name: 'Settings' }).click()
    await waitUntil(() => pathOf(page) === `${BASE}/settings`)
  })
})

describe('with the keyboard alone', () => {
  test('pages are two letters away, rows are walked, and the focus is where the reader is', async () => {
    const page = await openLive()
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Skip to content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    expect(await focused(page)).toMatch(/keys of ship-order are blocked/)
    await page.keyboard.press('Enter')
    await waitUntil(() => pathOf(page) === `${BASE}/keys/payments`)
    await page.keyboard.press('g')
    await page.keyboard.press('f')
    await waitUntil(() => pathOf(page) === `${BASE}/failures/payments`)
    await page.keyboard.press('g')
    await page.keyboard.press('o')
    await waitUntil(() => pathOf(page) === `${BASE}/overview/payments`)
    await page.keyboard.press('/')
    await waitUntil(() => pathOf(page) === `${BASE}/messages/payments`)
  })

  test('the search takes what is typed, from every page, whether its code has come or not', async () => {
    const search = (page: Page) => page.getByRole('combobox', { name: 'Search messages' })
    const typed = async (page: Page, text: string): Promise<void> => {
      await waitUntil(async () => (await search(page).count()) > 0 && (await search(page).inputValue()) === text)
      expect(await page.evaluate('document.activeElement?.getAttribute("aria-label")')).toBe('Search messages')
      expect(await page.getByRole('dialog').count()).toBe(0)
    }
    const warm = await openLive('/failures/payments')
    await warm.getByRole('heading', { level: 1 }).waitFor()
    await warm.keyboard.press('/')
    await warm.keyboard.type('order-7')
    await typed(warm, 'order-7')
    await warm.keyboard.press('Escape')
    await warm.keyboard.press('Escape')
    await warm.goBack()
    await waitUntil(() => pathOf(warm) === `${BASE}/failures/payments`)
    await warm.locator('.find').click()
    await warm.keyboard.type('orx')
    await typed(warm, 'orx')

    const cold = await ops.open('/settings')
    let bring = (): void => undefined
    const held = new Promise<void>((resolve) => (bring = resolve))
    await cold.route(/of-messages/, async (route) => {
      await held
      await route.continue()
    })
    await cold.goto(`${ops.url}/overview/payments`)
    await cold.getByRole('heading', { level: 1, name: /need you/ }).waitFor()
    await cold.keyboard.press('/')
    await waitUntil(() => pathOf(cold) === `${BASE}/messages/payments`)
    await cold.keyboard.type('order-xr')
    await cold.keyboard.press('Backspace')
    bring()
    await typed(cold, 'order-x')
  })

  test('help opens and closes by a key, gives the focus back, and can switch the letters off', async () => {
    const page = await openLive()
    const live = page.getByRole('button', { name: /^Live/ })
    await live.focus()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await focused(page)).toBe('Live')
    await page.keyboard.press('?')
    await page.getByRole('button', { name: /shortcuts off/i }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('p')
    expect(await live.getAttribute('aria-pressed')).toBe('false')
  })
})

test('the theme follows the system until it is chosen, and then is kept', async () => {
  const page = await openLive('/', { colorScheme: 'dark' })
  const canvas = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor')
  const atNight = await canvas()
  await page.emulateMedia({ colorScheme: 'light' })
  const byDay = await canvas()
  expect(byDay).not.toBe(atNight)
  await page.keyboard.press('t')
  await waitUntil(async () => (await canvas()) === atNight)
  await page.reload()
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(await canvas()).toBe(atNight)
})

test('a key changes the theme that is seen, also before the browser has told that the system changed its own', async () => {
  const page = await ops.open('/settings', { colorScheme: 'dark' })
  await page.addInitScript('MediaQueryList.prototype.addEventListener = () => undefined')
  await page.goto(`${ops.url}/`)
  await page.getByRole('button', { name: /^Live/ }).waitFor()
  await page.emulateMedia({ colorScheme: 'light' })
  await page.keyboard.press('t')
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
})

describe('live updates', () => {
  test('are paused by a key, say so, and go on', async () => {
    const page = await openLive()
    await page.keyboard.press('p')
    await page.getByText(/^Paused at \d\d:\d\d:\d\d\./).waitFor()
    const before = await pending(page)
    await sendOne()
    const other = await openLive()
    await waitUntil(async () => (await pending(other)) !== before)
    expect(await pending(page)).toBe(before)
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await waitUntil(async () => (await pending(page)) === (await pending(other)))
  })

  test('end in a tab that nobody sees, and begin again', async () => {
    const page = await openLive()
    const hide = (hidden: boolean): Promise<unknown> =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { configurable: true, value: ${hidden} });
        document.dispatchEvent(new Event('visibilitychange'))`)
    const before = await pending(page)
    const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/stream'))
    await hide(true)
    await closed
    await sendOne()
    expect(await pending(page)).toBe(before)
    await hide(false)
    await waitUntil(async () => (await pending(page)) !== before)
  })

  test('are asked for every five seconds when the stream is lost, until nothing answers', async () => {
    const allow = [/stream/, /overview/, /history/, /ERR_/]
    const page = await ops.open('/settings', { allow })
    await page.route('**/stream', (route) => route.abort())
    await page.goto(`${ops.url}/`)
    await page.getByText('The live stream is lost.').waitFor()
    await page.getByRole('heading', { level: 1, name: /need you/ }).waitFor()
    await page.route('**/overview', (route) => route.abort())
    await page.getByText(/^No connection since \d\d:\d\d:\d\d\./).waitFor()
    await expectAccessible(page)
    await page.unroute('**/overview')
    await page.getByText('The live stream is lost.').waitFor()
  })
})

test('a box that cannot be read is not called live', async () => {
  const page = await ops.open('/settings')
  await page.route('**/stream', (route) =>
    route.fulfill({
      contentType: 'text/event-stream',
      body: 'event: problem\ndata: {"message":"the database does not answer"}\n\n',
    }),
  )
  await page.goto(`${ops.url}/`)
  await page.getByText('The box cannot be read.').waitFor()
  await page.getByRole('button', { name: /^Not read\./ }).waitFor()
})

test('who may only look sees every button, and why it does nothing', async () => {
  const page = await openLive('/', { may: ['read'] })
  await page.getByText('You can look at everything but payloads and the words of errors, and change nothing.').waitFor()
  const button = page.getByRole('button', { name: /^Pause charge-card/ })
  expect(await button.getAttribute('aria-disabled')).toBe('true')
  expect(await button.getAttribute('title')).toBe('You may not pause consumers here.')
  await button.click({ force: true })
  expect(await page.getByRole('dialog').count()).toBe(0)
  await expectAccessible(page)
})
