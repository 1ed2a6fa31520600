/** What the pages of failures, keys, outbox and doctor say. */
import { expect, test } from 'vitest'
import type { BlockedKey, FailureGroup, Failures, Finding, Item, SinkStatus } from 'oncebox/dashboard/client'
import { doctorTitle, figureWords, worstFirst } from '../../ui/src/logic/doctor-words.js'
import { failuresTitle, largest, partsOfMessage } from '../../ui/src/logic/failure-words.js'
import { behindWords, keysSentence, keysTitle, whyBlocked } from '../../ui/src/logic/key-words.js'
import { outboxSentence, outboxTitle, sinkState } from '../../ui/src/logic/outbox-words.js'
import { lastError } from '../../ui/src/logic/sink-down.js'
import { seenAtLeast } from '../../ui/src/logic/tally.js'
import { runsOf } from '../../ui/src/logic/timeline.js'
import { fate } from './fates.js'

const NOW = Date.parse('2026-11-15T14:32:00Z')
const plain = (text: string): string => text.replaceAll('\u202f', ' ')
const ago = (minutes: number): string => new Date(NOW - minutes * 60_000).toISOString()
const group = (count: number, lastMinutes: number): FailureGroup => ({
  fingerprint: `f${count}`,
  consumer: 'charge-card',
  types: ['payment.received'],
  name: 'GatewayTimeout',
  count,
  firstAt: ago(60),
  lastAt: ago(lastMinutes),
  hours: [],
  sample: { source: 's', id: 'i' },
  query: 'state:dead',
})

test('failures: the sentence names the group that is most of it, and says if it was added to of late', () => {
  const all = (groups: readonly FailureGroup[]): Failures => {
    const examined = groups.reduce((sum, { count }) => sum + count, 0)
    return { at: ago(0), groups, total: groups.length, examined, complete: true }
  }
  const three = all([group(1_204, 1), group(29, 90), group(10, 2_000)])
  expect(plain(failuresTitle(three))).toBe('1 243 dead, in 3 groups')
  expect(plain(failuresTitle({ ...three, total: 300, complete: false }))).toBe('1 243+ dead, in 300 groups')
  expect(largest(three, NOW)).toMatchObject({
    group: { count: 1_204 },
    share: '97\u202f%',
    last: ', the last one less than 5 min ago',
  })
  expect(largest(all([group(5, 6), group(1, 1)]), NOW)?.last).toBe('')
  // Of all that are dead, not of those on this page.
  expect(largest({ ...three, total: 300, examined: 100_000 }, NOW)).toBeUndefined()
  expect(largest(all([group(5, 60), group(5, 60), group(1, 60)]), NOW)).toBeUndefined()
  expect(largest(all([group(5, 60)]), NOW)).toBeUndefined()
  expect(partsOfMessage('no answer in ‹n› ms')).toEqual([
    { text: 'no answer in ', varies: false },
    { text: '‹n›', varies: true },
    { text: ' ms', varies: false },
  ])
})

test('keys: how many wait behind how many, and why the one in front stopped', () => {
  const key = (waiting: number, atLeast = false): BlockedKey => ({
    consumer: 'ship-order',
    key: `k${waiting}`,
    front: { source: 's', id: 'i', type: 't', state: 'dead', attempts: 1 },
    blockedAt: ago(40),
    waiting,
    atLeast,
    next: [],
  })
  expect([keysTitle(1, false), keysTitle(8, false), keysTitle(1, true)]).toEqual([
    '1 key is blocked',
    '8 keys are blocked',
    '1+ keys are blocked',
  ])
  expect(plain(keysSentence([key(1_311), key(402)]))).toMatch(
    /^1 713 messages of ship-order wait behind 2 that stopped; other keys go on\./,
  )
  expect(plain(keysSentence([key(1_001, true)]))).toMatch(/^1 001\+ messages/)
  expect(behindWords([key(1)])).toMatch(/^1 message behind them follows in order/)
  expect(behindWords([key(1, true)])).toMatch(/^1\+ messages behind them follow in order/)
  expect(keysSentence([key(0)])).toMatch(/^Nothing waits behind them yet/)
  const { front } = key(1)
  expect(whyBlocked({ ...front, error: { name: 'TypeError', message: 'no' } })).toBe('TypeError: no')
  expect(whyBlocked({ ...front, state: 'quarantined', reason: 'invalid' })).toBe('invalid')
})

const sink = (more: Partial<SinkStatus>): SinkStatus => ({
  name: 'kafka',
  processes: ['h:1'],
  ready: 0,
  delayed: 0,
  dead: 0,
  most: 1_000,
  lagMs: 0,
  held: false,
  ...more,
})

