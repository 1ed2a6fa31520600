/** What something else has handled is recorded as handled: copies of it are duplicates, and nothing of it waits any more. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Reject, RetryLater, type ConsumerOptions, type HandledId, type MessageMap } from 'oncebox'
import { gate } from '../inbox/fixture.js'
import { open, range, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('mark_handled')
})
afterAll(() => opened.close())

const DAY_MS = 86_400_000
const note = (id: string, rest: object = {}) => ({ id, type: 'note', source: 'shop', data: { id }, ...rest })

async function mailBox(options: ConsumerOptions<MessageMap> = {}) {
  const box = opened.box()
  const ran: string[] = []
  const held = gate()
  box.consumer(
    'mail',
    {
      note: (message) => void ran.push(message.id),
      bad: () => Promise.reject(new Reject('no')),
      later: () => Promise.reject(new RetryLater({ afterMs: 3_600_000 })),
      async slow(message) {
        ran.push(message.id)
        await held.opened
      },
    },
    options,
  )
  await box.migrate()
  return Object.assign(box, { ran, held })
}

describe('markHandled()', () => {
  test('makes copies duplicates, on every way in, whatever their type and data', async () => {
    const box = await mailBox()
    expect(await box.admin.markHandled('mail', ['a', 'b'], { source: 'shop', by: 'ann', reason: 'moving' })).toBe(2)
    expect(await box.receive([note('a'), note('c'), note('a', { source: 'other' })])).toMatchObject([
      { status: 'duplicate', ack: true },
      { status: 'stored' },
      { status: 'stored' },
    ])
    expect(await box.handle(note('b', { data: 'anything' }))).toMatchObject({ status: 'duplicate' })
    const client = await opened.pool.connect()
    await client.query('begin')
    const message = { id: 'a', source: 'shop', type: 'note' }
    expect(await box.once(client, 'mail', message, () => box.ran.push('once'))).toMatchObject({ status: 'duplicate' })
    await client.query('commit')
    client.release()
    await box.drain()
    expect(box.ran).toEqual(['c', 'a'])
    expect((await box.admin.audit()).records).toMatchObject([
      {
        action: 'mark-handled',
        by: 'ann',
        detail: { consumer: 'mail', given: 2, count: 2, source: 'shop', reason: 'moving' },
      },
    ])
  })

  test('counts what is new, and may be said again', async () => {
    const box = await mailBox()
    await box.receive(note('done'))
    await box.drain()
    expect(await box.admin.markHandled('mail', ['done', 'x', 'x', 'y'], { source: 'shop' })).toBe(2)
    expect(await box.admin.markHandled('mail', ['x', 'y', 'z', 'done'], { source: 'shop' })).toBe(1)
    expect((await box.admin.status()).consumers['mail']).toMatchObject({ handled: 4, pending: 0 })
    const [entry] = await box.admin.message({ id: 'x' })
    expect(entry).toMatchObject({ state: 'handled', message: { id: 'x', source: 'shop' }, handledAt: expect.any(Date) })
  })

  test.for(['none', 'key'] as const)(
    'settles what waits, is dead or given up, without running it; order: %s',
    async (order) => {
      const box = await mailBox({ order })
      await box.receive([
        { id: 'dead', type: 'bad', source: 'shop', key: 'k', data: 1 },
        { id: 'behind', type: 'note', source: 'shop', key: 'k', data: 1 },
        { id: 'later', type: 'later', source: 'shop', key: 'l', data: 1 },
        { id: 'given up', type: 'bad', source: 'shop', key: 'g', data: 1 },
      ])
      await box.drain()
      await box.admin.discard({ id: 'given up' }, { reason: 'no use' })
      await box.receive(note('waits', { key: 'w' }))
      const before = box.ran.length
      const ids = ['dead', 'later', 'given up', 'waits']
      expect(await box.admin.markHandled('mail', ids, { source: 'shop' })).toBe(4)
      await box.drain()
      // A dead message that blocked its key blocks it no longer.
      expect(box.ran.slice(before)).toEqual(order === 'key' ? ['behind'] : [])
      expect((await box.admin.status()).consumers['mail']).toMatchObject({
        handled: 5,
        pending: 0,
        dead: 0,
        discarded: 0,
      })
      expect(await box.receive(ids.map((id) => note(id, { type: 'note' })))).not.toContainEqual(
        expect.objectContaining({ status: 'stored' }),
      )
    },
  )

  test('waits for a worker that is at it; then it is handled, and not counted', async () => {
    const box = await mailBox()
    await box.receive({ id: 's', type: 'slow', source: 'shop', data: 1 })
    await box.start()
    await expect.poll(() => box.ran, { timeout: 30_000 }).toEqual(['s'])
    let marked: number | undefined
    const marking = box.admin.markHandled('mail', [...range(5).map(String), 's'], { source: 'shop' })
    void marking.then((count) => (marked = count))
    await expect.poll(async () => (await box.admin.status()).consumers['mail']!.handled, { timeout: 30_000 }).toBe(5)
    expect(marked).toBeUndefined()
    box.held.open()
    expect(await marking).toBe(5)
    await box.stop()
    expect(box.ran).toEqual(['s'])
  })

  test('waits for a copy that is handled on arrival, and lets the others go first', async () => {
    const box = await mailBox()
    const arriving = box.handle({ id: '3', type: 'slow', source: 'shop', data: 1 })
    await expect.poll(() => box.ran, { timeout: 30_000 }).toEqual(['3'])
    const marking = box.admin.markHandled('mail', range(9).map(String), { source: 'shop' })
    await expect.poll(async () => (await box.admin.status()).consumers['mail']?.handled, { timeout: 30_000 }).toBe(8)
    box.held.open()
    expect(await arriving).toMatchObject({ status: 'handled' })
    expect(await marking).toBe(8)
    expect(box.ran).toEqual(['3'])
  })

  test('after a minute it names what is still held; everything else is marked', async ({ onTestFinished }) => {
    const box = await mailBox()
    await box.receive({ id: 'stuck', type: 'slow', source: 'shop', data: 1 })
    await box.start()
    await expect.poll(() => box.ran, { timeout: 30_000 }).toEqual(['stuck'])
    const client = await opened.pool.connect()
    onTestFinished(() => client.release())
    await client.query('begin')
    await box.once(client, 'mail', { id: 'open', type: 'note', source: 'shop' }, () => 1)
    const ids = ['stuck', 'open', ...range(4_500).map(String)]
    const { now } = performance
    let ahead = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + ahead)
    onTestFinished(() => clock.mockRestore())
    const marking = box.admin.markHandled('mail', ids, { source: 'shop' }).catch((error: unknown) => error)
    const handled = async () => (await box.admin.status()).consumers['mail']!.handled
    await expect.poll(handled, { timeout: 30_000 }).toBe(4_500)
    // One is let go, while the one before it is held on.
    await client.query('rollback')
    await expect.poll(handled, { timeout: 30_000 }).toBe(4_501)
    ahead = 61_000
    const error = await marking
    expect(error).toMatchObject({ code: 'BUSY', message: expect.stringContaining('1 of these ids for mail') })
    expect(error).toMatchObject({ message: expect.stringContaining('right now: stuck;') })
    expect((await box.admin.audit()).records).toMatchObject([{ detail: { given: 4_502, count: 4_501 } }])
    box.held.open()
    expect(await box.admin.markHandled('mail', ids, { source: 'shop' })).toBe(0)
    await box.stop()
    expect(box.ran).toEqual(['stuck'])
  })

  test('remembers from the given time on: beyond the horizon nothing is recorded', async () => {
    const box = await mailBox({ retainMs: 10 * DAY_MS })
    const at = (days: number): Date => new Date(Date.now() - days * DAY_MS)
    const ids: HandledId[] = [
      { id: 'old', at: at(11) },
      { id: 'young', at: at(9) },
      { id: 'ahead', at: at(-5) },
      { id: 'now' },
    ]
    await box.receive(note('old'))
    await box.admin.discard({ id: 'old', state: 'pending' }, { reason: 'test' })
    // It is known, and therefore settled, however old it is.
    expect(await box.admin.markHandled('mail', ids, { source: 'shop' })).toBe(4)
    expect(await box.admin.markHandled('mail', [{ id: 'older', at: at(20) }], { source: 'shop' })).toBe(0)
    expect(await box.receive(note('older', { time: at(20) }))).toMatchObject({ reason: 'too-old' })
    await opened.setClock(box.schema, 2 * DAY_MS)
    expect(await box.admin.prune()).toBe(1)
    expect(await box.receive([note('young', { time: at(9) }), note('ahead'), note('now')])).toMatchObject([
      { reason: 'too-old' },
      { status: 'duplicate' },
      { status: 'duplicate' },
    ])
    const [{ late } = {}] = await opened.sql(box.schema, `select max(received_at) > ob.now() late from ob.message`)
    expect(late).toBe(false)
  })

  test('of a consumer with a business key, ids are its values, by type', async () => {
    const box = await mailBox({ identity: (message) => (message.data as { id: string }).id })
    await expect(box.admin.markHandled('mail', ['o-1'])).rejects.toThrow(/ids\[0\] needs a type/)
    expect(await box.admin.markHandled('mail', ['o-1', { id: 'o-1', type: 'bad' }], { type: 'note' })).toBe(2)
    expect(
      await box.receive([note('any', { data: { id: 'o-1' } }), note('else', { data: { id: 'o-2' } })]),
    ).toMatchObject([{ status: 'duplicate' }, { status: 'stored' }])
    const found = await box.admin.message({ id: 'note:o-1', consumer: 'mail' })
    expect(found).toMatchObject([{ state: 'handled', message: { id: 'note:o-1', type: 'note' } }])
  })

  test('business keys have at most 512 bytes, without their type', async () => {
    const box = await mailBox({ identity: (message) => (message.data as { id: string }).id })
    const [longest, longer] = ['k'.repeat(512), 'k'.repeat(513)]
    expect(
      await box.receive([note('a', { data: { id: longest } }), note('b', { data: { id: longer } })]),
    ).toMatchObject([{ status: 'stored' }, { status: 'quarantined', reason: 'no-id' }])
    expect(await box.admin.markHandled('mail', [{ id: longest, type: 'bad' }])).toBe(1)
    await expect(box.admin.markHandled('mail', [{ id: longer, type: 'bad' }])).rejects.toThrow('at most 512 bytes')
  })

  test('a type that is given is part of the message', async () => {
    const box = await mailBox()
    await box.admin.markHandled('mail', ['a'], { source: 'shop', type: 'bad' })
    expect(await box.receive(note('a'))).toMatchObject({ status: 'quarantined', reason: 'conflict' })
    expect(await box.receive(note('a', { type: 'bad' }))).toMatchObject({ status: 'duplicate' })
  })

  test('what was only marked cannot be replayed: nobody has its body', async () => {
    const box = await mailBox()
    await box.admin.markHandled('mail', ['a'], { source: 'shop' })
    expect(await box.admin.retry({ id: 'a', state: 'handled' })).toBe(0)
    expect((await box.admin.status()).consumers['mail']).toMatchObject({ handled: 1, pending: 0 })
  })

  test('takes what it iterates over in batches; what is wrong there ends it, and is named', async () => {
    const box = await mailBox()
    async function* ids() {
      for (let n = 0; n < 4_500; n++) yield n === 4_200 ? '' : String(n)
    }
    await expect(box.admin.markHandled('mail', ids())).rejects.toThrow('ids[4200] must not be empty')
    expect((await box.admin.audit()).records).toMatchObject([{ detail: { given: 4_000, count: 4_000 } }])
    expect(await box.admin.markHandled('mail', new Set(['1', 'new']))).toBe(1)
  })

  test.for<[what: string, ids: unknown, words: RegExp]>([
    ['an empty id', ['a', ''], /ids\[1\] must not be empty/],
    ['a number', ['a', 'b', 7], /ids\[2\] must be a string, or an object/],
    ['a malformed id', ['a\ud800'], /ids\[0\] must be well-formed/],
    ['NUL', [{ id: 'a\0' }], /ids\[0\]: its id must not contain NUL/],
    ['a huge id', ['a'.repeat(513)], /ids\[0\] must be at most 512 bytes/],
    ['an unknown property', [{ id: 'a', when: 1 }], /ids\[0\] has no option "when"/],
    ['a time that is none', [{ id: 'a', at: new Date('x') }], /ids\[0\]: its time/],
    ['a time as text', [{ id: 'a', at: '2020-01-01' }], /ids\[0\]: its time/],
    ['a source that is none', [{ id: 'a', source: 7 }], /ids\[0\]: its source must be a string/],
    ['a string, by its letters', 'abc', /ids must be an array/],
    ['nothing', undefined, /ids must be an array/],
  ])('refuses %s before anything is written', async ([, ids, words]) => {
    const box = await (refusing ??= mailBox())
    const refused = box.admin.markHandled('mail', ids as string[])
    await expect(refused).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(refused).rejects.toThrow(words)
    expect(await opened.sql(box.schema, 'select from ob.message')).toEqual([])
  })

  test('refuses a consumer that nobody has declared, and options that there are not', async () => {
    const box = await (refusing ??= mailBox())
    await expect(box.admin.markHandled('mial', ['a'])).rejects.toThrow('did you mean mail?')
    await expect(box.admin.markHandled('mial', ['a'])).rejects.toMatchObject({ code: 'CONSUMER_UNKNOWN' })
    await expect(box.admin.markHandled('mail', ['a'], { form: 1 } as never)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await expect(box.admin.markHandled('mail', ['a'], { source: 7 } as never)).rejects.toThrow(
      'source must be a string',
    )
  })
})
let refusing: ReturnType<typeof mailBox> | undefined
