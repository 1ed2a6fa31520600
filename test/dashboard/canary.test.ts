/**
 * What must not be seen is not: a canary in every field that is a payload or quotes one, and everything that a role can ask
 * for.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Dashboard, Redactable } from 'oncebox/dashboard'
import type { FailureGroup, Item, RouteInput, RouteName } from 'oncebox/dashboard/client'
import { decodeWith } from '../../src/brokers/codec.js'
import { ROUTES } from '../../src/dashboard/routes.js'
import { useServer } from '../inbox/fixture.js'
import { ask, CANARY, fill, LARGE, open, requestFor, type Filled, type Who } from './fixture.js'

const server = useServer('dashboard_canary')
const CARD = '4111-1111'

let box: Filled
/** Every question about every message. */
let questions: [RouteName, object][]

beforeAll(async () => {
  box = await fill(server)
  const at = { box: 'shop' }
  const held = await box.sql('select n, id from ob.quarantine')
  // What a person has asked for is in the audit.
  await box.admin.retry({ error: CANARY, state: 'discarded' }, { by: 'me' })
  await box.admin.retry({ data: { secret: CANARY }, state: 'discarded' }, { by: 'me' })
  questions = [
    ...(['overview', 'vocabulary', 'failures', 'quarantine', 'keys', 'outbox', 'audit', 'jobs'] as const).map(
      (name): [RouteName, object] => [name, at],
    ),
    ...['', 'state:dead', 'state:quarantined', 'box:outbox', 'consumer:mail', 'state:handled'].map(
      (q): [RouteName, object] => ['messages', { ...at, q }],
    ),
    ...['h', 'd1', 'k1', 'k2', 'e', 'u', 'b'].flatMap((id): [RouteName, object][] => [
      ['message', { ...at, id }],
      ['conversation', { ...at, id }],
      ['body', { ...at, id }],
    ]),
    ...held.map(({ n }): [RouteName, object] => ['conflict', { ...at, n: String(n) }]),
    ...held.map(({ n, id }): [RouteName, object] => ['body', { ...at, id: id as string, n: String(n) }]),
    ['countRetry', { ...at, q: 'state:dead' }],
    ['countDiscard', { ...at, q: 'state:dead' }],
  ]
})
afterAll(() => box[Symbol.asyncDispose]())

async function everything(ops: Dashboard, who: Who): Promise<string[]> {
  const texts: string[] = []
  for (const [name, input] of questions) {
    const { text, headers } = await ask(ops, name, input as RouteInput<RouteName>, { who })
    texts.push(`${name} ${JSON.stringify(input)} ${JSON.stringify([...headers])} ${text}`)
  }
  return texts
}

/** In base64 too, at any of its three places. */
function has(text: string, secret: string): boolean {
  const encoded = [0, 1, 2].map((at) => Buffer.from('x'.repeat(at) + secret).toString('base64').slice(at === 0 ? 0 : 4, -4)) // prettier-ignore
  return [secret, ...encoded].some((form) => text.includes(form))
}

test.for<Who>(['nobody', 'reader', 'retry', 'discard', 'answer', 'pause'])('%s, who may see no bodies, sees none of it', async (who) => {
  const texts = await everything(open({ shop: box }), who)
  expect(texts.filter((text) => has(text, CANARY) || has(text, CARD) || text.includes(LARGE))).toEqual([])
}) // prettier-ignore

test('a reader learns no words of an error by asking for them', async () => {
  const ops = open({ shop: box })
  const asked = [`error:${CANARY}`, `data.secret:${CANARY}`, `error:a,b`, `state:dead data.cents:${LARGE}`]
  for (const q of asked) {
    for (const name of ['messages', 'countRetry', 'countDiscard'] as const) {
      const who = name === 'messages' ? 'reader' : name === 'countRetry' ? 'retry' : 'discard'
      const { status, answer } = await ask(ops, name, { box: 'shop', q }, { who })
      expect([name, status, answer]).toEqual([name, 403, { error: expect.objectContaining({ needs: 'bodies' }) }])
    }
  }
})

test('who may see bodies sees them all, numbers as they were written', async () => {
  const texts = await everything(open({ shop: box }), 'looker')
  const shown = texts.filter((text) => has(text, CANARY))
  for (const name of ['messages', 'message', 'body', 'conflict', 'keys', 'audit']) {
    expect([name, shown.some((text) => text.startsWith(`${name} `))]).toEqual([name, true])
  }
  const { text } = await ask(open({ shop: box }), 'body', { box: 'shop', id: 'h' })
  expect(text).toBe(`{"id":"h","cents":${LARGE},"secret":"${CANARY}","card":{"number":"${CARD}"}}`)
})

