/** Idempotency-Key over HTTP, on PostgreSQL: one effect for each key, and the same answer to whoever asks again. */
import { request as httpRequest } from 'node:http'
import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createBox } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { fromPg } from 'oncebox/pg'
import { gate, hide, useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { serve } from '../webhook/senders.js'
import { charge, messages, openOn, seen, type Handler, type Messages } from './fixture.js'

const server = useServer('idempotency')
const open = openOn(server)

test('a request that is sent again gets the same response, and has one effect and one event', async () => {
  await using at = await open(charge)
  const first = await at.post('k1')
  const again = await at.post('k1')
  expect(await seen(first)).toEqual([201, '{"charge":1}', null])
  expect(await seen(again)).toEqual([201, '{"charge":1}', 'true'])
  for (const name of ['location', 'x-run', 'content-type', 'content-length']) {
    expect(again.headers.get(name)).toBe(first.headers.get(name))
  }
  expect(await seen(await at.post('k2'))).toEqual([201, '{"charge":2}', null])
  expect(await at.box.ids()).toEqual(['k1', 'k2'])
  expect((await at.box.sent()).map(({ data }) => data)).toEqual([{ cents: 500 }, { cents: 500 }])
})

test('a string as the draft writes it and the bare text are one key', async () => {
  await using at = await open(charge)
  expect(await seen(await at.post('"a \\"b\\" \\\\"'))).toEqual([201, '{"charge":1}', null])
  expect(await seen(await at.post('"k"'))).toEqual([201, '{"charge":2}', null])
  expect(await seen(await at.post('k'))).toEqual([201, '{"charge":2}', 'true'])
  expect(await at.box.ids()).toEqual(['a "b" \\', 'k'])
})

test('a request without a proper key is answered 400, and nothing runs', async () => {
  await using at = await open(charge)
  // Missing, empty, twice, without an end, with parameters, in two headers that make one string, too long.
  const keys = [undefined, '""', 'a, b', '"a", "b"', '"a', '"a";b=1', '"a, b"', 'x'.repeat(256)]
  for (const key of keys) {
    const response = await at.post(key)
    expect(response.status, key).toBe(400)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.json()).toMatchObject({ title: 'Idempotency-Key is missing or malformed', status: 400 })
  }
  expect(await at.box.ids()).toEqual([])
})

