/** How long a statement may go without an answer before its connection counts as dead. */
import { expect, test } from 'vitest'
import { Limits } from '../../src/postgres/limits.js'
import { CLAIM, DRAIN_UNTIL, EXTEND, EXTEND_ONE } from '../../src/postgres/sql/claim.js'
import { RECORD_EFFECT } from '../../src/postgres/sql/effects.js'
import { LOCK_TIMEOUT } from '../../src/postgres/sql/inline.js'
import { EXTEND_LANE, EXTEND_LANES } from '../../src/postgres/sql/lanes.js'
import { EXTEND_SHARDS } from '../../src/postgres/sql/shards.js'
import { ELECT_READER } from '../../src/postgres/sql/reading.js'
import { HEALTH } from '../../src/postgres/sql/registry.js'
import { PRUNE } from '../../src/postgres/sql/retain.js'
import { BOUND_READS } from '../../src/postgres/sql/session.js'

test.each([
  ['CLAIM', CLAIM],
  ['DRAIN_UNTIL', DRAIN_UNTIL],
  ['HEALTH', HEALTH],
  ['RECORD_EFFECT', RECORD_EFFECT],
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
