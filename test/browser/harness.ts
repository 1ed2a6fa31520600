/**
 * Pages of a seeded dashboard in a real browser:
 *
 *     const ops = await openDashboard({ base: '/ops/inbox' })   // in a test, or in beforeAll for several
 *     const page = await ops.open('/failures/payments', { viewport: PHONE })
 *     await expectAccessible(page)
 *     await picture(page, 'failures')
 *
 * What is in the boxes: seed.ts. What fails a test by itself: chromium.ts. Run `npm run build` before: the pages are the built
 * ones.
 */
import { access } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import pg from 'pg'
import type { Page } from 'playwright-core'
import { afterAll } from 'vitest'
import { dashboard, type Action, type Dashboard, type DashboardOptions } from 'oncebox/dashboard'
import { toNodeListener } from 'oncebox/http'
import { UI } from '../../src/dashboard/location.js'
import { scratchDatabase } from '../support/postgres.js'
import { openPage, type PageOptions } from './chromium.js'
import { seed, type SeedBox, type Seeded } from './seed.js'

export { expectAccessible } from './accessible.js'
export { openPage, picture, takeComplaints, type PageOptions } from './chromium.js'
export { waitUntil } from '../support/wait.js'

export const DESKTOP = { width: 1440, height: 900 }
export const TABLET = { width: 900, height: 1000 }
export const PHONE = { width: 390, height: 844 }

export interface OpenOptions extends Partial<Omit<DashboardOptions, 'authorize' | 'dev' | 'base'>> {
  /** Default: `''`, which is `/`. */
  readonly base?: string
  /** Other boxes than those of seed.ts, such as empty ones. They are the caller's to end. */
  readonly boxes?: Readonly<Record<string, SeedBox>>
  /** The boxes work, so what is retried is handled. Default: nothing runs unless the test drains. */
  readonly running?: boolean
}

export interface Served {
  /** Where it is, with its base path and without a slash at the end. */
  readonly url: string
  readonly ops: Dashboard
  /** A page, watched and closed after the test. `may`: what its reader may; everything unless told. */
  open(path?: string, options?: PageOptions & { readonly may?: readonly Action[] }): Promise<Page>
  /** Ends the streams alone, as every server does now and then. */
  endStreams(): void
  /** Ends it now: what a page sees when its server is gone. */
  close(): Promise<void>
}

export interface OpenedDashboard extends Seeded, Served {
  readonly pool: pg.Pool
}

const opened: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

export async function openDashboard(options: OpenOptions = {}): Promise<OpenedDashboard> {
  const { boxes, running = false, ...rest } = options
  const pool = await openPool()
  const seeded = await seed(pool)
  const { payments, warehouse } = seeded
  opened.push(async () => void (await Promise.all([payments, warehouse].map((box) => box.stop({ timeoutMs: 5_000 })))))
  const served = await serve(boxes ?? { payments, warehouse }, { environment: 'production', authorize, ...rest })
  if (running) await Promise.all([payments.start(), warehouse.start()])
  return { ...seeded, ...served, pool }
}

/** A database of its own, dropped with the file. */
export async function openPool(): Promise<pg.Pool> {
  const database = await scratchDatabase('browser')
  opened.push(() => database.close())
  const pool = new pg.Pool({ connectionString: database.url, max: 10 })
  pool.on('error', () => undefined)
  opened.push(() => pool.end())
  return pool
}

/** A dashboard of any boxes, which are the caller's to end. */
export async function serve(boxes: Parameters<typeof dashboard>[0], options: DashboardOptions): Promise<Served> {
  const ops = dashboard(boxes, options)
  const server = createServer(toNodeListener(ops))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = once(async () => {
    await ops.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  opened.push(close)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${options.base ?? ''}`
  return {
    url,
    ops,
    async open(at = '/', { may, headers = {}, ...page } = {}) {
      await requireInterface()
      return openPage(url + at, { ...page, headers: { ...headers, ...(may && { 'x-may': may.join(',') }) } })
    },
    endStreams: () => void server.closeAllConnections(),
    close,
  }
}

/** What a reader may is in a header, which the page's every request has. */
const authorize: DashboardOptions['authorize'] = (request) => {
  const may = request.headers.get('x-may')
  return { by: 'ines@acme.example', may: may === null ? 'all' : new Set(may.split(',') as Action[]) }
}

async function requireInterface(): Promise<void> {
  try {
    await access(path.join(UI, 'index.html'))
  } catch {
    throw new Error(`the interface is not built, there is no ${path.join(UI, 'index.html')}: npm run build`)
  }
}

function once(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= act())
}