test('without onError, a warning says what to do where oncebox knows it, and quotes nothing else', async () => {
  await using box = await server.open({ messages })
  const endpoint = idempotent(box, { name: 'charges', scope: 'shared' }, () => {
    throw new Error('card 4711')
  })
  const told: string[] = []
  const tell = ({ message }: Error): void => void told.push(message)
  process.on('warning', tell)
  onTestFinished(() => void process.off('warning', tell))
  const init = { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{}' }
  const parsed = new Request('http://shop/charges', init)
  await parsed.json()
  expect((await endpoint.fetch(parsed)).status).toBe(500)
  expect((await endpoint.fetch(new Request('http://shop/charges', init))).status).toBe(500)
  await waitUntil(async () => told.length === 2, { what: 'two warnings' })
  expect(told[0]).toContain('mount it before whatever parses bodies')
  expect(told[1]).toBe('a request with an Idempotency-Key failed (Error)')
})

test('where no key is required, requests without one run each time', async () => {
  await using at = await open(charge, { required: false })
  expect(await seen(await at.post(undefined))).toEqual([201, '{"charge":1}', null])
  expect(await seen(await at.post(undefined))).toEqual([201, '{"charge":2}', null])
  expect(await at.box.ids()).toEqual(['none', 'none'])
})

test('another body, path or method under a known key is answered 422, and leaves nothing', async () => {
  const quarantined: unknown[] = []
  await using at = await open(charge, {}, { quarantined: (entry) => void quarantined.push(entry) })
  expect((await at.post('k')).status).toBe(201)
  const other = await at.post('k', '{"cents":501}')
  expect(other.status).toBe(422)
  const headers = { 'idempotency-key': 'k' }
  const body = '{"cents":500}'
  expect((await fetch(`${at.http.url}?x=1`, { method: 'POST', headers, body })).status).toBe(422)
  expect((await fetch(at.http.url, { method: 'PUT', headers, body })).status).toBe(422)
  expect(await seen(await at.post('k'))).toEqual([201, '{"charge":1}', 'true'])
  expect(await at.box.ids()).toEqual(['k'])
  expect(await at.box.quarantine()).toEqual([])
  expect(quarantined).toEqual([])
})

test('two tenants never see each other’s responses', async () => {
  await using at = await open((box) => async (_request, { tx, key, scope }) => {
    await box.write(tx, 'charges', { id: key! }, scope)
    return new Response(`for ${scope}`)
  })
  for (const tenant of ['acme', 'bolt']) {
    expect(await seen(await at.post('k', '{}', { authorization: tenant }))).toEqual([200, `for ${tenant}`, null])
    expect(await seen(await at.post('k', '{}', { authorization: tenant }))).toEqual([200, `for ${tenant}`, 'true'])
  }
  expect((await at.box.effects()).map(({ note }) => note)).toEqual(['acme', 'bolt'])
})

test('a scope may refuse a caller, and one that names nobody is a mistake', async () => {
  await using at = await open(charge, {
    scope: ({ headers }) =>
      headers.has('x-bad')
        ? ''
        : headers.has('x-none')
          ? (undefined as never)
          : new Response('who are you?', { status: 401 }),
  })
  expect(await seen(await at.post('k'))).toEqual([401, 'who are you?', null])
  for (const name of ['x-bad', 'x-none']) expect((await at.post('k', '{}', { [name]: '1' })).status).toBe(500)
  const mistake = (what: string) => ({
    code: 'OPTION_INVALID',
    message: expect.stringMatching(`^idempotent: what scope answered ${what}; answer a text`) as string,
  })
  expect(at.errors).toMatchObject([mistake('must not be empty'), mistake('is undefined')])
  expect(await at.box.ids()).toEqual([])
})

describe('what is not final', () => {
  test('a handler that throws leaves nothing, and the client may try again', async () => {
    let failing = true
    await using at = await open((box) => async (_request, { tx, send, key }) => {
      await box.write(tx, 'charges', { id: key! })
      await send('charged', { cents: 1 })
      if (failing) throw new Error('hunter2')
      return new Response('done')
    })
    const response = await at.post('k')
    expect([response.status, await response.json()]).toEqual([500, { title: 'The request failed', status: 500 }])
    expect(at.errors).toMatchObject([{ message: 'hunter2' }])
    expect([await at.box.ids(), await at.box.sent()]).toEqual([[], []])
    failing = false
    // Even with another body: nothing of the first was kept.
    expect(await seen(await at.post('k', '{"cents":2}'))).toEqual([200, 'done', null])
    expect(await at.box.ids()).toEqual(['k'])
  })

  test('a response with 5xx, 408, 425 or 429 is answered, rolled back and not stored', async () => {
    let runs = 0
    await using at = await open((box) => async (request, { tx, key }) => {
      await box.write(tx, 'charges', { id: key! })
      return new Response(`run ${++runs}`, { status: Number(await request.text()) })
    })
    for (const status of [500, 503, 408, 425, 429]) {
      runs = 0
      expect(await seen(await at.post(`k${status}`, String(status)))).toEqual([status, 'run 1', null])
      expect(await seen(await at.post(`k${status}`, String(status)))).toEqual([status, 'run 2', null])
    }
    expect(await at.box.ids()).toEqual([])
    expect(at.errors).toEqual([])
  })

  test('any other response that is returned is stored, and its writes stay', async () => {
    await using at = await open((box) => async (request, { tx, key }) => {
      await box.write(tx, 'charges', { id: key! })
      return new Response('declined', { status: Number(await request.text()) })
    })
    for (const status of [200, 302, 400, 402, 404, 409, 422]) {
      expect(await seen(await at.post(`k${status}`, String(status), {}))).toEqual([status, 'declined', null])
      expect(await seen(await at.post(`k${status}`, String(status)))).toEqual([status, 'declined', 'true'])
    }
    expect(await at.box.ids()).toHaveLength(7)
  })

  test('a response that is thrown is answered, rolled back and not stored', async () => {
    await using at = await open((box) => async (_request, { tx, key }) => {
      await box.write(tx, 'charges', { id: key! })
      throw new Response('not yet', { status: 402 })
    })
    expect(await seen(await at.post('k'))).toEqual([402, 'not yet', null])
    expect(await seen(await at.post('k'))).toEqual([402, 'not yet', null])
    expect(await at.box.ids()).toEqual([])
  })

  test('a handler that answers no response, or too much, or too late is an error, and leaves nothing', async () => {
    const misdeeds: (() => unknown)[] = [
      () => ({ ok: true }),
      () => new Response('x'.repeat(2_000)),
      () => new Promise(() => undefined),
    ]
    for (const misdeed of misdeeds) {
      const act = (box: Bench<Messages>): Handler => async (_request, { tx, key }) => {
        await box.write(tx, 'charges', { id: key! })
        return misdeed() as Response
      } // prettier-ignore
      await using at = await open(act, { maxResponseBytes: 1_000, timeoutMs: 1_000 })
      expect([500, 503]).toContain((await at.post('k')).status)
      expect(at.errors).toHaveLength(1)
      expect(await at.box.ids()).toEqual([])
    }
  })

  test('a swallowed SQL error, and a COMMIT of the handler’s own, do not pass for a success', async () => {
    const misdeeds = [
      (tx: pg.PoolClient) => tx.query('select * from nothing_like_it').catch(() => undefined),
      (tx: pg.PoolClient) => hide(tx, 'commit'),
    ]
    for (const misdeed of misdeeds) {
      await using at = await open((box) => async (_request, { tx, key }) => {
        await box.write(tx, 'charges', { id: key! })
        await misdeed(tx)
        return new Response('all is well')
      })
      expect((await at.post('k')).status).toBe(500)
      expect(at.errors).toHaveLength(1)
    }
  })

  test('a serialization failure is tried again, with the body there again', async () => {
    let runs = 0
    await using at = await open((box) => async (request, { tx, key }) => {
      const text = await request.text()
      await box.write(tx, 'charges', { id: key! })
      if (++runs < 3) await tx.query(`do $$ begin raise exception 'again' using errcode = '40001'; end $$`)
      return new Response(text)
    })
    expect(await seen(await at.post('k', 'body'))).toEqual([200, 'body', null])
    expect([runs, await at.box.ids(), at.errors]).toEqual([3, ['k'], []])
  })
})

describe('copies at the same time', () => {
  const slow = (running: { open(): void }, finish: { opened: Promise<void> }) => (box: Bench<Messages>): Handler =>
    async (_request, { tx, key }) => {
      running.open()
      await finish.opened
      await box.write(tx, 'charges', { id: key! })
      return new Response('done')
    } // prettier-ignore

  test('one runs, and the others are told 409 with a time to come back', async () => {
    const running = gate()
    const finish = gate()
    await using at = await open(slow(running, finish))
    const first = at.post('k')
    await running.opened
    const others = await Promise.all(Array.from({ length: 20 }, () => at.post('k')))
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 409))
    expect(others[0]!.headers.get('retry-after')).toBe('1')
    // Another key does not wait.
    finish.open()
    expect(await seen(await first)).toEqual([200, 'done', null])
    expect(await seen(await at.post('k'))).toEqual([200, 'done', 'true'])
    expect(await at.box.ids()).toEqual(['k'])
  })

  test('all get a response that is known, without waitMs too', async () => {
    await using at = await open(charge)
    const first = await seen(await at.post('k'))
    const others = await Promise.all(Array.from({ length: 20 }, async () => seen(await at.post('k'))))
    expect(others).toEqual(others.map(() => [first[0], first[1], 'true']))
  })

  test('of a known key with two bodies, each is told at once what it would be told alone', async () => {
    await using at = await open(charge)
    const first = await seen(await at.post('k'))
    const mixed = Array.from({ length: 20 }, (_, n) => (n % 2 ? '{"cents":500}' : `{"cents":${n}}`))
    // The first of them looks the key up, and the others learn from it: once it is one that has another body.
    for (const bodies of [mixed, [...mixed].reverse()]) {
      const answers = await Promise.all(bodies.map(async (body) => seen(await at.post('k', body))))
      const statuses = answers.map(([status, , replayed]) => [status, replayed])
      expect(statuses).toEqual(bodies.map((body) => (body === '{"cents":500}' ? [first[0], 'true'] : [422, null])))
    }
    expect(await at.box.ids()).toEqual(['k'])
  })

  test('with waitMs all get the response of the one', async () => {
    const running = gate()
    const finish = gate()
    await using at = await open(slow(running, finish), { waitMs: 60_000 })
    const all = Array.from({ length: 20 }, () => at.post('k'))
    await running.opened
    finish.open()
    const answers = await Promise.all(all.map(async (one) => seen(await one)))
    expect(answers.filter(([status, text]) => status === 200 && text === 'done')).toHaveLength(20)
    expect(answers.filter(([, , replayed]) => replayed === null)).toHaveLength(1)
    expect(await at.box.ids()).toEqual(['k'])
  })

  test('of two processes, too: the database tells', async () => {
    const running = gate()
    const finish = gate()
    await using at = await open(slow(running, finish), { waitMs: 60_000 })
    // A box of another process shares nothing with the first but the database.
    const other = createBox({ db: fromPg(server.pool), schema: at.box.schema, messages })
    const options = { name: 'charges', scope: () => 'nobody' }
    const never: Handler = () => Promise.reject(new Error('it ran twice'))
    await using http = await serve(toNodeListener(idempotent(other, options, never)))
    const first = at.post('k')
    await running.opened
    const init = { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{"cents":500}' }
    expect((await fetch(http.url, init)).status).toBe(409)
    finish.open()
    expect((await first).status).toBe(200)
    expect(await seen(await fetch(http.url, init))).toEqual([200, 'done', 'true'])
    expect(await at.box.ids()).toEqual(['k'])
  })

  test('a copy that waited for one that failed runs itself', async () => {
    const running = gate()
    const finish = gate()
    let runs = 0
    await using at = await open(
      (box) =>
        async (_request, { tx, key }) => {
          if (++runs === 1) {
            running.open()
            await finish.opened
            throw new Error('the first fails')
          }
          await box.write(tx, 'charges', { id: key! })
          return new Response('done')
        },
      { waitMs: 60_000 },
    )
    const first = at.post('k')
    await running.opened
    const second = at.post('k')
    finish.open()
    expect((await first).status).toBe(500)
    expect(await seen(await second)).toEqual([200, 'done', null])
    expect(await at.box.ids()).toEqual(['k'])
  })
})

