/** Which responses are stored: only what can be given again. */
import { expect, test } from 'vitest'
import { useServer } from '../inbox/fixture.js'
import { openOn, seen } from './fixture.js'

const server = useServer('idempotency_response')
const open = openOn(server)

/** Of an implementation of the Fetch API that has other rules. */
const foreign = (status: number, headers: [string, string][] = []): Response =>
  Object.defineProperties(new Response(null), {
    status: { value: status },
    headers: { value: Object.assign(Object.create(null), { [Symbol.iterator]: () => headers.values() }) },
  })

test.for<[string, () => Response]>([
  ['an error of the network', () => Response.error()],
  ['a status of the connection', () => foreign(101)],
  ['no status at all', () => foreign(Number.NaN)],
  ['a header that no client could read', () => foreign(200, [['x', 'a\nb']])],
])('a response that cannot be given again is a failure of the handler: %s', async ([, respond]) => {
  let failing = true
  await using at = await open((box) => async (_request, { tx, send, key }) => {
    await box.write(tx, 'charges', { id: key! })
    await send('charged', { cents: 1 })
    return failing ? respond() : new Response('done')
  })
  expect((await at.post('k')).status).toBe(500)
  expect(at.errors).toMatchObject([{ code: 'RESULT_INVALID' }])
  expect([await at.box.ids(), await at.box.sent()]).toEqual([[], []])
  failing = false
  expect(await seen(await at.post('k'))).toEqual([200, 'done', null])
})

test('a refusal of the database that is expected is answered and stored, by a savepoint or on conflict', async () => {
  await using at = await open((box) => async (request, { tx }) => {
    await box.write(tx, 'charges', { id: 'attempt' })
    const taken = (): Response => Response.json({ taken: true }, { status: 409 })
    if ((await request.text()) === 'conflict') {
      const { rowCount } = await tx.query(`insert into names values ('ada') on conflict do nothing`)
      return rowCount === 0 ? taken() : new Response('yours')
    }
    await tx.query('savepoint name')
    try {
      await tx.query(`insert into names values ('ada')`)
    } catch (error) {
      if ((error as { code?: string }).code !== '23505') throw error
      await tx.query('rollback to savepoint name')
      return taken()
    }
    return new Response('yours')
  })
  await server.pool.query('create table names (name text primary key)')
  expect((await at.post('first', 'savepoint')).status).toBe(200)
  for (const way of ['savepoint', 'conflict']) {
    expect(await seen(await at.post(way, way))).toEqual([409, '{"taken":true}', null])
    expect(await seen(await at.post(way, way))).toEqual([409, '{"taken":true}', 'true'])
  }
  expect(await at.box.ids()).toHaveLength(3)
})
