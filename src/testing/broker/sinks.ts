/** What a sink answers, and how it closes. */
import assert from 'node:assert/strict'
import { event, Recorder, type Add } from './bench.js'

export function sinks(promise: Add): void {
  promise('a sink answers for each message, and publishes all of them', async (bench) => {
    const sink = bench.sink()
    assert.deepEqual([...(await sink.publish([]))], [])
    const events = Array.from({ length: 250 }, (_, n) => event(`m-${n}`, n % 3 === 0 ? { key: `key-${n % 5}` } : {}))
    const answers = await sink.publish(events)
    assert.equal(answers.length, 250)
    assert.ok(answers.every((answer) => answer === undefined))
    const recorder = new Recorder()
    await bench.start(recorder)
    await bench.until(() => new Set(recorder.ids).size === 250, 'all of them')
  })

  promise('a sink whose broker is out of reach rejects, in bounded time', async (bench) => {
    const { sink } = bench.broker.unreachable()
    const started = performance.now()
    await assert.rejects(sink.publish([event('lost')]))
    assert.ok(performance.now() - started < 30_000)
    await sink.close()
  })

  promise('close waits for what is being published, and a closed sink opens again', async (bench) => {
    const sink = bench.sink()
    const publishing = sink.publish([event('one'), event('two')])
    await sink.close()
    assert.deepEqual(await publishing, [undefined, undefined])
    assert.deepEqual(await sink.publish([event('three')]), [undefined])
    const recorder = new Recorder()
    await bench.start(recorder)
    await bench.until(() => new Set(recorder.ids).size === 3, 'all three')
  })
}