test('outbox: a sink that fails, has dead events or nobody who publishes needs somebody', () => {
  const given: [Partial<SinkStatus>, string][] = [
    [{ error: { name: 'E' }, dead: 1 }, 'failing'],
    [{ dead: 1 }, 'dead'],
    [{ processes: [], delayed: 1 }, 'alone'],
    [{ processes: [] }, 'idle'],
    [{ ready: 1, lagMs: 121_000 }, 'behind'],
    [{ ready: 1 }, 'busy'],
    [{}, 'up'],
  ]
  expect(given.map(([more]) => sinkState(sink(more)))).toEqual(given.map(([, state]) => state))
  const title = (...sinks: Partial<SinkStatus>[]): string => outboxTitle({ types: [], sinks: sinks.map(sink) })
  expect([title(), title({}), title({}, {}), title({ dead: 1 }, {})]).toEqual([
    'No sink is attached',
    'The sink keeps up',
    'All 2 sinks keep up',
    '1 sink needs you',
  ])
  expect([title({ ready: 1, lagMs: 30_000 }), title({ ready: 1, lagMs: 121_000 })]).toEqual([
    'Events wait to be published',
    '1 sink needs you',
  ])
  const down = [{ code: 'unhealthy', severity: 'serious', text: 'sink kafka is down: no route' }] as const
  expect(sinkState(sink({ ready: 1 }), down)).toBe('failing')
  expect(outboxTitle({ types: [], sinks: [sink({ ready: 1 })] }, down)).toBe('1 sink needs you')
})

test('outbox: the sentence says of what was not counted further that there is more', () => {
  const sentence = (...sinks: Partial<SinkStatus>[]): string =>
    plain(outboxSentence({ types: [], sinks: sinks.map(sink) }))
  expect(sentence({ ready: 10_000, most: 10_000 })).toBe('10 000+ events wait to be published.')
  expect(sentence({ ready: 1, most: 10 }, {})).toBe('1 event waits to be published.')
})

test('outbox: the last error of a sink is in its words where they may be seen, of an event or of the whole sink', () => {
  const failed = { name: 'GatewayTimeout', code: 'ETIMEDOUT' }
  expect(lastError(sink({ error: failed }))).toBe('GatewayTimeout ETIMEDOUT')
  expect(lastError(sink({ error: { ...failed, message: 'no answer' } }))).toBe('GatewayTimeout: no answer')
  const told = (text: string): Finding[] => [{ code: 'unhealthy', severity: 'serious', text }]
  expect(lastError(sink({}), told(`sink ${sink({}).name} is down: connect: refused`))).toBe('connect: refused')
  expect(lastError(sink({}), told(`sink ${sink({}).name} is down`))).toBeUndefined()
  expect(lastError(sink({}), told('sink another is down: no'))).toBeUndefined()
})

test('doctor: the worst first, counted by how bad they are', () => {
  const finding = (severity: 'serious' | 'warning' | 'note') => ({ code: severity, severity, what: '', why: '', figures: {}, fix: '' }) // prettier-ignore
  const findings = [finding('note'), finding('serious'), finding('warning'), finding('note')]
  expect(worstFirst(findings).map(({ severity }) => severity)).toEqual(['serious', 'warning', 'note', 'note'])
  expect([doctorTitle(findings, false), doctorTitle([], false), doctorTitle([], true)]).toEqual([
    '1 serious finding, 1 warning, 2 notes',
    'The doctor finds nothing',
    'The doctor looks',
  ])
  expect([figureWords(12_345), figureWords(0.5), figureWords('on')].map(plain)).toEqual(['12 345', '0.5', 'on'])
})

test('no figure is below what can be seen', () => {
  const tally = {
    states: {
      pending: { count: 0, atLeast: true },
      dead: { count: 1, atLeast: true },
      handled: { count: 0, atLeast: false },
    },
  }
  const items = ['pending', 'pending', 'dead', 'handled'].map((state) => ({ state }) as Item)
  expect(seenAtLeast(tally, items).states).toEqual({
    pending: { count: 2, atLeast: true },
    dead: { count: 1, atLeast: true },
    // Counted to the end: the row has changed since.
    handled: { count: 0, atLeast: false },
  })
})

test('a message that was handled had one run more than failed', () => {
  expect(runsOf(fate({ attempts: 0 }))).toBe(1)
  const failed = { attempt: 2, at: ago(1), error: { name: 'E' } }
  expect(runsOf(fate({ attempts: 0, history: [{ ...failed, attempt: 1 }, failed] }))).toBe(3)
  expect(runsOf(fate({ attempts: 2, state: 'pending', history: [failed] }))).toBe(2)
})
