/** The recipes for senders run as they stand: requests are signed here, independently of the library. */
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
beforeAll(async () => {
  Object.assign(process.env, { SHOPIFY_SECRET: SECRET, SLACK_SIGNING_SECRET: SECRET, PARTNER_SECRET: SECRET })
  Object.assign(process.env, { ADYEN_HMAC_KEY: KEY, PAYPAL_WEBHOOK_ID: 'WH-1' })
  box = await server.open()
  box.consumer('a', { '*': ({ id, type, source }) => void got.push(`${source} ${type} ${id}`) }, { mode: 'inline' })
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
  ['shopify', shopify('{"order":1}'), 'shopify shopify.orders/create event-1'],
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
})

test('adyen: every item is handled once, and one that is forged refuses all', async () => {
  const item = (pspReference: string, value = 1_130, key = KEY) => {
    const fields = [
      pspReference,
      '',
      'TestMerchant',
      'TestPayment-1407325143704',
      value,
      'EUR',
      'AUTHORISATION',
      'true',
    ].join(':')
    const hmacSignature = hmac(fields, 'base64', Buffer.from(key, 'hex'))
    return {
      NotificationRequestItem: {
        additionalData: { hmacSignature },
        amount: { value, currency: 'EUR' },
        eventCode: 'AUTHORISATION',
        merchantAccountCode: 'TestMerchant',
        merchantReference: 'TestPayment-1407325143704',
        pspReference,
        success: 'true',
      },
    }
  }
  const bodyOf = (...notificationItems: object[]): string => JSON.stringify({ live: 'false', notificationItems })
  // The example of Adyen's own libraries.
  expect(item('7914073381342284').NotificationRequestItem.additionalData.hmacSignature).toBe(
    'coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=',
  )
  await using at = await attach('adyen')
  const body = bodyOf(item('psp-1'), item('psp-2'))
  expect(await at.post({ body })).toEqual([200, '[accepted]'])
  expect(await at.post({ body })).toEqual([200, '[accepted]'])
  expect((await at.post({ body: bodyOf(item('psp-3'), item('psp-4', 1, KEY.replace('4', '5'))) }))[0]).toBe(401)
  const handled = ['psp-1', 'psp-2'].map((psp) => `adyen adyen.AUTHORISATION ${psp}:AUTHORISATION:true`)
  expect(got.filter((one) => one.startsWith('adyen')).sort()).toEqual(handled)
})
