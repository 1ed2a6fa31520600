/**
 * What must hold with any broker that stands still for longer than a relay waits for its sink: the sink has ended by the time
 * that the relay calls it again, and publishes nothing for a relay that has given up.
 *
 *     impatience(new URL('./adapter.mjs', import.meta.url))
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { PrivateService } from '../../tools/services/process.mjs'
import { useServer } from '../outbox/fixture.js'
import { freeze, unfreeze } from '../support/freeze.js'
import { waitUntil } from '../support/wait.js'
import { loadAdapter, type Adapter } from './adapter.js'
import { Recorder } from './recorder.js'

const EVENTS = 40
const KEYS = 4
const PATIENCE = { timeoutMs: 120_000 }
/** Much less than an adapter waits for its broker by itself. */
const PUBLISH_MS = 1_000

export function impatience(adapterUrl: URL, { onlyBeside = true } = {}): void {
  const server = useServer('impatience')
  let adapter: Adapter
  let service: PrivateService
  beforeAll(async () => {
    adapter = await loadAdapter(adapterUrl)
    service = (await adapter.start()) as PrivateService
  }, 300_000)
  afterAll(() => service?.stop())

  test('a relay that gives up on a broker that stands still doubles nothing but what was on its way', async ({
    skip,
  }) => {
    skip(service.pid === undefined, 'the broker is not ours to freeze')
    const settings = await adapter.create(service.url)
    const box = await server.open()
    const sink = adapter.sink(settings)
    let calls = 0
    const counted = { ...sink, publish: (...of: Parameters<typeof sink.publish>) => (calls++, sink.publish(...of)) }
    box.to(counted, { name: 's', publishTimeoutMs: PUBLISH_MS })
    const left = async () => (await server.sql(box.schema, 'select 1 from ob.delivery')).length
    await server.send(box, { id: 'first', key: 'first' })
    await box.start()
    await waitUntil(async () => (await left()) === 0, PATIENCE)

    await freeze(service.pid)
    try {
      const called = calls
      await server.send(box, ...Array.from({ length: EVENTS }, (_, n) => ({ id: `e${n}`, key: `k${n % KEYS}` })))
      await waitUntil(() => calls > called + 3, PATIENCE)
    } finally {
      unfreeze(service.pid)
    }
    await waitUntil(async () => (await left()) === 0, PATIENCE)
    await box.stop()

    const recorder = new Recorder()
    const source = adapter.source(settings)
    onTestFinished(() => source.stop())
    await source.start(recorder.deliver, () => undefined)
    await waitUntil(async () => (await adapter.backlog(settings)) === 0 && recorder.messages.length > EVENTS, PATIENCE)
    const ids = recorder.messages.map(({ id }) => id!)
    for (let key = 0; key < KEYS; key++) {
      const own = ids.filter((id) => id !== 'first' && Number(id.slice(1)) % KEYS === key)
      const expected = Array.from({ length: EVENTS / KEYS }, (_, at) => `e${at * KEYS + key}`)
      expect([...new Set(own)]).toEqual(expected)
      for (const id of expected) expect(own.filter((one) => one === id).length).toBeLessThanOrEqual(2)
      // A copy is beside what it is a copy of: nothing newer was sent before it.
      if (onlyBeside) expect(own.filter((id, at) => id !== own[at - 1])).toEqual(expected)
    }
  }, 300_000)
}
