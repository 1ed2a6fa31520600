/** What cannot be read when it is thrown: it is a failure like any other, wherever foreign code throws it. */
import { batch, type Sink, type Source } from 'oncebox'
import { idempotent } from 'oncebox/idempotency'
import { expect, test } from 'vitest'
import { inTransaction } from '../support/transaction.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('unreadable', { max: 20 })

function trap(name: PropertyKey, on: object = new Error('told')): object {
  return Object.defineProperty(on, name, {
    get() {
      throw new Error('trap')
    },
  })
}

class Inherited extends Error {
  override get message(): string {
    throw new Error('trap')
  }
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable(new Error('told'), {})
  revoke()
  return proxy
}

function cyclic(): unknown {
  const first = trap('message') as Error
  first.cause = new Error('second', { cause: first })
  return first
}

const NAMES = ['name', 'message', 'stack', 'code', 'cause', 'errors', 'parent', 'errno', 'detail', 'routine', 'when']
const OTHER: Record<string, () => unknown> = {
  revoked,
  cyclic,
  inherited: () => Object.assign(Object.create(Inherited.prototype) as object, { code: 'E' }),
  within: () => new Error('told', { cause: trap('message') }),
  'deep within': () => new Error('told', { cause: new Error('b', { cause: new Error('c', { cause: trap('code') }) }) }),
  'in an aggregate': () => new AggregateError([new Error('one'), trap('message')], 'told'),
  toString: () => ({
    toString() {
      throw new Error('trap')
    },
  }),
  toPrimitive: () => trap(Symbol.toPrimitive, {}),
  'no prototype': () => Object.create(null) as unknown,
  'a symbol for a message': () => Object.assign(new Error('told'), { message: Symbol('told') }),
  'an object for a name': () => Object.assign(new Error('told'), { name: { toString: null } }),
  'a message of five million': () => new Error('x'.repeat(5e6)),
  'a proxy that refuses all': () =>
    new Proxy(new Error('told'), {
      get() {
        throw new Error('trap')
      },
      has() {
        throw new Error('trap')
      },
      getPrototypeOf() {
        throw new Error('trap')
      },
    }),
}
const THROWN: Record<string, () => unknown> = {
  ...Object.fromEntries(NAMES.map((name) => [name, () => trap(name)])),
  ...OTHER,
}
const KINDS = Object.keys(THROWN)
const throwOf = (id: string): never => {
  throw THROWN[id]!()
}
const TWICE = { retry: { attempts: 2, baseMs: 0, jitter: 'none' } } as const

async function expectDead(box: Bench, runs: Map<string, number>, times = 2): Promise<void> {
  for (const id of KINDS) {
    expect({ id, ...(await box.fate(id)) }).toMatchObject({ id, state: 'dead', attempts: 2 })
    expect([id, runs.get(id)! <= times]).toEqual([id, true])
  }
}

function counted(): { readonly runs: Map<string, number>; run(id: string): never } {
  const runs = new Map<string, number>()
  return {
    runs,
    run(id) {
      runs.set(id, (runs.get(id) ?? 0) + 1)
      return throwOf(id)
    },
  }
}

test('stored, each uses up its attempts, and its neighbours are handled', async () => {
  await using box = await server.open({ logger: recorder() })
  const { runs, run } = counted()
  box.consumer('a', { note: ({ id }) => (id.startsWith('n') && !THROWN[id] ? undefined : run(id)) }, TWICE)
  await box.receive([...KINDS.map((id) => note(id)), note('n1'), note('n2')])
  await box.drain()
  // Twice in a group, twice by themselves.
  await expectDead(box, runs, 4)
  for (const id of ['n1', 'n2']) expect(await box.fate(id)).toMatchObject({ state: 'handled' })
  // What can be read of it is kept.
  expect(await box.fate('code')).toMatchObject({ error: { name: 'Error', message: 'told' } })
  expect(await box.fate('within')).toMatchObject({ error: { message: 'told', cause: { name: 'Error' } } })
})

test('in a batch, each uses up its attempts', async () => {
  await using box = await server.open({ logger: recorder() })
  const { runs, run } = counted()
  box.consumer('a', { note: batch(([message]) => run(message!.id)) }, TWICE)
  for (const id of KINDS) {
    await box.receive(note(id))
    await box.drain()
  }
  await expectDead(box, runs)
})

