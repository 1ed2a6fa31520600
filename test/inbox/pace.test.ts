/** How much goes into one transaction, judged by a clock that the test moves. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Pace } from '../../src/worker/pace.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

/** Runs a group of so many messages, each for as long as `msOf` says. Answers how many ran before it had to commit. */
function runGroup(pace: Pace, count: number, msOf: (at: number) => number): { ran: number; elapsedMs: number } {
  const clock = pace.clock()
  let ran = 0
  while (ran < count && (ran === 0 || clock.hasTime('note', count - ran))) {
    vi.advanceTimersByTime(msOf(ran))
    clock.ran('note')
    ran += 1
  }
  return { ran, elapsedMs: clock.elapsedMs }
}

function createPace(): Pace {
  return new Pace({ messages: 100, ms: 20 }, 4)
}

test('a group commits when its time is up', () => {
  expect(runGroup(createPace(), 100, () => 1).ran).toBe(20)
})

test('what is left runs in the same group if it takes no longer than the group already may', () => {
  expect(runGroup(createPace(), 40, () => 1).ran).toBe(40)
})

test('handlers that take longer than group.ms get a group of their own', () => {
  expect(runGroup(createPace(), 2, () => 21).ran).toBe(1)
})

test('a machine that is slow for a moment does not cut a group short', () => {
  const pace = createPace()
  runGroup(pace, 20, () => 0.2)
  expect(runGroup(pace, 100, (at) => (at === 10 ? 50 : 0.2)).ran).toBe(100)
})

test('what was marked runs in the same group, though it takes longer than was expected', () => {
  const pace = createPace()
  pace.took('note', 0.5)
  const clock = pace.clock(4)
  for (let left = 99; left > 0; left--) {
    vi.advanceTimersByTime(0.7)
    clock.ran('note')
    expect(clock.hasTime('note', left)).toBe(true)
  }
})

test('nothing starts once a group has taken four times its time', () => {
  const pace = createPace()
  runGroup(pace, 20, () => 0.2)
  expect(runGroup(pace, 100, (at) => (at === 10 ? 81 : 0.2)).ran).toBe(11)
})

test('on arrival as many are marked as there should be time for, in groups of one size', () => {
  const pace = createPace()
  const types = (count: number): string[] => Array<string>(count).fill('note')
  expect(pace.share(types(100))).toBe(100)
  expect(pace.share(types(101))).toBe(51)
  // Of a millisecond each, 60 take three times a group's 20 ms.
  pace.took('note', 1)
  expect(pace.share(types(100))).toBe(50)
  expect(pace.share(types(60))).toBe(60)
  expect(pace.share(types(7))).toBe(7)
  pace.took('slow', 200)
  expect(pace.share(['slow', 'slow'])).toBe(1)
  expect(pace.share(['note', 'note', 'slow'])).toBe(2)
})

test.for([
  [1, 16],
  [3, 15],
  [10, 10],
  [100, 100],
])('with groups of %i and a backlog of quick messages, %i are claimed at once', ([messages, most]) => {
  const pace = new Pace({ messages: messages!, ms: 20 }, 4)
  pace.took('note', 0.1)
  for (let claim = 0; claim < 10; claim++) pace.claimed(pace.claimSize, pace.claimSize)
  expect(pace.claimSize).toBe(most)
})

/** Runs a group side by side: as many as fit, and all of them end after so long. Answers how many ran. */
function runTogether(pace: Pace, types: readonly string[], msOf: (type: string) => number): number {
  const clock = pace.clock()
  const fitting = clock.fitting(types.map((type) => ({ type })))
  vi.advanceTimersByTime(Math.max(...fitting.map(({ type }) => msOf(type))))
  clock.ranTogether(fitting.map(({ type }) => [type, msOf(type)]))
  return fitting.length
}

test('side by side, as many start as should end within the time of a group', () => {
  const pace = createPace()
  const many = Array.from({ length: 100 }, () => 'note')
  expect(runTogether(pace, many, () => 40)).toBe(100)
  // 0.4 ms each, by shares.
  expect(runTogether(pace, many, () => 40)).toBe(100)
  const slow = createPace()
  runTogether(slow, ['note', 'note'], () => 30)
  expect(runTogether(slow, many, () => 30)).toBe(1)
})

test('side by side, a slow type takes no time from the quick ones beside it', () => {
  const pace = createPace()
  const quick = Array.from({ length: 50 }, () => 'quick')
  runTogether(pace, [...quick, 'slow'], (type) => (type === 'slow' ? 1_000 : 1))
  expect(runTogether(pace, quick, () => 1)).toBeGreaterThan(15)
  expect(runTogether(pace, ['quick', 'slow'], () => 1)).toBe(1)
})

/** The sizes of the next groups. */
const sizes = (pace: Pace, count: number): number[] => Array.from({ length: count }, () => pace.nextSize())

test.for([2, 100, 300])('groups of %i that fail come down to one, and grow again once two go through', (messages) => {
  const pace = new Pace({ messages, ms: 20 }, 1)
  for (let failed = 0; failed < 20; failed++) pace.abandoned()
  // Nobody would hear of groups that succeed if nobody tried one.
  expect(sizes(pace, 100).filter((size) => size > 1)).toEqual([2, 2])
  for (let collided = 0; collided < 20; collided++) pace.collided()
  expect(sizes(pace, 100).filter((size) => size > 1)).toEqual([2, 2])
  for (let went = 0; went < 20; went++) pace.succeeded()
  expect(pace.nextSize()).toBe(messages)
})

test('on arrival two are tried as well where groups have come down to one', () => {
  const pace = createPace()
  for (let failed = 0; failed < 20; failed++) pace.abandoned()
  const shares = Array.from({ length: 100 }, () => pace.share(['note', 'note', 'note', 'note']))
  expect(shares.filter((share) => share === 2)).toHaveLength(2)
  expect(shares.filter((share) => share === 1)).toHaveLength(98)
})

test('where groups are turned off there is none', () => {
  const pace = new Pace({ messages: 1, ms: 20 }, 1)
  pace.abandoned()
  expect(new Set(sizes(pace, 100))).toEqual(new Set([1]))
})

test.for(['alone', 'apart'] as const)('of the types that run %s it remembers the latest thousand', (how) => {
  const pace = createPace()
  for (let n = 0; n < 5_000; n++) pace[how].add(`type ${n}`)
  expect(pace[how].size).toBe(1_000)
  expect(pace[how].has('type 4999')).toBe(true)
})
