/** What the overview says and draws, worked out without a browser. */
import { describe, expect, test } from 'vitest'
import type { ConsumerStatus, Finding, History, Overview, Series } from 'oncebox/dashboard/client'
import { ticks, topOf } from '../../ui/src/logic/axis.js'
import { brokersOf } from '../../ui/src/logic/health-words.js'
import { linesOf, readingOf, sparkOf, thin, type Reading } from '../../ui/src/logic/lines.js'
import { sentenceOf } from '../../ui/src/logic/sentence.js'
import { isDown, lastError } from '../../ui/src/logic/sink-down.js'
import { tell, verdictOf, worstFirst } from '../../ui/src/logic/verdict.js'

const COUNTS = { pending: 0, processing: 0, handled: 0, dead: 0, quarantined: 0, discarded: 0, lagMs: 0 }

function consumer(name: string, rest: Partial<ConsumerStatus> = {}): ConsumerStatus {
  return { name, ...COUNTS, paused: false, order: 'none', types: [], ...rest }
}

function overview(consumers: ConsumerStatus[], findings: Finding[] = [], rest: Partial<Overview> = {}): Overview {
  return {
    at: '2026-11-16T14:32:00.000Z',
    box: 'payments',
    health: { ok: true, database: true, sources: true, attached: 1, lagMs: 0, reasons: [] },
    server: { version: '17.6', ms: 0.9 },
    consumers,
    sinks: [],
    blocked: { keys: 0, complete: true, waiting: 0, atLeast: false },
    findings,
    ...rest,
  }
}

const plain = (text: string): string => text.replaceAll('\u202f', '_')

test.each([
  [{ attached: 2, sources: true }, { tone: 'handled', shape: 'up', words: 'every source of this process is connected' }],
  [{ attached: 2, sources: false }, { tone: 'dead', shape: 'behind', words: 'a source is not connected' }],
  [{ attached: 0, sources: true }, { tone: 'pending', shape: 'pending', words: 'not known here: this process has no source' }],
])('brokers are as well as the sources of this process say: %o', (health, told) => {
  expect(brokersOf({ ok: true, database: true, lagMs: 0, reasons: [], ...health })).toEqual(told)
}) // prettier-ignore

describe('the verdict', () => {
  const began = (at: string): string => at.slice(11, 16)

  test('of a box in trouble is how many things need somebody, and since when', () => {
    const findings: Finding[] = [
      { code: 'behind', severity: 'serious', consumer: 'a', lagMs: 751_000, since: '2026-11-16T14:07:00Z' },
      { code: 'dead', severity: 'warning', count: 3, since: '2026-11-16T09:14:00Z' },
    ]
    const box = overview([consumer('a', { lagMs: 751_000 }), consumer('b', { handled: 1 }), consumer('')], findings)
    expect(verdictOf(box, began)).toEqual({
      title: '2 things need you',
      text: '1 of 2 consumers is fine. The oldest of these began at 09:14.',
    })
  })

  test('of a box that is well is all clear', () => {
    const { title, text } = verdictOf(overview([consumer('a', { handled: 5, lagMs: 400 })]), began)
    expect(title).toBe('All clear')
    expect(text).toMatch(/^1 of 1 consumer keeps up\. Oldest message that is due: 0\.4 s\./)
  })

  test('of a box that nothing came to says so', () => {
    expect(verdictOf(overview([consumer('a')]), began).title).toBe('No message yet')
  })
})

