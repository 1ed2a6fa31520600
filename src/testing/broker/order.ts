/** Sources that share a channel, and messages of one key in their order, whatever is rejected. */
import assert from 'node:assert/strict'
import type { Incoming, Outcome } from '../../message.js'
import { busy, dataOf, event, pause, rawEvent, Recorder, taken, type Add } from './bench.js'

export function sharing(promise: Add): void {
  promise(
    'two sources on one channel share its messages',
    async (bench) => {
      const recorders = [new Recorder(), new Recorder()]
      for (const recorder of recorders) {
        recorder.answer = async (batch) => {
          await pause(20)
          return batch.map(taken)
        }
        await bench.start(recorder)
      }
      const published: string[] = []
      // On a log the second gets its share after a while.
      await bench.until(async () => {
        if (published.length < 5_000) {
          const ids = Array.from({ length: 100 }, (_, n) => `m-${published.length + n}`)
          await bench.broker.publish(ids.map((id) => rawEvent(bench.can.prefix, id, undefined, `key-${id}`)))
          published.push(...ids)
        }
        return recorders.every(({ batches }) => batches.length > 0)
      }, 'both to get something')
      const seen = (): Set<unknown> => new Set(recorders.flatMap(({ ids }) => ids))
      await bench.until(() => seen().size === published.length, 'all messages')
      await bench.untilBacklog(0)
    },
    ({ shared }) => shared,
  )

  promise(
    'messages of one key come in order, one batch at a time',
    async (bench) => {
      const keys = ['a', 'b', 'c', 'd']
      const events = Array.from({ length: 120 }, (_, n) => event(`m-${n}`, { key: keys[n % 4]!, data: { n } }))
      for (let at = 0; at < events.length; at += 30) await bench.send(events.slice(at, at + 30))
      const inFlight = new Set<string>()
      const overlaps: string[] = []
      const recorder = new Recorder()
      recorder.answer = async (batch) => {
        const own = new Set(batch.map(({ key }) => key!))
        overlaps.push(...[...own].filter((key) => inFlight.has(key)))
        for (const key of own) inFlight.add(key)
        await pause(Math.random() * 30)
        for (const key of own) inFlight.delete(key)
        return batch.map(taken)
      }
      await bench.start(recorder)
      await bench.until(() => recorder.messages.length >= events.length, 'all messages')
      assert.deepEqual(overlaps, [])
      for (const key of keys) {
        const numbers = recorder.messages
          .filter((one) => one.key === key)
          .map((one) => (dataOf(one) as { n: number }).n)
        assert.deepEqual(
          numbers,
          [...numbers].sort((a, b) => a - b),
        )
      }
    },
    ({ order }) => order,
  )
}

/** Answers as the box does: what is behind a message of its key that it does not take, it does not take either. */
function holdingBack(batch: readonly Incoming[], isRefused: (message: Incoming) => boolean): Outcome[] {
  const heldBack = new Set<string>()
  return batch.map((message) => {
    const { key } = message
    if (!(key !== undefined && heldBack.has(key)) && !isRefused(message)) return taken(message)
    if (key !== undefined) heldBack.add(key)
    return busy(message)
  })
}

export function rejecting(promise: Add): void {
  promise(
    'what was rejected comes again before anything newer of its key',
    async (bench) => {
      const keys = ['a', 'b', 'c']
      const numbers = Array.from({ length: 120 }, (_, n) => n)
      const events = numbers.map((n) => event(`m-${n}`, { key: keys[n % keys.length]!, data: { n } }))
      const numberOf = (message: Incoming): number => (dataOf(message) as { n: number }).n
      // Every fifth message is refused once, eight of each key; and now and then the whole delivery.
      const toRefuse = new Set(numbers.filter((n) => n % 5 === 1))
      const accepted: Incoming[] = []
      let deliveries = 0
      const recorder = new Recorder()
      recorder.answer = async (batch) => {
        // Time for later batches to be fetched.
        await pause(5)
        if (++deliveries % 4 === 0) throw new Error('the database is away')
        const outcomes = holdingBack(batch, (message) => toRefuse.delete(numberOf(message)))
        accepted.push(...batch.filter((_, at) => outcomes[at]!.ack))
        return outcomes
      }
      await bench.start(recorder)
      // In several rounds, so that there is always something newer.
      for (let at = 0; at < events.length; at += 12) await bench.send(events.slice(at, at + 12))
      const distinct = (): number => new Set(accepted.map(numberOf)).size
      await bench.until(() => distinct() === events.length, 'all messages')
      for (const key of keys) {
        // Of copies the first one counts.
        const order = [...new Set(accepted.filter((one) => one.key === key).map(numberOf))]
        assert.deepEqual(
          order,
          [...order].sort((a, b) => a - b),
        )
      }
      await bench.untilBacklog(0)
    },
    ({ order }) => order,
  )
}
