/** Starts and stops of a source. */
import assert from 'node:assert/strict'
import { gate, pause, rawEvent, Recorder, taken, type Add } from './bench.js'

export function starting(promise: Add): void {
  promise('a start while it runs changes nothing, and one with another deliver is refused', async (bench) => {
    const { broker, can } = bench
    const recorder = new Recorder()
    const other = new Recorder()
    const source = await bench.start(recorder)
    await source.start(recorder.deliver)
    await assert.rejects(source.start(other.deliver), { code: 'OPTION_INVALID' })
    await broker.publish([rawEvent(can.prefix, 'one')])
    await bench.until(() => recorder.ids.includes('one'), 'the first message')
    await bench.untilBacklog(0)
    assert.deepEqual(recorder.ids, ['one'])

    // One stop ends it, however often it was started; then it may be somebody else's.
    await source.stop()
    await source.start(other.deliver)
    await broker.publish([rawEvent(can.prefix, 'two')])
    await bench.until(() => other.ids.includes('two'), 'the second message')
    await bench.untilBacklog(0)
    assert.deepEqual([recorder.ids, other.ids], [['one'], ['two']])
  })

  promise('a source that is stopped delivers nothing, and goes on when it is started again', async (bench) => {
    const recorder = new Recorder()
    await bench.broker.publish([rawEvent(bench.can.prefix, 'before')])
    const source = await bench.start(recorder)
    await bench.until(() => recorder.ids.includes('before'), 'the first message')
    await bench.untilBacklog(0)
    await source.stop()

    await bench.broker.publish([rawEvent(bench.can.prefix, 'after')])
    await bench.stays(() => !recorder.ids.includes('after'), 'nothing is delivered')
    await source.start(recorder.deliver)
    await bench.until(() => recorder.ids.includes('after'), 'the second message')
    assert.deepEqual(recorder.ids, ['before', 'after'])
  })

  promise('stop waits for what is in flight, and acknowledges it', async (bench) => {
    const { passed, open } = gate()
    const recorder = new Recorder()
    recorder.answer = async (batch) => {
      await passed
      return batch.map(taken)
    }
    await bench.broker.publish([rawEvent(bench.can.prefix, 'in-flight')])
    const source = await bench.start(recorder)
    await bench.until(() => recorder.batches.length > 0, 'a delivery')
    let stopped = false
    const stopping = source.stop().then(() => (stopped = true))
    await pause(300)
    assert.equal(stopped, false)
    open()
    await stopping
    await bench.untilBacklog(0)

    const next = new Recorder()
    await source.start(next.deliver)
    await bench.broker.publish([rawEvent(bench.can.prefix, 'marker')])
    await bench.until(() => next.ids.includes('marker'), 'the marker')
    assert.deepEqual(next.ids, ['marker'])
  })

  promise('a source whose broker is out of reach says so, and can be stopped', async (bench) => {
    const { source } = bench.broker.unreachable()
    const problems: unknown[] = []
    const starting = source
      .start(
        async (batch) => batch.map(taken),
        (problem) => void problems.push(problem),
      )
      .catch((error: unknown) => void problems.push(error))
    await bench.until(() => problems.some((problem) => problem !== undefined), 'a report')
    await source.stop()
    await starting
  })
}
