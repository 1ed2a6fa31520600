/** Ways around: what somebody may not see is in no reason, cursor, audit or fingerprint either, and cannot be asked for. */
import { expect, test } from 'vitest'
import { Reject, type Sink } from 'oncebox'
import type { Redactable } from 'oncebox/dashboard'
import type { Audit, Jobs, Keys, Messages, Outbox, Overview } from 'oncebox/dashboard/client'
import { createSigner } from '../../src/dashboard/sign.js'
import { useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { ask, open, requestFor, type Who } from './fixture.js'

const server = useServer('dashboard_unseen')
const at = { box: 'shop' } as const

/** The first event of a stream that tells of the overview. */
async function firstOverview(ops: ReturnType<typeof open>, who: Who): Promise<string> {
  const { body } = await ops.fetch(requestFor('stream', at, { who }))
  let text = ''
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    if (/event: overview\n.*\n/.test(text)) return text
  }
  throw new Error('the stream has ended')
}

async function send(box: Bench, data: object): Promise<void> {
  const tx = await server.pool.connect()
  try {
    await tx.query('begin')
    await box.send(tx, 'ev', data)
    await tx.query('commit')
  } finally {
    tx.release()
  }
}

test('why a sink is down is told without the error’s words to who may see no bodies, and to nobody with redact', async () => {
  await using box = await server.open()
  const publish = (): Promise<never> => Promise.reject(new Error('cannot reach amqp://user:hunter2@mq for card 4111-3333'))
  box.to({ name: 'bus', publish, close: () => Promise.resolve() } as Sink)
  await send(box, { card: '4111-3333' })
  await box.start()
  await waitUntil(async () => !(await box.health()).ok)
  const plain = open({ shop: box })
  const redacting = open({ shop: box }, { redact: (message) => message })
  for (const [ops, who, isShown] of [[plain, 'reader', false], [plain, 'looker', true], [redacting, 'all', false]] as const) {
    const { text, answer } = await ask(ops, 'overview', at, { who })
    expect([who, text.includes('4111-3333')]).toEqual([who, isShown])
    expect((answer as Overview).health.reasons).toContainEqual(expect.stringContaining('sink bus is down'))
    expect((answer as Overview).findings).toContainEqual(expect.objectContaining({ code: 'unhealthy', text: expect.stringContaining('sink bus is down') as string }))
    expect([who, (await firstOverview(ops, who)).includes('4111-3333')]).toEqual([who, isShown])
  }
}) // prettier-ignore

test('a cursor tells nothing of what it carries, and is of one reader', () => {
  const signer = createSigner('a secret of more than thirty-two characters')
  const bearer = { kind: 'page', subject: 'me', box: 'keys shop' } as const
  const token = signer.seal(bearer, { at: ['pay', 'acct-Kowalski'] })
  const parts = token.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'))
  expect(parts.join(' ')).not.toContain('Kowalski')
  expect(signer.open(bearer, token)).toEqual({ at: ['pay', 'acct-Kowalski'] })
  for (const other of [{ ...bearer, subject: 'you' }, { ...bearer, box: 'other' }, { ...bearer, kind: 'confirmation' as const }]) {
    expect(signer.open(other, token)).toBeUndefined()
  }
  for (const bad of ['', '.', 'a', `${token}A`, token.slice(0, -8), `A${token.slice(1)}`]) expect(signer.open(bearer, bad)).toBeUndefined()
}) // prettier-ignore

/** Keys and names are secret; a name is quoted by the error. */
const redact = ({ key: _, data, ...message }: Redactable): Partial<Redactable> => ({
  ...message,
  data: { ...(data as object), name: '•' },
})

async function fillNames(): Promise<Bench> {
  const box = await server.open()
  box.consumer('pay', { p: ({ data }) => Promise.reject(new Reject(`customer ${(data as { name: string }).name} is on the list`)) }, { order: 'key' }) // prettier-ignore
  for (const id of ['1', '2']) await box.receive([{ id, type: 'p', source: 's', key: 'acct-Kowalski', body: '{"name":"Kowalski","order":7}' }]) // prettier-ignore
  await box.drain()
  return box
}

test('the audit and the jobs show no search for a payload to a reader, however it was written', async () => {
  await using box = await fillNames()
  const ops = open({ shop: box })
  for (const q of ['state:"dead"error:"Kowalski"', 'state:"dead"data.name:"Kowalski"']) {
    const { answer } = await ask(ops, 'countRetry', { ...at, q })
    const { confirmation } = answer as { confirmation: string }
    await ask(ops, 'retry', { ...at, confirmation })
    await waitUntil(async () => ((await ask(ops, 'jobs', at)).answer as Jobs).jobs.every(({ state }) => state !== 'running'))
    await box.drain()
  }
  const { answer, text } = await ask(ops, 'audit', at, { who: 'reader' })
  expect((answer as Audit).records.length).toBeGreaterThanOrEqual(4)
  expect(text).not.toContain('Kowalski')
  expect((await ask(ops, 'jobs', at, { who: 'reader' })).text).not.toContain('Kowalski')
  expect((await ask(ops, 'audit', at, { who: 'looker' })).text).toContain('Kowalski')
}) // prettier-ignore

