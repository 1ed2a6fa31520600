/** The page of a message: what it shows, and that what it offers to do is done. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright-core'
import { dashboard, type Redact } from 'oncebox/dashboard'
import { toNodeListener } from 'oncebox/http'
import {
  expectAccessible,
  openDashboard,
  openPage,
  PHONE,
  picture,
  waitUntil,
  type OpenedDashboard,
} from './harness.js'

let ops: OpenedDashboard
beforeAll(async () => {
  ops = await openDashboard()
})

const at = (id: string): string => `/message/payments?id=${encodeURIComponent(id)}`
const fate = async (id: string) => (await ops.payments.admin.message({ id }))[0]
const state = async (id: string): Promise<string | undefined> => (await fate(id))?.state

async function openMessage(id: string, options: Parameters<OpenedDashboard['open']>[1] = {}): Promise<Page> {
  const page = await ops.open(at(id), options)
  await page.locator('.msg-head').waitFor()
  return page
}

async function sees(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).first().waitFor()
}

async function receive(id: string, body: string | Buffer, rest: object = {}): Promise<void> {
  await ops.payments.receive([{ id, type: 'order.placed', source: 'shop', body, ...rest }])
}

test('a dead message says what it died of, and how many others did', async () => {
  const page = await openMessage('late-3')
  await page.getByRole('heading', { name: 'GatewayTimeout: no answer from 10.0.4.17 in 30003 ms' }).waitFor()
  await sees(page, '11 others')
  await page.getByRole('group', { name: 'Stack of attempt 1' }).waitFor()
  expect(await page.locator('.facts dt', { hasText: 'Attempts' }).locator('+ dd').innerText()).toBe('1 of 1')
  await expectAccessible(page)
  await picture(page, 'message')
  await page.getByRole('link', { name: '11 others' }).click()
  await waitUntil(async () => (await page.locator('.msgs tbody tr').count()) === 12)
})

test('it is retried by keys alone, and the open page shows what becomes of it', async () => {
  const page = await openMessage('late-1')
  await page.keyboard.press('r')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Retry 1 message', exact: true }).waitFor()
  await expectAccessible(page)
  await dialog.getByLabel(/^Why/).focus()
  for (const key of ['Tab', 'Tab', 'Enter']) await page.keyboard.press(key)
  await waitUntil(async () => (await state('late-1')) === 'pending')
  await page.locator('.msg-title .s-pending').waitFor()
  await ops.payments.drain()
  await page.locator('.msg-title .s-dead').waitFor()
})

test('it is discarded only with a reason, which the audit has', async () => {
  const page = await openMessage('late-2')
  await page.keyboard.press('Shift+d')
  const button = page.getByRole('dialog').getByRole('button', { name: /^Discard 1 message/ })
  await waitUntil(async () => (await button.innerText()).startsWith('Discard'))
  expect(await button.getAttribute('aria-disabled')).toBe('true')
  await page.getByRole('dialog').getByLabel(/^Why/).fill('paid by hand')
  await button.click()
  await waitUntil(async () => (await state('late-2')) === 'discarded')
  // It is written once the message is.
  await waitUntil(async () => {
    const { rows } = await ops.pool.query(
      `select detail::text from "${ops.payments.schema}".audit where action = 'discard'`,
    )
    return JSON.stringify(rows).includes('paid by hand')
  })
})

test('a message that was handled is run again after a warning', async () => {
  const page = await openMessage('mail-2')
  await page.getByRole('button', { name: 'Run again…' }).click()
  await sees(page, 'Its handler runs a second time.')
  await page.getByRole('dialog').getByRole('button', { name: 'Run 1 message again' }).click()
  await waitUntil(async () => (await state('mail-2')) === 'pending')
})

test('what became of an effect is answered, and the message goes on with the result as it was written', async () => {
  const page = await openMessage('pay-unknown')
  await sees(page, 'Nobody knows whether one of its effects happened')
  await picture(page, 'message effect unknown')
  await page.getByRole('button', { name: 'It happened' }).click()
  const dialog = page.getByRole('dialog')
  await expectAccessible(page)
  await dialog.getByLabel(/^What it gave/).fill('{"charge":')
  await dialog.getByRole('button', { name: 'It happened' }).click()
  await sees(page, 'The result has to be JSON')
  await dialog.getByLabel(/^What it gave/).fill('{"charge":9007199254740993}')
  await dialog.getByRole('button', { name: 'It happened' }).click()
  await waitUntil(async () => (await state('pay-unknown')) !== 'quarantined')
  await ops.payments.drain()
  await waitUntil(async () => (await state('pay-unknown')) === 'handled')
  await page.locator('.msg-title .s-handled').waitFor()
  await sees(page, '{"charge":9007199254740993}')
})

test('of an id with several fates each is a click away, and the rest of the page stays', async () => {
  const page = await openMessage('pay-1')
  await sees(page, 'Another body came under an id that is known')
  await sees(page, '"sent again"')
  await page
    .getByRole('navigation', { name: /^Fates/ })
    .getByRole('link', { name: /Handled/ })
    .click()
  await page.locator('.msg-title .s-handled').waitFor()
  expect(await page.getByText('"sent again"').count()).toBe(0)
})

test('a payload is a tree with exact numbers, or raw, and is copied as it was written', async () => {
  await receive('exact', '{"a":9007199254740993,"b":1e400,"c":-0,"a":2,"d":{"e":{"f":{"g":1}}}}')
  const page = await openMessage('exact')
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const tree = page.locator('.tree')
  const text = await tree.innerText()
  for (const part of [
    '9007199254740993 exact, above 2⁵³',
    '1e400',
    '-0 minus zero',
    'again below, which counts',
    '1 key }',
  ]) {
    expect(text).toContain(part)
  }
  await page.getByRole('tab', { name: 'Tree' }).focus()
  await page.keyboard.press('ArrowRight')
  expect(await page.getByRole('group', { name: 'Payload, raw' }).innerText()).toContain('"b":1e400')
  await page.getByRole('button', { name: 'Copy as JSON' }).click()
  await sees(page, 'Copied as JSON')
  expect(await page.evaluate('navigator.clipboard.readText()')).toContain('9007199254740993')
  await page.getByRole('button', { name: 'Copy as a test' }).click()
  await sees(page, 'Copied as a test')
  expect(await page.evaluate('navigator.clipboard.readText()')).toContain('await box.deliver({')
})

test('of a long payload the first part is shown, and the whole of it when it is asked for', async () => {
  const long = JSON.stringify({ items: Array.from({ length: 30_000 }, (_, n) => ({ n, name: 'tea' })), end: 'the end' })
  await receive('long', long)
  const page = await openMessage('long')
  await sees(page, /^The first 66 kB of/)
  await page.getByRole('button', { name: /^Show all/ }).click()
  await waitUntil(async () => (await page.locator('.raw').textContent())?.endsWith('"the end"}') === true)
  await page.getByRole('tab', { name: 'Tree' }).click()
  await page.getByRole('button', { name: /^Show 200 of/ }).click()
  await sees(page, '399:')
})

test('what is hostile in a message is shown, and does nothing', async () => {
  const script = '<script>document.title="ran"</script><img src=x onerror=alert(1)>'
  const deep = `${'['.repeat(500)}${']'.repeat(500)}`
  const body = `{"__proto__":{"polluted":1},"${'\\u202e'}key":${JSON.stringify(`${script}\u202e\u001b[31m`)},"half":"\\ud800","deep":${deep}}`
  await receive('hostile \u202e<b>', body, { key: script, headers: { 'x-<i>': script } })
  const page = await openMessage('hostile \u202e<b>')
  const tree = await page.locator('.tree').innerText()
  for (const part of ['__proto__', 'U+202E', '\\u001b[31m', '\\ud800', '<script>document.title='])
    expect(tree).toContain(part)
  expect(await page.locator('.msg-id code').innerText()).toBe('hostile U+202E<b>')
  expect(
    await page.evaluate('[document.querySelectorAll("main img, main script, main b b").length, {}.polluted]'),
  ).toEqual([0, undefined])
  for (let depth = 0; depth < 20; depth += 1) await page.locator('.tree details:not([open]) > summary').last().click()
  expect(await page.locator('.tree details').count()).toBeGreaterThan(20)
  await page.goto(`${ops.url}/messages/payments?q=${encodeURIComponent('type:order.placed')}`)
  await sees(page, 'hostile ')
  expect(await page.title()).not.toBe('ran')
})

test('what could not be decoded is shown byte by byte', async () => {
  const page = await openMessage('bytes-1')
  await sees(page, 'Its body could not be decoded')
  expect(await page.getByRole('group', { name: 'Payload, bytes' }).innerText()).toContain('ff fe 00 41')
  await expectAccessible(page)
})

test('what was redacted is labelled, and bytes that cannot be are not shown', async () => {
  await receive('secret', '{"cents":9007199254740993,"secret":"4711-4711"}')
  const redact: Redact = (message) => {
    const data = message.data as { secret?: string } | undefined
    return data?.secret === undefined ? message : { ...message, data: { ...data, secret: '••••' } }
  }
  const other = dashboard({ payments: ops.payments }, { authorize: () => ({ may: 'all' }), redact })
  const server = createServer(toNodeListener(other))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const page = await openPage(url + at('secret'))
    await sees(page, '1 value redacted')
    expect(await page.locator('.tree').innerText()).toMatch(/cents: 9007199254740993[^]*secret: redacted/)
    expect(await page.content()).not.toContain('4711')
    await page.goto(url + at('bytes-1'))
    await page.getByRole('heading', { name: 'Payload hidden' }).waitFor()
    await page.goto('about:blank')
  } finally {
    await other.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

test('a conversation leads across boxes', async () => {
  const page = await openMessage('order-1')
  const flow = page.locator('.flow')
  await flow.getByRole('button', { name: 'What stock.requested caused' }).click()
  await flow.getByRole('link', { name: 'stock.reserved' }).waitFor()
  await expectAccessible(page)
  await picture(page, 'message conversation')
  await flow.getByRole('link', { name: 'stock.requested' }).click()
  await page.getByRole('heading', { level: 1, name: 'stock.requested' }).waitFor()
  expect(new URL(page.url()).pathname).toBe('/message/warehouse')
  await page.locator('.flow').getByRole('link', { name: 'order.placed' }).waitFor()
})

test('without the right to see bodies nothing of them is there, and it is said', async () => {
  const page = await openMessage('late-4', { may: ['read'] })
  await page.getByRole('heading', { name: 'Payload hidden' }).waitFor()
  await sees(page, 'What the error says is hidden')
  expect(await page.content()).not.toMatch(/10\.0\.4\.17|Lovelace|0af7651916cd43dd/)
  expect(await page.getByRole('button', { name: /^Retry…/ }).getAttribute('aria-disabled')).toBe('true')
  await expectAccessible(page)
})

test('an id that there is not has a page that says so', async () => {
  const page = await ops.open(at('nobody'), { allow: [/404/] })
  await page.getByRole('heading', { level: 1, name: 'There is no such message' }).waitFor()
  await expectAccessible(page)
})

test.for(['light', 'dark'] as const)('on a phone it is one column, in %s', async (colorScheme) => {
  const page = await openMessage('pay-null', { viewport: PHONE, colorScheme })
  await sees(page, 'the list of rates is empty')
  await page.locator('.flow').waitFor()
  await expectAccessible(page)
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
  await picture(page, `message phone ${colorScheme}`)
})