describe('bodies and responses', () => {
  test('bytes that are no text come and go as they are', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
    await using at = await open(() => async (request) => new Response(await request.arrayBuffer()))
    for (const replayed of [null, 'true']) {
      const response = await at.post('k', bytes, { 'content-type': 'application/octet-stream' })
      expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes)
      expect([response.headers.get('idempotent-replayed'), response.headers.get('content-type')]).toEqual([
        replayed,
        null,
      ])
    }
  })

  test('a text with NUL, a response without a body, and one byte for byte are replayed', async () => {
    const answers = [new Response('a\0b'), new Response(null, { status: 204 }), new Response('\ufeffü')]
    for (const answer of answers) {
      const bytes = await answer.clone().arrayBuffer()
      await using at = await open(() => () => answer.clone())
      for (let n = 0; n < 2; n++) {
        const response = await at.post('k')
        expect([response.status, await response.arrayBuffer()]).toEqual([answer.status, bytes])
      }
    }
  })

  test.for([
    ['first', [['a=1', 'b=2'], []]],
    [
      'replay',
      [
        ['a=1', 'b=2'],
        ['a=1', 'b=2'],
      ],
    ],
  ] as const)('cookies: %s', async ([cookies, expected]) => {
    await using at = await open(
      () => () => new Response('ok', { headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2']] }),
      { cookies },
    ) // prettier-ignore
    for (const one of expected) expect((await at.post('k')).headers.getSetCookie()).toEqual(one)
  })

  test('a huge body is answered 413, with a length or in chunks, and nothing runs', async () => {
    await using at = await open(charge, { maxBytes: 1_000 })
    expect((await at.post('k', 'x'.repeat(1_001))).status).toBe(413)
    const chunks = new Blob(['x'.repeat(100_000)]).stream()
    expect((await at.post('k', chunks)).status).toBe(413)
    expect(await at.box.ids()).toEqual([])
  })

  test('methods that are not served are answered 405', async () => {
    await using at = await open(charge)
    const response = await fetch(at.http.url)
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, PUT, PATCH, DELETE'])
  })

  test('a body that somebody else has parsed is an error with advice', async () => {
    await using at = await open(charge)
    const { default: express } = await import('express')
    const errors: { message: string }[] = []
    const options = {
      name: 'other',
      scope: 'shared',
      onError: (error: unknown) => errors.push(error as Error),
    } as const
    const app = express().use(express.json(), toNodeListener(idempotent(at.box, options, charge(at.box))))
    await using http = await serve(app)
    const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' }
    expect((await fetch(http.url, { method: 'POST', headers, body: '{}' })).status).toBe(500)
    expect(errors[0]!.message).toContain('mount it before whatever parses bodies')
  })
})

