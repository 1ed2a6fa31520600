/** What cannot be stored yet holds back what comes behind it in its key, within one call of `receive`. */
import { expect, test } from 'vitest'
import type { Outcome } from 'oncebox'
import { type Bench, note, useServer } from './fixture.js'

const server = useServer('held_back')

async function open(): Promise<Bench> {
  const box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { order: 'key' })
  await box.receive(note('k1', { key: 'k' }))
  return box
}

/** As long as it is held, a copy of the message is being stored by somebody else. */
async function holdCopy(box: Bench, id: string): Promise<() => Promise<void>> {
  const client = await server.pool.connect()
  await client.query('begin')
  await client.query(
    `insert into ${box.schema}.message (consumer, source, id, type, body)
     select consumer, source, $1, type, body from ${box.schema}.message where id = 'k1'`,
    [id],
  )
  return async () => {
    await client.query('rollback')
    client.release()
  }
}

const statuses = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ id, status }) => `${id} ${status}`)

test('a message behind a busy one of its key is busy too, and the others are stored', async () => {
  await using box = await open()
  const messages = [note('k2', { key: 'k' }), note('k3', { key: 'k' }), note('l1', { key: 'l' }), note('none')]
  const letGo = await holdCopy(box, 'k2')
  try {
    expect(statuses(await box.receive(messages))).toEqual(['k2 busy', 'k3 busy', 'l1 stored', 'none stored'])
  } finally {
    await letGo()
  }
  expect(statuses(await box.receive(messages))).toEqual(['k2 stored', 'k3 stored', 'l1 duplicate', 'none duplicate'])
  await box.drain()
  expect((await box.ids()).filter((id) => id.startsWith('k'))).toEqual(['k1', 'k2', 'k3'])
})

test('a call that is stored in parts holds back over their borders', async () => {
  await using box = await open()
  // Together they are larger than what one statement takes.
  const filling = Array.from({ length: 10 }, (_, n) => note(`filling ${n}`, { data: 'x'.repeat(1_000_000) }))
  const messages = [note('k2', { key: 'k' }), ...filling, note('k3', { key: 'k' })]
  const keyed = (outcomes: readonly Outcome[]): string[] =>
    statuses(outcomes).filter((status) => status.startsWith('k'))
  const letGo = await holdCopy(box, 'k2')
  try {
    expect(keyed(await box.receive(messages))).toEqual(['k2 busy', 'k3 busy'])
  } finally {
    await letGo()
  }
  expect(keyed(await box.receive(messages))).toEqual(['k2 stored', 'k3 stored'])
})

/** Inserts of this message fail with that SQLSTATE so many times. A sequence counts what is rolled back too. */
async function refuse(box: Bench, id: string, state: string, times: number): Promise<void> {
  await box.sql('create sequence ob.test_refusals')
  await box.sql(`create function ob.test_refuse() returns trigger language plpgsql as $$
    begin
      if new.id = '${id}' and nextval('ob.test_refusals') <= ${times} then
        raise exception using errcode = '${state}', message = 'refused by the test';
      end if;
      return new;
    end $$`)
  await box.sql('create trigger test_refuse before insert on ob.message for each row execute function ob.test_refuse()')
}

test.each(['40001', '40P01'])('a batch that meets %s is tried again as a whole', async (state) => {
  await using box = await open()
  await refuse(box, 'k2', state, 2)
  const messages = [note('k2', { key: 'k' }), note('k3', { key: 'k' })]
  expect(statuses(await box.receive(messages))).toEqual(['k2 stored', 'k3 stored'])
  await box.drain()
  expect(await box.ids()).toEqual(['k1', 'k2', 'k3'])
})

test.each(['40001', '40P01'])('a message that always meets %s is busy, with what is behind it', async (state) => {
  await using box = await open()
  await refuse(box, 'k2', state, 1_000)
  const messages = [note('k2', { key: 'k' }), note('k3', { key: 'k' }), note('l1', { key: 'l' })]
  expect(statuses(await box.receive(messages))).toEqual(['k2 busy', 'k3 busy', 'l1 stored'])
})
