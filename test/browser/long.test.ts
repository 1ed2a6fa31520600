/** Names, ids and texts as long as they may be, and some from right to left: no page gets wider than its window for them. */
import { beforeAll, expect, test } from 'vitest'
import { Reject } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'
import { openPool, serve, waitUntil, type Served } from './harness.js'

const BOX = `box-${'n'.repeat(60)}`
const ID = 'i'.repeat(500)
const TYPE = `type.${'y'.repeat(180)}`
const KEY = 'k'.repeat(400)
const PAGES = [
  'overview',
  'messages',
  'failures',
  'quarantine',
  'keys',
  'outbox',
  'doctor',
  'audit',
  'message',
] as const

let ops: Served

beforeAll(async () => {
  const box = await createTestBox({ db: fromPg(await openPool()), source: 'a-very-long-source-'.repeat(8) })
  const fails = ({ id }: { id: string }): never => {
    throw new Reject(`no ${'w'.repeat(300)} for ${id}`)
  }
  box.consumer(`consumer-with-a-name-that-does-not-end-${'x'.repeat(60)}`, { [TYPE]: fails }, { order: 'key' })
  const message = (id: string, rest: object = {}) => ({ id, type: TYPE, source: 's'.repeat(400), key: KEY, body: '{}', ...rest }) // prettier-ignore
  await box.receive([
    message(ID, { subject: 'u'.repeat(300), headers: { [`x-${'h'.repeat(100)}`]: 'v'.repeat(900) }, body: `{"${'p'.repeat(300)}":"${'z'.repeat(3_000)}"}` }),
    message(`b${ID.slice(1)}`),
    message(`مرحبا بالعالم ${'طويل'.repeat(40)}`, { source: 'عربي', key: 'مفتاح', body: '{"نص":"مرحبا"}' }),
    message(`no${ID.slice(2)}`, { type: `nobody.${'n'.repeat(200)}` }),
  ]) // prettier-ignore
  await box.drain()
  await box.receive([1, 2, 3].flatMap((n) => [message(`w${n}${ID.slice(9)}`), message(`v${n}${ID.slice(9)}`, { key: `other-${KEY}` })])) // prettier-ignore
  const by = `somebody-with-a-long-address@${'d'.repeat(60)}`
  ops = await serve({ [BOX]: box }, { authorize: () => ({ may: 'all', by }), title: 'T'.repeat(80), environment: `production-${'e'.repeat(40)}` }) // prettier-ignore
  return () => box.stop()
})

const pathOf = (page: (typeof PAGES)[number]): string => `/${page}/${BOX}${page === 'message' ? `?id=${ID}` : ''}`

/** 320 px is a small phone, 720 a window of 1440 at twice its size. */
test.for([320, 720, 1_440])('every page fits a window of %d px', async (width) => {
  const page = await ops.open('/settings', { viewport: { width, height: 640 } })
  for (const name of PAGES) {
    await page.goto(ops.url + pathOf(name))
    await page.locator('main h1').first().waitFor()
    await waitUntil(async () => (await page.locator('main [aria-busy=true]').count()) === 0)
    const over = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    expect([name, over]).toEqual([name, 0])
  }
})

test('a long key does not push away what to do about it, and what is beside the page stays there', async () => {
  const page = await ops.open(pathOf('keys'), { viewport: { width: 1_440, height: 900 } })
  const button = page.getByRole('button', { name: /^Retry the message in front of k/ })
  await button.waitFor()
  const edge = async (of: ReturnType<typeof page.locator>): Promise<number> => {
    const box = (await of.boundingBox())!
    return box.x + box.width
  }
  expect(await edge(button)).toBeLessThan(1_440)
  const side = await edge(page.locator('.side'))
  for (const what of ['.side .env', '.side-foot .clip']) expect(await edge(page.locator(what))).toBeLessThan(side)
})
