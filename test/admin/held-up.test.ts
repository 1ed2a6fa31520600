/** A key whose first message waits for its retry goes on once that message leaves, and no sooner for what is behind it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Reject, RetryLater, type Box, type MessageMap } from 'oncebox'
import { open, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('held_up')
})
afterAll(() => opened.close())

const of = (id: string, type = 'note') => ({ id, type, source: 'shop', key: 'k', data: 1 })

/** `old` is dead and was skipped, `first` waits an hour for its retry, and two are behind it. */
async function heldUp() {
  const ran: string[] = []
  const box = opened.box()
  box.consumer(
    'c',
    {
      note: ({ id }) => void ran.push(id),
      bad({ id }) {
        ran.push(id)
        throw new Reject('no')
      },
      later({ id }) {
        ran.push(id)
        throw new RetryLater({ afterMs: 3_600_000 })
      },
    },
    { order: 'key', onDead: 'skip', group: { messages: 1 } },
  )
  await box.migrate()
  await box.receive([of('old', 'bad'), of('first', 'later'), of('second'), of('third')])
  await box.drain()
  expect(ran.splice(0)).toEqual(['old', 'first'])
  return Object.assign(box, { ran })
}

const WAYS: Record<string, (box: Box<MessageMap, never, unknown>, ...ids: string[]) => Promise<number>> = {
  discard: (box, ...id) => box.admin.discard({ id, state: ['pending', 'dead'] }, { reason: 'no use' }),
  markHandled: (box, ...ids) => box.admin.markHandled('c', ids, { source: 'shop' }),
}

describe.for(Object.entries(WAYS))('%s', ([, leave]) => {
  test.for<[leaves: string[], runs: string[]]>([
    [['first'], ['second', 'third']],
    [['first', 'second'], ['third']],
    [['first', 'third'], ['second']],
    [['second'], []],
    [['second', 'third'], []],
    [['old'], []],
  ])('when %j leave, %j run', async ([leaves, runs]) => {
    const box = await heldUp()
    expect(await leave(box, ...leaves)).toBe(leaves.length)
    await box.drain()
    expect(box.ran).toEqual(runs)
  })

  test('of a key of which all have left, the next message runs when it comes', async () => {
    const box = await heldUp()
    expect(await leave(box, 'first', 'second', 'third')).toBe(3)
    await box.receive(of('next'))
    await box.drain()
    expect(box.ran).toEqual(['next'])
  })
})

describe('retry', () => {
  test('of one that is behind the first does not make that one run before its time', async () => {
    const box = await heldUp()
    await box.admin.discard({ id: 'second', state: 'pending' }, { reason: 'no use' })
    expect(await box.admin.retry({ id: 'second' })).toBe(1)
    await box.drain()
    expect(box.ran).toEqual([])
    await box.admin.discard({ id: 'first', state: 'pending' }, { reason: 'no use' })
    await box.drain()
    expect(box.ran).toEqual(['second', 'third'])
  })

  test('of one that was before it runs at once', async () => {
    const box = await heldUp()
    expect(await box.admin.retry({ id: 'old' })).toBe(1)
    await box.drain()
    expect(box.ran[0]).toBe('old')
  })

  test('of the only one of a key runs at once', async () => {
    const box = await heldUp()
    await box.admin.discard({ state: 'pending' }, { reason: 'no use' })
    expect(await box.admin.retry({ id: 'third' })).toBe(1)
    await box.drain()
    expect(box.ran).toEqual(['third'])
  })
})
