/** The id of what is no CloudEvent: the broker's, its place, or none. */
import assert from 'node:assert/strict'
import { busy, dataOf, Recorder, type Add } from './bench.js'

export function identity(promise: Add): void {
  const json = { 'content-type': 'application/json' }

  promise(
    'what is no CloudEvent has the id that the broker keeps',
    async (bench) => {
      await bench.broker.publish([{ headers: { ...json, own: 'header' }, body: '{"n":1}', id: 'by-broker' }])
      const recorder = new Recorder()
      await bench.start(recorder, { type: 'plain', source: 'named' })
      await bench.until(() => recorder.messages.length > 0, 'the message')
      const [message] = recorder.messages
      assert.deepEqual([message!.id, message!.type, message!.source], ['by-broker', 'plain', 'named'])
      assert.equal(message!.headers?.['own'], 'header')
      assert.deepEqual(dataOf(message!), { n: 1 })
    },
    ({ messageId }) => messageId,
  )

  promise(
    'what has no id gets none',
    async (bench) => {
      await bench.broker.publish([{ headers: json, body: '{"n":1}' }])
      const recorder = new Recorder()
      await bench.start(recorder, { type: 'plain' })
      await bench.until(() => recorder.messages.length > 0, 'the message')
      assert.equal(recorder.messages[0]!.id, undefined)
    },
    ({ position }) => !position,
  )

  promise(
    'what has no id is known by its place, and by the same one when it comes again',
    async (bench) => {
      await bench.broker.publish([
        { headers: json, body: '{"n":1}' },
        { headers: json, body: '{"n":2}' },
      ])
      const refusing = new Recorder()
      refusing.answer = async (batch) => batch.map(busy)
      const first = await bench.start(refusing, { type: 'plain' })
      const seen = (recorder: Recorder): Set<unknown> =>
        new Set(recorder.messages.map(dataOf).map((data) => JSON.stringify(data)))
      await bench.until(() => seen(refusing).size === 2, 'both')
      await first.stop()
      const second = new Recorder()
      await bench.start(second, { type: 'plain' })
      await bench.until(() => seen(second).size === 2, 'both again')
      const idsByData = (recorder: Recorder): [string, string][] => {
        const ids = new Map(recorder.messages.map((one) => [JSON.stringify(dataOf(one)), `${one.source} ${one.id}`]))
        return [...ids].sort(([a], [b]) => a.localeCompare(b))
      }
      assert.deepEqual(idsByData(second), idsByData(refusing))
      assert.equal(new Set(idsByData(second).map(([, id]) => id)).size, 2)
      assert.ok(second.messages.every(({ id }) => id !== undefined))
    },
    ({ position }) => position,
  )
}
