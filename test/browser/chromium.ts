/**
 * One browser for each test file: started when a page is first asked for, ended with the file. Every page is watched, and what
 * it complains about fails the test that opened it: errors on the console, exceptions, violations of the policy, answers with a
 * status from 400 on, requests that fail or go to another place.
 */
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core'
import { afterAll, afterEach, expect } from 'vitest'
import { findChromium } from '../../tools/services/chromium.mjs'

/** Git does not see it. Each run writes its pictures over those of the last. */
const PICTURES = fileURLToPath(new URL('../../artifacts/browser/', import.meta.url))

export interface PageOptions extends Pick<
  BrowserContextOptions,
  'viewport' | 'colorScheme' | 'hasTouch' | 'timezoneId'
> {
  /** Sent with every request of the page. */
  readonly headers?: Readonly<Record<string, string>>
  /** Complaints that this test provokes. */
  readonly allow?: readonly RegExp[]
}

interface Watched {
  readonly page: Page
  readonly context: BrowserContext
  readonly complaints: string[]
}

/** A busy machine is no failure. */
const PATIENCE_MS = 60_000

let launched: Promise<Browser> | undefined
const open: Watched[] = []

/** Closes it, and whatever was started with it. If this process is killed, the pipe to it breaks and it ends by itself. */
afterAll(async () => {
  const browser = await launched?.catch(() => undefined)
  launched = undefined
  await browser?.close()
})

afterEach(async ({ task }) => {
  const failed = task.result?.state === 'fail'
  const pages = open.splice(0)
  const complaints = pages.flatMap((one) => one.complaints)
  for (const [at, { page, context }] of pages.entries()) {
    if (failed || complaints.length > 0) await picture(page, `failed ${task.name} ${at}`).catch(() => undefined)
    await context.close()
  }
  expect(complaints).toEqual([])
})

/** A page in a session of its own, closed after the test. */
export async function openPage(url: string, options: PageOptions = {}): Promise<Page> {
  const { headers = {}, allow = [], viewport = { width: 1440, height: 900 }, ...rest } = options
  launched ??= launch()
  const browser = await launched
  const context = await browser.newContext({
    viewport,
    extraHTTPHeaders: headers,
    // Nothing moves while it is looked at.
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
    ...rest,
  })
  context.setDefaultTimeout(PATIENCE_MS)
  await context.addInitScript(REPORT_VIOLATIONS)
  const page = await context.newPage()
  const complaints: string[] = []
  watch(page, new URL(url).origin, (text) => {
    if (!allow.some((pattern) => pattern.test(text))) complaints.push(text)
  })
  open.push({ page, context, complaints })
  await page.goto(url)
  return page
}

/** What the page has complained about so far; taken out, so that the test does not fail for it. */
export function takeComplaints(page: Page): string[] {
  return open.find((one) => one.page === page)?.complaints.splice(0) ?? []
}

async function launch(): Promise<Browser> {
  // Chromium has no sandbox for root.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath: await findChromium(), args, timeout: PATIENCE_MS })
}

/** The browser does not write all of them to the console. */
const REPORT_VIOLATIONS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) => {
  console.error('policy violated:', violatedDirective, blockedURI, sample)
})`

function watch(page: Page, origin: string, complain: (text: string) => void): void {
  const isOwn = (url: string): boolean => url.startsWith(`${origin}/`) || /^(?:data|blob|about):/.test(url)
  page.on('pageerror', (error) => complain(`exception: ${error.stack ?? error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complain(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    if (!isOwn(request.url())) complain(`request to another place: ${request.url()}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) complain(`${response.status()} ${response.request().method()} ${response.url()}`)
  })
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? 'for no reason'
    // A page that is left, or closes a stream, has not failed.
    if (why !== 'net::ERR_ABORTED') complain(`request failed: ${request.url()} ${why}`)
  })
  page.on('dialog', (dialog) => {
    complain(`dialog: ${dialog.message()}`)
    dialog.dismiss().catch(() => undefined)
  })
}

/** Keeps a picture of the page, for people: artifacts/browser/<name>.png. Answers where it is. */
export async function picture(page: Page, name: string): Promise<string> {
  await mkdir(PICTURES, { recursive: true })
  const file = path.join(PICTURES, `${name.replaceAll(/[^\w.-]+/g, '-').slice(0, 120)}.png`)
  await page.screenshot({ path: file, fullPage: true, animations: 'disabled' })
  return file
}
