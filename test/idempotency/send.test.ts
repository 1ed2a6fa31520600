/** What a handler sends belongs to its request: it commits with the response, or nowhere. */
import { expect, test } from 'vitest'
import { OnceboxError } from 'oncebox'
import { gate, useServer } from '../inbox/fixture.js'
import { openOn, seen } from './fixture.js'

// One connection: whatever a handler has kept of it is the next request's.
const server = useServer('idempotency_send', { max: 1 })
const open = openOn(server)

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'sent',
    (error: unknown) => (error instanceof OnceboxError ? error.code : error),
  )
}

test('a handler past its deadline sends nothing into the request that has its connection now', async () => {
  const late = gate<unknown>()
  const next = gate()
  let runs = 0
  await using at = await open(
    () =>
      async (_request, { send, signal }) => {
        if (++runs === 1) {
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          await next.opened
          late.open(await codeOf(send('charged', { cents: 1 })))
          return new Response('too late')
        }
        next.open()
        await late.opened
        return new Response('done')
      },
    { timeoutMs: 1_000, waitMs: 60_000 },
  )
  expect((await at.post('k')).status).toBe(503)
  expect(await seen(await at.post('k'))).toEqual([200, 'done', null])
  expect(await late.opened).toBe('TRANSACTION_CLOSED')
  expect(await at.box.sent()).toEqual([])
})

test('a handler that has returned sends nothing any more', async () => {
  const returned = gate()
  const late = gate<unknown>()
  await using at = await open(() => (_request, { send }) => {
    void returned.opened.then(async () => late.open(await codeOf(send('charged', { cents: 1 }))))
    return new Response('done')
  })
  expect((await at.post('k')).status).toBe(200)
  await at.box.db.transaction(async () => {
    returned.open()
    await late.opened
  })
  expect(await late.opened).toBe('TRANSACTION_CLOSED')
  expect(await at.box.sent()).toEqual([])
})

test.for([
  ['that is sent', 'charged'],
  ['that is refused', 'unknown'],
])('an event %s and not awaited fails the request, and nothing is stored', async ([, type]) => {
  let awaited = false
  await using at = await open((box) => async (_request, { tx, send, key }) => {
    await box.write(tx, 'charges', { id: key! })
    if (awaited) await send('charged', { cents: 1 })
    else void send(type as 'charged', { cents: 1 })
    return new Response('done')
  })
  expect((await at.post('k')).status).toBe(500)
  expect(at.errors).toMatchObject([{ code: 'UNAWAITED_CALL' }])
  expect([await at.box.ids(), await at.box.sent()]).toEqual([[], []])
  awaited = true
  expect(await seen(await at.post('k'))).toEqual([200, 'done', null])
  expect(await at.box.sent()).toHaveLength(1)
})