test('on arrival, each uses up its attempts', async () => {
  await using box = await server.open({ logger: recorder() })
  const { runs, run } = counted()
  box.consumer('a', { note: ({ id }) => run(id) }, { mode: 'inline', ...TWICE })
  for (const id of KINDS) {
    expect([id, await box.handle(note(id))]).toMatchObject([id, { status: 'failed' }])
    expect([id, await box.handle(note(id, { redelivered: true }))]).toMatchObject([id, { status: 'dead' }])
  }
  await expectDead(box, runs)
})

test('directly, each has failed', async () => {
  await using box = await server.open({ logger: recorder() })
  box.consumer('a', { note: ({ id }) => throwOf(id) }, { mode: 'direct' })
  for (const id of KINDS) expect([id, await box.handle(note(id))]).toMatchObject([id, { status: 'failed' }])
})

test('in an effect, each uses up its attempts', async () => {
  await using box = await server.open({ logger: recorder() })
  const { runs, run } = counted()
  box.consumer('a', { note: ({ id }, { effect }) => effect('call', () => run(id)) }, TWICE)
  await box.receive(KINDS.map((id) => note(id)))
  await box.drain()
  await expectDead(box, runs)
})

test('in the work of once, each reaches its caller as it is, and leaves no mark', async () => {
  await using box = await server.open({ logger: recorder() })
  await inTransaction(server.pool, async (client) => {
    for (const id of KINDS) {
      const error = THROWN[id]!()
      const work = (): never => {
        throw error
      }
      const same = await box.once(client, 'a', { id }, work).then(
        () => false,
        (told: unknown) => told === error,
      )
      expect([id, same]).toEqual([id, true])
    }
  })
  expect(await box.sql('select id from ob.message')).toEqual([])
})

test('in an endpoint, each fails its request, which can be made again', async () => {
  await using box = await server.open({ logger: recorder() })
  const told: string[] = []
  const endpoint = idempotent(box, { name: 'e', scope: () => 's', onError: () => told.push('error') }, (request) =>
    throwOf(new URL(request.url).searchParams.get('id')!),
  )
  for (const id of KINDS) {
    const url = `http://localhost/?id=${encodeURIComponent(id)}`
    const answer = await endpoint.fetch(new Request(url, { method: 'POST', headers: { 'idempotency-key': `"${id}"` } }))
    expect([id, answer.status]).toEqual([id, 500])
  }
  expect(told).toHaveLength(KINDS.length)
})

test('from a sink, each uses up its attempts as a refusal, and none passes for an answer when it is thrown', async () => {
  await using box = await server.open({ logger: recorder() })
  let refusing = false
  const tried: string[] = []
  const sink: Sink = {
    publish(events) {
      const id = (events[0]!.data as { id: string }).id
      tried.push(id)
      if (!refusing) throw THROWN[id]!()
      return Promise.resolve(
        events.map((event) => ({ error: THROWN[(event.data as { id: string }).id]!(), retry: true })),
      )
    },
    close: () => Promise.resolve(),
  }
  box.to(sink, { name: 's', ...TWICE, batch: 1 })
  await inTransaction(server.pool, async (client) => {
    for (const id of KINDS) await box.send(client, 'event', { id })
  })
  await box.start()
  await waitUntil(() => tried.length > 0)
  refusing = true
  await waitUntil(
    async () =>
      (await box.sql(`select 1 from ob.delivery where parked = 'dead' and attempts = 2`)).length === KINDS.length,
    { what: 'all events to be dead' },
  )
})

test('from hooks and a source, none is more than a line in the log', async () => {
  const logger = recorder()
  const left = [...KINDS]
  await using box = await server.open({
    logger,
    hooks: {
      dead: ({ message }: { message: { id: string } }) => throwOf(message.id),
      error: () => throwOf(KINDS[0]!),
    },
  })
  box.consumer('a', { note: () => Promise.reject(new Error('no')) }, { retry: { attempts: 1 } })
  const source: Source = {
    name: 'src',
    start() {
      const id = left.pop()
      return id === undefined ? Promise.resolve() : Promise.reject(THROWN[id]!())
    },
    stop: () => Promise.resolve(),
  }
  box.from(source)
  await box.receive(KINDS.map((id) => note(id)))
  await box.start()
  await waitUntil(() => logger.lines.filter(({ text }) => text === 'a hook failed').length >= KINDS.length, {
    what: 'every hook to fail',
  })
  await waitUntil(() => left.length < KINDS.length - 3, { what: 'the source to be started again' })
})
