/** A server that takes over without the last commits gives out their numbers again: what is under way is not taken for what is new. */
import { expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer, type PgBox, type RecordingSink } from './fixture.js'

const server = useServer('failover')

/**
 * Sends `lost`, and while it is published loses its commit, as a failover does. Then `new` is sent, and gets its number. Answers when both
 * were published or given up.
 */
async function publishBoth(
  box: PgBox & { readonly schema: string },
  sink: RecordingSink,
  release: () => void,
): Promise<void> {
  await server.send(box, { id: 'lost', key: 'k' })
  const publishing = box.drain()
  await waitUntil(() => sink.calls.length === 1)
  const [lost] = await server.sql(box.schema, `delete from ob.outbox where id = 'lost' returning n`)
  await server.sql(box.schema, `delete from ob.delivery`)
  await server.sql(box.schema, `select setval(pg_get_serial_sequence('ob.outbox', 'n'), ${String(lost!['n'])}, false)`)
  await server.send(box, { id: 'new', key: 'k' })
  expect(await server.sql(box.schema, `select n, id from ob.outbox`)).toEqual([{ n: lost!['n'], id: 'new' }])
  release()
  await publishing
}

test('an event is published though its number was that of one that was just published', async () => {
  const box = await server.open()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const sink = box.to(recordingSink({ name: 's', fail: () => held }))
  await publishBoth(box, sink, release)
  expect(sink.ids).toEqual(['lost', 'new'])
})

test('an event is not dead because one of its number was refused', async () => {
  const box = await server.open()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const answer = ({ id }: { id: string }) => (id === 'lost' ? { error: new Error('no'), retry: false } : undefined)
  const sink = box.to(recordingSink({ name: 's', fail: () => held, answer }))
  await publishBoth(box, sink, release)
  expect(sink.ids).toEqual(['new'])
})
