/** What is particular to Redis Streams. */
import { randomUUID } from 'node:crypto'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Sink, Source } from 'oncebox'
import { redis, type RedisSinkOptions, type RedisSourceOptions } from 'oncebox/redis'
import type { PrivateService } from '../../../tools/services/process.mjs'
import { start } from '../../../tools/services/redis.mjs'
import { layCable } from '../../support/cable.js'
import { freeze, unfreeze } from '../../support/freeze.js'
import { waitUntil } from '../../support/wait.js'
import { event, gate, openGates, Recorder, settled } from '../recorder.js'

vi.setConfig({ testTimeout: 60_000 })

let service: PrivateService
let client: ReturnType<typeof createClient>
beforeAll(async () => {
  service = (await start()) as PrivateService
  client = createClient({ url: service.url })
  client.on('error', () => {})
  await client.connect()
}, 300_000)
afterAll(async () => {
  client?.destroy()
  await service?.stop()
})

const GROUP = 'workers'
/** Of each test its own. */
let stream: string
const running = new Set<Source | Sink>()
beforeEach(() => {
  stream = `s-${randomUUID()}`
  return async () => {
    openGates()
    for (const one of running) await ('stop' in one ? one.stop() : one.close())
    running.clear()
    await client.del(stream)
  }
})

const command = (...args: (string | Buffer)[]) => client.sendCommand(args)
const add = (fields: Record<string, string | Buffer>) => command('XADD', stream, '*', ...Object.entries(fields).flat())
const addNumbered = async (count: number) => {
  for (let n = 0; n < count; n++) await add({ id: `m-${n}`, data: '{}' })
}
const consumers = async () =>
  (await client.xInfoConsumers(stream, GROUP)).map(({ name, pending }) => ({ name, pending }))
const pending = async () => (await client.xPending(stream, GROUP)).pending
const allDone = async () => {
  const [group] = await client.xInfoGroups(stream)
  return group?.pending === 0 && group.lag === 0
}

function source(options: Partial<RedisSourceOptions> = {}): Source {
  const made = redis({ url: service.url, stream, group: GROUP, minIdleMs: 1_000, ...options })
  running.add(made)
  return made
}
function sink(options: Partial<RedisSinkOptions> = {}): Sink {
  const made = redis({ url: service.url, to: stream, ...options })
  running.add(made)
  return made
}

