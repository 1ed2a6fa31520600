/** The recipes for senders run as they stand: requests are signed here, independently of the library. */
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { crc32 } from 'node:zlib'
import { toNodeListener, type WebhookSource } from 'oncebox/webhook'
import { useServer, type Bench } from '../inbox/fixture.js'
import { serve } from '../webhook/senders.js'
import { recipesOf, runRecipe } from './recipe.js'

const server = useServer('senders')
const recipes = recipesOf('docs/webhook-senders.md')
const SECRET = 'a secret of the sender'
const KEY = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056'
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const CERTIFICATE = 'https://api.paypal.com/v1/notifications/certs/CERT-1'
const seconds = (): string => String(Math.floor(Date.now() / 1_000))
const hmac = (text: string, encoding: 'hex' | 'base64', key: string | Buffer = SECRET): string =>
  createHmac('sha256', key).update(text).digest(encoding)

interface Sent {
  readonly body: string
  readonly headers?: Record<string, string>
}

let box: Bench
const got: string[] = []
const data: unknown[] = []
beforeAll(async () => {
  Object.assign(process.env, { SHOPIFY_SECRET: SECRET, SLACK_SIGNING_SECRET: SECRET, PARTNER_SECRET: SECRET })
  Object.assign(process.env, { ADYEN_HMAC_KEY: KEY, PAYPAL_WEBHOOK_ID: 'WH-1' })
  box = await server.open()
  const note = ({
    id,
    type,
    source,
    data: own,
  }: Record<'id' | 'type' | 'source', string> & { data: unknown }): void => {
    got.push(`${source} ${type} ${id}`)
    data.push(own)
  }
  box.consumer('a', { '*': note }, { mode: 'inline' })
})
afterAll(() => box[Symbol.asyncDispose]())

/** Fetches the certificate, as PayPal serves it. */
const fetched: string[] = []
const certificates = async (url: string): Promise<Response> => {
  fetched.push(url)
  return new Response(publicKey.export({ type: 'spki', format: 'pem' }) as string)
}

