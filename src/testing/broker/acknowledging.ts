/** Nothing is acknowledged before the box has it, and what it does not take comes again. */
import assert from 'node:assert/strict'
import { busy, gate, pause, rawEvent, Recorder, taken, type Add } from './bench.js'

export function acknowledging(promise: Add): void {
  promise('nothing is acknowledged before it is delivered', async (bench) => {
    const { broker, can } = bench
    const { passed, open } = gate()
    const recorder = new Recorder()
    recorder.answer = async (batch) => {
      await passed
      return batch.map(taken)
    }
    try {
      await broker.publish(['1', '2', '3'].map((id) => rawEvent(can.prefix, id)))
      await bench.start(recorder)
      await bench.until(() => recorder.batches.length > 0, 'a delivery')
      await bench.untilBacklog(3)
      await bench.stays(async () => (await broker.backlog()) === 3, 'three are not acknowledged')
    } finally {
      open()
    }
    await bench.untilBacklog(0)
  })

  promise('what the box does not take yet comes again, after a moment', async (bench) => {
    const recorder = new Recorder()
    const times: number[] = []
    let refuse = true
    recorder.answer = async (batch) =>
      batch.map((message) => {
        if (message.id !== 'later') return taken(message)
        times.push(performance.now())
        return refuse ? busy(message) : taken(message)
      })
    await bench.broker.publish(['a', 'later', 'b'].map((id) => rawEvent(bench.can.prefix, id)))
    await bench.start(recorder)
    await bench.until(() => times.length >= 2, 'a second delivery')
    // Nobody acknowledges it while it is refused; a broker may be late with its figures.
    await bench.until(async () => (await bench.broker.backlog()) !== 0, 'a backlog')
    refuse = false
    await bench.untilBacklog(0)
    await bench.until(() => ['a', 'b'].every((id) => recorder.ids.includes(id)), 'the others')
    assert.ok(times[1]! - times[0]! >= 20, `came again after ${times[1]! - times[0]!} ms`)
  })

  promise('when deliver rejects, nothing is acknowledged, and all of it comes again', async (bench) => {
    const recorder = new Recorder()
    let away = true
    recorder.answer = async (batch) => {
      if (away) throw new Error('the database is away')
      return batch.map(taken)
    }
    const ids = Array.from({ length: 20 }, (_, n) => `m-${n}`)
    await bench.broker.publish(ids.map((id) => rawEvent(bench.can.prefix, id)))
    await bench.start(recorder)
    await bench.until(() => recorder.batches.length >= 2, 'a second delivery')
    await bench.untilBacklog(20)
    away = false
    const before = recorder.batches.length
    const since = (): Set<unknown> =>
      new Set(recorder.batches.slice(before).flatMap((batch) => batch.map(({ id }) => id)))
    await bench.until(() => since().size === 20, 'all of them')
    await bench.untilBacklog(0)
  })

  for (const [how, answer] of [
    ['rejects', () => Promise.reject(new Error('the database is away'))],
    ['takes nothing', (batch) => Promise.resolve(batch.map(busy))],
  ] as const satisfies readonly [string, Recorder['answer']][]) {
    promise(`a deliver that ${how} for long is not called without a pause`, async (bench) => {
      const recorder = new Recorder()
      recorder.answer = answer
      await bench.broker.publish(['1', '2'].map((id) => rawEvent(bench.can.prefix, id)))
      await bench.start(recorder)
      await bench.until(() => recorder.batches.length > 0, 'a delivery')
      await pause(2_000)
      assert.ok(recorder.messages.length <= 80, `${recorder.messages.length} deliveries of 2 messages in 2 s`)
      recorder.answer = async (batch) => batch.map(taken)
      await bench.untilBacklog(0)
    })
  }

  promise(
    'a message that was delivered before says so',
    async (bench) => {
      const refusing = new Recorder()
      refusing.answer = async (batch) => batch.map(busy)
      await bench.broker.publish([rawEvent(bench.can.prefix, 'again')])
      const first = await bench.start(refusing)
      await bench.until(() => refusing.batches.length > 0, 'the first delivery')
      assert.notEqual(refusing.messages[0]!.redelivered, true)
      await first.stop()
      const recorder = new Recorder()
      await bench.start(recorder)
      await bench.until(() => recorder.batches.length > 0, 'the second delivery')
      assert.equal(recorder.messages[0]!.redelivered, true)
    },
    ({ redelivered }) => redelivered,
  )
}