describe('a source', () => {
  test('acknowledges on its next connection what was handled while it lost one, and delivers none of it again', async () => {
    await addNumbered(5)
    const recorder = new Recorder(async () => {
      if (recorder.batches.length <= 3) await command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    })
    await source().start(recorder.deliver)
    await waitUntil(allDone, { timeoutMs: 50_000 })
    expect(recorder.messages.map(({ id }) => id)).toEqual(['m-0', 'm-1', 'm-2', 'm-3', 'm-4'])
  })

  test('waits longer each time while its connections do not last', async () => {
    await using cable = await layCable(service.url)
    const pauses: number[] = []
    let lostAt = 0
    await source({ url: cable.url }).start(new Recorder().deliver, (problem) => {
      if (problem !== undefined) lostAt = performance.now()
      else {
        pauses.push(performance.now() - lostAt)
        cable.cut()
      }
    })
    cable.cut()
    await waitUntil(() => pauses.length > 4)
    // The fifth pause since it worked: 1 600 ms, or half as many.
    expect(pauses[4]).toBeGreaterThan(799)
  })

  test('keeps what it holds for as long as the box takes', async () => {
    await addNumbered(4)
    const { passed, open } = gate()
    const recorder = new Recorder(async () => passed)
    await source().start(recorder.deliver)
    await waitUntil(() => recorder.messages.length === 4)
    // Another one would take over what is given up.
    const other = new Recorder()
    await source().start(other.deliver)
    const heldUntil = Date.now() + 3_000
    await waitUntil(() => Date.now() > heldUntil)
    open()
    await waitUntil(allDone)
    expect(recorder.messages).toHaveLength(4)
    expect(other.messages).toEqual([])
  })

  test('keeps what waits for its retry, and delivers it again when that is due', async () => {
    await addNumbered(1)
    const times: number[] = []
    const recorder = new Recorder(async (batch) => {
      times.push(Date.now())
      return times.length === 1
        ? batch.map((one) => settled(one, { retryAt: new Date(Date.now() + 2_500) }))
        : undefined
    })
    await source().start(recorder.deliver)
    await waitUntil(() => times.length === 1)
    const other = new Recorder()
    await source().start(other.deliver)
    await waitUntil(allDone)
    expect(times[1]! - times[0]!).toBeGreaterThan(2_400)
    // Its process lives, so nobody has died of it.
    expect(recorder.messages.map(({ redelivered }) => redelivered)).toEqual([undefined, undefined])
    expect(other.messages).toEqual([])
  })

  test('takes over what a process that died had read, many batches of it', async () => {
    await addNumbered(50)
    await command('XGROUP', 'CREATE', stream, GROUP, '0')
    await command('XREADGROUP', 'GROUP', GROUP, 'died', 'COUNT', '50', 'STREAMS', stream, '>')
    const recorder = new Recorder()
    await source({ batch: 8 }).start(recorder.deliver)
    await waitUntil(allDone)
    expect(recorder.messages.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, n) => `m-${n}`))
    expect(recorder.messages.every(({ redelivered }) => redelivered === true)).toBe(true)
  })

  test('has at once what it had read under its name before it died', async () => {
    await addNumbered(20)
    await command('XGROUP', 'CREATE', stream, GROUP, '0')
    await command('XREADGROUP', 'GROUP', GROUP, 'me', 'COUNT', '20', 'STREAMS', stream, '>')
    await add({ id: 'new', data: '{}' })
    const recorder = new Recorder()
    await source({ batch: 8, consumer: 'me', minIdleMs: 3_600_000 }).start(recorder.deliver)
    await waitUntil(allDone)
    const numbered = Array.from({ length: 20 }, (_, n) => `m-${n}`)
    expect(recorder.messages.map(({ id }) => id)).toEqual([...numbered, 'new'])
    expect(recorder.messages.map(({ redelivered }) => redelivered === true)).toEqual([
      ...numbered.map(() => true),
      false,
    ])
  })

  test('keeps the order of a key across a crash under its name, whatever is not taken at first', async () => {
    const keyed = (id: string) => add({ id, key: 'k', data: '{}' })
    const ids = Array.from({ length: 12 }, (_, n) => `m-${n}`)
    for (const id of ids.slice(0, 6)) await keyed(id)
    await command('XGROUP', 'CREATE', stream, GROUP, '0')
    await command('XREADGROUP', 'GROUP', GROUP, 'me', 'COUNT', '6', 'STREAMS', stream, '>')
    for (const id of ids.slice(6)) await keyed(id)
    const taken: unknown[] = []
    let refusals = 0
    const recorder = new Recorder(async (batch) => {
      const at = refusals++ < 3 ? 1 : batch.length
      taken.push(...batch.slice(0, at).map(({ id }) => id))
      // What is behind one that is not taken is not taken, either, as by a consumer with order.
      return batch.map((one, n) => settled(one, n < at ? undefined : { retryAt: new Date() }))
    })
    await source({ batch: 4, consumer: 'me', minIdleMs: 3_600_000 }).start(recorder.deliver)
    await waitUntil(allDone)
    expect(taken).toEqual(ids)
  })

  test('keeps the times of retries and of taking over when the clock is set back', async () => {
    await addNumbered(1)
    await command('XGROUP', 'CREATE', stream, GROUP, '0')
    await command('XREADGROUP', 'GROUP', GROUP, 'died', 'COUNT', '1', 'STREAMS', stream, '>')
    await add({ id: 'new', data: '{}' })
    const recorder = new Recorder(async (batch) => {
      if (recorder.batches.length > 1) return undefined
      onTestFinished(() => void vi.useRealTimers())
      const retryAt = new Date(Date.now() + 1_000)
      setImmediate(() => vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000, shouldAdvanceTime: true }))
      return batch.map((one) => settled(one, { retryAt }))
    })
    await source({ minIdleMs: 4_000 }).start(recorder.deliver)
    await waitUntil(allDone)
    expect(recorder.messages.map(({ id }) => id)).toEqual(['new', 'new', 'm-0'])
  })

  test('leaves at once to others what waits when it is stopped', async () => {
    await addNumbered(3)
    const refusing = new Recorder(async (batch) =>
      batch.map((one) => settled(one, { retryAt: new Date(Date.now() + 600_000) })),
    )
    const first = source({ minIdleMs: 30_000 })
    await first.start(refusing.deliver)
    await waitUntil(() => refusing.messages.length === 3)
    await first.stop()
    expect(await pending()).toBe(3)
    const recorder = new Recorder()
    await source({ minIdleMs: 30_000 }).start(recorder.deliver)
    await waitUntil(allDone)
    expect(recorder.messages).toHaveLength(3)
  })

  test('removes the name it made up when it stops, but none that has something pending', async () => {
    await addNumbered(1)
    const recorder = new Recorder()
    const idle = source()
    await idle.start(recorder.deliver)
    await waitUntil(allDone)
    await idle.stop()
    expect(await consumers()).toEqual([])

    await addNumbered(1)
    const refusing = new Recorder(async (batch) =>
      batch.map((one) => settled(one, { retryAt: new Date(Date.now() + 600_000) })),
    )
    const busy = source({ minIdleMs: 30_000 })
    await busy.start(refusing.deliver)
    await waitUntil(() => refusing.messages.length === 1)
    await busy.stop()
    expect(await consumers()).toEqual([{ name: expect.stringMatching(/^oncebox:/), pending: 1 }])
  })

  test('makes its group again when the stream is deleted, misses nothing, and says so', async () => {
    const recorder = new Recorder()
    const reports: unknown[] = []
    await source().start(recorder.deliver, (problem) => void reports.push(problem))
    await add({ id: 'before', data: '{}' })
    await waitUntil(() => recorder.messages.length === 1)
    await command('MULTI')
    await command('DEL', stream)
    await add({ id: 'after', data: '{}' })
    await command('EXEC')
    await waitUntil(() => recorder.messages.some(({ id }) => id === 'after'), { timeoutMs: 90_000 })
    await waitUntil(() => reports.at(-1) === undefined && reports.length >= 2)
    expect(reports[0]).toBeInstanceOf(Error)
  })

  test('says which entries were trimmed before they were handled', async () => {
    await addNumbered(3)
    await command('XGROUP', 'CREATE', stream, GROUP, '0')
    await command('XREADGROUP', 'GROUP', GROUP, 'died', 'STREAMS', stream, '>')
    await command('XTRIM', stream, 'MAXLEN', '1')
    const recorder = new Recorder()
    const reports: unknown[] = []
    await source().start(recorder.deliver, (problem) => void reports.push(problem))
    await waitUntil(() => recorder.messages.length === 1)
    expect(recorder.messages[0]!.id).toBe('m-2')
    expect(reports).toEqual([expect.objectContaining({ code: 'NOT_FOUND' }), undefined])
    expect(await pending()).toBe(0)
  })

  test.each([
    ['before their beat', 60_000],
    ['after it', 400],
  ])('says which entries were trimmed while they waited here, once: %s', async (_, minIdleMs) => {
    await addNumbered(3)
    let retryAt = new Date(Date.now() + 2_000)
    const recorder = new Recorder(async (batch) => batch.map((one) => settled(one, { retryAt })))
    const reports: unknown[] = []
    await source({ minIdleMs }).start(recorder.deliver, (problem) => void reports.push(problem))
    await waitUntil(() => recorder.messages.length === 3)
    retryAt = new Date(Date.now() + 600_000)
    const [first] = (await client.xRange(stream, '-', '+')) ?? []
    await command('XTRIM', stream, 'MAXLEN', '1')
    await waitUntil(() => recorder.messages.length >= 4 && reports.length >= 2)
    expect(recorder.messages.slice(3).map(({ id }) => id)).toEqual(['m-2'])
    expect(reports).toEqual([expect.objectContaining({ code: 'NOT_FOUND' }), undefined])
    expect(String(reports[0])).toContain(`2 that waited here (${first!.id},`)
    expect(await pending()).toBe(1)
  })

  test('is not back because it says which entries were trimmed', async () => {
    await using cable = await layCable(service.url)
    await addNumbered(3)
    const recorder = new Recorder(async (batch) =>
      batch.map((one) => settled(one, { retryAt: new Date(Date.now() + 600_000) })),
    )
    const reports: unknown[] = []
    const losses = () => reports.filter((problem) => (problem as { code?: string } | undefined)?.code === 'NOT_FOUND')
    await source({ url: cable.url, minIdleMs: 400 }).start(recorder.deliver, (problem) => void reports.push(problem))
    await waitUntil(() => recorder.messages.length === 3)
    await command('XTRIM', stream, 'MAXLEN', '2')
    await waitUntil(() => losses().length === 1)
    // It was told a moment ago of the first one, and tells of the second one in a minute.
    await command('XTRIM', stream, 'MAXLEN', '1')
    await waitUntil(async () => (await pending()) === 1)
    cable.pointAt('redis://127.0.0.1:1')
    cable.cut()
    await waitUntil(() => reports.at(-1) !== undefined)
    const before = reports.length
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000)
    onTestFinished(() => clock.mockRestore())
    await waitUntil(() => losses().length === 2)
    expect(reports.slice(before)).not.toContain(undefined)
    cable.pointAt(service.url)
    await waitUntil(() => reports.at(-1) === undefined)
  })

  test('says how many entries were trimmed before anybody was given them, once', async () => {
    await addNumbered(1)
    const { passed, open } = gate()
    const recorder = new Recorder(async () => passed)
    const reports: unknown[] = []
    await source().start(recorder.deliver, (problem) => void reports.push(problem))
    await waitUntil(() => recorder.messages.length === 1)
    // It has not looked at the stream for a while.
    const heldUntil = Date.now() + 1_100
    await waitUntil(() => Date.now() > heldUntil)
    await addNumbered(10)
    await command('XTRIM', stream, 'MAXLEN', '4')
    open()
    await waitUntil(async () => recorder.messages.length === 5 && (await pending()) === 0)
    expect(recorder.messages.slice(1).map(({ id }) => id)).toEqual(['m-6', 'm-7', 'm-8', 'm-9'])
    expect(reports).toEqual([expect.objectContaining({ code: 'NOT_FOUND' }), undefined])
    expect(String(reports[0])).toMatch(/: 6 before \d+-\d+ that nobody was given/)
  })

  test('what comes after FLUSHALL is not lost, wherever its group began', async () => {
    await addNumbered(1)
    const recorder = new Recorder()
    const reports: unknown[] = []
    await source({ begin: '$' }).start(recorder.deliver, (problem) => void reports.push(problem))
    await add({ id: 'before', data: '{}' })
    await waitUntil(() => recorder.messages.length === 1)
    await client.multi().flushAll().xAdd(stream, '*', { id: 'after', data: '{}' }).exec()
    await waitUntil(() => recorder.messages.some(({ id }) => id === 'after'))
    await waitUntil(() => reports.at(-1) === undefined && reports.length >= 2)
    expect(recorder.messages.map(({ id }) => id)).toEqual(['before', 'after'])
  })

  test('warns of what would lose entries', async () => {
    const warningsOf = async (): Promise<string[]> => {
      const warnings: string[] = []
      const one = source()
      await one.start(new Recorder().deliver, undefined, (text) => void warnings.push(text))
      await one.stop()
      return warnings
    }
    expect(await warningsOf()).toEqual([])
    await addNumbered(1)
    await command('PEXPIRE', stream, '600000')
    await command('CONFIG', 'SET', 'maxmemory', '1gb', 'maxmemory-policy', 'allkeys-lru', 'appendonly', 'no')
    try {
      expect(await warningsOf()).toEqual([
        expect.stringContaining('maxmemory-policy'),
        expect.stringContaining('PERSIST'),
        expect.stringContaining('appendonly'),
      ])
    } finally {
      await command('CONFIG', 'SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction', 'appendonly', 'yes')
    }
  })

  test('deletes entries when they are acknowledged, if it is told to', async () => {
    await addNumbered(5)
    await source({ remove: true }).start(new Recorder().deliver)
    await waitUntil(async () => (await client.xLen(stream)) === 0)
    expect(await pending()).toBe(0)
  })

  test.each([
    ['0' as const, ['m-0', 'later']],
    ['$' as const, ['later']],
  ])('a group that begins at %s', async (begin, expected) => {
    await addNumbered(1)
    const recorder = new Recorder()
    await source({ begin }).start(recorder.deliver)
    await add({ id: 'later', data: '{}' })
    await waitUntil(() => recorder.messages.length >= expected.length)
    expect(recorder.messages.map(({ id }) => id)).toEqual(expected)
  })
})