async function attach(name: string): Promise<{ post(sent: Sent): Promise<[number, string]> } & AsyncDisposable> {
  const recipe = await runRecipe(recipes.get(`${name}.ts`)!, { values: { fetch: certificates } })
  const named = name === 'own' ? 'partner' : name
  const http = await serve(toNodeListener(box.from(recipe.values[named] as WebhookSource, { types: 'any' })))
  return {
    async post({ body, headers = {} }) {
      const response = await fetch(http.url, { method: 'POST', headers, body })
      return [response.status, await response.text()]
    },
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
}

const HANDLED = [200, '{"status":"handled"}']
const DUPLICATE = [200, '{"status":"duplicate"}']

const shopify = (body: string): Sent => ({
  body,
  headers: {
    'x-shopify-hmac-sha256': hmac(body, 'base64'),
    'x-shopify-event-id': 'event-1',
    'x-shopify-topic': 'orders/create',
  },
})
const slack = (body: string, at = seconds()): Sent => ({
  body,
  headers: { 'x-slack-request-timestamp': at, 'x-slack-signature': `v0=${hmac(`v0:${at}:${body}`, 'hex')}` },
})
const own = (body: string, at = seconds()): Sent => ({
  body,
  headers: { 'x-id': 'own-1', 'x-time': at, 'x-signature': hmac(`${at}.own-1.${body}`, 'hex') },
})
const paypal = (body: string, certificate = CERTIFICATE, at = new Date().toISOString()): Sent => {
  const signed = createSign('RSA-SHA256')
    .update(`t-1|${at}|WH-1|${crc32(body)}`)
    .sign(privateKey, 'base64')
  return {
    body,
    headers: {
      'paypal-transmission-id': 't-1',
      'paypal-transmission-time': at,
      'paypal-transmission-sig': signed,
      'paypal-cert-url': certificate,
    },
  }
}

test.for([
  ['shopify', shopify('{"order":1}'), 'shopify shopify.orders/create orders/create:event-1'],
  [
    'slack',
    slack('{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}'),
    'slack slack.app_mention Ev1',
  ],
  [
    'paypal',
    paypal('{"id":"WH-EV-1","event_type":"PAYMENT.SALE.COMPLETED"}'),
    'paypal paypal.PAYMENT.SALE.COMPLETED WH-EV-1',
  ],
  ['own', own('{"cents":1}'), 'partner payment.received own-1'],
] as const)('%s: a signed request is handled once, and a forged one refused', async ([name, sent, message]) => {
  await using at = await attach(name)
  expect(await at.post(sent)).toEqual(HANDLED)
  expect(await at.post(sent)).toEqual(DUPLICATE)
  expect((await at.post({ ...sent, body: `${sent.body} ` }))[0]).toBe(401)
  expect((await at.post({ body: sent.body }))[0]).toBe(401)
  for (const header of Object.keys(sent.headers!)) {
    if (/event-id|topic/.test(header)) continue
    expect((await at.post({ ...sent, headers: { ...sent.headers, [header]: 'x' } }))[0], header).toBe(401)
  }
  if (name === 'slack') {
    expect(await at.post(slack('{"type":"url_verification","challenge":"c-1"}'))).toEqual([200, 'c-1'])
    expect((await at.post(slack(sent.body, String(Number(seconds()) - 400))))[0]).toBe(401)
  }
  if (name === 'own') expect((await at.post(own('{}', String(Number(seconds()) + 400))))[0]).toBe(401)
  if (name === 'paypal') {
    // Fetched once, and from nowhere else.
    for (const other of [
      'https://evil.example/c',
      'http://api.paypal.com/c',
      'https://api.paypal.com:8443/c',
      'https://api.paypal.com.evil.example/c',
    ]) {
      expect((await at.post(paypal(sent.body, other)))[0]).toBe(401)
    }
    expect(fetched).toEqual([CERTIFICATE])
  }
  expect(got.filter((one) => one.startsWith(message.split(' ')[0]!))).toEqual([message])
  if (name === 'shopify') {
    const other = { ...sent, headers: { ...sent.headers, 'x-shopify-topic': 'orders/paid' } }
    expect(await at.post(other)).toEqual(HANDLED)
  }
})

describe('adyen', () => {
  let at: Awaited<ReturnType<typeof attach>>
  beforeAll(async () => {
    at = await attach('adyen')
  })
  afterAll(() => at[Symbol.asyncDispose]())
  interface Item {
    pspReference: string
    originalReference?: string
    merchantAccountCode: string
    merchantReference: string
    amount: object
    eventCode: string
    success: string
    additionalData?: { hmacSignature: string }
  }
  const NAMES = ['pspReference', 'originalReference', 'merchantAccountCode', 'merchantReference'] as const
  const TYPICAL = {
    merchantAccountCode: 'TestMerchant',
    merchantReference: 'TestPayment-1407325143704',
    amount: { value: 1_130, currency: 'EUR' },
    eventCode: 'AUTHORISATION',
    success: 'true',
  }
  const item = (more: { pspReference: string; merchantReference?: string; value?: number }, key = KEY): Item => {
    const { value = 1_130, ...rest } = more
    const one: Item = { ...TYPICAL, ...rest, amount: { value, currency: 'EUR' } }
    const fields = [...NAMES.map((name) => one[name] ?? ''), value, 'EUR', one.eventCode, one.success]
    return { ...one, additionalData: { hmacSignature: hmac(fields.join(':'), 'base64', Buffer.from(key, 'hex')) } }
  }
  const bodyOf = (...items: readonly object[]): string =>
    JSON.stringify({ live: 'false', notificationItems: items.map((one) => ({ NotificationRequestItem: one })) })
  const handled = (): string[] => got.filter((one) => one.startsWith('adyen'))

  test('every item is handled once, and one that is forged refuses all', async () => {
    // The example of Adyen's own libraries.
    expect(item({ pspReference: '7914073381342284' }).additionalData!.hmacSignature).toBe(
      'coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=',
    )
    const body = bodyOf(item({ pspReference: 'psp-1' }), item({ pspReference: 'psp-2' }))
    expect(await at.post({ body })).toEqual([200, '[accepted]'])
    expect(await at.post({ body })).toEqual([200, '[accepted]'])
    const forged = item({ pspReference: 'psp-4', value: 1 }, KEY.replace('4', '5'))
    expect((await at.post({ body: bodyOf(item({ pspReference: 'psp-3' }), forged) }))[0]).toBe(401)
    const expected = ['psp-1', 'psp-2'].map((psp) => `adyen adyen.AUTHORISATION ${psp}:AUTHORISATION:true`)
    expect(handled().sort()).toEqual(expected)
  })

  test('a colon in the reference is taken, and no field can be shifted over it', async () => {
    const genuine = item({ pspReference: 'psp-5', merchantReference: 'order:42' })
    expect(await at.post({ body: bodyOf(genuine) })).toEqual([200, '[accepted]'])
    const before = handled()
    const one = { pspReference: 'psp-5:', originalReference: 'TestMerchant', merchantAccountCode: 'order', merchantReference: '42' } // prettier-ignore
    const two = { originalReference: ':TestMerchant', merchantAccountCode: 'order', merchantReference: '42' }
    const three = { merchantAccountCode: 'TestMerchant:order', merchantReference: '42' }
    const four = { merchantReference: 'order', amount: { value: '42:1130', currency: 'EUR' } }
    const five = { merchantReference: 'order:42:1130', amount: { value: 'EUR', currency: 'AUTHORISATION' }, eventCode: 'true', success: '' } // prettier-ignore
    for (const forged of [one, two, three, four, five]) {
      expect((await at.post({ body: bodyOf({ ...genuine, ...forged }) }))[0], JSON.stringify(forged)).toBe(401)
    }
    expect(handled()).toEqual(before)
  })

  test('what is not signed is not passed on', async () => {
    const genuine = item({ pspReference: 'psp-6' })
    for (const value of [[1_130], '1130', { toString: '1130' }]) {
      expect((await at.post({ body: bodyOf({ ...genuine, amount: { value, currency: 'EUR' } }) }))[0]).toBe(401)
    }
    const more = { ...genuine, reason: 'x', originalReference: '', amount: { ...genuine.amount, refunded: 1 } }
    expect((await at.post({ body: bodyOf(more) }))[0]).toBe(200)
    expect(data.at(-1)).toEqual({ pspReference: 'psp-6', originalReference: '', ...TYPICAL })
    // The same to whoever reads it: not another body under a known id.
    expect((await at.post({ body: bodyOf(genuine) }))[0]).toBe(200)
    expect(await box.quarantine()).toEqual([])
  })

  test.for([
    '',
    '{',
    'null',
    '[]',
    '{}',
    '{"notificationItems":[]}',
    '{"notificationItems":{}}',
    '{"notificationItems":[null]}',
    '{"notificationItems":[{}]}',
    '{"notificationItems":[{"NotificationRequestItem":{"amount":null}}]}',
  ])(
    // prettier-ignore
    'the unsigned body %s is refused',
    async (body) => {
      expect((await at.post({ body }))[0]).toBe(401)
    },
  )
})
