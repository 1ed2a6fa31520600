/** The bulk dialog: its states, and what it says. */
import { expect, test } from 'vitest'
import type { Counted, Job } from 'oncebox/dashboard/client'
import {
  amountsOf, chosen, counted, leftMs, notStarted, orderOf, pacesOf, progressOf, starting, type BulkState,
} from '../../ui/src/logic/bulk.js' // prettier-ignore
import {
  afterWords, auditLine, changedWords, consequences, countedWords, goOnWords, jobTitle, meterWords, pulseWords, question, timeWords, toastWords,
} from '../../ui/src/logic/bulk-words.js' // prettier-ignore

const LIMITS = { rateAbove: 1_000, mostPerSecond: 10_000 }
const answer = (count: number, states: Counted['states'] = { dead: count }): Counted => ({
  count,
  states,
  at: '2026-11-15T14:32:00.000Z',
  confirmation: `sealed ${count}`,
  needsRate: count > 1_000,
})
const job = (more: Partial<Job> = {}): Job => ({
  id: 'j',
  box: 'payments',
  verb: 'retry',
  state: 'running',
  total: 1_204,
  done: 612,
  skipped: 0,
  handled: 561,
  failedAgain: 22,
  perSecond: 50,
  by: 'ines@acme.example',
  startedAt: '2026-11-15T14:32:00.000Z',
  ...more,
})
const confirming = (count: number): Extract<BulkState, { step: 'confirm' | 'starting' }> => {
  const state = counted(answer(count))
  if (state.step !== 'confirm') throw new Error(state.step)
  return state
}
const plain = (text: string): string => text.replaceAll('\u202f', ' ')

test('what was counted is confirmed, all of it and at a bearable rate unless the reader chooses otherwise', () => {
  const { choice, counted: of } = confirming(29)
  expect(choice).toEqual({ amount: 'all', pace: 50, reason: '' })
  expect(orderOf(of, choice)).toEqual({ confirmation: 'sealed 29', perSecond: 50 })
  expect(orderOf(of, { amount: 10, pace: 'unlimited', reason: ' it is back ' })).toEqual({
    confirmation: 'sealed 29',
    limit: 10,
    reason: 'it is back',
  })
  expect(counted(answer(0))).toEqual({ step: 'nothing' })
})

test('fewer than all are offered, and no rate that the server would refuse', () => {
  expect([amountsOf(1), amountsOf(8), amountsOf(100), amountsOf(1_204)]).toEqual([
    ['all'],
    [1, 'all'],
    [1, 10, 'all'],
    [1, 10, 100, 'all'],
  ])
  expect(pacesOf(1_000, LIMITS).at(-1)).toBe('unlimited')
  expect(pacesOf(1_001, LIMITS).at(-1)).toBe(10_000)
})

test('a choice that more messages do not allow gives way', () => {
  let state: BulkState = confirming(1_204)
  state = chosen(state, { amount: 10 }, LIMITS)
  state = chosen(state, { pace: 'unlimited' }, LIMITS)
  expect(state).toMatchObject({ choice: { amount: 10, pace: 'unlimited' } })
  expect(chosen(state, { amount: 'all' }, LIMITS)).toMatchObject({ choice: { amount: 'all', pace: 10_000 } })
})

test('a count that has changed is shown, and has to be confirmed again', () => {
  const chosenOnes = chosen(confirming(120), { amount: 100, reason: 'why' }, LIMITS)
  const started = starting(chosenOnes)
  expect(started.step).toBe('starting')
  // Nothing is chosen, or started again, while it starts.
  expect(chosen(started, { amount: 1 }, LIMITS)).toBe(started)
  expect(starting(started)).toBe(started)
  const again = notStarted(started, { code: 'COUNT_CHANGED', message: 'no', counted: answer(40) })
  expect(again).toEqual({
    step: 'confirm',
    counted: answer(40),
    choice: { amount: 'all', pace: 50, reason: 'why' },
    before: 120,
  })
  expect(notStarted(started, { code: 'COUNT_CHANGED', message: 'no', counted: answer(0) })).toEqual({ step: 'nothing' })
  expect(notStarted(started, { code: 'NOTHING_MATCHES', message: 'no' })).toEqual({ step: 'nothing' })
  expect(notStarted(started, { code: 'BUSY', message: '4 run' })).toMatchObject({ step: 'confirm', message: '4 run' })
  expect(plain(changedWords(1_204, 1_210))).toBe(
    'There were 1 204 when you looked, and there are 1 210 now. Nothing was changed yet.',
  )
})

