/** Senders, as their own code signs: the packages of Standard Webhooks, Stripe and GitHub. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sign as signGithub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import type { Incoming, Outcome } from 'oncebox'
import { webhook, type Scheme, type WebhookSource, type WebhookSourceOptions } from 'oncebox/webhook'

export const SECRETS: Readonly<Record<Scheme, string>> = {
  standard: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  stripe: 'whsec_b3RoZXIgc2VjcmV0',
  github: "It's a Secret to Everybody",
}
export const OLD_SECRETS: Readonly<Record<Scheme, string>> = {
  standard: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  stripe: 'whsec_b2xkIHNlY3JldA',
  github: 'the secret before',
}

export interface Sent {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export interface SignOptions {
  readonly secret?: string
  readonly id?: string
  /** When it is signed, in milliseconds. */
  readonly at?: number
}

/** An event of each scheme, with an id and a type. */
export function bodyOf(scheme: Scheme, id = 'evt_1', more: object = {}): string {
  if (scheme === 'stripe')
    return JSON.stringify({ id, type: 'note', created: nowSeconds(), pending_webhooks: 1, ...more })
  return JSON.stringify({ type: 'note', ...more })
}

export async function sign(scheme: Scheme, body: string, options: SignOptions = {}): Promise<Sent> {
  const { secret = SECRETS[scheme], id = 'msg_1', at = Date.now() } = options
  const headers = { 'content-type': 'application/json' }
  switch (scheme) {
    case 'standard': {
      const signature = new Webhook(secret).sign(id, new Date(at), body)
      const timestamp = String(Math.floor(at / 1_000))
      return {
        body,
        headers: { ...headers, 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature },
      }
    }
    case 'stripe': {
      const stripe = new Stripe('sk_test_nothing')
      const timestamp = Math.floor(at / 1_000)
      const signature = stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp })
      return { body, headers: { ...headers, 'stripe-signature': signature } }
    }
    case 'github':
      return {
        body,
        headers: {
          ...headers,
          'x-github-delivery': id,
          'x-github-event': 'note',
          'x-hub-signature-256': await signGithub(secret, body),
        },
      }
  }
}

export function toRequest({ body, headers }: Sent, more: Readonly<Record<string, string>> = {}): Request {
  return new Request('http://localhost/hook', { method: 'POST', headers: { ...headers, ...more }, body })
}

/** A webhook with a box behind it that takes everything, and what it was given. */
export function attached(options: Partial<WebhookSourceOptions> & { scheme: Scheme }): {
  readonly hook: WebhookSource
  readonly got: Incoming[]
} {
  const got: Incoming[] = []
  const hook = webhook({ secret: SECRETS[options.scheme], ...options })
  const deliver = async (batch: readonly Incoming[]): Promise<Outcome[]> => {
    got.push(...batch)
    return batch.map(({ id }) => ({ id, ack: true, status: 'stored', consumers: [] }))
  }
  void hook.start(deliver)
  return { hook, got }
}

export interface Served {
  readonly url: string
  readonly port: number
  [Symbol.asyncDispose](): Promise<void>
}

export async function serve(listener: RequestListener): Promise<Served> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000)
}
