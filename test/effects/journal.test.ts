/** The journal when its own statements fail, or meet others. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { EffectJournal, JournalFailed } from '../../src/effects/journal.js'
import { poolEnded } from '../../src/postgres/errors.js'
import { bindDatabase } from '../../src/postgres/database.js'
import { FORGET_EFFECT, INTEND } from '../../src/postgres/sql/effects.js'
import { Abort } from '../../src/worker/abort.js'
import { fromPg } from 'oncebox/pg'
import { note, useServer } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('journal')

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
  const performed = journal.perform(wanted, randomUUID(), limits, new Abort())
  await expect(performed).rejects.toBeInstanceOf(JournalFailed)
  expect(sent).toEqual([INTEND, FORGET_EFFECT])
})

test('an intent that waits behind a receiver of its lane is taken back once it is there', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined }, { order: 'key' })
  await box.receive(note('1', { key: 'k' }))
  const token = randomUUID()
  await box.sql(`update ob.lane set token = $1, due_at = ob.now() + interval '1 hour'`, [token])
  const [work] = await box.sql('select consumer, source, id from ob.work')
  const intent = { ...(work as { consumer: string; source: string; id: string }), name: 'pay', call: randomUUID() }
  const db = bindDatabase(fromPg(server.pool), box.schema)
  const waiting = async (): Promise<unknown> => {
    const blocked = `select count(*)::int n from pg_stat_activity
      where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`
    return (await box.sql(blocked))[0]!['n']
  }
  const receiver = await server.pool.connect()
  try {
    await receiver.query(`begin; select from "${box.schema}".lane for update`)
    const intended = db.run(INTEND, { ...intent, token, leaseMs: 30_000, park: false })
    await waitUntil(async () => (await waiting()) === 1, { what: 'the intent to wait' })
    let isOver = false
    const forget = () => db.run(FORGET_EFFECT, { ...intent, called: null })
    // As the journal does: what the first had to wait for it could not see.
    const forgotten = forget()
      .then(({ length }) => (length === 0 ? forget() : []))
      .finally(() => (isOver = true))
    await waitUntil(async () => isOver || (await waiting()) === 2, { what: 'the other to wait behind it' })
    await receiver.query('commit')
    expect(await intended).toHaveLength(1)
    await forgotten
  } finally {
    receiver.release()
  }
  expect(await box.sql('select * from ob.effect')).toEqual([])
})