test.each([
  [job(), { handled: 561, failedAgain: 22, changed: 29, skipped: 0, untouched: 592 }],
  [job({ done: 0, handled: 0, failedAgain: 0 }), { handled: 0, failedAgain: 0, changed: 0, skipped: 0, untouched: 1_204 }],
  [job({ done: 1_000, skipped: 204, handled: 1_000, failedAgain: 0 }), { handled: 1_000, failedAgain: 0, changed: 0, skipped: 204, untouched: 0 }],
  // More seen than done: a job that another process carried on.
  [job({ done: 10, handled: 9, failedAgain: 9 }), { handled: 1, failedAgain: 9, changed: 0, skipped: 0, untouched: 1_194 }],
  [job({ verb: 'discard', handled: 0, failedAgain: 0 }), { handled: 0, failedAgain: 0, changed: 612, skipped: 0, untouched: 592 }],
])('what has become of all messages of a job adds up', (given, expected) => {
  const progress = progressOf(given)
  expect(progress).toMatchObject(expected)
  const { total, handled, failedAgain, changed, skipped, untouched } = progress
  expect(handled + failedAgain + changed + skipped + untouched).toBe(total)
}) // prettier-ignore

test('the question names the exact count, and the state if all have one', () => {
  expect(plain(question('retry', answer(1_204)))).toBe('Retry 1 204 dead messages?')
  expect(question('discard', answer(1))).toBe('Discard 1 dead message?')
  expect(question('retry', answer(8), 'in front')).toBe('Retry 8 messages in front?')
  expect(question('retry', answer(8, { dead: 7, quarantined: 1 }))).toBe('Retry 8 messages?')
})

test('it says when it was counted, how long it takes, and what comes of it', () => {
  expect(countedWords('retry', 2_400)).toBe(
    'Counted 2 s ago, exact. Messages that die after the start are not included.',
  )
  expect(timeWords(1_204, 50)).toBe('About 24 s. The oldest first, and in order within each key.')
  expect(timeWords(8, 50)).toMatch(/^At once\. /)
  expect(timeWords(90_000, 'unlimited')).toMatch(/^As fast as it goes\. /)
  expect(consequences('discard', answer(29))).toEqual([
    'They will not run. You can retry them until retention deletes them.',
  ])
  expect(consequences('retry', answer(2, { handled: 2 }))[0]).toBe(
    '2 messages were handled: their handlers run a second time.',
  )
})

test('a job that runs says how fast, how long, and who', () => {
  expect(leftMs(job())).toBe(11_840)
  expect(pulseWords(job())).toBe('50/s · about 12 s left · started by ines@acme.example')
  expect(plain(meterWords(job()))).toBe('612 of 1 204: 561 handled, 22 failed again, 29 to run, 592 not touched')
  expect(plain(toastWords(job()).text)).toBe('Retrying 612 of 1 204')
  expect(toastWords(job()).detail).toBe('50/s · about 12 s left · 22 failed again')
})

test.each<[Partial<Job>, string, RegExp]>([
  [{ state: 'cancelled' }, 'Stopped at 612 of 1 204', /^What was retried stays retried; the rest is as it was\.$/],
  [{ state: 'stopped' }, 'Stopped by itself at 612 of 1 204', /^More than half of the last 50 failed again/],
  [{ state: 'failed', problem: 'the database is away' }, 'Broke off at 612 of 1 204', /^the database is away\. What/],
  [{ state: 'done', done: 1_200, skipped: 4 }, 'Retried 1 200 messages', /4 messages were left alone/],
  [{ state: 'done', verb: 'discard', done: 1, total: 1 }, 'Discarded 1 message', /^They will not run\.$/],
])('an ended job says what happened and what is left: %o', (more, title, after) => {
  expect(plain(jobTitle(job(more)))).toBe(title)
  expect(plain(afterWords(job(more)))).toMatch(after)
})

test('going on says how many that are: what failed again matches as well', () => {
  expect(goOnWords(job())).toBe('Retry 614, with those that failed again…')
  expect(goOnWords(job({ failedAgain: 0 }))).toBe('Retry the other 592…')
  expect(goOnWords(job({ verb: 'discard', handled: 0, failedAgain: 0 }))).toBe('Discard the other 592…')
})

test('the line of the audit has the count and the reason', () => {
  expect(plain(auditLine(job({ reason: 'gateway is back' })))).toBe('retry · 612 of 1 204 · gateway is back')
})
