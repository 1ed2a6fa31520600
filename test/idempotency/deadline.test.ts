/** A request is answered when its time is up, whatever its handler or the database waits for. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import { idempotent, type IdempotentEndpoint } from 'oncebox/idempotency'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { useServer } from '../inbox/fixture.js'
import { serve } from '../webhook/senders.js'
import { waitUntil } from '../support/wait.js'
import { openOn, seen } from './fixture.js'

const server = useServer('idempotency_deadline')
const open = openOn(server)

test('a handler that waits for a lock is answered while the lock is held, and gives up its connection', async () => {
  let waits = true
  await using at = await open(
    (box) =>
      async (_request, { tx, key }) => {
        await box.write(tx, 'charges', { id: key! })
        if (waits) await tx.query('select pg_advisory_xact_lock(10)')
        return new Response('done')
      },
    { timeoutMs: 1_000, waitMs: 60_000 },
  )
  const other = await server.pool.connect()
  try {
    await other.query('select pg_advisory_lock(10)')
    expect((await at.post('k')).status).toBe(503)
    expect(at.errors).toMatchObject([{ code: 'HANDLER_TIMEOUT' }])
    waits = false
    expect(await seen(await at.post('k'))).toEqual([200, 'done', null])
  } finally {
    other.release(true)
  }
  expect(await at.box.ids()).toEqual(['k'])
})

test('with postgres.js, too', async () => {
  await using box = await server.open()
  const sql = postgres(server.url, { max: 2, onnotice: () => undefined })
  const own = createBox({ db: fromPostgres(sql), schema: box.schema })
  let waits = true
  const options = { name: 'charges', scope: 'shared', timeoutMs: 1_000, onError: () => undefined } as const
  const endpoint = idempotent(own, options, async (_request, { tx }) => {
    if (waits) await tx`select pg_advisory_xact_lock(11)`
    return new Response('done')
  })
  await using http = await serve(toNodeListener(endpoint))
  const post = (): Promise<Response> => fetch(http.url, { method: 'POST', headers: { 'idempotency-key': 'k' } })
  const other = await server.pool.connect()
  try {
    await other.query('select pg_advisory_lock(11)')
    expect((await post()).status).toBe(503)
    waits = false
    const again = await waitUntil(async () => {
      const response = await post()
      return response.status === 409 ? undefined : seen(response)
    }, { what: 'the key to be free' }) // prettier-ignore
    expect(again).toEqual([200, 'done', null])
  } finally {
    other.release(true)
    await sql.end()
  }
})

test('a response without an end is not read any more when the time is up', async () => {
  let ended = 0
  const endless = (): ReadableStream =>
    new ReadableStream({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 10))
        controller.enqueue(Buffer.from('x'))
      },
      cancel: () => void ended++,
    })
  await using at = await open(
    () =>
      async (request, { signal }) => {
        const passed = new Promise((resolve) => signal.addEventListener('abort', resolve))
        // The second returns its response when it is too late already.
        if ((await request.text()) === 'late') await passed
        return new Response(endless())
      },
    { timeoutMs: 500 },
  )
  expect((await at.post('a')).status).toBe(503)
  await waitUntil(() => ended === 1, { what: 'the stream to be ended' })
  expect((await at.post('b', 'late')).status).toBe(503)
  await waitUntil(() => ended === 2, { what: 'the late stream to be ended' })
  expect(at.errors).toMatchObject([{ code: 'HANDLER_TIMEOUT' }, { code: 'HANDLER_TIMEOUT' }])
})

test('a database that takes connections and says nothing is answered 503, and nothing runs when it speaks again', async () => {
  await using box = await server.open()
  const sockets = new Set<Socket>()
  const mute = createServer((socket) => sockets.add(socket.on('error', () => undefined)))
  await once(mute.listen(0, '127.0.0.1'), 'listening')
  const { port } = mute.address() as AddressInfo
  const pool = new pg.Pool({ host: '127.0.0.1', port, max: 1 })
  const errors: unknown[] = []
  const options = { name: 'charges', scope: 'shared', timeoutMs: 1, onError: (e: unknown) => errors.push(e) } as const
  const own = createBox({ db: fromPg(pool), schema: box.schema })
  let runs = 0
  const endpoint = idempotent(own, options, () => new Response(String(++runs)))
  const init = { method: 'POST', headers: { 'idempotency-key': 'k' } }
  try {
    const response = await endpoint.fetch(new Request('http://localhost/', init))
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
    expect(errors).toMatchObject([{ code: 'CONNECTION_SILENT' }])
  } finally {
    mute.close()
    for (const socket of sockets) socket.destroy()
    await pool.end()
  }
  expect(runs).toBe(0)
})

describe('while the pool has no connection to give', () => {
  const ask = (endpoint: IdempotentEndpoint): Promise<Response> =>
    endpoint.fetch(new Request('http://localhost/', { method: 'POST', headers: { 'idempotency-key': 'k' } }))

  test('a copy is told 409 while the first still waits for one, and the first runs', async () => {
    await using box = await server.open()
    const pool = new pg.Pool({ connectionString: server.url, max: 1 })
    const endpoint = idempotent(
      createBox({ db: fromPg(pool), schema: box.schema }),
      { name: 'charges', scope: 'shared', timeoutMs: 20_000 },
      () => new Response('done'),
    )
    const taken = await pool.connect()
    try {
      let isAnswered = false
      const first = ask(endpoint).finally(() => (isAnswered = true))
      const { status } = await ask(endpoint)
      expect([status, isAnswered]).toEqual([409, false])
      taken.release()
      expect(await seen(await first)).toEqual([200, 'done', null])
    } finally {
      await pool.end()
    }
  })

  test('a copy is told 503 as the first is, for nothing is outstanding any more', async () => {
    await using box = await server.open()
    const pool = new pg.Pool({ connectionString: server.url, max: 1, connectionTimeoutMillis: 200 })
    const endpoint = idempotent(
      createBox({ db: fromPg(pool), schema: box.schema }),
      { name: 'charges', scope: 'shared', onError: () => undefined },
      () => new Response('done'),
    )
    const taken = await pool.connect()
    try {
      const answers = await Promise.all([ask(endpoint), ask(endpoint)])
      expect(answers.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual([[503, '5'], [503, '5']]) // prettier-ignore
    } finally {
      taken.release()
      await pool.end()
    }
  })
})
