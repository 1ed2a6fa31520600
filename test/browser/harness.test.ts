/** The harness itself: it sees what a page does wrong, and what it seeds is there. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from 'oncebox/dashboard/client'
import { violationsOn } from './accessible.js'
import { openDashboard, openPage, takeComplaints, waitUntil, type OpenedDashboard } from './harness.js'

const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'"
const PAGES: Readonly<Record<string, string>> = {
  '/': '<!doctype html><html lang="en"><title>t</title><main><h1>fine</h1></main>',
  '/inline': '<!doctype html><html lang="en"><title>t</title><h1>x</h1><script>document.title = "ran"</script>',
  '/image': '<!doctype html><html lang="en"><title>t</title><h1>x</h1><img alt="" src="http://192.0.2.1/a.png">',
  '/missing': '<!doctype html><html lang="en"><title>t</title><h1>x</h1><img alt="" src="gone.png">',
  '/throws': '<!doctype html><html lang="en"><title>t</title><h1>x</h1><script src="throws.js"></script>',
  '/throws.js': 'throw new Error("a fault")',
  '/unlabelled': '<!doctype html><html lang="en"><title>t</title><main><h1>x</h1><button></button></main>',
}
const server = createServer((request, response) => {
  const text = PAGES[request.url ?? '']
  const type = request.url?.endsWith('.js') ? 'text/javascript' : 'text/html'
  response.writeHead(text === undefined ? 404 : 200, { 'content-type': type, 'content-security-policy': POLICY })
  response.end(text)
})
let url: string
let ops: OpenedDashboard

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  ops = await openDashboard({ base: '/ops/inbox' })
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

test.for([
  ['/inline', /policy violated: script-src/],
  ['/image', /policy violated: img-src http:\/\/192\.0\.2\.1/],
  ['/missing', /^404 GET .*gone\.png$/],
  ['/throws', /exception: Error: a fault/],
] as const)('a page that does what it must not is seen: %s', async ([path, complaint]) => {
  const page = await openPage(url + path, { allow: [/favicon/] })
  const seen: string[] = []
  await waitUntil(() => {
    seen.push(...takeComplaints(page))
    return seen.some((text) => complaint.test(text))
  })
  expect(await page.title()).toBe('t')
})

test('axe looks at a page whose policy lets no script in', async () => {
  const page = await openPage(`${url}/unlabelled`, { allow: [/favicon/] })
  expect((await violationsOn(page)).map(({ id }) => id)).toEqual(['button-name'])
  await page.goto(`${url}/`)
  expect(await violationsOn(page)).toEqual([])
})

test('the seeded boxes have something of everything', async () => {
  const client = createClient({ url: `${ops.url}/` })
  const { boxes } = await client.session({})
  expect(boxes.map(({ name }) => name)).toEqual(['payments', 'warehouse'])
  const { consumers, sinks, blocked, findings } = await client.overview({ box: 'payments' })
  const of = (name: string) => consumers.find((one) => one.name === name)
  expect(of('charge-card')).toMatchObject({ handled: 6, dead: 17, quarantined: 2, paused: false })
  expect(of('ship-order')).toMatchObject({ dead: 2, pending: 4, order: 'key' })
  expect(of('email-receipt')).toMatchObject({ handled: 3, pending: 1, discarded: 1 })
  expect(of('settle-invoice')).toMatchObject({ pending: 5, paused: true })
  expect(of('update-balance')).toMatchObject({ handled: 1, mode: 'inline' })
  expect(of('')).toMatchObject({ quarantined: 3 })
  expect(blocked.keys).toBe(2)
  expect(findings.length).toBeGreaterThan(2)
  const sink = (name: string) => sinks.find((one) => one.name === name)
  expect(sink('kafka-ledger')).toMatchObject({ delayed: 6, dead: 0 })
  expect(sink('rabbitmq-events')).toMatchObject({ ready: 0, dead: 2 })
  const { groups } = await client.failures({ box: 'payments' })
  expect(groups.map(({ name, count }) => `${count} ${name}`).sort()).toEqual(
    ['12 GatewayTimeout', '2 Reject', '4 CardError', '1 TypeError'].sort(),
  )
  const { reasons } = await client.quarantine({ box: 'payments' })
  expect(reasons.map(({ reason }) => reason).sort()).toEqual(
    ['conflict', 'effect-unknown', 'invalid', 'undecodable', 'unrouted'].sort(),
  )
  const { caused } = await client.conversation({ box: 'payments', id: 'order-1', source: 'shop' })
  expect(caused).toMatchObject([{ box: 'warehouse', consumer: 'reserve-stock', cause: 'order-1' }])
  const { cause } = await client.conversation({ box: 'warehouse', id: caused[0]!.id })
  expect(cause).toMatchObject({ box: 'payments', id: 'order-1' })
  const { records } = await client.audit({ box: 'payments' })
  expect(records.map(({ action }) => action)).toEqual(expect.arrayContaining(['pause', 'discard']))
})
