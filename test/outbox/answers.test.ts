/** Sinks that throw or answer anything: the relay goes on, and what was accepted is recorded. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Message } from 'oncebox'
import { publishApart } from '../../src/outbox/apart.js'
import { toEvent } from '../../src/outbox/publish.js'
import { waitUntil } from '../support/wait.js'
import { useServer, type Options } from './fixture.js'

const server = useServer('answers')
const QUICK = { retry: () => 0 }

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function closed(): object {
  const no = (): never => {
    throw new Error('no')
  }
  return new Proxy({}, { get: no, has: no, getPrototypeOf: no, ownKeys: no })
}

const UNREADABLE: [string, () => unknown][] = [
  ['an object without a prototype', () => Object.assign(Object.create(null) as object, { code: 'E_AWAY' })],
  ['an error whose message is an object', () => Object.assign(new Error('x'), { message: { code: 5 } })],
  ['an error without a message', () => Object.assign(new Error('x'), { message: undefined })],
  ['a revoked proxy', revoked],
  ['a proxy that throws', closed],
  ['a symbol', () => Symbol('x')],
  ['undefined', () => undefined],
]

/** What an answer says of one event: undefined and null, if there is one for each. */
function accepts(answers: unknown, at: number, expected: number): boolean {
  try {
    return Array.isArray(answers) && answers.length === expected && (answers[at] ?? undefined) === undefined
  } catch {
    return false
  }
}

/** A sink that behaves so in its first call, and takes everything from then on. */
async function firstCall(behave: (batch: readonly Message[]) => unknown, options: Options<never> = {}) {
  const box = await server.open(options as object)
  const taken: string[] = []
  let calls = 0
  box.to(
    {
      name: 's',
      async publish(batch) {
        calls++
        const answers = calls === 1 ? behave(batch) : batch.map(() => undefined)
        for (const [at, { id }] of batch.entries()) {
          if (accepts(answers, at, batch.length)) taken.push(id)
        }
        return answers as undefined[]
      },
      close: async () => {},
    },
    QUICK,
  )
  return { box, taken }
}

test.each(UNREADABLE)('a sink may throw %s: the relay goes on, and health says that it is down', async (_, make) => {
  let isDown = async (): Promise<boolean> => false
  const { box, taken } = await firstCall(() => {
    throw make()
  })
  isDown = async () => (await box.health()).reasons?.some((reason) => reason.startsWith('sink s is down')) ?? false
  await server.send(box, { id: 'a' })
  await box.start()
  await waitUntil(async () => taken.length > 0 || isDown())
  await waitUntil(() => taken.length > 0)
  expect(taken).toEqual(['a'])
})

test.each(UNREADABLE)('a sink may say that it is down because of %s', async (_, make) => {
  const { box, taken } = await firstCall((batch) => batch.map(() => ({ error: make(), retry: true, down: true })))
  await server.send(box, { id: 'a' })
  await box.start()
  await waitUntil(() => taken.length > 0)
})

test.each<[string, () => unknown]>([
  [
    'whose error cannot be read',
    () => ({
      get error() {
        throw new Error('getter')
      },
      retry: true,
    }),
  ],
  ['that cannot be looked at', closed],
  ['that was revoked', revoked],
  ['that is a text', () => 'no'],
  ['without an error', () => ({ retry: true })],
  ['with a wait that is no time', () => ({ error: new Error('x'), retry: true, afterMs: 'soon' })],
])('an answer %s keeps nobody else from being recorded', async (_, make) => {
  const { box, taken } = await firstCall((batch) => batch.map(({ id }) => (id === 'b' ? make() : undefined)))
  await server.send(box, { id: 'a' }, { id: 'b' }, { id: 'c' })
  await box.start()
  await waitUntil(() => taken.includes('b'))
  expect(taken.sort()).toEqual(['a', 'b', 'c'])
})

