/** The journal when its own statements fail, and nothing brings the database back. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { EffectJournal, JournalFailed } from '../../src/effects/journal.js'
import { poolEnded } from '../../src/postgres/errors.js'
import { FORGET_EFFECT, INTEND } from '../../src/postgres/sql/effects.js'
import { Abort } from '../../src/worker/abort.js'

test('an intent whose answer was lost is not asked back of a pool that has ended', { timeout: 10_000 }, async () => {
  const sent: unknown[] = []
  const run = (statement: string): Promise<never> => {
    sent.push(statement)
    const lost = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
    return Promise.reject(statement === INTEND ? lost : poolEnded())
  }
  const journal = new EffectJournal({ db: { run } } as never, { consumer: 'a', source: 's', id: '1' })
  const wanted = { name: 'pay', run: () => undefined, options: {}, within: undefined }
  const limits = { leaseMs: 30_000, timeoutMs: 30_000 }
  const performed = journal.perform(wanted as never, randomUUID(), limits, new Abort())
  await expect(performed).rejects.toBeInstanceOf(JournalFailed)
  expect(sent).toEqual([INTEND, FORGET_EFFECT])
})
