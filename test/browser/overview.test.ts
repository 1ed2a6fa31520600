/** The overview: what is wrong, since when, what to do; and that it stays true while one looks. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { dashboard } from 'oncebox/dashboard'
import { toNodeListener } from 'oncebox/http'
import { createTestBox } from 'oncebox/testing'
import { fromPg } from 'oncebox/pg'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  DESKTOP,
  expectAccessible,
  openDashboard,
  openPage,
  PHONE,
  picture,
  serve,
  TABLET,
  waitUntil,
  type OpenedDashboard,
} from './harness.js'

let ops: OpenedDashboard

beforeAll(async () => {
  ops = await openDashboard()
})

async function openOverview(options: Parameters<OpenedDashboard['open']>[1] = {}, path = '/'): Promise<Page> {
  const page = await ops.open(path, options)
  await page.getByRole('heading', { level: 1, name: /need you/ }).waitFor()
  // The charts come after the page.
  await page.locator('.chart-canvas canvas').nth(3).waitFor()
  return page
}

const pending = (page: Page): Promise<string | null> =>
  page.getByRole('link', { name: /pending, settle-invoice/ }).textContent()

test('begins with a sentence, and each finding leads to where something can be done', async () => {
  const page = await openOverview()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('4 things need you')
  const findings = page.locator('.finding')
  expect(await findings.locator('.what a').allTextContents()).toEqual([
    '2 keys of ship-order are blocked',
    '5 messages cannot be judged',
    '19 messages are dead',
    '2 events are dead for rabbitmq-events',
  ])
  expect(await findings.locator('.why').first().textContent()).toContain('4 messages wait behind 2 that stopped')
  const since = await findings.locator('.since').allTextContents()
  expect(since.slice(0, 3)).toEqual([0, 1, 2].map(() => expect.stringMatching(/^since .+ · \d+ (min|h)$/) as string))
  const rowOf = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) })
  expect(await rowOf('settle-invoice').locator('.tag').allTextContents()).toEqual([
    expect.stringMatching(/^paused \d+ (min|h)$/),
  ])
  expect(await rowOf('ship-order').locator('.tag').allTextContents()).toEqual(['order: key', '2 keys blocked'])
  expect(await rowOf('kafka-ledger').locator('.err').textContent()).toBe(
    'GatewayTimeout: connect ETIMEDOUT 10.0.4.17:9092',
  )
  const links = await findings.locator('.what a').evaluateAll((all) => all.map((link) => link.getAttribute('href')))
  expect(links).toEqual(['/keys/payments', '/quarantine/payments', '/failures/payments', '/outbox/payments'])
  const dead = page.getByRole('link', { name: '17 dead, charge-card' })
  expect(await dead.getAttribute('href')).toBe('/messages/payments?q=consumer%3Acharge-card+state%3Adead')
  await picture(page, 'overview')
})

test('who may not see the words of errors sees what kind of error a sink has', async () => {
  const page = await openOverview({ may: ['read'] })
  expect(
    await page
      .getByRole('row', { name: /^kafka-ledger/ })
      .locator('.err')
      .textContent(),
  ).toBe('GatewayTimeout ETIMEDOUT')
})

test('a sink that is down says since when, and why, on the overview and in the outbox', async () => {
  const box = await createTestBox({ db: fromPg(ops.pool), source: 'ledger' })
  onTestFinished(() => box.stop({ timeoutMs: 1_000 }))
  box.to({
    name: 'kafka-ledger',
    publish: () => Promise.reject(new Error('connect ETIMEDOUT 10.0.4.17:9092')),
    close: () => Promise.resolve(),
  })
  box.consumer('post', { entry: async (_, { send }) => void (await send('posted', {})) })
  await box.receive([{ id: 'e-1', type: 'entry', source: 'shop', body: '{}' }])
  await box.start()
  await waitUntil(async () => (await box.health()).reasons?.[0]?.startsWith('sink kafka-ledger is down') === true)
  const down = await serve({ ledger: box }, { authorize: () => 'all' })
  for (const [path, state] of [
    ['/overview/ledger', 'Down'],
    ['/outbox/ledger', 'Failing'],
  ] as const) {
    for (const viewport of [DESKTOP, PHONE]) {
      const page = await down.open(path, { viewport })
      const row = page.getByRole('row', { name: /^kafka-ledger/ })
      await row.getByText(/^since /).waitFor()
      await row.getByText(state, { exact: true }).waitFor()
      await row.getByText('connect ETIMEDOUT 10.0.4.17:9092').waitFor()
      if (state === 'Down') {
        const finding = page.locator('.finding')
        expect(await finding.locator('.what').textContent()).toBe(
          'kafka-ledger does not answer · 1 event waits · connect ETIMEDOUT 10.0.4.17:9092',
        )
        expect(await finding.locator('.since').textContent()).toMatch(/^since /)
      }
      await expectAccessible(page)
      await picture(page, `down ${state} ${viewport.width}`)
    }
  }
})

test('two who look see the same, as it happens', async () => {
  const [one, other] = [await openOverview(), await openOverview({ viewport: PHONE })]
  const before = Number(await pending(one))
  await ops.payments.receive([{ id: 'live-1', type: 'invoice.due', source: 'live', body: '{"total":1}' }])
  for (const page of [one, other]) await waitUntil(async () => Number(await pending(page)) === before + 1)
})

test('a consumer is paused after a question, for everybody, and it can be undone', async () => {
  const [page, other] = [await openOverview(), await openOverview()]
  const row = (of: Page) => of.getByRole('row', { name: /^email-receipt/ })
  const button = page.getByRole('button', { name: 'Pause email-receipt' })
  await button.click()
  await page.getByRole('dialog', { name: 'Pause email-receipt?' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await waitUntil(() => button.evaluate((element) => element.ownerDocument.activeElement === element))
  await button.click()
  await expectAccessible(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Pause email-receipt' }).click()
  await page.getByText('email-receipt is paused').waitFor()
  await row(other).getByText('paused').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await row(other).getByText('paused').waitFor({ state: 'detached' })
  const { records } = await ops.payments.admin.audit({ limit: 2 })
  expect(records.map(({ action, by }) => [action, by])).toEqual([
    ['resume', 'ines@acme.example'],
    ['pause', 'ines@acme.example'],
  ])
})

describe('the charts', () => {
  test('say in a sentence what they show, and are tables for whoever wants them', async () => {
    const page = await openOverview()
    const depth = page.getByRole('img', { name: /^Messages that wait, last hour: \d+ now/ })
    await depth.waitFor()
    await page.getByRole('button', { name: 'Show Depth as a table' }).click()
    const table = page.getByRole('region', { name: 'Depth, as a table' })
    await table.getByRole('columnheader', { name: 'Pending' }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Show Depth as a chart' }).click()
    await depth.waitFor()
  })

  test('have one range, which is in the address, and one crosshair', async () => {
    const page = await openOverview({}, '/overview/payments?minutes=360')
    const range = (name: string) => page.getByRole('button', { name, exact: true })
    expect(await range('6 h').getAttribute('aria-pressed')).toBe('true')
    await range('15 min').click()
    await waitUntil(() => new URL(page.url()).search === '?minutes=15')
    const [lag, rate] = [page.locator('.u-over').nth(0), page.locator('.u-over').nth(1)]
    const area = (await rate.boundingBox())!
    await page.mouse.move(area.x + area.width - 3, area.y + 20)
    const flag = page.locator('.u-flag:not([hidden])')
    await flag.waitFor()
    // Above the axis, whose times it would cover.
    const [told, drawn] = [(await flag.boundingBox())!, (await lag.boundingBox())!]
    expect(told.y + told.height).toBeLessThanOrEqual(drawn.y + drawn.height)
    expect(await lag.locator('.u-cursor-x').isVisible()).toBe(true)
  })

  test('are zoomed into by dragging, all together, and a double click goes back', async () => {
    const page = await openOverview()
    const area = (await page.locator('.u-over').nth(1).boundingBox())!
    await page.mouse.move(area.x + 40, area.y + 30)
    await page.mouse.down()
    await page.mouse.move(area.x + 140, area.y + 30, { steps: 4 })
    await page.mouse.up()
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor()
    await page.mouse.dblclick(area.x + 60, area.y + 30)
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor({ state: 'detached' })
  })
})

test('fits every width, in both themes, and axe finds nothing', async () => {
  const page = await openOverview()
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const viewport of [PHONE, TABLET, DESKTOP]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize(viewport)
      await expectAccessible(page)
      expect(await sideways(page)).toBe(0)
      await picture(page, `overview ${colorScheme} ${viewport.width}`)
    }
  }
  await page.setViewportSize({ width: 320, height: 640 })
  expect(await sideways(page)).toBe(0)
})

test.for([768, 800, 830, 1_024])('no table scrolls sideways in a window of %d px', async (width) => {
  const page = await ops.open('/settings', { viewport: { width, height: 900 } })
  const found: string[] = []
  for (const name of ['overview', 'messages', 'keys', 'outbox', 'audit']) {
    await page.goto(`${ops.url}/${name}/payments`)
    await page.locator('main .scroll tbody tr').first().waitFor()
    const over = await page
      .locator('main .scroll')
      .evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth))
    found.push(...over.filter((pixels) => pixels > 0).map((pixels) => `${name}: ${pixels} px`))
  }
  expect(found).toEqual([])
})

test('since when has room for another day, and stands in line', async () => {
  await ops.pool.query(
    `update "${ops.payments.schema}".work set failed_at = failed_at - interval '20 days' where id = 'late-1'`,
  )
  for (const viewport of [DESKTOP, TABLET, PHONE]) {
    const page = await openOverview({ viewport })
    await page.locator('.finding .since', { hasText: /\d \w{3}, .* · 20 d/ }).waitFor()
    const over = await page
      .locator('.finding .since')
      .evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth))
    expect(over.filter((pixels) => pixels > 0)).toEqual([])
  }
})

test('fits a narrower width before its charts are drawn anew', async () => {
  const page = await ops.open('/settings')
  // As on a machine that is busy: nobody has been told of the new size yet.
  await page
    .context()
    .addInitScript('globalThis.ResizeObserver = class { observe() {} unobserve() {} disconnect() {} }')
  await page.goto(`${ops.url}/overview/payments`)
  await page.locator('.chart-canvas canvas').nth(3).waitFor()
  await page.setViewportSize({ width: 320, height: 640 })
  expect(await sideways(page)).toBe(0)
})

/** How far the page scrolls sideways. */
async function sideways(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

test('a box that nothing came to says what to do', async () => {
  const empty = await createTestBox({ db: fromPg(ops.pool), source: 'empty' })
  empty.consumer('greet', { hello: () => undefined })
  const only = dashboard({ empty }, { authorize: () => ({ may: 'all' }) })
  const server = createServer(toNodeListener(only))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await only.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await empty.stop()
  })
  // When the test ends, the server is gone before the page.
  const page = await openPage(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { allow: [/ERR_/] })
  await page.getByRole('heading', { level: 1, name: 'No message yet' }).waitFor()
  await expectAccessible(page)
  await empty.receive([{ id: '1', type: 'hello', source: 'x', body: '{}' }])
  await page.getByRole('heading', { level: 1, name: 'All clear' }).waitFor()
})
