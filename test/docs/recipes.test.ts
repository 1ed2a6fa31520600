/**
 * The recipes of the webhook page run as they stand: each block is executed, with its port exchanged for a free one, and is
 * sent requests over HTTP, signed by the senders' own packages.
 */
import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineMessages } from 'oncebox'
import * as webhooks from 'oncebox/webhook'
import { useServer } from '../inbox/fixture.js'
import { freePort } from '../support/postgres.js'
import { bodyOf, OLD_SECRETS, SECRETS, sign, type Sent } from '../webhook/senders.js'
import { recipesOf, runRecipe, type Running } from './recipe.js'

const database = useServer('recipes')
const recipes = recipesOf('docs/webhooks.md')

/** Runs a block with what it is given, and answers with what it declares. */
function run(title: string, values: Readonly<Record<string, unknown>>): Promise<Running> {
  return runRecipe(recipes.get(title)!, { values })
}

async function post(url: string, { body, headers }: Sent): Promise<[number, unknown]> {
  const response = await fetch(url, { method: 'POST', headers, body })
  return [response.status, await response.json()]
}

test('the page has a recipe for each of these', () => {
  const names = ['stripe', 'github', 'bounded', 'partners']
  const titles = names.map((name) => `${name}.ts`)
  expect([...recipes.keys()]).toEqual(titles)
})

test('a signed request is handled once, and a forged one refused: bounded.ts', async () => {
  await using box = await database.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { mode: 'inline' })
  const hook = box.from(webhooks.webhook({ scheme: 'standard', secret: SECRETS.standard }), { types: 'any' })
  await using recipe = await run('bounded.ts', { hook })
  const sent = await sign('standard', bodyOf('standard'))
  expect(await post(recipe.url, sent)).toEqual([200, { status: 'handled' }])
  expect(await post(recipe.url, sent)).toEqual([200, { status: 'duplicate' }])
  expect(await post(recipe.url, { ...sent, body: `${sent.body} ` })).toMatchObject([401, {}])
  expect(await box.ids()).toEqual(['msg_1'])
})

test('an event of Stripe becomes a message of one’s own, and others run nothing: stripe.ts', async () => {
  const messages = defineMessages({
    'payment.received': z.object({ invoice: z.string(), account: z.string(), cents: z.int() }),
  })
  await using box = await database.open({ messages })
  const got: unknown[] = []
  box.consumer('update-balance', { 'payment.received': ({ data }) => void got.push(data) })
  process.env['STRIPE_SECRET'] = SECRETS.stripe
  await using recipe = await run('stripe.ts', { box })
  const paid = { type: 'payment_intent.succeeded', data: { object: { id: 'pi_1', customer: 'ada', amount: 500 } } }
  expect(await post(recipe.url, await sign('stripe', bodyOf('stripe', 'evt_1', paid)))).toEqual([
    200,
    { status: 'stored' },
  ])
  // Stripe's copies differ in how many deliveries are to come.
  const copy = bodyOf('stripe', 'evt_1', { ...paid, pending_webhooks: 0 })
  expect(await post(recipe.url, await sign('stripe', copy))).toEqual([200, { status: 'duplicate' }])
  const other = bodyOf('stripe', 'evt_2', { type: 'charge.updated', data: { object: {} } })
  expect(await post(recipe.url, await sign('stripe', other))).toEqual([200, { status: 'quarantined' }])
  await box.drain()
  expect(got).toEqual([{ invoice: 'pi_1', account: 'ada', cents: 500 }])
  expect(await box.quarantine()).toMatchObject([{ id: 'evt_2', reason: 'not-allowed' }])
})

test('the type and the key come from what was sent: github.ts', async () => {
  await using box = await database.open()
  const got: unknown[] = []
  box.consumer('a', { '*': ({ type, key }) => void got.push([type, key]) }, { mode: 'inline' })
  await using recipe = await run('github.ts', { webhook: webhooks.webhook, secret: SECRETS.github })
  const hook = box.from(recipe.values['github'] as webhooks.WebhookSource, { types: 'any' })
  const server = createServer(webhooks.toNodeListener(hook))
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  try {
    const body = JSON.stringify({ action: 'opened', repository: { full_name: 'ada/engine' } })
    expect(await post(`http://127.0.0.1:${port}/`, await sign('github', body))).toEqual([200, { status: 'handled' }])
    expect(got).toEqual([['note.opened', 'ada/engine']])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('each partner reaches its own handlers alone: partners.ts', async () => {
  await using box = await database.open()
  const got: string[] = []
  box.consumer('a', { '*': ({ type, source }) => void got.push(`${source} ${type}`) })
  process.env['ACME_SECRET'] = SECRETS.standard
  process.env['BOLT_SECRET'] = OLD_SECRETS.standard
  await using recipe = await run('partners.ts', { box })
  const send = async (partner: 'acme' | 'bolt', type: string) => {
    const secret = partner === 'acme' ? SECRETS.standard : OLD_SECRETS.standard
    const sent = await sign('standard', JSON.stringify({ type }), { secret, id: `msg_${type.length}` })
    return (await post(recipe.url.replace('/hook', `/${partner}`), sent))[1]
  }
  for (const partner of ['acme', 'bolt'] as const) {
    const own = partner === 'acme' ? 'payment.received' : 'stock.reserved'
    const other = partner === 'acme' ? 'stock.reserved' : 'payment.received'
    expect(await send(partner, other)).toEqual({ status: 'quarantined' })
    expect(await send(partner, own)).toEqual({ status: 'stored' })
  }
  await box.drain()
  expect(got).toEqual(['acme payment.received', 'bolt stock.reserved'])
})
