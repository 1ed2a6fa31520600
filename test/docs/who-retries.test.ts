/** The table "Who retries what" is read from its page, and every row of it is tried. */
import { expect, test } from 'vitest'
import { Reject, RetryLater, type ConsumerOptions, type MessageMap, type Outcome } from 'oncebox'
import { note, useServer, type Bench } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { readPage } from './markdown.js'

const server = useServer('who_retries')

type Options = ConsumerOptions<MessageMap>

const CONSUMERS: Readonly<Record<string, Options>> = {
  '`stored`': {},
  "`order: 'key'`": { order: 'key' },
  '`inline`': { mode: 'inline' },
  "`inline` + `retryBy: 'box'`": { mode: 'inline', retryBy: 'box' },
  '`direct`': { mode: 'direct' },
}
const HANDLERS: Readonly<Record<string, readonly [thrown: Error, attempts: number]>> = {
  throws: [new Error('no'), 10],
  'throws on the last attempt': [new Error('no'), 1],
  '`Reject`': [new Reject('no'), 10],
  '`RetryLater`': [new RetryLater({ afterMs: 60_000 }), 10],
}
const DOORS: Readonly<Record<string, (box: Bench) => Promise<Outcome>>> = {
  '`receive`': (box) => box.receive(note('1', { key: 'k' })),
  '`handle`': (box) => box.handle(note('1', { key: 'k' })),
  async 'a source'(box) {
    let outcome: Outcome | undefined
    const start = async (deliver: (batch: [ReturnType<typeof note>]) => Promise<readonly Outcome[]>): Promise<void> => {
      outcome = (await deliver([note('1', { key: 'k' })]))[0]
    }
    box.from({ push: true, start, stop: async () => undefined }, { types: 'any' })
    return waitUntil(() => outcome)
  },
}

const rows = tableOf('docs/retries-and-dead-letters.md', '## Who retries what').flatMap(
  ([doors = '', consumers = '', handlers = '', status = '', ack = '', retriedBy = '', hook = '']) =>
    each(doors).flatMap((door) =>
      each(consumers).flatMap((consumer) =>
        each(handlers).map((handler) => ({ door, consumer, handler, status, ack, retriedBy, hook })),
      ),
    ),
)

test('the table has rows, in words that are known here', () => {
  expect(rows.length).toBeGreaterThan(25)
  for (const { door, consumer, handler } of rows) {
    expect([DOORS[door], CONSUMERS[consumer], HANDLERS[handler]], `${door} ${consumer} ${handler}`).not.toContain(
      undefined,
    )
  }
})

test.for(rows)('$door, $consumer, $handler: $status, $retriedBy', async (row) => {
  const told: string[] = []
  await using box = await server.open({
    hooks: {
      failed: (_entry, { retryBy, retryAt }) => void told.push('failed', retryBy, retryAt ? 'at' : 'some time'),
      dead: () => void told.push('dead'),
      error: (error) => void told.push(error.message),
    },
  })
  const [thrown, attempts] = HANDLERS[row.handler]!
  let runs = 0
  const handler = (): never => {
    runs++
    throw thrown
  }
  const retry = { attempts, baseMs: 60_000, jitter: 'none' } as const
  box.consumer('a', { note: handler }, { ...CONSUMERS[row.consumer], retry })
  const outcome = await DOORS[row.door]!(box)
  expect([`\`${outcome.status}\``, String(outcome.ack)]).toEqual([row.status, row.ack])
  await box.drain()
  expect(runs).toBe(1)
  const by = row.retriedBy.replace('the ', '')
  const expected = {
    '`failed`': ['failed', by, row.consumer === '`direct`' && by !== 'box' ? 'some time' : 'at'],
    '`dead`': ['dead'],
    none: [],
  }
  expect(told).toEqual(expected[row.hook as keyof typeof expected])
  const [fate] = await box.fates('1')
  if (by === 'nobody') expect(fate?.state).toBe('dead')
  // The box has it, and runs it again when its time has come; a source keeps what is not acknowledged.
  if (by === 'box') {
    await box.clock.advance(120_000)
    await box.drain()
    expect(runs).toBe(2)
  }
  if (by === 'source') expect([outcome.ack, fate?.state ?? 'failed']).toEqual([false, 'failed'])
})

function each(cell: string): string[] {
  return cell.split(', ')
}

/** The cells of the first table under a heading, without its head. */
function tableOf(page: string, heading: string): string[][] {
  const text = readPage(page)
  const lines = text.slice(text.indexOf(heading)).split('\n')
  const from = lines.findIndex((line) => line.startsWith('|')) + 2
  const length = lines.slice(from).findIndex((line) => !line.startsWith('|'))
  return lines.slice(from, from + length).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}