describe('a finding', () => {
  test('of a consumer that is behind and fails leads to its failures', () => {
    const rates = { inPerSecond: 63.4, outPerSecond: 31.8, duplicatesPerSecond: 0, failedPerSecond: 30 }
    const box = overview([consumer('charge-card', { dead: 1_204, rates })])
    const told = tell(
      { code: 'behind', severity: 'serious', consumer: 'charge-card', lagMs: 751_000, count: 48_211 },
      box,
    )
    expect(told.what).toBe('charge-card is 12 min 31 s behind')
    expect(told.why.map(plain)).toEqual(['in 63.4/s, out 31.8/s', '48_211 wait', '1_204 dead'])
    expect([told.page, told.query]).toEqual(['failures', { consumer: 'charge-card' }])
  })

  test('of one that only is behind leads to what waits, whatever its name', () => {
    const told = tell({ code: 'behind', severity: 'serious', consumer: 'a "b', lagMs: 1 }, overview([consumer('a "b')]))
    expect(told.query).toEqual({ q: 'consumer:"a \\"b" state:pending' })
  })

  test('of a sink says its error, and that nobody has it attached', () => {
    const sink = {
      name: 'k',
      processes: [],
      ready: 6,
      delayed: 0,
      dead: 0,
      most: 6,
      lagMs: 1,
      held: false,
      error: { name: 'E', code: 'X' },
    }
    const told = tell(
      { code: 'sink-behind', severity: 'serious', sink: 'k', count: 6 },
      overview([], [], { sinks: [sink] }),
    )
    expect(told).toMatchObject({ word: 'Sink down', what: 'k does not answer', code: 'E X' })
    expect(told.why).toEqual(['6 events or more wait', 'no process has it attached'])
    const worded = { ...sink, error: { ...sink.error, message: 'connect ETIMEDOUT 10.0.4.17:9092' } }
    const seen = tell({ code: 'sink-behind', severity: 'serious', sink: 'k' }, overview([], [], { sinks: [worded] }))
    expect(seen.code).toBe('connect ETIMEDOUT 10.0.4.17:9092')
  })

  test('of a sink that is down says why, how much waits, and leads to the outbox', () => {
    const finding: Finding = {
      code: 'unhealthy',
      severity: 'serious',
      sink: 'k',
      count: 41,
      text: 'sink k is down: connect: no',
    }
    const told = tell(finding, overview([]))
    expect(told).toMatchObject({ word: 'Sink down', what: 'k does not answer', code: 'connect: no', page: 'outbox' })
    expect(told.why).toEqual(['41 events wait'])
    expect(tell({ ...finding, text: 'sink k is down' }, overview([]))).not.toHaveProperty('code')
  })

  test('of dead events says of which sink they are and why the last one is, and leads to the outbox', () => {
    const sink = { name: 'k', processes: [], ready: 6, delayed: 0, dead: 50, most: 50, lagMs: 1, held: false }
    const deadError = { name: 'Rejected', message: 'no such topic' }
    const finding: Finding = { code: 'sink-dead', severity: 'warning', sink: 'k', count: 50 }
    const told = tell(finding, overview([], [], { sinks: [{ ...sink, deadError }] }))
    expect(told).toMatchObject({
      word: 'Dead',
      what: '50+ events are dead for k',
      code: 'no such topic',
      page: 'outbox',
    })
    expect(tell({ ...finding, count: 1 }, overview([])).what).toBe('1 event is dead for k')
    // It publishes the others.
    expect(isDown({ ...sink, deadError })).toBe(false)
    expect(lastError({ ...sink, deadError })).toBe('Rejected: no such topic')
  })

  test('of keys names their consumer if it is one, and says how many messages wait behind how many', () => {
    const blocked = { keys: 8, complete: true, waiting: 2_207, atLeast: false }
    const finding: Finding = { code: 'blocked', severity: 'serious', count: 8 }
    const one = overview(
      [consumer('s', { order: 'key', blockedKeys: 8 }), consumer('x', { order: 'key', dead: 9 })],
      [],
      {
        blocked,
      },
    )
    expect(tell(finding, one).what).toBe('8 keys of s are blocked')
    expect(tell(finding, one).why.map(plain)).toEqual(['2_207 messages wait behind 8 that stopped'])
    const two = { ...one, consumers: [...one.consumers, consumer('t', { blockedKeys: 1 })] }
    expect(tell(finding, two).what).toBe('8 keys are blocked')
  })

  test.each([
    [{ keys: 1, waiting: 1 }, 1, '1 message waits behind one that stopped'],
    [{ keys: 2, waiting: 0 }, 2, 'nothing waits behind what stopped'],
    [
      { keys: 1_000, complete: false, waiting: 10_000, atLeast: true },
      1_000,
      '10_000+ messages wait behind 1_000 that stopped',
    ],
  ])('of keys: %o', (rest, count, words) => {
    const blocked = { complete: true, atLeast: false, ...rest }
    const told = tell({ code: 'blocked', severity: 'serious', count }, overview([], [], { blocked }))
    expect(told.why.map(plain)).toEqual([words])
  })

  test('of what is dead names where most of it is', () => {
    const box = overview([
      consumer('a', { dead: 1 }),
      consumer('b', { dead: 17 }),
      consumer('', { dead: 2 }),
      consumer('c', { dead: 1 }),
    ])
    expect(tell({ code: 'dead', severity: 'warning', count: 21 }, box).why).toEqual([
      '17 in b, 2 at the door, 2 elsewhere',
    ])
  })
})