describe('an entry', () => {
  const received = async (fields: Record<string, string | Buffer>) => {
    const entry = (await add(fields)) as unknown as string
    const recorder = new Recorder()
    await source().start(recorder.deliver)
    await waitUntil(() => recorder.messages.length > 0)
    return { entry, message: recorder.messages[0]! }
  }
  const text = (body: unknown) => Buffer.from(body as Buffer).toString()

  test('of fields alone is an object of texts, known by its place', async () => {
    const { entry, message } = await received({ id: 'customer-1', sku: 'żółć "tea"', quantity: '3' })
    expect(message).toMatchObject({ id: entry, source: stream, type: stream })
    expect(JSON.parse(text(message.body))).toEqual({ id: 'customer-1', sku: 'żółć "tea"', quantity: '3' })
    expect((message.time as Date).getTime()).toBe(Number(entry.split('-')[0]))
  })

  test('with data may name its id, type and key, and keeps its bytes', async () => {
    const data = Buffer.from([0xff, 0x00, 0xfe])
    const { message } = await received({ id: 'one', type: 'picture', key: 'k', tenant: 't', data })
    expect(message).toMatchObject({ id: 'one', type: 'picture', key: 'k', headers: { tenant: 't' } })
    expect(Buffer.from(message.body as Buffer)).toEqual(data)
  })

  test('with a field that is not UTF-8 beside its data has no id', async () => {
    const { message } = await received({ id: Buffer.from([0xff]), data: '{}' })
    expect(message).toMatchObject({ id: undefined, headers: { 'oncebox-problem': 'field id is not UTF-8' } })
  })

  test('of fields alone that are not UTF-8 keeps their bytes', async () => {
    const { message } = await received({ picture: Buffer.from([0xff, 0x22, 0x80]) })
    expect(Buffer.from(message.body as Buffer)).toEqual(
      Buffer.concat([Buffer.from('{"picture":"'), Buffer.from([0xff, 0x5c, 0x22, 0x80]), Buffer.from('"}')]),
    )
  })

  test('whose id was chosen by its producer has no time', async () => {
    await command('XADD', stream, '7-1', 'data', '{}')
    const recorder = new Recorder()
    await source().start(recorder.deliver)
    await waitUntil(() => recorder.messages.length > 0)
    expect(recorder.messages[0]).toMatchObject({ id: '7-1' })
    expect(recorder.messages[0]!.time).toBeUndefined()
  })
})

