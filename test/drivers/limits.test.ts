/** How long a statement may go without an answer before its connection counts as dead. */
import { expect, test } from 'vitest'
import { Limits } from '../../src/postgres/limits.js'
import { CLAIM, DRAIN_UNTIL, EXTEND, EXTEND_ONE } from '../../src/postgres/sql/claim.js'
import {
  ADOPT,
  ADOPT_NEW,
  FORGET_EFFECT,
  INTEND,
  RECORD_EFFECT,
  RESUME_RECORDED,
} from '../../src/postgres/sql/effects.js'
import { LOCK_TIMEOUT } from '../../src/postgres/sql/inline.js'
import { EXTEND_LANE, EXTEND_LANES } from '../../src/postgres/sql/lanes.js'
import { MOVE } from '../../src/postgres/sql/link.js'
import { COMPLETED, EXTEND_SHARDS, FINISH_SHARED } from '../../src/postgres/sql/shards.js'
import { ASSIGN, CATCH_UP, RECLAIM, REGISTER_SINKS } from '../../src/postgres/sql/sinks.js'
import { ELECT_READER } from '../../src/postgres/sql/reading.js'
import { HEALTH } from '../../src/postgres/sql/registry.js'
import { PRUNE } from '../../src/postgres/sql/retain.js'
import { BOUND_READS } from '../../src/postgres/sql/session.js'

test.each([
  ['CLAIM', CLAIM],
  ['DRAIN_UNTIL', DRAIN_UNTIL],
  ['HEALTH', HEALTH],
  ['RECORD_EFFECT', RECORD_EFFECT],
  ['COMPLETED', COMPLETED],
  ['ADOPT', ADOPT],
  ['ADOPT_NEW', ADOPT_NEW],
  ['LOCK_TIMEOUT', LOCK_TIMEOUT],
  ['ELECT_READER', ELECT_READER],
  ['BOUND_READS', BOUND_READS],
])('%s has half of the shortest lease in use', (_, statement) => {
  const limits = new Limits()
  limits.optionsOf(CLAIM, { leaseMs: 60_000 })
  limits.optionsOf(CLAIM, { leaseMs: 10_000 })
  expect(limits.optionsOf(statement, null)).toEqual({ limitMs: 5_000 })
})

test.each([
  ['MOVE', MOVE, 10_000],
  ['FINISH_SHARED', FINISH_SHARED, 10_000],
  ['ASSIGN', ASSIGN, 5_000],
  ['CATCH_UP', CATCH_UP, 5_000],
  ['RECLAIM', RECLAIM, 5_000],
  ['INTEND', INTEND, 5_000],
  ['FORGET_EFFECT', FORGET_EFFECT, 5_000],
  ['RESUME_RECORDED', RESUME_RECORDED, 5_000],
  ['REGISTER_SINKS', REGISTER_SINKS, 15_000],
])('%s has half of the shortest lease in use, and time for a lock or a large batch', (_, statement, moreMs) => {
  const limits = new Limits()
  limits.optionsOf(CLAIM, { leaseMs: 10_000 })
  expect(limits.optionsOf(statement, null)).toEqual({ limitMs: 5_000 + moreMs })
})

test.each([
  ['EXTEND', EXTEND],
  ['EXTEND_LANES', EXTEND_LANES],
  ['EXTEND_SHARDS', EXTEND_SHARDS],
])('%s has a third of its lease, on the connection for heartbeats', (_, statement) => {
  expect(new Limits().optionsOf(statement, { leaseMs: 9_000 })).toEqual({ limitMs: 3_000, urgent: true })
})

test.each([
  ['EXTEND_ONE', EXTEND_ONE],
  ['EXTEND_LANE', EXTEND_LANE],
])('%s has a third of its lease beside what it waits for a lock, on the same connection', (_, statement) => {
  expect(new Limits().optionsOf(statement, { leaseMs: 9_000, waitMs: 2_000 })).toEqual({
    limitMs: 5_000,
    urgent: true,
    waits: true,
  })
})

test('retention may take its time', () => {
  expect(new Limits().optionsOf(PRUNE, {}).limitMs).toBeGreaterThan(60_000)
})
