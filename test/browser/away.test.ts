/** What a reader meets who is signed out, whose server goes away and comes back, whose clock is wrong, or who goes back and forth. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dashboard, type Dashboard } from 'oncebox/dashboard'
import { toNodeListener } from 'oncebox/http'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openDashboard, openPage, serve, waitUntil, type OpenedDashboard } from './harness.js'

let ops: OpenedDashboard

beforeAll(async () => {
  ops = await openDashboard()
})

describe('whoever is signed out while they look', () => {
  test.for([
    ['is refused', (): null => null],
    ['is sent to where one signs in', () => new Response(null, { status: 302, headers: { location: '/login' } })],
  ] as const)('%s, is told so, and gets back to it', async ([, refuse]) => {
    let isIn = true
    const { payments } = ops
    const authorize = () => (isIn ? ({ may: 'all', by: 'ines' } as const) : refuse())
    const served = await serve({ payments }, { authorize })
    const page = await openPage(`${served.url}/failures/payments`, { allow: [/40\d|ERR_|MIME type/] })
    await page.getByRole('heading', { level: 1, name: /dead, in/ }).waitFor()
    await page.getByRole('button', { name: /^Live/ }).waitFor()
    isIn = false
    // A stream that has begun goes on until the server ends it: every reader is asked again then.
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Keys' }).click()
    await page.getByText('You are not signed in').first().waitFor()
    const again = page.getByRole('main').getByRole('button', { name: 'Sign in again' }).first()
    await again.waitFor()
    isIn = true
    await again.click()
    await page.getByRole('heading', { level: 1, name: /keys are blocked/ }).waitFor()
    await served.close()
  })

  test('sees from when what is shown is, and changes nothing', async () => {
    let isIn = true
    const { payments } = ops
    const served = await serve({ payments }, { authorize: () => (isIn ? { may: 'all', by: 'ines' } : null) })
    const page = await openPage(`${served.url}/overview/payments`, { allow: [/401|ERR_/] })
    await page.getByRole('button', { name: /^Live/ }).waitFor()
    isIn = false
    served.endStreams()
    await page.getByText('You are not signed in any more.').waitFor()
    await page.getByRole('button', { name: 'Pause email-receipt' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Pause email-receipt' }).click()
    await page.getByText('Nothing was changed').waitFor()
    expect((await payments.admin.status()).consumers['email-receipt']!.paused ?? false).toBe(false)
  })
})

test('when the server is back the page is live again, without asking for long', async () => {
  const { payments } = ops
  const port = { at: 0 }
  const start = async (): Promise<{ server: Server; own: Dashboard }> => {
    const own = dashboard({ payments }, { authorize: () => ({ may: 'all', by: 'ines' }) })
    const server = createServer(toNodeListener(own))
    await new Promise<void>((resolve) => server.listen(port.at, '127.0.0.1', resolve))
    port.at = (server.address() as AddressInfo).port
    return { server, own }
  }
  const stop = async ({ server, own }: Awaited<ReturnType<typeof start>>): Promise<void> => {
    await own.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  let served = await start()
  onTestFinished(() => stop(served))
  const page = await openPage(`http://127.0.0.1:${port.at}/overview/payments`, { allow: [/ERR_/] })
  await page.getByRole('button', { name: /^Live/ }).waitFor()
  await stop(served)
  await page.getByText(/^No connection since/).waitFor()
  served = await start()
  let asked = 0
  page.on('response', (response) => (asked += /\/overview$/.test(response.url()) ? 1 : 0))
  await page.getByRole('button', { name: /^Live/ }).waitFor()
  expect(asked).toBeLessThanOrEqual(2)
})

test.for([-5, 3])('a browser whose clock is %d hours off says what was when as the server does', async (hours) => {
  const page = await ops.open('/messages/payments?q=state%3Adead', { timezoneId: 'UTC' })
  await page.context().addInitScript(`{
    const Real = Date, ahead = ${hours * 3_600_000}
    globalThis.Date = class extends Real {
      constructor(...all) { super(...(all.length === 0 ? [Real.now() + ahead] : all)) }
      static now() { return Real.now() + ahead }
    }
  }`)
  await page.goto(`${ops.url}/message/payments?id=pay-null&consumer=charge-card`)
  await page.getByText(/· 1\d min ago/).waitFor()
  await page.goto(`${ops.url}/overview/payments`)
  // What has been heard is within what the charts show.
  await page.getByRole('button', { name: 'Show Depth as a table' }).click()
  await page.getByRole('region', { name: 'Depth, as a table' }).locator('tbody tr').first().waitFor()
})

test('the way back leads to where one was in a list, however late that comes', async () => {
  const page = await ops.open('/messages/payments')
  const row = page.locator('tbody tr a.row-link').nth(25)
  await row.waitFor()
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  // A click scrolls to what it is for: from here on it need not.
  await row.hover()
  const y = (): Promise<number> => page.evaluate('Math.round(scrollY)')
  const before = await y()
  expect(before).toBeGreaterThan(200)
  await row.click()
  await page.getByRole('heading', { name: 'Facts' }).waitFor()
  expect(await y()).toBe(0)
  await page.route(/\/messages\?/, async (route) => {
    await page.waitForTimeout(4_000)
    await route.continue()
  })
  await page.goBack()
  await waitUntil(async () => (await y()) === before)
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.goForward()
  await page.getByRole('heading', { name: 'Facts' }).waitFor()
  await waitUntil(async () => (await y()) === 0)
})
