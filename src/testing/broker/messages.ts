/** What a message is when it arrives: its attributes, its body, and what `map` makes of it. */
import assert from 'node:assert/strict'
import { dataOf, event, rawEvent, Recorder, type Add } from './bench.js'

export function messages(promise: Add): void {
  const headers = {
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    tracestate: 'rojo=1,congo=t61rcWkgMzE',
    baggage: 'tenant=acme,user=%C5%BC',
    'X-Odd Name': 'żółć "quoted" 100 %',
    plain: 'text',
  }
  const full = event('full', {
    key: 'key-1',
    subject: 'a subject',
    time: new Date('2026-01-02T03:04:05.678Z'),
    headers,
    data: { text: 'żółć 🎈', list: [1, { deep: null }] },
    correlationId: 'the-first',
    causationId: 'the-one-before',
  })
  for (const mode of ['binary', 'structured'] as const) {
    promise(`an event arrives as it was sent, in ${mode} mode`, async (bench) => {
      await bench.send([full], { mode })
      const recorder = new Recorder()
      await bench.start(recorder)
      await bench.until(() => recorder.batches.length > 0, 'the event')
      const [message] = recorder.messages
      const { id, source, type, key, subject } = message!
      assert.deepEqual(
        { id, source, type, key, subject },
        { id: 'full', source: 'shop', type: 'order.placed', key: 'key-1', subject: 'a subject' },
      )
      assert.equal(new Date(message!.time!).toISOString(), '2026-01-02T03:04:05.678Z')
      assert.deepEqual(dataOf(message!), full.data)
      const expected = { ...headers, correlationid: 'the-first', causationid: 'the-one-before' }
      for (const [name, value] of Object.entries(expected)) assert.equal(message!.headers?.[name], value, name)
      if (bench.can.redelivered) assert.notEqual(message!.redelivered, true)
    })
  }

  promise('a CloudEvent of another producer is read, in binary and structured mode', async (bench) => {
    const structured = { specversion: '1.0', id: 'two', source: 'elsewhere', type: 'b', partitionkey: 'k', data: [2] }
    await bench.broker.publish([
      rawEvent(bench.can.prefix, 'one', '{"n":1}', 'k'),
      { headers: { 'content-type': 'application/cloudevents+json' }, body: JSON.stringify(structured), id: 'other' },
    ])
    const recorder = new Recorder()
    await bench.start(recorder)
    await bench.until(() => recorder.messages.length >= 2, 'both')
    const [one, two] = recorder.messages.sort((a, b) => String(a.id).localeCompare(String(b.id)))
    assert.deepEqual(
      [one!.id, one!.source, one!.type, one!.key, dataOf(one!)],
      ['one', 'elsewhere', 'order.placed', 'k', { n: 1 }],
    )
    assert.deepEqual([two!.id, two!.source, two!.type, two!.key, dataOf(two!)], ['two', 'elsewhere', 'b', 'k', [2]])
  })

  promise('a large body passes', async (bench) => {
    const text = 'x'.repeat(bench.can.maxBytes - 4_096)
    await bench.send([event('large', { data: text })])
    const recorder = new Recorder()
    await bench.start(recorder)
    await bench.until(() => recorder.messages.length > 0, 'the large one')
    assert.ok(dataOf(recorder.messages[0]!) === text)
    await bench.untilBacklog(0)
  })

  promise('map decides what the box gets', async (bench) => {
    await bench.send([event('mapped')])
    const recorder = new Recorder()
    await bench.start(recorder, { map: (_: unknown, message: object) => ({ ...message, key: 'by-map' }) })
    await bench.until(() => recorder.messages.length > 0, 'the message')
    assert.deepEqual([recorder.messages[0]!.id, recorder.messages[0]!.key], ['mapped', 'by-map'])
  })
}