describe('a sink', () => {
  const batch = (count: number) => Array.from({ length: count }, (_, n) => event(`m-${n}`))

  test('trims to about so many entries', async () => {
    await sink({ maxLength: 100 }).publish(batch(1_000))
    const length = await client.xLen(stream)
    expect(length).toBeGreaterThanOrEqual(100)
    expect(length).toBeLessThan(400)
  })

  test('trims what is older, from its second event on', async () => {
    for (let n = 1; n <= 500; n++) await command('XADD', stream, `${n}-1`, 'data', '{}')
    const to = sink({ maxAgeMs: 60_000 })
    await to.publish([event('first')])
    expect(await client.xLen(stream)).toBe(501)
    await to.publish([event('second')])
    expect(await client.xLen(stream)).toBeLessThan(200)
  })

  test('trims nothing that is young by the clock of the server, whatever its own says', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000, shouldAdvanceTime: true })
    onTestFinished(() => void vi.useRealTimers())
    const to = sink({ maxAgeMs: 600_000 })
    await to.publish(batch(500))
    await to.publish([event('later')])
    expect(await client.xLen(stream)).toBe(501)
  })

  test('writes the fields that the docs show', async () => {
    await sink().publish([event('a', { key: 'k', data: { n: 1 } })])
    const [entry] = (await client.xRange(stream, '-', '+')) ?? []
    expect({ ...entry!.message }).toEqual({
      ...{ ce_specversion: '1.0', ce_id: 'a', ce_source: 'shop', ce_type: 'order.placed', ce_partitionkey: 'k' },
      ...{ 'content-type': 'application/json', data: '{"n":1}' },
    })
  })

  test('waits where a key holds no stream, and publishes the rest; nothing after it within its key', async () => {
    await client.set(`${stream}:text`, 'x')
    const to = sink({ to: ({ type }) => (type === 'lost' ? `${stream}:text` : stream) })
    const lost = event('b', { type: 'lost', key: 'k' })
    const answers = await to.publish([event('a'), lost, event('c', { key: 'k' }), event('d')])
    expect(answers.map((answer) => answer?.afterMs)).toEqual([undefined, 5_000, 0, undefined])
    expect(answers[1]).toMatchObject({ down: true, retry: true })
    expect(await client.xLen(stream)).toBe(2)
    await client.del(`${stream}:text`)
  })

  test('blames no event for an error of the server that it does not know', async () => {
    const full = `${stream}:full`
    // The server has no id left for it, and says ERR, as a proxy does that allows no more.
    await command('XADD', full, '18446744073709551615-18446744073709551615', 'data', '{}')
    const to = sink({ to: ({ type }) => (type === 'refused' ? full : stream) })
    const answers = await to.publish([event('a', { type: 'refused', key: 'k' }), event('b', { key: 'k' }), event('c')])
    await client.del(full)
    expect(answers).toMatchObject([{ retry: true, down: true }, { retry: true, afterMs: 0 }, undefined])
    expect(answers[0]).not.toHaveProperty('afterMs')
    expect(String(answers[0]!.error)).toContain('ERR ')
  })

  test('rejects as a whole when the server has no memory left', async () => {
    const to = sink()
    await to.publish([event('a')])
    await command('CONFIG', 'SET', 'maxmemory', '1')
    try {
      await expect(to.publish([event('b'), event('c')])).rejects.toThrow(/^OOM/)
    } finally {
      await command('CONFIG', 'SET', 'maxmemory', '0')
    }
    expect(await to.publish([event('b')])).toEqual([undefined])
  })

  test('rejects as a whole when the server takes no writes', async () => {
    const to = sink()
    await to.publish([event('a')])
    await command('REPLICAOF', '127.0.0.1', '1')
    try {
      await expect(to.publish([event('b'), event('c')])).rejects.toThrow(/^READONLY/)
    } finally {
      await command('REPLICAOF', 'NO', 'ONE')
    }
    expect(await to.publish([event('b')])).toEqual([undefined])
  })

  test('finds the new primary when its server has become a replica and keeps its connections', async () => {
    const primary = (await start()) as PrivateService
    onTestFinished(() => primary.stop())
    await using address = await layCable(service.url)
    const to = sink({ url: address.url })
    await to.publish([event('a')])
    address.pointAt(primary.url)
    await command('REPLICAOF', '127.0.0.1', '1')
    try {
      await expect(to.publish([event('b'), event('c')])).rejects.toThrow(/^READONLY/)
      expect(await to.publish([event('b'), event('c')])).toEqual([undefined, undefined])
    } finally {
      await command('REPLICAOF', 'NO', 'ONE')
    }
  })

  test('rejects in time when the server is there and does not answer, and recovers', async () => {
    const to = sink({ timeoutMs: 500 })
    expect(await to.publish([event('a')])).toEqual([undefined])
    await freeze(service.pid)
    const begun = Date.now()
    try {
      await expect(to.publish([event('b'), event('c')])).rejects.toThrow()
    } finally {
      unfreeze(service.pid)
    }
    expect(Date.now() - begun).toBeLessThan(10_000)
    expect(await to.publish([event('b'), event('c')])).toEqual([undefined, undefined])
  })
})