test('a sink that throws or answers anything ends no relay, and what it accepts is accepted once', async () => {
  // Made when they are needed: fast-check looks at its values, and not all of these can be looked at.
  type Make = () => unknown
  const plain = fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withSparseArray: true })
  const anything: fc.Arbitrary<Make> = fc.oneof(
    plain.map((value) => () => value),
    fc.constantFrom(...UNREADABLE.map(([, make]) => make)),
  )
  const fields = { error: anything, retry: anything, down: anything, afterMs: anything }
  const refusal = fc.record(fields, { requiredKeys: [] }).map((made) => (): unknown => {
    return Object.fromEntries(Object.entries(made).map(([name, make]) => [name, make()]))
  })
  const answer = fc.oneof(
    fc.constant<Make>(() => undefined),
    anything,
    refusal,
  )
  const list = fc.array(answer, { minLength: 3, maxLength: 3 })
  const call = fc.oneof(
    fc.record({ throws: anything }),
    fc.record({ answers: fc.oneof(anything, list.map((makes) => () => makes.map((make) => make()))) }), // prettier-ignore
  )
  await fc.assert(
    fc.asyncProperty(call, async (given) => {
      const { box, taken } = await firstCall(() => {
        if ('throws' in given) throw given.throws()
        return given.answers()
      })
      const accepted = (): string[] => taken.slice().sort()
      const ids = ['a', 'b', 'c']
      await server.send(box, ...ids.map((id) => ({ id })))
      await box.start()
      // An event that is told to wait, or given up, is not published, and is on record.
      const left = (): Promise<unknown[]> =>
        server.sql(box.schema, 'select 1 from ob.delivery where parked is null and (not waiting or due_at < now())')
      await waitUntil(async () => (await left()).length === 0)
      expect(accepted()).toEqual([...new Set(accepted())])
      const waiting = await server.sql(box.schema, 'select 1 from ob.delivery')
      expect(accepted()).toHaveLength(ids.length - waiting.length)
      await box.stop()
    }),
    { numRuns: 10 },
  )
})

test('a sink may change the messages that it is given: its answers are for the events', async () => {
  const box = await server.open()
  const ids: unknown[] = []
  const publish = (batch: readonly Message[]): Promise<undefined[]> => {
    ids.push(...batch.map(({ id }) => id))
    for (const message of batch) Object.assign(message, { id: 'changed', key: undefined })
    return Promise.resolve((batch as Message[]).splice(0).map(() => undefined))
  }
  box.to({ name: 's', publish, close: async () => {} })
  await server.send(box, { id: 'a', key: 'k' }, { id: 'b', key: 'k' })
  await box.drain()
  expect(ids).toEqual(['a', 'b'])
})

test.each([
  ['takes the keys away', undefined],
  ['gives all of them one key', 'same'],
])('a sink that %s is judged by the keys that events were sent with', async (_, key) => {
  const box = await server.open()
  const calls: string[][] = []
  const publish = (batch: readonly Message[]) => {
    calls.push(batch.map(({ id }) => id))
    for (const message of batch) Object.assign(message, { key })
    return Promise.resolve(batch.map(() => ({ error: new Error('no'), retry: true })))
  }
  box.to({ name: 's', publish, close: async () => {} }, { retry: () => 3_600_000 })
  await server.send(box, { id: 'a', key: 'k' }, { id: 'b', key: 'k' }, { id: 'c', key: 'l' })
  await box.drain()
  const rows = await server.sql(box.schema, 'select id, attempts from ob.delivery join ob.outbox using (n) order by id')
  // The second of a key was refused only because of the first.
  expect(rows).toEqual([
    { id: 'a', attempts: 1 },
    { id: 'b', attempts: 0 },
    { id: 'c', attempts: 1 },
  ])
  expect(calls).toEqual([['a', 'b', 'c']])
})

test('events that are published apart stay behind an earlier one of their key, whatever a sink makes of its messages', async () => {
  const calls: string[][] = []
  const publish = (batch: readonly Message[]): Promise<undefined[]> => {
    calls.push(batch.map(({ id }) => id))
    for (const message of batch) Object.assign(message, { key: undefined })
    return Promise.reject(new Error('thrown'))
  }
  const row = { type: 'event', source: 'shop', body: 'null', envelope: '{}', created: '0', shard: 0, attempts: 0 }
  const events = ['a', 'b'].map((id, at) => toEvent({ ...row, n: `${at + 1}`, id, key: 'k' }))
  const options = {
    retry: () => 0,
    publishTimeoutMs: 10_000,
    around: <A>(_batch: unknown, call: () => Promise<A>) => call(),
    isOurs: () => Promise.resolve(true),
    isProven: true,
  }
  const { failed } = await publishApart({ publish, close: async () => {} }, events, options)
  expect(calls).toEqual([['a', 'b'], ['a']])
  expect(failed.map(({ event: { id } }) => id)).toEqual(['a'])
})