test('with redact, the audit and the jobs show no key that somebody has asked for to who may see no bodies', async () => {
  await using box = await fillNames()
  const plain = open({ shop: box })
  for (const q of ['state:dead key:acct-Kowalski', 'state:dead type:p']) {
    const { answer } = await ask(plain, 'countRetry', { ...at, q })
    await ask(plain, 'retry', { ...at, confirmation: (answer as { confirmation: string }).confirmation })
    await waitUntil(async () => ((await ask(plain, 'jobs', at)).answer as Jobs).jobs.every(({ state }) => state !== 'running'))
    await box.drain()
  }
  await box.admin.retry({ key: 'acct-Kowalski', state: 'dead' })
  const redacting = open({ shop: box }, { redact })
  for (const route of ['audit', 'jobs'] as const) {
    for (const [ops, who, isShown] of [[plain, 'reader', true], [redacting, 'reader', false], [redacting, 'looker', true]] as const) {
      const { text } = await ask(ops, route, at, { who })
      expect([route, who, text.includes('acct-Kowalski')]).toEqual([route, who, isShown])
      expect(text).toContain('state:dead type:p')
    }
  }
}) // prettier-ignore

test('the outbox shows no words of a sink’s error with redact, for they are of no one message', async () => {
  await using box = await server.open()
  const publish = (events: readonly unknown[]) => Promise.resolve(events.map(() => ({ error: new Error('refused 4111-3333'), retry: true })))
  box.to({ name: 'bus', publish, close: () => Promise.resolve() } as Sink)
  await send(box, { card: '4111-3333' })
  await box.start()
  const plain = open({ shop: box })
  const errorIn = async (ops: typeof plain) => ((await ask(ops, 'outbox', at)).answer as Outbox).sinks[0]?.error
  await waitUntil(async () => (await errorIn(plain)) !== undefined)
  expect((await errorIn(plain))!.message).toBe('refused 4111-3333')
  expect(await errorIn(open({ shop: box }, { redact: (message) => message }))).toEqual({ name: 'Error' })
}) // prettier-ignore

test('a secret at the cut of failures and keys is taken out too', async () => {
  await using box = await server.open()
  box.consumer('pay', { p: () => Promise.reject(new Reject(`${'x'.repeat(485)} hunter-swordfish-secret y`)) }, { order: 'key' })
  for (const id of ['1', '2']) await box.receive([{ id, type: 'p', source: 's', key: 'k', body: '{"pass":"hunter-swordfish-secret"}' }]) // prettier-ignore
  await box.drain()
  const ops = open({ shop: box }, { redact: (message) => ({ ...message, data: {} }) })
  for (const route of ['failures', 'keys', 'messages'] as const) {
    const { text } = await ask(ops, route, route === 'messages' ? { ...at, q: '' } : at)
    expect([route, text.includes('xxx'), text.includes('hunter')]).toEqual([route, true, false])
  }
}) // prettier-ignore

test('what redact takes out cannot be searched for by anybody: no error, no value, no key', async () => {
  await using box = await fillNames()
  const ops = open({ shop: box }, { redact })
  const found = async (q: string, who: Who): Promise<unknown> => {
    const { answer, status } = await ask(ops, 'messages', { ...at, q }, { who })
    return status === 200 ? (answer as Messages).items.map(({ id }) => id).sort() : status
  }
  expect(await found('error:Kowalski', 'all')).toBe(403)
  expect(await found('data.name:Kowalski', 'all')).toEqual([])
  expect(await found('data.name:•', 'all')).toEqual(['1', '2'])
  expect(await found('data.order:7', 'all')).toEqual(['1', '2'])
  for (const who of ['reader', 'all'] as const) {
    expect(await found('key:acct-Kowalski', who)).toEqual([])
    expect(await found('key:acct-Kowalski,other', who)).toEqual([])
  }
  const { answer } = await ask(ops, 'countRetry', { ...at, q: 'key:acct-Kowalski' })
  expect(answer).toMatchObject({ count: 0 })
  expect((await ask(ops, 'tally', { ...at, q: 'key:acct-Kowalski' })).answer).toMatchObject({ states: { dead: { count: 0 } } })
  const { keys } = (await ask(ops, 'keys', at)).answer as Keys
  expect(keys.map(({ key }) => key)).toEqual(['[redacted]'])
}) // prettier-ignore
