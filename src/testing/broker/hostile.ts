/** Messages of a producer that means harm. A reader that threw would lose its batch, or come back to it for ever. */
import assert from 'node:assert/strict'
import type { Incoming } from '../../message.js'
import { rawEvent, Recorder, taken, type Add } from './bench.js'
import { HOSTILE_TYPE, hostileEvents, judge, type HostileEvent } from './hostile-events.js'

export function hostile(promise: Add): void {
  promise('hostile events are read right or quarantined, and the good ones around them are handled', async (bench) => {
    const { broker, can } = bench
    const events = hostileEvents(can.prefix).filter(
      ({ body, binary }) => (can.binary || !binary) && Buffer.byteLength(body) <= can.maxBytes - 4_096,
    )
    await broker.publish([rawEvent(can.prefix, 'good-first')])
    const published = new Set<string>()
    for (const some of inTurns(events)) {
      // What a broker does not even take can do no harm through it.
      const isTaken = await broker.publish(some).then(
        () => true,
        () => false,
      )
      if (isTaken) for (const { what } of some) published.add(what)
    }
    await broker.publish([rawEvent(can.prefix, 'good-last')])
    assert.ok(published.size > events.length / 2, `the broker took ${published.size} of ${events.length}`)

    const recorder = new Recorder()
    // Batches of several partitions are answered side by side.
    const judged = new Map<Incoming, Awaited<ReturnType<typeof judge>>>()
    recorder.answer = async (batch) => {
      for (const message of batch) judged.set(message, await judge(message))
      return batch.map(taken)
    }
    await bench.start(recorder, { type: 'plain' })
    await bench.until(() => ['good-first', 'good-last'].every((id) => recorder.ids.includes(id)), 'the good ones')
    await bench.untilBacklog(0)
    for (const event of events.filter(({ what, ends }) => published.has(what) && ends !== 'either')) {
      const own = /"id":"(hostile-\d+)"/.exec(String(event.body))?.[1] ?? event.headers[`${can.prefix}id`]
      const found = judged.get(recorder.messages.find(({ id }) => id === own)!)
      if (event.ends === 'stored') assert.equal(found?.status, 'stored', event.what)
      if (event.data !== undefined) assert.equal(found?.body, event.data, event.what)
      if (event.ends === 'quarantined' && found) assert.equal(found.status, 'quarantined', event.what)
    }
    const quarantined = [...judged.values()].filter(({ status }) => status === 'quarantined')
    const expected = events.filter(({ what, ends }) => published.has(what) && ends === 'quarantined')
    assert.ok(quarantined.length >= expected.length, `${quarantined.length} of ${expected.length} are quarantined`)
    assert.ok(quarantined.every(({ reason }) => reason !== undefined))
    assert.ok(recorder.messages.length >= published.size + 2, 'each was delivered')
  })
}

/** Those of one content type that brokers know, some together; of the others each by itself. */
function inTurns(events: readonly HostileEvent[]): HostileEvent[][] {
  const plain = events.filter(({ headers, binary }) => headers['content-type'] === HOSTILE_TYPE && !binary)
  const small = plain.filter(({ body }) => body.length < 20_000)
  return [small, ...events.filter((event) => !small.includes(event)).map((event) => [event])]
}
