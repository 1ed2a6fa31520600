/** The recipe of the page about HTTP idempotency runs as it stands. */
import express from 'express'
import { expect, test } from 'vitest'
import { defineMessages, unchecked } from 'oncebox'
import { toNodeListener } from 'oncebox/http'
import * as idempotency from 'oncebox/idempotency'
import { useServer } from '../inbox/fixture.js'
import { serve } from '../webhook/senders.js'
import { recipesOf, runRecipe } from './recipe.js'

const server = useServer('docs_idempotency')

test('a charge is made once, and answered twice: charges.ts', async () => {
  const messages = defineMessages({ 'payment.received': unchecked<object>() })
  await using box = await server.open({ messages })
  await server.pool.query('create table charge (account text, cents int)')
  const app = express()
  const tenantOf = (request: Request): string => request.headers.get('authorization') ?? 'nobody'
  const modules = { 'oncebox/idempotency': idempotency }
  await using _recipe = await runRecipe(recipesOf('docs/idempotency.md').get('charges.ts')!, {
    values: { box, app, tenantOf },
    modules,
  })
  await using http = await serve(app)
  const url = http.url.replace('/hook', '/charges')
  const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: '{"account":"ada","cents":500}' }
  for (const replayed of [null, 'true']) {
    const response = await fetch(url, init)
    expect([response.status, await response.json()]).toEqual([201, { account: 'ada', cents: 500 }])
    expect(response.headers.get('idempotent-replayed')).toBe(replayed)
  }
  expect((await server.pool.query('select * from charge')).rows).toHaveLength(1)
  expect((await box.sent()).map(({ data }) => data)).toEqual([{ invoice: 'k', account: 'ada', cents: 500 }])
})

test('a name that is taken is answered 409, again too: names.ts', async () => {
  await using box = await server.open()
  await server.pool.query('create table taken (name text primary key)')
  const app = express()
  await using _recipe = await runRecipe(recipesOf('docs/idempotency.md').get('names.ts')!, {
    values: { box, app, tenantOf: () => 'nobody', toNodeListener, idempotent: idempotency.idempotent },
    modules: { 'oncebox/idempotency': idempotency },
  })
  await using http = await serve(app)
  const url = http.url.replace('/hook', '/names')
  const ask = async (key: string): Promise<[number, string | null]> => {
    const response = await fetch(url, { method: 'POST', headers: { 'idempotency-key': key }, body: 'ada' })
    return [response.status, response.headers.get('idempotent-replayed')]
  }
  expect([await ask('a'), await ask('b'), await ask('b')]).toEqual([[201, null], [409, null], [409, 'true']]) // prettier-ignore
})
