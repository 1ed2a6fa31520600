/** Where a message lies in the journal is remembered beside its work: a hint, which must never be taken for more. */
import { expect, test } from 'vitest'
import { link } from 'oncebox/link'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { note, notes, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('places')

/** How many rows of work there are, and how many of them do not know the place of their message. */
async function remembered(box: Pick<Bench, 'sql'>): Promise<unknown> {
  const [row] = await box.sql(`
    select count(*)::int work, (count(*) filter (where w.journal_place is distinct from m.ctid))::int lost
    from ob.work w join ob.message m on m.consumer = w.consumer and m.source = w.source and m.id = w.id`)
  return row
}

test('what is received remembers its place, whatever else is in the batch', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  box.consumer('b', { note: () => undefined }, { order: 'key' })
  await box.receive(notes(20, { key: 'k' }))
  await box.receive([...notes(30, { key: 'k' }), note('n31'), note('n31')])
  expect(await remembered(box)).toEqual({ work: 62, lost: 0 })
})

test('what comes over a link does, too', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined }, { order: 'key' })
  await using sender = await server.open()
  const first = createBox({ db: fromPg(server.pool), schema: sender.schema, source: 'first', logger: recorder() })
  first.to(link({ to: box, sameDatabase: true }))
  const client = await server.pool.connect()
  await client.query('begin')
  for (const { id, data } of notes(10)) await first.send(client, 'note', data, { id, key: id! })
  await client.query('commit')
  client.release()
  await first.drain()
  expect(await remembered(box)).toEqual({ work: 10, lost: 0 })
})

const ELSEWHERE = {
  'not known': 'null',
  'that of another message': `(select m.ctid from ob.message m where m.id <> w.id order by m.id limit 1)`,
  'of nothing': `'(4000000,1)'`,
}

test.for(['none', 'key'] as const)("order: '%s': a place that is not right changes nothing", async (order) => {
  for (const [what, place] of Object.entries(ELSEWHERE)) {
    await using box = await server.open()
    const ran: [id: string, data: unknown][] = []
    box.consumer('a', { note: ({ id, data }) => void ran.push([id, data]) }, { order })
    await box.receive(notes(5, { key: 'k' }))
    await box.sql(`update ob.work w set journal_place = ${place}`)
    await box.drain()
    expect(
      ran.toSorted(([a], [b]) => (a < b ? -1 : 1)),
      what,
    ).toEqual(notes(5).map(({ id, data }) => [id, data]))
  }
})
