/** A replay is of what a handler can run: it leaves alone what endpoints, `once` and removed consumers are remembered for. */
import { expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { idempotent } from 'oncebox/idempotency'
import { fromPg } from 'oncebox/pg'
import { note, useServer, type Bench } from '../inbox/fixture.js'

const server = useServer('replay')

/** Another process, which has declared nothing. */
const elsewhere = (box: Bench) => createBox({ db: fromPg(server.pool), schema: box.schema })

async function once(box: Bench, name: string, message: { id: string; type?: string; data?: unknown }): Promise<string> {
  const client = await server.pool.connect()
  try {
    await client.query('begin')
    const { status } = await box.once(client, name, message, () => box.write(client, name, { id: message.id }))
    await client.query('commit')
    return status
  } finally {
    client.release()
  }
}

/** A box in which a consumer, an endpoint and `once` have each done something. */
async function busy(consumer: (box: Bench) => void = takesNotes) {
  const box = await server.open()
  consumer(box)
  await box.migrate()
  let answers = 0
  const endpoint = idempotent(box, { name: 'charges', scope: 'shared' }, async (_, { tx, key }) => {
    await box.write(tx, 'charges', { id: key! })
    return new Response(`charge ${++answers}`)
  })
  const ask = async (): Promise<string> => {
    const headers = { 'idempotency-key': 'k' }
    return (await endpoint.fetch(new Request('http://x/', { method: 'POST', headers }))).text()
  }
  await box.receive(note('n1'))
  await box.drain()
  expect(await ask()).toBe('charge 1')
  expect(await once(box, 'mine', { id: 'o1' })).toBe('handled')
  return { box, ask }
}

function takesNotes(box: Bench): void {
  box.consumer('projection', { note: ({ id }, { tx }) => box.write(tx, 'projection', { id }) })
}

const ALL = { state: 'handled', after: new Date(0) } as const

test('what endpoints and once have done stays handled, with its result, and is not counted', async () => {
  const { box, ask } = await busy()
  await using _ = box
  expect(await box.admin.retry(ALL, { dryRun: true })).toBe(1)
  expect(await box.admin.retry(ALL)).toBe(1)
  await box.drain()
  const { consumers } = await box.admin.status()
  for (const name of ['projection', 'charges', 'mine'])
    expect(consumers[name]).toMatchObject({ pending: 0, handled: 1 })
  expect(await ask()).toBe('charge 1')
  expect(await once(box, 'mine', { id: 'o1' })).toBe('duplicate')
  const effects = await box.effects()
  expect(effects.map(({ consumer }) => consumer)).toEqual(['projection', 'charges', 'mine', 'projection'])
})

test('a limit is of what can be run', async () => {
  const { box } = await busy()
  await using _ = box
  await box.receive(note('n2'))
  await box.drain()
  expect(await box.admin.retry(ALL, { limit: 2, dryRun: true })).toBe(2)
  expect(await box.admin.retry(ALL, { limit: 2 })).toBe(2)
})

test('a process that knows the consumers by their registration alone leaves the same alone', async () => {
  const { box } = await busy()
  await using _ = box
  const other = elsewhere(box)
  expect(await other.admin.retry(ALL, { dryRun: true })).toBe(1)
  expect(await other.admin.retry(ALL)).toBe(1)
  expect(await box.sql('select consumer from ob.work')).toEqual([{ consumer: 'projection' }])
})

test.for(['charges', 'mine'])('to replay %s by its name is refused, with what to do', async (consumer) => {
  const { box } = await busy()
  await using _ = box
  for (const options of [{ dryRun: true }, {}]) {
    await expect(box.admin.retry({ state: 'handled', consumer }, options)).rejects.toMatchObject({
      code: 'FILTER_INVALID',
      message: expect.stringMatching(/another (key|id)/),
    })
  }
  expect(await box.sql('select * from ob.work')).toEqual([])
  expect((await box.admin.audit()).records.filter(({ action }) => action === 'retry')).toEqual([])
})

test('an endpoint has nothing to retry in any state', async () => {
  const { box } = await busy()
  await using _ = box
  await expect(box.admin.retry({ consumer: 'charges' })).rejects.toMatchObject({ code: 'FILTER_INVALID' })
  // As an earlier version has left them: made pending by a replay, and then given up.
  await box.sql(`insert into ob.work (consumer, source, id, due_at, parked)
    select consumer, source, id, 'infinity', 'discarded' from ob.message where consumer = 'charges'`)
  expect(await box.admin.retry('all', { dryRun: true })).toBe(0)
  expect(await box.admin.retry('all')).toBe(0)
  expect(await box.sql(`select parked from ob.work`)).toEqual([{ parked: 'discarded' }])
})

test('what a removed consumer has handled stays remembered, until somebody declares it again', async () => {
  const { box } = await busy()
  await using _ = box
  const other = elsewhere(box)
  await other.admin.removeConsumer('projection')
  expect(await other.admin.retry(ALL, { dryRun: true })).toBe(0)
  expect(await other.admin.retry(ALL)).toBe(0)
  await expect(other.admin.retry({ state: 'handled', consumer: 'projection' })).rejects.toMatchObject({
    code: 'FILTER_INVALID',
    message: expect.stringContaining('declares it'),
  })
  // This box has declared it: what is here counts before it is registered.
  expect(await box.admin.retry({ state: 'handled', consumer: 'projection' })).toBe(1)
})

test('a misspelt consumer is still told as such', async () => {
  const { box } = await busy()
  await using _ = box
  await expect(box.admin.retry({ state: 'handled', consumer: 'projektion' })).rejects.toMatchObject({
    message: expect.stringContaining('did you mean projection?'),
  })
})

test('what once did without data is not run by a handler that takes its type, or any', async () => {
  const seen: unknown[] = []
  const { box } = await busy((to) => to.consumer('projection', { '*': ({ data }) => void seen.push(data) }))
  await using _ = box
  await once(box, 'projection', { id: 'o1', type: 'note' })
  await once(box, 'projection', { id: 'o2' })
  await once(box, 'projection', { id: 'o3', type: 'note', data: { n: 3 } })
  seen.length = 0
  expect(await box.admin.retry(ALL, { dryRun: true })).toBe(2)
  expect(await box.admin.retry(ALL)).toBe(2)
  await box.drain()
  expect(seen).toHaveLength(2)
  expect(seen).toContainEqual({ n: 3 })
  expect(await once(box, 'projection', { id: 'o2' })).toBe('duplicate')
})

test('what was only recorded as handled is not counted either', async () => {
  const { box } = await busy()
  await using _ = box
  await box.admin.markHandled('projection', ['a', 'b'], { type: 'note' })
  expect(await box.admin.retry(ALL, { dryRun: true })).toBe(1)
})

test('dead messages of a consumer that nobody has registered can be retried', async () => {
  await using box = await server.open()
  box.consumer('inline', { note: () => Promise.reject(new Error('no')) }, { mode: 'inline', retry: { attempts: 1 } })
  await box.handle(note('n1'))
  expect(await box.sql('select name from ob.consumer')).toEqual([])
  const other = elsewhere(box)
  expect(await other.admin.retry({ consumer: 'inline', state: 'dead' })).toBe(1)
})
