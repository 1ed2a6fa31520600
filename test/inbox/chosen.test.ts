/** What a source chooses to compare: it holds for copies that came through another door, and for what leaves the quarantine. */
import { describe, expect, test } from 'vitest'
import type { Incoming, Message, Source, StandardSchemaV1 } from 'oncebox'
import { type Bench, useServer } from './fixture.js'

const server = useServer('chosen')

type Send = Parameters<Source['start']>[0]

/** A source whose deliveries differ in `noise`, which it does not count. */
function noisy(compares: (message: Incoming) => unknown): Source & { readonly push: true; send: Send } {
  return {
    push: true,
    fingerprint: compares,
    send: () => Promise.reject(new Error('not started')),
    async start(deliver) {
      this.send = deliver
    },
    async stop() {},
  }
}

const stable = (data: unknown): unknown => (data as { stable: unknown }).stable
const SHAPES = {
  data: {
    compares: ({ data }: Incoming) => stable(data),
    message: (data: object): Incoming => ({ id: '1', type: 'note', data }),
  },
  bytes: {
    compares: ({ body }: Incoming) => stable(JSON.parse((body as Buffer).toString('utf8'))),
    message: (data: object): Incoming => ({ id: '1', type: 'note', body: Buffer.from(JSON.stringify(data)) }),
  },
  text: {
    compares: ({ body, headers }: Incoming) => [stable(JSON.parse(body as string)), headers?.['of']],
    message: (data: object): Incoming => ({ id: '1', type: 'note', headers: { of: 'x' }, body: JSON.stringify(data) }),
  },
}

/** How the first copy came; the last has failed there. */
const FIRST = {
  receive: (box: Bench, message: Incoming) => box.receive(message),
  handle: (box: Bench, message: Incoming) => box.handle(message),
  'handle, redelivered': (box: Bench, message: Incoming) => box.handle({ ...message, redelivered: true }),
} as const

const cases = Object.keys(SHAPES).flatMap((shape) =>
  Object.keys(FIRST).map((first) => ({ shape: shape as keyof typeof SHAPES, first: first as keyof typeof FIRST })),
)

describe('a copy from a source that chooses, of what came by another door', () => {
  test.for(cases)('$first, in $shape', async ({ shape, first }) => {
    await using box = await server.open()
    box.consumer('inline', { note: () => undefined }, { mode: 'inline' })
    box.consumer('stored', { note: () => undefined })
    const { compares, message } = SHAPES[shape]
    const source = box.from(noisy(compares), { types: 'any' })
    await FIRST[first](box, message({ stable: 1, noise: 1 }))
    expect(await source.send([message({ noise: 2, stable: 1 })])).not.toMatchObject([{ status: 'quarantined' }])
    await box.drain()
    expect(await source.send([message({ stable: 1, noise: 3 })])).toMatchObject([{ status: 'duplicate' }])
    expect(await source.send([message({ stable: 2, noise: 1 })])).toMatchObject([{ reason: 'conflict' }])
  })

  test('that failed there, and is taken over', async () => {
    await using box = await server.open()
    const seen: unknown[] = []
    box.consumer(
      'a',
      {
        note({ data }) {
          seen.push(data)
          if (seen.length === 1) throw new Error('not yet')
        },
      },
      { mode: 'inline' },
    )
    const { compares, message } = SHAPES.data
    const source = box.from(noisy(compares), { types: 'any' })
    expect(await box.handle(message({ stable: 1, noise: 1 }))).toMatchObject({ status: 'failed' })
    expect(await source.send([message({ stable: 1, noise: 2 })])).toMatchObject([{ status: 'handled' }])
    expect(seen).toHaveLength(2)
  })

  test('a choice that cannot be made of it leaves all of the data to be compared', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const compares = ({ data }: Incoming): unknown => (data as { list: unknown[] }).list.length
    const source = box.from(noisy(compares), { types: 'any' })
    await box.receive({ id: '1', type: 'note', data: {} })
    expect(await source.send([{ id: '1', type: 'note', data: { list: [] } }])).toMatchObject([{ reason: 'conflict' }])
  })
})

describe('a copy by another door, of what came from a source that chooses', () => {
  test.for(['receive', 'handle'] as const)('%s', async (door) => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const { compares, message } = SHAPES.data
    const source = box.from(noisy(compares), { types: 'any' })
    await source.send([message({ stable: 1, noise: 1 })])
    await box.drain()
    expect(await box[door](message({ stable: 1, noise: 1 }))).toMatchObject({ status: 'duplicate' })
    expect(await box[door](message({ noise: 1, stable: 1 }))).toMatchObject({ status: 'duplicate' })
    // Which fields do not count is not known here: a person decides.
    expect(await box[door](message({ stable: 1, noise: 2 }))).toMatchObject({ reason: 'conflict' })
  })
})

describe('what a person releases keeps the choice of its source', () => {
  let strict = true
  const schema: StandardSchemaV1<unknown> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => (strict ? { issues: [{ message: 'not yet' }] } : { value }),
    },
  }
  const REFUSED = {
    invalid: { messages: { note: schema }, types: 'any' },
    'not-allowed': { types: ['other'] },
    'no-id': {
      types: 'any',
      identity: ({ id }: Message) => {
        if (strict) throw new Error('not yet')
        return id
      },
    },
  } as const
  const each = Object.keys(REFUSED).flatMap((reason) =>
    (['some', 'nothing'] as const).map((compared) => ({ reason: reason as keyof typeof REFUSED, compared })),
  )

  test.for(each)('refused as $reason, $compared of it compared', async ({ reason, compared }) => {
    strict = true
    const { types, messages, identity } = REFUSED[reason] as {
      types: 'any' | string[]
      messages?: { note: StandardSchemaV1<unknown> }
      identity?: (message: Message) => string
    }
    await using box = await server.open(messages && { messages })
    box.consumer('a', { note: () => undefined }, identity ? { identity } : {})
    const { compares, message } = SHAPES.data
    const source = box.from(noisy(compared === 'some' ? compares : () => false), { types: types as never })
    expect(await source.send([message({ stable: 1, noise: 1 })])).toMatchObject([{ status: 'quarantined', reason }])
    strict = false
    await box.admin.retry({ state: 'quarantined', id: '1' })
    expect(await box.quarantine()).toEqual([])
    expect(await box.sql('select hash is null and unhashed is null not_compared, unhashed from ob.message')).toEqual([
      { not_compared: compared === 'nothing', unhashed: null },
    ])
    const copy = message({ stable: 1, noise: 2 })
    if (types === 'any') expect(await source.send([copy])).toMatchObject([{ status: 'duplicate' }])
    if (compared === 'nothing') expect(await box.receive(copy)).toMatchObject({ status: 'duplicate' })
  })
})