test('a client that goes away while its request runs finds the response when it asks again', async () => {
  const running = gate()
  const finish = gate()
  await using at = await open((box) => async (_request, { tx, key }) => {
    running.open()
    await finish.opened
    await box.write(tx, 'charges', { id: key! })
    return new Response('done')
  }, { waitMs: 60_000 }) // prettier-ignore
  const request = httpRequest(at.http.url, { method: 'POST', headers: { 'idempotency-key': 'k' } })
  request.on('error', () => undefined)
  request.end('{"cents":500}')
  await running.opened
  request.destroy()
  const again = at.post('k')
  finish.open()
  expect(await seen(await again)).toEqual([200, 'done', 'true'])
  expect(await at.box.ids()).toEqual(['k'])
})

test('what is stored is neither the body nor the query', async () => {
  await using at = await open(charge)
  const headers = { 'idempotency-key': 'k' }
  await fetch(`${at.http.url}?token=hunter2`, { method: 'POST', headers, body: '{"cents":500,"card":"4242"}' })
  const [row] = await at.box.sql('select body, envelope, result from ob.message')
  expect(JSON.stringify(row)).not.toMatch(/hunter2|4242/)
  expect(JSON.parse(row!['result'] as string)).toMatchObject({ request: { method: 'POST', path: '/hook' } })
})

