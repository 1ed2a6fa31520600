/** The timeline and the conversation of a message. */
import { expect, test } from 'vitest'
import { conversationNote, flowOf, keyOf } from '../../ui/src/logic/conversation.js'
import { momentsOf } from '../../ui/src/logic/timeline.js'
import { fate } from './fates.js'

const at = (second: number): string => new Date(Date.parse('2026-11-15T14:00:00Z') + second * 1_000).toISOString()
const NOW = Date.parse(at(100))

test('what was sent without a source was sent, by nobody that is named', () => {
  const timeline = [{ at: at(0), what: 'sent' as const }]
  expect(momentsOf(fate({ source: '', timeline }))).toEqual([{ mark: 'event', title: 'Sent', at: at(0) }])
})

test('attempts that failed stand together, and the last one is what it died of', () => {
  const history = [1, 2, 3, 4].map((attempt) => ({ attempt, at: at(attempt * attempt), error: { name: 'Timeout' } }))
  const timeline = [
    { at: at(0), what: 'sent' as const },
    { at: at(0), what: 'received' as const },
    ...history.map(({ attempt, at: when }) => ({ at: when, what: 'failed' as const, attempt })),
  ]
  const moments = momentsOf(fate({ state: 'dead', history, timeline }))
  expect(moments.map(({ mark, title, small }) => [mark, title, small])).toEqual([
    ['dead', 'Dead', 'Timeout'],
    ['pending', '3 attempts failed', 'Timeout, 3.0 s to 5.0 s apart'],
    ['pending', 'Received', 'for update-balance'],
    ['event', 'Sent', 'by shop'],
  ])
})

test('what waits has its next try on top, and effects are events', () => {
  const timeline = [
    { at: at(0), what: 'received' as const },
    { at: at(1), what: 'effect-called' as const, effect: 'charge' },
    { at: at(2), what: 'failed' as const, attempt: 1 },
    { at: at(9), what: 'due' as const },
  ]
  const history = [{ attempt: 1, at: at(2), error: { name: 'Timeout' }, ms: 1_200, worker: 'host:1' }]
  expect(momentsOf(fate({ state: 'pending', history, timeline })).map(({ title, small }) => [title, small])).toEqual([
    ['Next try', undefined],
    ['Attempt 1 failed', 'Timeout, after 1.2 s, host:1'],
    ['Effect called: charge', 'its intent was recorded before'],
    ['Received', 'for update-balance'],
  ])
})

const link = (id: string, second: number, cause?: string) => ({
  box: 'other', consumer: 'c', source: 's', id, type: `type.${id}`, state: 'handled' as const, receivedAt: at(second),
  ...(cause !== undefined && { cause }),
}) // prettier-ignore

test('a conversation is a tree on one axis of time', () => {
  const here = [
    fate({ receivedAt: at(10), handledAt: at(20) }),
    fate({ receivedAt: at(10), consumer: 'count', state: 'pending' }),
  ]
  const conversation = {
    cause: link('root', 0),
    caused: [link('x', 50, 'pay-1'), link('y', 60, 'pay-1')],
    complete: true,
  }
  const more = new Map([[keyOf(link('x', 50)), { caused: [link('z', 70, 'x')], complete: true }]])
  const { rows, spanMs } = flowOf({ fates: here, box: 'shop', conversation, more }, here[0]!, NOW)
  expect(spanMs).toBe(100_000)
  expect(
    rows.map(({ link: one, elbows, isHere, from, width, words }) => [one.id, elbows, isHere, from, width, words]),
  ).toEqual([
    ['root', [], false, 0, 1, '0 s'],
    ['pay-1', [false], false, 10, 90, ''],
    ['pay-1', [false, true], true, 10, 10, '10 s'],
    ['pay-1', [false, true], false, 10, 90, 'waits'],
    ['x', [false, true], false, 50, 1, '+50 s'],
    ['z', [false, true, false], false, 70, 1, '+1 min 10 s'],
    ['y', [false, false], false, 60, 1, '+1 min'],
  ])
  expect(rows.map(({ canOpen }) => canOpen)).toEqual([false, false, false, false, false, true, true])
  expect(rows.map(({ recipients }) => recipients)).toEqual([1, 2, 1, 1, 1, 1, 1])
})

test('which consumer sent an event is not on record: it hangs under the message, not under a consumer', () => {
  const here = [fate({ consumer: 'charge' }), fate({ consumer: 'mail' })]
  const twice = [link('x', 50, 'pay-1'), { ...link('x', 50, 'pay-1'), consumer: 'd' }]
  const more = new Map([[keyOf(link('x', 50)), { caused: [link('z', 70, 'x')], complete: true }]])
  const flow = (known: typeof more) =>
    flowOf({ fates: here, box: 'shop', conversation: { caused: twice, complete: true }, more: known }, here[0]!, NOW)
      .rows
  const shown = (known: typeof more) =>
    flow(known).map(({ link: one, elbows, recipients }) => [
      one.id,
      recipients === 1 ? one.consumer : '',
      elbows.length,
    ])
  expect(shown(new Map())).toEqual([
    ['pay-1', '', 0],
    ['pay-1', 'charge', 1],
    ['pay-1', 'mail', 1],
    ['x', '', 1],
    ['x', 'c', 2],
    ['x', 'd', 2],
  ])
  expect(flow(new Map()).map(({ canOpen }) => canOpen)).toEqual([false, false, false, true, false, false])
  expect(shown(more).at(-1)).toEqual(['z', 'c', 2])
  expect(flow(more).some(({ canOpen, link: one }) => canOpen && one.id === 'x')).toBe(false)
  // One consumer alone has sent what its message caused.
  const alone = flowOf({ fates: [here[0]!], box: 'shop', conversation: { caused: [link('x', 50, 'pay-1')], complete: true }, more: new Map() }, here[0]!, NOW) // prettier-ignore
  expect(alone.rows.map(({ link: one, elbows }) => [one.id, elbows.length])).toEqual([['pay-1', 0], ['x', 1]]) // prettier-ignore
})

test('what is said below a conversation is true of the rows above it', () => {
  const cheap = 'Only as far was looked as is cheap: there may be more.'
  expect(conversationNote({ caused: [], complete: true })).toMatch(/^No other message .+ caused it/)
  expect(conversationNote({ caused: [], complete: false })).toBe(`No other message was found. ${cheap}`)
  expect(conversationNote({ caused: [link('x', 5)], complete: false })).toBe(cheap)
  expect(conversationNote({ cause: link('x', 5), caused: [], complete: false })).toBe(cheap)
  expect(conversationNote({ caused: [link('x', 5)], complete: true })).toBeUndefined()
})

test('messages that cause each other in a circle are shown once', () => {
  const here = [fate({ id: 'a', source: 's' })]
  const more = new Map([[keyOf(link('b', 2)), { caused: [link('b', 2, 'b')], complete: true }]])
  const conversation = { caused: [link('b', 2, 'a')], complete: true }
  expect(
    flowOf({ fates: here, box: 'other', conversation, more }, here[0]!, NOW).rows.map(({ link: one }) => one.id),
  ).toEqual(['a', 'b', 'b'])
})
