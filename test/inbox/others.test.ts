/** Consumers of other processes, and messages that run on arrival in this one. */
import { describe, expect, test } from 'vitest'
import { createBox, type Box, type MessageMap } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import pg from 'pg'
import { waitUntil } from '../support/wait.js'
import { note, notes, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('others')

/** Another process on the same schema, which runs `elsewhere`. */
function processOf(box: Bench, types: readonly string[] = ['note']): Box<MessageMap, pg.PoolClient, PgClient> {
  const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
  other.consumer('elsewhere', Object.fromEntries(types.map((type) => [type, () => undefined])))
  return other
}

async function storedFor(box: Bench, consumer: string): Promise<unknown[]> {
  const rows = await box.sql(`select id from ob.message where consumer = $1 order by id`, [consumer])
  return rows.map(({ id }) => id)
}

describe.for(['inline', 'direct'] as const)('a consumer that another process registers: %s', (mode) => {
  test.for([
    ['its type', 'note'],
    ['every type', '*'],
  ])('between two calls gets what comes after, of %s', async ([, type]) => {
    await using box = await server.open()
    box.consumer('here', { note: (message, { tx }) => box.write(tx, 'here', message) }, { mode })
    for (const message of notes(3)) await box.handle(message)
    await processOf(box, [type!]).migrate()
    expect(await box.handle(note('after'))).toMatchObject({
      status: 'handled',
      consumers: [
        { consumer: 'elsewhere', status: 'stored' },
        { consumer: 'here', status: 'handled' },
      ],
    })
    const outcomes = await box.handle([note('b'), note('c')])
    expect(outcomes.map(({ consumers }) => consumers.length)).toEqual([2, 2])
    expect(await storedFor(box, 'elsewhere')).toEqual(['after', 'b', 'c'])
    expect(await box.ids()).toEqual(['n1', 'n2', 'n3', 'after', 'b', 'c'])
  })

  test('while a call is in flight gets what comes after, and the handler in flight is not called again', async () => {
    await using box = await server.open()
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const calls: string[] = []
    const handler = async (message: { readonly id: string }, { tx }: { tx: PgClient }): Promise<void> => {
      calls.push(message.id)
      if (message.id === 'before') await held
      await box.write(tx, 'here', message)
    }
    box.consumer('here', { note: handler }, { mode })
    const before = box.handle(note('before'))
    await waitUntil(() => calls.length === 1)
    await processOf(box).migrate()
    expect(await box.handle(note('after'))).toMatchObject({ consumers: [{ status: 'stored' }, { status: 'handled' }] })
    release()
    expect(await before).toMatchObject({ status: 'handled' })
    expect(await storedFor(box, 'elsewhere')).toEqual(['after'])
    expect(calls).toEqual(['before', 'after'])
  })
})

test('a consumer that registers before a call has its first connection gets the message of the call', async () => {
  await using box = await server.open()
  const pool = new pg.Pool({ connectionString: server.url, max: 1 })
  const narrow = createBox({ db: fromPg(pool), schema: box.schema, logger: recorder() })
  try {
    narrow.consumer('here', { note: (message, { tx }) => box.write(tx, 'here', message) }, { mode: 'inline' })
    await narrow.handle(note('first'))
    const only = await pool.connect()
    const waiting = narrow.handle(note('waits'))
    await waitUntil(() => pool.waitingCount > 0)
    await processOf(box).migrate()
    only.release()
    expect(await waiting).toMatchObject({ status: 'handled', consumers: [{ status: 'stored' }, { status: 'handled' }] })
    expect(await storedFor(box, 'elsewhere')).toEqual(['waits'])
  } finally {
    await pool.end()
  }
})

test.for([
  { here: 'crm', takes: ['signup'], elsewhere: 'signup', wants: 'signup' },
  { here: 'invoice', takes: ['email', 'invoice'], elsewhere: 'email', wants: 'invoice' },
  { here: 'signup', takes: ['crm', 'signup'], elsewhere: 'crm', wants: 'signup' },
])('a consumer of another process has the name of a type or a consumer here: $here, $elsewhere', async (names) => {
  await using box = await server.open()
  const { here, takes, elsewhere, wants } = names
  box.consumer(here, Object.fromEntries(takes.map((type) => [type, () => undefined])))
  const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
  other.consumer(elsewhere, { [wants]: () => undefined })
  await other.migrate()
  await box.handle(takes.map((type) => ({ id: type, type, data: null })))
  expect(await storedFor(box, elsewhere)).toEqual([wants])
})

test('a consumer that is gone again costs nothing more, and one that comes back is found', async () => {
  await using box = await server.open()
  box.consumer('here', { note: () => undefined }, { mode: 'inline' })
  await processOf(box).migrate()
  expect(await box.handle(note('1'))).toMatchObject({ consumers: [{ status: 'stored' }, { status: 'handled' }] })
  await box.sql(`delete from ob.subscription where consumer = 'elsewhere'`)
  for (const id of ['2', '3']) {
    expect(await box.handle(note(id))).toMatchObject({ consumers: [{ consumer: 'here', status: 'handled' }] })
  }
  await processOf(box).migrate()
  expect(await box.handle(note('4'))).toMatchObject({ consumers: [{ status: 'stored' }, { status: 'handled' }] })
  expect(await storedFor(box, 'elsewhere')).toEqual(['1', '4'])
})

test('what no handler here can take is stored for others all the same', async () => {
  await using box = await server.open()
  box.consumer('here', { note: () => undefined }, { mode: 'inline', identity: () => '' })
  await processOf(box).migrate()
  expect(await box.handle(note('1'))).toMatchObject({
    consumers: [
      { consumer: 'here', status: 'quarantined' },
      { consumer: 'elsewhere', status: 'stored' },
    ],
  })
  expect(await storedFor(box, 'elsewhere')).toEqual(['1'])
})

test('a call of several types, each for another consumer here, is for nobody else', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined }, { mode: 'inline' })
  box.consumer('b', { other: () => undefined }, { mode: 'inline' })
  await box.handle([note('1'), note('2', { type: 'other' })])
  await processOf(box, ['another']).migrate()
  const outcomes = await box.handle([note('3'), note('4', { type: 'other' })])
  expect(outcomes.map(({ consumers }) => consumers.map(({ consumer }) => consumer))).toEqual([['a'], ['b']])
})