test('a key is forgotten after retainMs, and then runs again', async () => {
  await using at = await open(charge, { retainMs: 60_000 })
  expect((await at.post('k')).status).toBe(201)
  await at.box.admin.prune()
  expect(await seen(await at.post('k'))).toEqual([201, '{"charge":1}', 'true'])
  await at.box.clock.advance(600_000)
  await at.box.admin.prune()
  expect(await seen(await at.post('k'))).toEqual([201, '{"charge":2}', null])
})

test('the endpoint is known to the admin by its name, and takes no message', async () => {
  await using at = await open(charge, { retainMs: 60_000 })
  await at.box.migrate()
  await at.post('k')
  const { consumers } = await at.box.admin.status()
  expect(consumers['charges']).toMatchObject({ handled: 1, pending: 0 })
  expect(await at.box.sql(`select retain_ms::text from ob.consumer where name = 'charges'`)).toEqual([{ retain_ms: '60000' }]) // prettier-ignore
  expect(await at.box.receive({ id: 'm', type: 'charged', data: { cents: 1 } })).toMatchObject({
    status: 'quarantined',
  })
})

test('bad options are refused where they are written', async () => {
  await using box = await server.open()
  const handler = (): Response => new Response()
  const make =
    (options: object, on: unknown = box) =>
    () =>
      idempotent(on as never, options as never, handler)
  for (const options of [{}, { name: 'a' }, { name: 'a', scope: 'tenant' }, { name: '', scope: 'shared' }, { name: 'a', scope: 'shared', wait: 1 }]) {
    expect(make(options)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  } // prettier-ignore
  expect(make({ name: 'a', scope: 'shared' }, {})).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  expect(make({ name: 'a', scope: 'shared' })).not.toThrow()
  expect(make({ name: 'a', scope: 'shared' })).toThrow(expect.objectContaining({ code: 'CONSUMER_EXISTS' }))
  expect(() => box.consumer('a', { '*': () => undefined })).toThrow(
    expect.objectContaining({ code: 'CONSUMER_EXISTS' }),
  )
})
