/**
 * What senders write, in everything that the dashboard answers: it comes back as it was written, as JSON and nothing else, and
 * breaks nothing. test/browser/hostile.test.ts looks at the same in a browser.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dashboard, type Dashboard } from 'oncebox/dashboard'
import { createClient, type Item } from 'oncebox/dashboard/client'
import { quote } from '../../src/dashboard/quote.js'
import { useServer } from '../inbox/fixture.js'
import { BODIES, CORPUS, EVIL_CONSUMER, EVIL_SINK, fillHostile } from './corpus.js'

const server = useServer('dashboard_hostile')
let box: Awaited<ReturnType<typeof fillHostile>>
let ops: Dashboard
const answers: { readonly url: string; readonly headers: Headers; readonly text: string }[] = []
const failures: unknown[] = []
let reader = 0

/** Who asks changes now and then: how fast one may search is another test's. */
const client = createClient({
  url: 'http://ops.example.com/',
  async fetch(url, init) {
    const response = await ops.fetch(new Request(url, init))
    const text = await response.clone().text()
    answers.push({ url: String(url), headers: response.headers, text })
    return response
  },
})
const at = { box: 'shop' } as const

beforeAll(async () => {
  box = await fillHostile(server.pool)
  ops = dashboard(
    { shop: box },
    {
      authorize: () => ({ may: 'all', by: `reader ${reader}` }),
      onError: (error) => void failures.push(error),
    },
  )
})
afterAll(() => box[Symbol.asyncDispose]())

async function everyMessage(): Promise<Item[]> {
  const found: Item[] = []
  let cursor: string | undefined
  do {
    const page = await client.messages({ ...at, q: '', limit: 200, ...(cursor !== undefined && { cursor }) })
    found.push(...page.items)
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}

test('there are two hundred of them, and each is listed as it was written', async () => {
  expect(new Set(CORPUS).size).toBe(200)
  const items = await everyMessage()
  const ids = new Set(items.map(({ id }) => id))
  expect(CORPUS.filter((text) => !ids.has(text))).toEqual([])
  const sources = new Set(items.map(({ source }) => source))
  expect(CORPUS.filter((text, n) => n % 2 === 1 && !sources.has(text))).toEqual([])
  expect(new Set(items.map(({ state }) => state))).toEqual(new Set(['handled', 'dead', 'quarantined', 'discarded', 'pending']))
}) // prettier-ignore

test('each is found by its id and by its key in quotes, and is shown whole', async () => {
  const look = async (text: string, n: number): Promise<void> => {
    const { fates } = await client.message({ ...at, id: text })
    expect(fates[0], text).toMatchObject({ id: text, type: text, key: text, subject: text, headers: { text } })
    expect(JSON.parse(fates[0]!.body.text!)).toEqual({ at: n, text })
    if (n % 10 > 0) return
    const { items } = await client.messages({ ...at, q: `id:${quote(text)} key:${quote(text)}` })
    expect(items.map(({ id }) => id).filter((id) => id !== text)).toEqual([])
    expect(items.length).toBeGreaterThan(0)
  }
  for (let n = 0; n < CORPUS.length; n += 4)
    await Promise.all(CORPUS.slice(n, n + 4).map((text, more) => look(text, n + more)))
})

test('strange bodies are answered as they are stored, or say that they are not whole', async () => {
  for (const [id, body] of Object.entries(BODIES)) {
    const { fates } = await client.message({ ...at, id })
    const shown = fates[0]!.body
    if (typeof body !== 'string') expect(shown.base64).toBe(body.toString('base64'))
    else if (shown.whole) expect(shown.text ?? '', id).toBe(body)
    else expect(body.startsWith(shown.text!)).toBe(true)
    expect(shown.bytes).toBe(Buffer.byteLength(body))
  }
  expect((await client.body({ ...at, id: 'five megabytes' })).length).toBe((BODIES['five megabytes'] as string).length)
})

test('groups, lanes, sinks, audit, quarantine and conversations carry them too', async () => {
  reader++
  const { groups } = await client.failures(at)
  expect(groups.length).toBeGreaterThan(10)
  for (const group of groups.slice(0, 10)) expect((await client.messages({ ...at, q: group.query })).items.length).toBeGreaterThan(0)
  const { keys } = await client.keys(at)
  expect(keys.map(({ consumer, key }) => [consumer, CORPUS.includes(key)])).toEqual(keys.map(() => [EVIL_CONSUMER, true]))
  const { sinks } = await client.outbox(at)
  expect(sinks.find(({ name }) => name === EVIL_SINK)?.dead).toBeGreaterThan(0)
  expect((await client.messages({ ...at, q: 'box:outbox state:dead' })).items.length).toBeGreaterThan(0)
  expect((await client.audit(at)).records.map(({ by }) => by)).toContain(EVIL_SINK)
  for (const { n } of (await client.messages({ ...at, q: 'reason:conflict' })).items) {
    const { first, second } = await client.conflict({ ...at, n: n! })
    expect(first!.body.text).not.toBe(second.body.text)
  }
  reader++
  for (const text of CORPUS.slice(0, 25)) await client.conversation({ ...at, id: text })
  for (const name of ['overview', 'vocabulary', 'quarantine', 'jobs'] as const) await client[name](at)
}) // prettier-ignore

test('every answer was JSON that no browser takes for anything else, and nothing broke on the way', () => {
  expect(failures).toEqual([])
  expect(answers.length).toBeGreaterThan(250)
  for (const { url, headers, text } of answers) {
    const isBody = new URL(url).pathname.endsWith('/body')
    expect([url, headers.get('content-type')]).toEqual([url, isBody ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8']) // prettier-ignore
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect([...headers].filter(([, value]) => /hacked|192\.0\.2\.1/.test(value))).toEqual([])
    if (!isBody) JSON.parse(text)
  }
  expect(({} as { polluted?: true }).polluted).toBeUndefined()
})
