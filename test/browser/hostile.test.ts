/**
 * The corpus of test/dashboard/corpus.ts in a real browser, on every page that shows data: nothing of it runs, reaches out,
 * becomes an element, or turns the text around it. Each page has all of it where it can: `ONCEBOX_HOSTILE=all` opens the page of
 * each of the two hundred messages too, and not of every twentieth alone.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BODIES, CORPUS, fillHostile } from '../dashboard/corpus.js'
import { openPool, PHONE, picture, serve, waitUntil, type Served } from './harness.js'

const EVERY = process.env['ONCEBOX_HOSTILE'] === 'all' ? 1 : 20

let box: Awaited<ReturnType<typeof fillHostile>>
let ops: Served
let reader = 0

beforeAll(async () => {
  box = await fillHostile(await openPool())
  // Who asks is another one each time: how fast one may search is another test's.
  ops = await serve({ shop: box }, { authorize: () => ({ may: 'all', by: `reader ${(reader += 1)}` }), title: '</title><script>hacked(1)</script>' }) // prettier-ignore
})
afterAll(() => box.stop())

/** What no page of the interface has, and what the corpus would make if it were markup. */
const FOREIGN = [
  ...['img', 'iframe', 'object', 'embed', 'math', 'video', 'marquee', 'xmp', 'portal', 'animate', 'foreignObject', 'template'],
  ...['[onload]', '[onerror]', '[onfocus]', '[ontoggle]', '[onbegin]', '[onstart]', '[style*=url]', 'a[href^="javascript:" i]'],
  ...['a[href*="192.0.2.1/"]', 'form[action]', 'meta[http-equiv]', 'link[rel=preload]', 'style', 'script:not([src])', 'dialog dialog'],
  ...['a[ping]', 'body > b', 'main main', 'main noscript'],
].join() // prettier-ignore

/** What would act on the text around it. A person sees a mark in its place. */
const ACTS = String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069\ufeff]`

async function expectHarmless(page: Page, where: string): Promise<void> {
  await settled(page)
  expect([where, await page.locator(FOREIGN).evaluateAll((all) => all.map((one) => one.outerHTML.slice(0, 200)))]).toEqual([where, []]) // prettier-ignore
  const acts = await page.evaluate<string[]>(`(() => {
    const found = []
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const acts = new RegExp(${JSON.stringify(ACTS)})
    while (walk.nextNode()) if (acts.test(walk.currentNode.data)) found.push(JSON.stringify(walk.currentNode.data.slice(0, 80)))
    return found
  })()`)
  expect([where, acts]).toEqual([where, []])
  expect([where, await page.evaluate('({}).polluted === undefined')]).toEqual([where, true])
}

/** It has a heading, and waits for nothing more. */
async function settled(page: Page): Promise<void> {
  await page.locator('main h1').first().waitFor({ state: 'attached' })
  await waitUntil(async () => (await page.locator('main [aria-busy=true]').count()) === 0, { what: `${page.url()} to be there` }) // prettier-ignore
}

/** As a click on a link does: without loading everything again. */
async function go(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  )
}

test('no page that shows data runs any of it, or shows it as anything but text', async () => {
  // What is no query is refused, and the page says so.
  const page = await ops.open('/', { allow: [/\b400\b/] })
  const queries = [
    '',
    'state:dead',
    'state:quarantined',
    'state:handled',
    'box:outbox state:dead',
    `id:"${CORPUS[0]}"`,
    CORPUS[9]!,
  ]
  const paths = [
    ...['/', '/overview/shop', '/failures/shop', '/quarantine/shop', '/keys/shop', '/outbox/shop', '/doctor/shop', '/audit/shop'],
    ...['/settings', ...queries.map((q) => `/messages/shop?${new URLSearchParams({ q }).toString()}`)],
  ] // prettier-ignore
  for (const path of paths) {
    await go(page, path)
    await expectHarmless(page, path)
  }
  await picture(page, 'hostile messages')
})

test('the page of a message shows two hundred values, keys, headers and results as text', async () => {
  const page = await ops.open('/message/shop?id=all')
  await expectHarmless(page, 'all')
  expect(await page.locator('main').textContent()).toContain('<script>hacked(1)</script>')
  await picture(page, 'hostile payload')
  await page.getByRole('tab', { name: 'Raw' }).first().click()
  await expectHarmless(page, 'all, raw')
})

test('strange bodies are shown, or a part of them, and the page stays alive', async () => {
  const page = await ops.open('/message/shop?id=nothing', { allow: [/404/], viewport: PHONE })
  for (const id of Object.keys(BODIES)) {
    await go(page, `/message/shop?${new URLSearchParams({ id }).toString()}`)
    await page.locator('main').getByText('body', { exact: true }).first().waitFor()
    await expectHarmless(page, id)
  }
})

test(`the pages of ${EVERY === 1 ? 'all' : 'some'} messages whose every field is hostile show them as text`, async () => {
  const page = await ops.open('/messages/shop')
  for (const [n, id] of CORPUS.entries()) {
    if (n % EVERY > 0) continue
    await go(page, `/message/shop?${new URLSearchParams({ id }).toString()}`)
    await expectHarmless(page, id)
    expect(
      await page.locator('main').getByRole('heading', { level: 1, name: 'There is no such message' }).count(),
    ).toBe(0)
  }
})