describe('options', () => {
  const url = 'redis://localhost:6379'
  test.each<[string, object | undefined]>([
    ['none at all', undefined],
    ['neither a group nor a stream to publish to', { url, stream: 's' }],
    ['no url', { to: 's' }],
    ['another url', { url: 'http://localhost', to: 's' }],
    ['an unknown one', { url, to: 's', retries: 3 }],
    ['one of sources for a sink', { url, to: 's', batch: 3 }],
    ['one of sinks for a source', { url, stream: 's', group: 'g', maxLength: 3 }],
    ['a group without its stream', { url, group: 'g' }],
    ['another beginning', { url, stream: 's', group: 'g', begin: '1-1' }],
    ['no room for a batch', { url, stream: 's', group: 'g', batch: 0 }],
    ['no time at all', { url, stream: 's', group: 'g', minIdleMs: 0 }],
    ['two ways to trim', { url, to: 's', maxLength: 1, maxAgeMs: 1 }],
    ['an empty name', { url, to: '' }],
  ])('%s is refused', (_, options) => {
    expect(() => redis(options as RedisSinkOptions)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  test('a source and a sink in one', () => {
    const both = redis({ url, stream: 's', group: 'g', to: 't', name: 'both' })
    expect(Object.keys(both).sort()).toEqual(['close', 'name', 'publish', 'start', 'stop'])
  })
})