test('consumers are listed worst first: behind, paused, dead, in quarantine, well', () => {
  const listed = worstFirst([
    consumer('well'),
    consumer('quarantine', { quarantined: 1 }),
    consumer('paused', { paused: true, lagMs: 9e9 }),
    consumer('behind', { lagMs: 121_000 }),
    consumer('further behind', { lagMs: 200_000 }),
    consumer('dead', { dead: 1 }),
    consumer('below its own limit', { lagMs: 200_000, limitMs: 300_000 }),
  ])
  expect(listed.map(({ name }) => name)).toEqual([
    ...['further behind', 'behind', 'paused', 'dead', 'quarantine', 'below its own limit', 'well'],
  ])
})

describe('lines', () => {
  const series = (values: (number | null)[]): Series => ({
    received: values, handled: values, failed: values, duplicates: values, pending: values, lagMs: values,
  }) // prettier-ignore
  const history = (times: number[], values: (number | null)[]): History => ({
    at: '', stepMs: 60_000, times, total: series(values), consumers: { a: series(values) },
  }) // prettier-ignore
  const reading = (at: number, pending = 1): Reading => ({ at, lagMs: 5, pending, consumers: { a: 7 } })

  test('are the history, in a second, and then what the tab heard after it', () => {
    const lines = linesOf(history([0, 60], [60, 120]), [reading(100), reading(121, 9)])
    expect(lines.times).toEqual([0, 60, 121])
    expect(lines.in).toEqual([1, 2, null])
    expect(lines.depth).toEqual([60, 120, 9])
  })

  test('have a gap where nobody recorded, and where the tab did not look', () => {
    expect(linesOf(history([0, 60, 120], [1, null, 1]), []).depth).toEqual([1, null, 1])
    expect(linesOf(undefined, [reading(0), reading(1), reading(100)]).depth).toEqual([1, 1, null, 1])
  })

  test('leave steps at the end that nobody recorded to the tab', () => {
    expect(linesOf(history([0, 60, 120], [1, null, null]), [reading(70)]).times).toEqual([0, 70])
  })

  test('take no lag of consumers that are paused', () => {
    const box = overview([consumer('a', { lagMs: 5 }), consumer('b', { lagMs: 500, paused: true })])
    expect(readingOf(box).lagMs).toBe(5)
    expect(readingOf(overview([consumer('b', { paused: true })])).lagMs).toBeNull()
  })

  test('of a consumer end with what it is now', () => {
    expect(sparkOf('a', { history: history([0, 60], [1, 2]), readings: [reading(130)] })).toEqual([1, 2, 7])
    expect(sparkOf('b', { history: undefined, readings: [reading(1)] })).toEqual([null])
  })

  test('that are thinned keep their peaks and their gaps', () => {
    expect(thin([1, 9, 2, 2, null, null], 3)).toEqual([9, 2, null])
  })
})

describe('axes', () => {
  test.each([
    [840_000, 3, 'span', [0, 300_000, 600_000]],
    [10_000, 3, 'span', [0, 5_000, 10_000]],
    [740, 3, 'number', [0, 300, 600]],
    [66_000, 2, 'number', [0, 50_000]],
    [0.9, 3, 'number', [0, 0.5]],
  ] as const)('up to %d have at most %d labels that people count in', (top, labels, kind, expected) => {
    expect(ticks(top, labels, kind)).toEqual(expected)
  })
  test('of nothing are not empty', () => expect(topOf(0, 1)).toBe(1))
})

describe('the sentence of a chart', () => {
  const write = (value: number): string => `${value} s`
  const when = (time: number): string => `t${time}`
  const of = (values: (number | null)[], limit?: number): string =>
    sentenceOf({ title: 'Lag', times: values.map((_, n) => n), values, limit, write, when })

  test('says what is now, what was most, and since when a limit is passed', () => {
    expect(of([1, 9, 2])).toBe('Lag: 2 s now, 9 s at most, at t1.')
    expect(of([1, 5, 6], 4)).toBe('Lag: 6 s now, the highest there was. Limit 4 s. Above its limit since t1.')
    expect(of([5, 6], 4)).toMatch(/Above its limit since t0\./)
    expect(of([null])).toBe('Lag: nothing recorded yet.')
  })
})
