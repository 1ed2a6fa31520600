/** Words for filters, audit rows and reasons of quarantine. */
import { expect, test } from 'vitest'
import type { AuditRow } from 'oncebox/dashboard/client'
import { auditWords } from '../../ui/src/logic/audit-words.js'
import { filterWords } from '../../ui/src/logic/filter-words.js'
import { adviceFor } from '../../ui/src/logic/reasons.js'
import { oldestOf, reasonCounts, reasonWords } from '../../ui/src/logic/quarantine-words.js'

const part = (qualifier: string, ...values: string[]): { qualifier: string; values: string[] } => ({
  qualifier,
  values,
})

test.each([
  [[], 'all messages'],
  [[part('consumer', 'charge-card'), part('state', 'dead'), part('fingerprint', '9f3a61c2')], 'dead messages of charge-card that failed like 9f3a61c2'],
  [[part('blocking', 'true'), part('consumer', 'ship-order')], 'blocking messages of ship-order'],
  [[part('state', 'dead', 'quarantined'), part('type', 'a', 'b', 'c')], 'dead or quarantined messages of type a, b or c'],
  [[part('data.orderId', 'A-1'), part('after', '14:00')], 'messages whose data.orderId is A-1 received after 14:00'],
  [[part('box', 'outbox'), part('consumer', 'kafka')], 'events for kafka'],
  [[part('source', '')], 'messages without a source'],
  [[part('reason', 'conflict'), part('error', 'no answer')], 'messages refused as conflict whose error has “no answer”'],
])('a filter in words: %o', (parts, words) => {
  expect(filterWords(parts)).toBe(words)
}) // prettier-ignore

test('advice about a message without a source asks its producer', () => {
  const all = ['conflict', 'invalid', 'undecodable', 'no-id', 'too-large', 'not-allowed'].map(
    (reason) => adviceFor({ reason, source: '', consumer: 'c' }).text,
  )
  expect(all.slice(0, -1).every((text) => /\bits producer\b/.test(text))).toBe(true)
  expect(all.at(-1)).toMatch(/find out who sends without a source\.$/)
})

const row = (action: string, detail: AuditRow['detail'], more: Partial<AuditRow> = {}): AuditRow => ({
  at: '2026-11-15T14:33:04.000Z',
  action,
  by: 'ines@acme.example',
  detail,
  ...more,
})

test('a bulk retry says how many of how many, which, why, and what came of it', () => {
  const detail = { filter: 'state:dead', count: 612, of: 1_204, reason: 'it is back', state: 'cancelled', job: 'j' }
  expect(auditWords(row('retry', detail))).toEqual({
    who: 'ines@acme.example',
    action: 'retry',
    messages: '612 of 1\u202f204',
    filter: 'state:dead',
    why: 'it is back',
    outcome: 'Stopped',
  })
  expect(auditWords(row('retry-started', { ...detail, count: 0, state: 'running' }))).toMatchObject({
    action: 'retry',
    messages: '1\u202f204',
    outcome: 'Started',
  })
})

test('what has no number and no query says what it names', () => {
  expect(auditWords(row('pause', { consumer: 'settle-invoice', reason: 'VAT' }))).toMatchObject({
    messages: '–',
    filter: 'consumer:settle-invoice',
    outcome: 'Done',
  })
  const answered = { consumer: 'pay', source: 'shop', id: 'a b', effect: 'transfer', happened: true }
  expect(auditWords(row('answer', answered)).filter).toBe(
    'consumer:pay source:shop id:"a b" effect:transfer happened:true',
  )
  expect(auditWords(row('discard', { filter: { id: ['x', 'y'] }, count: 2 })).filter).toBe('id:x,y')
})

test('the criteria of a filter are told, also those named like what has a column of its own', () => {
  const filterOf = (filter: unknown): string => auditWords(row('retry', { filter, count: 2, limit: 5 })).filter
  expect(filterOf({ reason: 'unrouted' })).toBe('reason:unrouted')
  expect(filterOf({ consumer: 'loyalty', state: ['handled', 'dead'] })).toBe('consumer:loyalty state:handled,dead')
})

test('who is not known is named by the login of the database', () => {
  expect(auditWords(row('prune', { count: 3 }, { by: undefined, login: 'app' }))).toMatchObject({
    who: 'app',
    whoHint: 'the login of the database',
  })
})

test('reasons that only a person can settle come first, and those without any stay', () => {
  const quarantine = {
    reasons: [
      { reason: 'invalid', consumer: 'a', count: 3, atLeast: false, oldestAt: '2026-11-15T10:00:00.000Z' },
      { reason: 'invalid', consumer: 'b', count: 4, atLeast: true, oldestAt: '2026-11-15T09:00:00.000Z' },
      { reason: 'odd', consumer: '', count: 1, atLeast: false },
    ],
  }
  const counts = reasonCounts(quarantine)
  expect(counts.map(({ reason }) => reason).slice(0, 2)).toEqual(['conflict', 'effect-unknown'])
  expect(counts.find(({ reason }) => reason === 'invalid')).toEqual({ reason: 'invalid', count: 7, atLeast: true })
  expect(counts.at(-1)).toMatchObject({ reason: 'odd', count: 1 })
  expect(oldestOf(quarantine)).toBe('2026-11-15T09:00:00.000Z')
  expect(reasonWords('odd').many).toBe('odd')
})
