/** Fingerprints: a hash of an error's words is for who may see the words. Others get an alias that tells nothing, and works the same. */
import { expect, test } from 'vitest'
import type { Audit, Counted, Failures, Jobs, MessageAnswer, Messages, Tally } from 'oncebox/dashboard/client'
import { fingerprintsFor } from '../../src/dashboard/fingerprints.js'
import { fingerprintOf } from '../../src/fingerprint.js'
import { Reject } from 'oncebox'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { ask, open, type Who } from './fixture.js'

const server = useServer('dashboard_fingerprints')
const at = { box: 'shop' } as const
const WORDS = 'the card of Kowalski was declined'
/** What somebody who guesses the words can work out. */
const GUESSED = fingerprintOf({ name: 'Reject', code: null, message: WORDS })

async function filled(): Promise<Bench> {
  const box = await server.open({ source: 'shop' })
  box.consumer('pay', { p: () => Promise.reject(new Reject(WORDS)), q: () => Promise.reject(new Reject('other')) })
  await box.receive(['1', '2'].map((id) => ({ id, type: 'p', source: 's', body: '{}' })))
  await box.receive([{ id: '3', type: 'q', source: 's', body: '{}' }])
  await box.drain()
  return box
}

type Ops = ReturnType<typeof open>

async function groupOf(ops: Ops, who: Who): Promise<Failures['groups'][number]> {
  const { answer } = await ask(ops, 'failures', at, { who })
  return (answer as Failures).groups.find(({ count }) => count === 2)!
}

async function found(ops: Ops, q: string, who: Who): Promise<unknown> {
  const { answer, status } = await ask(ops, 'messages', { ...at, q }, { who })
  return status === 200 ? (answer as Messages).items.map(({ id }) => id).sort() : status
}

/** Retries by a query, and waits for the end. */
async function retry(ops: Ops, q: string): Promise<void> {
  const { answer } = await ask(ops, 'countRetry', { ...at, q })
  await ask(ops, 'retry', { ...at, confirmation: (answer as Counted).confirmation })
  const jobs = async () => ((await ask(ops, 'jobs', at)).answer as Jobs).jobs
  await waitUntil(async () => (await jobs()).every(({ state }) => state !== 'running'))
}

test('who may see the words of errors sees the fingerprint, as the admin and the command line take it', async () => {
  await using box = await filled()
  const ops = open({ shop: box })
  expect((await groupOf(ops, 'looker')).fingerprint).toBe(GUESSED)
  expect(await found(ops, `fingerprint:${GUESSED}`, 'looker')).toEqual(['1', '2'])
})

test.for<[who: Who, how: string]>([
  ['reader', 'without the right to bodies'],
  ['all', 'where redact takes values out of errors'],
])('%s %s, a guess of the words can neither be checked nor searched for', async ([who]) => {
  await using box = await filled()
  const ops = open({ shop: box }, who === 'all' ? { redact: (message) => message } : {})
  const { fingerprint, query } = await groupOf(ops, who)
  expect(fingerprint).toMatch(/^x[0-9a-f]{12}$/)
  await retry(ops, `state:dead fingerprint:"${who === 'all' ? fingerprint : GUESSED}"`)
  await box.drain()
  await box.admin.retry({ fingerprint: [GUESSED], consumer: 'pay' }, { dryRun: false })
  await box.drain()
  for (const route of ['failures', 'jobs', 'audit'] as const) {
    const { text } = await ask(ops, route, at, { who })
    expect([route, text.includes(GUESSED), text.includes(fingerprint)]).toEqual([route, false, true])
  }
  const { answer, text } = await ask(ops, 'message', { ...at, id: '1' }, { who })
  expect((answer as MessageAnswer).fates[0]!.fingerprint).toBe(fingerprint)
  expect(text).not.toContain(GUESSED)
  expect(await found(ops, `fingerprint:${GUESSED}`, who)).toBe(400)
  expect(await found(ops, query, who)).toEqual(['1', '2'])
  const { states } = (await ask(ops, 'tally', { ...at, q: query }, { who })).answer as Tally
  expect(states).toMatchObject({ dead: { count: 2 } })
})

test('an alias is the same in every process, and of this box alone', async () => {
  await using box = await filled()
  await using other = await filled()
  const [row] = (await box.sql(`select value from ob.secret where name = 'fingerprints'`)) as [{ value: string }]
  const { fingerprint } = await groupOf(open({ shop: box }), 'reader')
  expect(fingerprint).toBe(fingerprintsFor(row.value, false).show(GUESSED))
  expect((await groupOf(open({ shop: other }), 'reader')).fingerprint).not.toBe(fingerprint)
})

test('what a reader searched for can be handed to who may see more, and retried by it', async () => {
  await using box = await filled()
  const ops = open({ shop: box })
  const { query } = await groupOf(ops, 'reader')
  expect(await found(ops, query, 'all')).toEqual(['1', '2'])
  await retry(ops, query)
  expect(((await ask(ops, 'jobs', at)).answer as Jobs).jobs).toMatchObject([{ total: 2, done: 2 }])
  const { records } = (await ask(ops, 'audit', at, { who: 'reader' })).answer as Audit
  expect(records[0]!.detail).toMatchObject({ filter: query })
})

test('where the secret cannot be read, aliases are of this process', async () => {
  await using box = await filled()
  await box.sql('drop table ob.secret')
  const ops = open({ shop: box })
  const { fingerprint, query } = await groupOf(ops, 'reader')
  expect(fingerprint).toMatch(/^x/)
  expect(await found(ops, query, 'reader')).toEqual(['1', '2'])
})

test('that the secret may not be read is asked once for all who look, and not again with every request', async () => {
  await using box = await filled()
  await box.sql('drop table ob.secret')
  // What a sequence has counted stays, though the statement fails.
  await box.sql('create sequence ob.test_asked')
  await box.sql(`create function ob.test_refuse() returns table (name text, value text) language plpgsql as $$
    begin perform nextval('ob.test_asked'); raise insufficient_privilege; end $$`)
  await box.sql('create view ob.secret as select * from ob.test_refuse()')
  const ops = open({ shop: box })
  const groups = await Promise.all(Array.from({ length: 10 }, () => groupOf(ops, 'reader')))
  const later = await groupOf(ops, 'reader')
  expect(new Set([...groups, later].map(({ fingerprint }) => fingerprint)).size).toBe(1)
  expect(await box.sql('select last_value::int asked, is_called from ob.test_asked')).toEqual([
    { asked: 1, is_called: true },
  ])
  await ops.close()
})

test('an alias leads to its fingerprint and to no other', () => {
  const { show, read } = fingerprintsFor('key', false)
  const prints = Array.from({ length: 2_000 }, (_, n) => fingerprintOf({ name: 'E', code: null, message: String.fromCharCode(97 + (n % 26)).repeat(n) })) // prettier-ignore
  const aliases = prints.map(show)
  expect(new Set(aliases).size).toBe(new Set(prints).size)
  expect(aliases.map(read)).toEqual(prints)
})
