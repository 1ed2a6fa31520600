/** Two versions of a consumer side by side: order per key holds for all that come in, as long as one of them keeps it. */
import { createBox, type Incoming, type Source } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('order_versions', { max: 20 })

interface Old {
  handle(messages: Incoming[]): Promise<unknown>
}

/** A process of the version before, which keeps no order. */
function oldVersion(box: Bench, mode: 'stored' | 'inline'): Old & { deliver(messages: Incoming[]): Promise<unknown> } {
  const old = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
  old.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message, 'old') }, { mode })
  let deliver: Parameters<Source['start']>[0] | undefined
  old.from(
    {
      name: 'queue',
      start(given) {
        deliver = given
        return Promise.resolve()
      },
      stop: () => Promise.resolve(),
      push: true,
    },
    { types: 'any', keys: 'shared' },
  )
  return {
    handle: (messages) => old.handle(messages),
    async deliver(messages) {
      await waitUntil(() => deliver !== undefined)
      return deliver!(messages)
    },
  }
}

async function newVersion(): Promise<{ box: Bench; [Symbol.asyncDispose](): Promise<void> }> {
  const box = await server.open()
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        if (message.id === 'k1' && message.attempt === 1) throw new Error('not yet')
        await box.write(tx, 'a', message)
      },
    },
    { order: 'key', retry: { baseMs: 10_000, jitter: 'none' } },
  )
  await box.migrate()
  await box.receive(note('k1', { key: 'k' }))
  await box.drain()
  return { box, [Symbol.asyncDispose]: () => box[Symbol.asyncDispose]() }
}

test.for<[string, (old: ReturnType<typeof oldVersion>, messages: Incoming[]) => Promise<unknown>]>([
  ['handle', (old, messages) => old.handle(messages)],
  [
    'handle of what is redelivered',
    (old, messages) => old.handle(messages.map((one) => ({ ...one, redelivered: true }))),
  ],
  ['an inline source', (old, messages) => old.deliver(messages)],
])('%s of the version without order does not overtake a key that waits', async ([, come]) => {
  await using opened = await newVersion()
  const { box } = opened
  const old = oldVersion(box, 'inline')
  await come(old, [note('k2', { key: 'k' })])
  await come(old, [note('k3', { key: 'k' })])
  expect(await box.ids()).toEqual([])
  await box.clock.advance(10_001)
  await box.drain()
  expect(await box.ids()).toEqual(['k1', 'k2', 'k3'])
})

test('what has no key runs on arrival all the same', async () => {
  await using opened = await newVersion()
  const { box } = opened
  const old = oldVersion(box, 'inline')
  expect(await old.handle([note('free')])).toMatchObject([{ status: 'handled' }])
  expect((await box.effects()).map(({ id, note: by }) => `${id} ${by}`)).toEqual(['free old'])
})
