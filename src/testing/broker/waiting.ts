/** Cases of the broker conformance suite about what has to wait: for the database, or for the time of its retry. */
import assert from 'node:assert/strict'
import type { Incoming, Outcome } from '../../message.js'
import { dataOf, event, failed, gate, pause, rawEvent, Recorder, taken, type Add, type BrokerBench } from './bench.js'

export function waiting(promise: Add): void {
  outages(promise)
  retries(promise)
}

/** Less than an outage needs, if the broker is given anything back, or is not told that somebody is still at it. */
const STRICT = { deliveryLimit: 3, ackMs: 1_000 }

function outages(promise: Add): void {
  promise(
    'holds what the database cannot take, for as long as it takes; the broker counts nothing',
    (bench) => outage(bench, () => Promise.reject(new Error('the database is away'))),
    undefined,
    STRICT,
  )

  promise(
    'holds what a database that hangs has not answered, for as long as it takes; the broker counts nothing',
    async (bench) => {
      const { passed, open } = gate()
      const hanging = async (): Promise<Outcome[]> => {
        await passed
        throw new Error('the connection to the database was given up')
      }
      await outage(bench, hanging, open)
    },
    undefined,
    STRICT,
  )
}

const KEYS = ['a', 'b', 'c']

/** Messages before it and during it; all of them are taken when it is over, each key in its order. */
async function outage(bench: BrokerBench, answer: Recorder['answer'], end = (): void => undefined): Promise<void> {
  const events = Array.from({ length: 60 }, (_, n) => event(`m-${n}`, { key: KEYS[n % KEYS.length]!, data: { n } }))
  const numberOf = (message: Incoming): number => (dataOf(message) as { n: number }).n
  const accepted: Incoming[] = []
  const recorder = new Recorder()
  recorder.answer = answer
  try {
    await bench.send(events.slice(0, 30))
    await bench.start(recorder)
    await bench.until(() => recorder.batches.length > 0, 'a delivery')
    await pause(bench.can.outageMs / 2)
    await bench.send(events.slice(30))
    await pause(bench.can.outageMs / 2)
    await bench.untilBacklog(events.length)
  } finally {
    recorder.answer = async (batch) => {
      accepted.push(...batch)
      return batch.map(taken)
    }
    end()
  }
  await bench.until(() => new Set(accepted.map(numberOf)).size === events.length, 'all messages')
  await bench.untilBacklog(0)
  if (bench.can.redelivered) {
    const counted = recorder.messages.filter(({ redelivered }) => redelivered === true)
    assert.deepEqual(new Set(counted.map(({ id }) => id)), new Set())
  }
  // The broker was there all the time.
  assert.deepEqual(bench.reports, [])
  if (bench.can.order) for (const key of KEYS) assertInOrder(accepted.filter((one) => one.key === key).map(numberOf))
}

/** Of copies the first one counts. */
function assertInOrder(numbers: readonly number[]): void {
  const first = [...new Set(numbers)]
  assert.deepEqual(
    first,
    [...first].sort((a, b) => a - b),
  )
}

function retries(promise: Add): void {
  promise('what failed comes again at the time that its outcome names, and no sooner', async (bench) => {
    const WAITS_MS = [700, 2_500, 1_300]
    const times: { due: number; came: number }[] = []
    let due = 0
    const recorder = new Recorder()
    recorder.answer = async (batch) =>
      batch.map((message) => {
        times.push({ due, came: Date.now() })
        const waitMs = WAITS_MS[times.length - 1]
        if (waitMs === undefined) return taken(message)
        due = Date.now() + waitMs
        return failed(message, new Date(due))
      })
    await bench.broker.publish([rawEvent(bench.can.prefix, 'fails')])
    await bench.start(recorder)
    await bench.until(() => times.length > WAITS_MS.length, 'the last delivery')
    await bench.untilBacklog(0)
    assert.equal(times.length, WAITS_MS.length + 1)
    // The broker's clock, and a timer, may be a moment ahead of ours.
    for (const { due, came } of times) assert.ok(came >= due - 100, `came ${due - came} ms too soon`)
  })

  promise(
    'messages that wait for their retry do not hold up others',
    async (bench) => {
      let mended = false
      const recorder = new Recorder()
      const done = new Set<string>()
      recorder.answer = async (batch) =>
        batch.map((message) => {
          if (!mended && message.id!.startsWith('fails')) return failed(message, new Date(Date.now() + 2_000))
          done.add(message.id!)
          return taken(message)
        })
      // Some of keys of their own, some without one.
      const keyOf = (n: number): string | undefined => (n % 2 === 0 ? `key-${n}` : undefined)
      const failing = Array.from({ length: 400 }, (_, n) =>
        rawEvent(bench.can.prefix, `fails-${n}`, undefined, keyOf(n)),
      )
      const good = Array.from({ length: 100 }, (_, n) =>
        rawEvent(bench.can.prefix, `good-${n}`, undefined, `good-${n % 7}`),
      )
      await bench.broker.publish([...failing, ...good])
      const source = await bench.start(recorder)
      await bench.until(() => done.size === good.length, 'those that do not fail')
      await bench.untilBacklog(failing.length)

      // Messages that wait are still the broker's: the next source gets them.
      await source.stop()
      mended = true
      await source.start(recorder.deliver)
      await bench.until(() => done.size === good.length + failing.length, 'those that failed')
      await bench.untilBacklog(0)
    },
    ({ independent }) => independent,
  )
}
