/** Where a group goes on that has no offset, or whose offset is gone, whoever of its members reads there. */
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest'
import type { Incoming, Source } from 'oncebox'
import { waitUntil } from '../../support/wait.js'
import { settled } from '../recorder.js'
import { backlog, committedOffsets, publish, source, withAdmin, type Settings } from './adapter.mjs'
import { numbered, numbersOf, read, useBroker, type Reader } from './fixture.js'

const broker = useBroker()
const TIMEOUT = { timeout: 300_000 }
const PATIENCE = { timeoutMs: 60_000 }

const oneKey = (): string => 'k'
const told = ({ reports }: Pick<Reader, 'reports'>): string[] =>
  reports.filter(Boolean).map((problem) => (problem as Error).message)
const needsReal = ({ skip }: TestContext): void => skip(broker.isMock, 'kafka-mock keeps everything')

describe('a group that begins at the end', TIMEOUT, () => {
  const atTheEnd = { fromBeginning: false }
  const away = (): never => {
    throw new Error('the database is away')
  }
  const hasAll = (count: number, ...readers: Reader[]) =>
    waitUntil(() => new Set(readers.flatMap(({ messages }) => numbersOf(messages))).size === count, PATIENCE)

  async function createWithOld(): Promise<Settings> {
    const settings = await broker.create()
    await publish(settings, [{ headers: {}, body: '{"n":-1}', key: 'k' }])
    return settings
  }

  test('misses nothing that came while it did not run, though nothing came while it ran', async (context) => {
    needsReal(context)
    const settings = await createWithOld()
    const before = await read(source(settings, atTheEnd))
    await before.stop()
    await publish(settings, numbered(3, oneKey))
    await using after = await read(source(settings, atTheEnd))
    await hasAll(3, after)
    expect(before.messages).toEqual([])
    expect(numbersOf(after.messages)).toEqual([0, 1, 2])
  })

  test('misses nothing that the box could not take before a restart', async (context) => {
    needsReal(context)
    const settings = await createWithOld()
    const before = await read(source(settings, atTheEnd), away)
    await publish(settings, numbered(3, oneKey))
    await waitUntil(() => before.messages.length > 0, PATIENCE)
    await before.stop()
    await using after = await read(source(settings, atTheEnd))
    await hasAll(3, after)
    expect(numbersOf(after.messages)).toEqual([0, 1, 2])
  })

  test('misses nothing that the box could not take before a rebalance', async (context) => {
    needsReal(context)
    const settings = await createWithOld()
    const first = await read(source(settings, atTheEnd), away)
    onTestFinished(() => first.stop())
    await publish(settings, numbered(3, oneKey))
    await waitUntil(() => first.messages.length > 0, PATIENCE)
    await using second = await read(source(settings, atTheEnd))
    await first.stop()
    await hasAll(3, second)
    expect(numbersOf(second.messages)).toEqual([0, 1, 2])
  })

  test('with several members that start together misses nothing that came after their start', async (context) => {
    needsReal(context)
    const settings = await createWithOld()
    const readers = await Promise.all([1, 2, 3].map(() => read(source(settings, atTheEnd))))
    for (const reader of readers) onTestFinished(() => reader.stop())
    await publish(
      settings,
      numbered(60, (n) => `k${n}`),
    )
    await hasAll(60, ...readers)
    await waitUntil(async () => (await backlog(settings)) === 0, PATIENCE)
  })

  test('leaves an offset that is there as it is', async (context) => {
    needsReal(context)
    const settings = await broker.create()
    await publish(settings, numbered(10, oneKey))
    const { topic, groupId } = settings
    const partitions = [0, 1, 2].map((partition) => ({ partition, offset: '0' }))
    await withAdmin(settings.url, (admin) => admin.setOffsets({ groupId, topic, partitions }))
    await using reader = await read(source(settings, atTheEnd))
    await hasAll(10, reader)
  })
})

describe('what is gone', TIMEOUT, () => {
  /** Takes what is before an offset, and is asked to wait with the rest. */
  async function readUpTo(own: Source, offset: number, waitMs: number): Promise<Pick<Reader, 'messages' | 'reports'>> {
    onTestFinished(() => own.stop())
    const messages: Incoming[] = []
    const reports: unknown[] = []
    const offsetOf = ({ id }: Incoming): number => Number(id!.split(':')[2])
    const isLate = (message: Incoming): boolean => offsetOf(message) >= offset && offsetOf(message) < 2 * offset
    await own.start(
      async (batch) => {
        messages.push(...batch)
        const retryAt = new Date(Date.now() + waitMs)
        return batch.map((message) => settled(message, isLate(message) ? { retryAt } : undefined))
      },
      (problem) => reports.push(problem),
    )
    return { messages, reports }
  }

  test('when a member takes over from another is told', async (context) => {
    needsReal(context)
    const settings = await broker.create()
    await publish(settings, numbered(20, oneKey))
    const leaving = source(settings, { batch: 5 })
    const first = await readUpTo(leaving, 10, 15_000)
    await waitUntil(async () => [...(await committedOffsets(settings)).values()].includes(10), PATIENCE)
    const second = await readUpTo(source(settings, { batch: 5 }), 10, 15_000)
    await publish(settings, numbered(5, oneKey))
    const partition = Number(first.messages[0]!.id!.split(':')[1])
    await withAdmin(settings.url, async (admin) => {
      await admin.fetchTopicOffsets(settings.topic)
      await admin.deleteTopicRecords({ topic: settings.topic, partitions: [{ partition, offset: '20' }] })
    })
    await leaving.stop()
    await waitUntil(async () => (await backlog(settings)) === 0, PATIENCE)
    await waitUntil(() => told(first).length + told(second).length > 0, PATIENCE)
    expect([...told(first), ...told(second)]).toEqual([expect.stringMatching(/offset 10: 10 messages were deleted/)])
  })

  test.for([3, 1])(
    'with its topic, which was made anew with %i partitions while a member read, is told',
    async (numPartitions, context) => {
      needsReal(context)
      const settings = await broker.create()
      const { url, topic } = settings
      await publish(settings, numbered(20, oneKey))
      await using reader = await read(source(settings))
      await waitUntil(async () => (await backlog(settings)) === 0, PATIENCE)
      await withAdmin(url, (admin) => admin.deleteTopics({ topics: [topic] }))
      const make = (): Promise<boolean> =>
        withAdmin(url, (admin) => admin.createTopics({ topics: [{ topic, numPartitions }] }))
      const send = (): Promise<void> => make().then(() => publish(settings, numbered(10, oneKey)))
      await waitUntil(
        () =>
          send().then(
            () => true,
            () => false,
          ),
        PATIENCE,
      )
      await waitUntil(() => told(reader).some((text) => text.includes('made anew')), PATIENCE)
      expect(told(reader).filter((text) => text.includes('made anew'))).toEqual([
        expect.stringMatching(/offset 20: .*give it another source/),
      ])
    },
  )
})
