/**
 * What every broker adapter must keep, as cases for any test runner:
 *
 *     for (const { name, run } of brokerConformance({ open, capabilities })) test(name, run)
 *
 * Each case works on a channel of its own, against the real broker. A case that the broker cannot pass by its nature is
 * left out by `capabilities`, so that what is missing stands in the test file.
 */
import assert from 'node:assert/strict'
import { codecProblem, type Codec } from '../brokers/codec.js'
import {
  BrokerBench,
  busy,
  dataOf,
  event,
  gate,
  pause,
  rawEvent,
  Recorder,
  taken,
  type Add,
  type BrokerCapabilities,
  type BrokerUnderTest,
  type Capabilities,
  type ChannelOptions,
} from './broker-bench.js'
import { waiting } from './broker-waiting.js'
import type { Incoming, Outcome } from '../message.js'
import type { ConformanceCase } from './driver-conformance/index.js'
import { HOSTILE_TYPE, hostileEvents, judge, type HostileEvent } from './hostile-events.js'

export type { BrokerCapabilities, BrokerUnderTest, ChannelOptions, RawMessage } from './broker-bench.js'

export interface BrokerConformance {
  /** A channel of the broker, fresh and empty, and as far as the broker can be told so: as the case asks for it. */
  open(channel?: ChannelOptions): Promise<BrokerUnderTest>
  capabilities?: BrokerCapabilities
}

const DEFAULTS: Capabilities = {
  prefix: 'ce-',
  messageId: false,
  position: false,
  redelivered: true,
  order: true,
  binary: true,
  shared: true,
  maxBytes: 5 * 1024 * 1024,
  independent: true,
  waitMs: 30_000,
  outageMs: Number(process.env['ONCEBOX_OUTAGE_MS'] ?? 5_000),
}

export function brokerConformance(suite: BrokerConformance): ConformanceCase[] {
  const capabilities: Capabilities = { ...DEFAULTS, ...suite.capabilities }
  const cases: ConformanceCase[] = []
  const promise: Add = (name, run, needs = () => true, channel) => {
    if (!needs(capabilities)) return
    const open = async (): Promise<void> => {
      const broker = await suite.open(channel)
      const bench = new BrokerBench(broker, capabilities)
      try {
        await run(bench)
      } finally {
        await bench.clean()
        await broker.close()
      }
    }
    cases.push({ name, run: open })
  }
  messages(promise)
  identity(promise)
  codecs(promise)
  acknowledging(promise)
  stopping(promise)
  sharing(promise)
  rejecting(promise)
  hostile(promise)
  waiting(promise)
  sinks(promise)
  return cases
}

function messages(promise: Add): void {
  const headers = {
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
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

function identity(promise: Add): void {
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

function codecs(promise: Add): void {
  /** Every byte is turned around, so that nothing but the codec can read it. */
  const mirror = (binary: boolean): Codec => ({
    contentType: 'application/x-mirror',
    decode(body) {
      const bytes = binary ? body.map((byte) => byte ^ 0xff) : Uint8Array.from(body).reverse()
      return JSON.parse(Buffer.from(bytes).toString()) as unknown
    },
    encode(data) {
      const bytes = Buffer.from(JSON.stringify(data))
      return binary ? bytes.map((byte) => byte ^ 0xff) : Uint8Array.from(bytes).reverse()
    },
  })

  promise('a codec writes and reads bodies; what it cannot read comes as it is, and is marked', async (bench) => {
    const codec = mirror(bench.can.binary)
    await bench.send([event('coded', { data: { secret: [1, 2] } })], { codec })
    await bench.broker.publish([rawEvent(bench.can.prefix, 'broken', 'no mirror image')])
    const recorder = new Recorder()
    await bench.start(recorder, { codec })
    await bench.until(() => recorder.messages.length >= 2, 'both')
    const coded = recorder.messages.find(({ id }) => id === 'coded')
    const broken = recorder.messages.find(({ id }) => id === 'broken')
    assert.deepEqual(coded?.data, { secret: [1, 2] })
    assert.equal(codecProblem(coded), undefined)
    assert.equal(Buffer.from(broken!.body!).toString(), 'no mirror image')
    assert.ok(codecProblem(broken!))
  })

  promise('an event that the codec cannot write is refused for good, and the others are published', async (bench) => {
    const codec: Codec = {
      ...mirror(false),
      encode: (data) => {
        if ((data as { id: string }).id === 'b') throw new Error('cannot be written')
        return Buffer.from(JSON.stringify(data))
      },
      decode: (body) => JSON.parse(Buffer.from(body).toString()) as unknown,
    }
    const batch = [event('a', { key: 'x' }), event('b', { key: 'y' }), event('c', { key: 'y' }), event('d')]
    const answers = await bench.sink({ codec }).publish(batch)
    assert.deepEqual(
      answers.map((answer) => answer?.retry),
      // What follows in the same key was not sent.
      [undefined, false, true, undefined],
    )
    const recorder = new Recorder()
    await bench.start(recorder, { codec })
    await bench.until(() => recorder.messages.length >= 2, 'the others')
    assert.deepEqual([...recorder.ids].sort(), ['a', 'd'])
  })
}

function acknowledging(promise: Add): void {
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

function stopping(promise: Add): void {
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

function sharing(promise: Add): void {
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

function rejecting(promise: Add): void {
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

/** Messages of a producer that means harm. A reader that threw would lose its batch, or come back to it for ever. */
function hostile(promise: Add): void {
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

function sinks(promise: Add): void {
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