describe('redact', () => {
  const withoutSecret = ({ data, headers, subject: _, ...message }: Redactable): Partial<Redactable> => {
    const { secret: __, card: ___, other: ____, ...rest } = data as Record<string, unknown>
    return {
      ...message,
      data: { ...rest, card: { number: 'hidden' } },
      headers: { ...headers, 'x-secret': 'hidden' },
      result: { n: 1 },
    }
  }

  test('takes out of errors, effects, stacks and lists what it takes out of data, whoever looks', async () => {
    for (const who of ['all', 'looker', 'reader'] as const) {
      const texts = await everything(open({ shop: box }, { redact: withoutSecret }), who)
      // The audit has what people asked for themselves.
      const leaks = texts.filter((text) => (has(text, CANARY) || has(text, CARD)) && !text.startsWith('audit '))
      expect(leaks).toEqual([])
    }
  })

  test('leaves numbers as they were written', async () => {
    const { text } = await ask(open({ shop: box }, { redact: withoutSecret }), 'body', { box: 'shop', id: 'h' })
    expect(text).toBe(`{"id":"h","cents":${LARGE},"card":{"number":"hidden"}}`)
  })

  test('may change the message that it is given', async () => {
    const redact = (message: Redactable): Redactable => {
      const data = message.data as Record<string, unknown>
      data['secret'] = '***'
      return { ...message, headers: {} }
    }
    const { text } = await ask(open({ shop: box }, { redact }), 'body', { box: 'shop', id: 'h' })
    expect(text).toBe(`{"id":"h","cents":${LARGE},"secret":"***","card":{"number":"${CARD}"}}`)
    const { answer } = await ask(open({ shop: box }, { redact }), 'message', { box: 'shop', id: 'd1' })
    expect(JSON.stringify(answer)).not.toContain(CANARY)
  })

  test.for<[what: string, redact: () => never]>([
    ['throws', () => { throw new Error('broken') }],
    ['answers a promise', () => Promise.resolve({}) as never],
    ['answers nothing', () => undefined as never],
    ['answers a text', () => CANARY as never],
  ])('that %s shows nothing of a message', async ([, redact]) => {
    const reported: unknown[] = []
    const texts = await everything(open({ shop: box }, { redact, onError: (error) => reported.push(error) }), 'all')
    expect(texts.filter((text) => has(text, CANARY) && !text.startsWith('audit '))).toEqual([])
  }) // prettier-ignore

  test('that has nothing to look at shows no bytes', async () => {
    const [row] = await box.sql(`select n from ob.quarantine where id = 'b'`)
    const input = { box: 'shop', id: 'b', n: String(row!['n']) }
    expect((await ask(open({ shop: box }), 'body', input)).text).toContain(CANARY)
    expect((await ask(open({ shop: box }, { redact: (message) => message }), 'body', input)).status).toBe(403)
  })

  test('shows nothing of why bytes could not be decoded, for a codec may quote them', async () => {
    await using own = await server.open({ source: 'shop' })
    own.consumer('mail', { note: () => undefined })
    const codec = {
      contentType: 'application/x-own',
      decode: () => { throw new RangeError(`no field ${CANARY}`) },
      encode: () => Buffer.alloc(0),
    }
    await own.receive(decodeWith(codec, { id: 'c', type: 'note', source: 'shop', body: Buffer.from([0xff, 0x00]) }))
    const asked = [['messages', { box: 'shop', q: 'state:quarantined' }], ['message', { box: 'shop', id: 'c' }]] as const
    for (const [name, input] of asked) {
      expect((await ask(open({ shop: own }), name, input)).text).toContain(CANARY)
      const { text, status } = await ask(open({ shop: own }, { redact: (message) => message }), name, input)
      expect([name, status, text.includes('"c"'), text.includes(CANARY)]).toEqual([name, 200, true, false])
    }
  }) // prettier-ignore

  test('is asked about the key, which lists show to everybody', async () => {
    const redact = ({ key: _, ...message }: Redactable): Partial<Redactable> => message
    const listed = async (options: object): Promise<unknown[]> => {
      const { answer } = await ask(
        open({ shop: box }, options),
        'messages',
        { box: 'shop', q: 'id:k1' },
        { who: 'reader' },
      )
      const keys = await ask(open({ shop: box }, options), 'keys', { box: 'shop' }, { who: 'reader' })
      return [(answer as { items: Item[] }).items[0]!.key, (keys.answer as { keys: { key: string }[] }).keys[0]!.key]
    }
    expect(await listed({})).toEqual(['acct-1', 'acct-1'])
    expect(await listed({ redact })).toEqual([undefined, '[redacted]'])
  })
})

test('what went wrong here is told to the operator, and to nobody else', async () => {
  const reported: unknown[] = []
  const authorize = (): never => {
    throw new Error(CANARY)
  }
  const ops = open({ shop: box }, { authorize, onError: (error) => reported.push(error) })
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    const request = requestFor(name, { box: 'shop', id: 'h', n: '1', file: 'a', page: 'audit', job: 'a' } as never)
    const response = await ops.fetch(request)
    expect([name, response.status, (await response.text()).includes(CANARY)]).toEqual([name, 500, false])
  }
  expect(reported.length).toBe(Object.keys(ROUTES).length)
})

test('groups of failures have a query that finds them, and words without what varies', async () => {
  const { answer } = await ask(open({ shop: box }), 'failures', { box: 'shop' })
  const groups = (answer as { groups: FailureGroup[] }).groups
  expect(groups.map(({ consumer, count }) => [consumer, count])).toEqual([
    ['mail', 3],
    ['ledger', 1],
  ])
  const found = await ask(open({ shop: box }), 'messages', { box: 'shop', q: groups[0]!.query }, { who: 'looker' })
  expect((found.answer as { items: Item[] }).items.map(({ id }) => id).sort()).toEqual(['d1', 'd2', 'd3'])
  expect(groups[0]!.message).toContain('‹n› ms')
})
