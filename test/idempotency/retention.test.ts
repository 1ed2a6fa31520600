/** A response is replayed for as long as its endpoint says, whichever process prunes. */
import { expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { fromPg } from 'oncebox/pg'
import { recorder, useServer } from '../inbox/fixture.js'
import { serve } from '../webhook/senders.js'
import { charge, messages, openOn, seen } from './fixture.js'

const server = useServer('idempotency_retention')
const open = openOn(server)
const DAY_MS = 86_400_000

test.for([
  ['longer than the default', 90, 31, 'true'],
  ['shorter than the default', 2, 10, null],
] as const)('a box that never starts has its retainMs kept by janitors elsewhere: %s', async ([, days, later, replayed]) => {
  await using at = await open(charge, { retainMs: days * DAY_MS })
  const worker = createBox({ db: fromPg(server.pool), schema: at.box.schema, messages })
  expect((await at.post('k')).status).toBe(201)
  await at.box.clock.advance(later * DAY_MS)
  await worker.admin.prune()
  expect((await seen(await at.post('k')))[2]).toBe(replayed)
}) // prettier-ignore

test('a process with another retainMs has the say from its first request on', async () => {
  await using at = await open(charge, { retainMs: 60_000 })
  await at.post('k')
  const logger = recorder()
  const other = createBox({ db: fromPg(server.pool), schema: at.box.schema, messages, logger })
  const options = { name: 'charges', scope: () => 'nobody', retainMs: 90 * DAY_MS }
  await using http = await serve(toNodeListener(idempotent(other, options, charge(at.box))))
  const init = { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{"cents":500}' }
  for (let n = 0; n < 2; n++) expect((await fetch(http.url, init)).status).toBe(201)
  expect(await at.box.sql('select name, retain_ms::text from ob.consumer')).toEqual([
    { name: 'charges', retain_ms: String(90 * DAY_MS) },
  ])
  expect(logger.lines.map(({ about }) => about)).toMatchObject([{ option: 'retainMs', there: 60_000 }])
})

test('a process that still has a shorter retainMs keeps to the longer one that was registered after its own', async () => {
  await using at = await open(charge, { retainMs: 60_000 })
  await at.post('first')
  const other = createBox({ db: fromPg(server.pool), schema: at.box.schema, messages, logger: recorder() })
  const options = { name: 'charges', scope: () => 'nobody', retainMs: 90 * DAY_MS }
  await using http = await serve(toNodeListener(idempotent(other, options, charge(at.box))))
  const ask = () =>
    fetch(http.url, { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{"cents":500}', duplex: 'half' })
  expect((await seen(await ask()))[2]).toBe(null)
  await at.box.clock.advance(31 * DAY_MS)
  expect(await at.box.admin.prune()).toBe(0)
  expect((await seen(await ask()))[2]).toBe('true')
  await at.box.clock.advance(60 * DAY_MS)
  expect(await at.box.admin.prune()).toBe(2)
})

test('a request whose endpoint cannot be registered does not run, and the next one tries again', async () => {
  await using at = await open(charge)
  await at.box.sql('alter table ob.consumer rename to elsewhere')
  expect((await at.post('k')).status).toBe(500)
  await at.box.sql('alter table ob.elsewhere rename to consumer')
  expect(await seen(await at.post('k'))).toEqual([201, '{"charge":1}', null])
  expect(await at.box.sql('select name from ob.consumer')).toEqual([{ name: 'charges' }])
})
