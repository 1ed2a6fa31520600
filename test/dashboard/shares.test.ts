/** What one reader asks for, however much, leaves room for others. */
import { afterEach, expect, test } from 'vitest'
import { useServer } from '../inbox/fixture.js'
import { ask, open, requestFor } from './fixture.js'

const server = useServer('dashboard_shares')
const opened: ReturnType<typeof open>[] = []
afterEach(() => Promise.all(opened.splice(0).map((ops) => ops.close())))

const shop = { box: 'shop' }

test('one reader that asks for too much at once is refused alone: the others are answered', async () => {
  await using box = await server.open()
  box.consumer('mail', { note: () => undefined })
  await box.receive({ id: 'a', type: 'note', data: 1 })
  const ops = open({ shop: box })
  opened.push(ops)
  const flood = Array.from({ length: 300 }, () => ask(ops, 'message', { ...shop, id: 'a' }, { who: 'reader' }))
  const others = [ask(ops, 'message', { ...shop, id: 'a' }, { who: 'looker' }), ask(ops, 'overview', shop)]
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200])
  const statuses = new Set((await Promise.all(flood)).map(({ status }) => status))
  // How many are answered depends on how fast they come.
  expect([...statuses].filter((status) => status !== 200)).toEqual([503])
  expect((await ask(ops, 'message', { ...shop, id: 'a' }, { who: 'reader' })).status).toBe(200)
})

test('a reader has ten streams, and another has theirs', async () => {
  await using box = await server.open()
  const ops = open({ shop: box })
  opened.push(ops)
  const stream = (who: 'reader' | 'looker'): Promise<Response> => ops.fetch(requestFor('stream', shop, { who }))
  const streams = await Promise.all(Array.from({ length: 50 }, () => stream('reader')))
  expect(streams.filter(({ status }) => status === 200)).toHaveLength(10)
  expect(streams.filter(({ status }) => status === 503)).toHaveLength(40)
  const other = await stream('looker')
  expect(other.status).toBe(200)
  for (const { body } of [...streams, other]) await body?.cancel()
  expect((await stream('reader')).status).toBe(200)
})
