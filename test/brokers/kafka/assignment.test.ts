/** What a member does between two assignments, and around one: at moments that a broker cannot be made to hit. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Incoming, Outcome } from 'oncebox'
import { kafka } from 'oncebox/kafka'
import { gate, settled } from '../recorder.js'
import { Member, TOPIC } from './member.js'

const GROUP = { groupId: 'billing', topics: TOPIC }

function useFakeTime(): void {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
}

describe('a group that begins at the end', () => {
  test('and was not told where in time begins where it reads, not at an end that is found out later', async () => {
    useFakeTime()
    const { passed: answered, open: answer } = gate()
    let isConnected = false
    const member = new Member()
    const client = member.client([0], {
      connect: async () => void (isConnected = true),
      disconnect: async () => void (isConnected = false),
      fetchOffsets: async () => [{ topic: TOPIC, partitions: [{ partition: 0, offset: '-1' }] }],
      // Like kafkajs, which connects again for what it is asked after a disconnect.
      fetchTopicOffsets: () =>
        answered.then(() => {
          isConnected = true
          return [{ partition: 0, low: '0', high: '1050' }]
        }),
    })
    const source = kafka({ client, ...GROUP, fromBeginning: false })
    onTestFinished(() => source.stop())
    const warnings: string[] = []
    const started = source.start(
      async () => {
        throw new Error('the database is away')
      },
      () => undefined,
      (text) => warnings.push(text),
    )
    await vi.advanceTimersByTimeAsync(5_000)
    await started
    expect(member.isPaused(0)).toBe(false)
    // It has read 50 messages that were not taken.
    await member.fetched(0, 1_000, 50)
    answer()
    await vi.advanceTimersByTimeAsync(1)
    expect(member.commits).toEqual([])
    expect(warnings).toEqual([expect.stringContaining('could not be committed')])
    expect(isConnected).toBe(false)
  })

  test('is told where before it reads', async () => {
    const member = new Member()
    const client = member.client([0], {
      fetchOffsets: async () => [{ topic: TOPIC, partitions: [{ partition: 0, offset: '-1' }] }],
      fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: '1000' }],
    })
    const source = kafka({ client, ...GROUP, fromBeginning: false })
    onTestFinished(() => source.stop())
    await source.start(async () => [])
    expect(member.commits).toEqual([[0, '1000']])
  })

  test('is told nothing of a partition of which kafkajs does not say whether the group has an offset', async () => {
    const member = new Member()
    const client = member.client([0, 1], {
      fetchOffsets: async () => [{ topic: TOPIC, partitions: [{ partition: 0, offset: '-1' }] }],
      fetchTopicOffsets: async () => [0, 1].map((partition) => ({ partition, low: '0', high: '1000' })),
    })
    const source = kafka({ client, ...GROUP, fromBeginning: false })
    onTestFinished(() => source.stop())
    const warnings: string[] = []
    await source.start(
      async () => [],
      () => undefined,
      (text) => warnings.push(text),
    )
    expect(member.commits).toEqual([[0, '1000']])
    expect(warnings).toEqual([expect.stringContaining('could not be committed')])
  })
})

describe('what an earlier assignment left', () => {
  const isDone = (message: Incoming): Outcome => settled(message)

  test('does not make the member join again, when its commit fails late', async () => {
    useFakeTime()
    const { passed: failed, open: fail } = gate()
    const member = new Member()
    const source = kafka({ client: member.client([0, 1]), ...GROUP })
    onTestFinished(() => source.stop())
    await source.start(async (batch) => batch.map(isDone))
    const left = member.fetched(0, 10, 1, async () => {
      await failed
      throw Object.assign(new Error('the group is rebalancing'), { code: 27 })
    })
    await vi.advanceTimersByTimeAsync(100)
    await left
    member.join(0, 1)
    await vi.advanceTimersByTimeAsync(1)
    fail()
    await vi.advanceTimersByTimeAsync(1)
    await member.fetched(1, 5)
    expect(member.commits).toEqual([[1, '6']])
  })

  test('makes the member join again when its commit fails under its own assignment', async () => {
    useFakeTime()
    const { passed: failed, open: fail } = gate()
    const member = new Member()
    const source = kafka({ client: member.client([0, 1]), ...GROUP })
    onTestFinished(() => source.stop())
    await source.start(async (batch) => batch.map(isDone))
    const problem = Object.assign(new Error('the group is rebalancing'), { code: 27 })
    const left = member.fetched(0, 10, 1, () => failed.then(() => Promise.reject(problem)))
    await vi.advanceTimersByTimeAsync(100)
    await left
    fail()
    await vi.advanceTimersByTimeAsync(1)
    await expect(member.fetched(1, 5)).rejects.toBe(problem)
  })

  test.for(['waited for its turn', 'is done', 'waited for its retry'])(
    'and %s is not read before it is known where the group is',
    async (how) => {
      useFakeTime()
      const { passed, open } = gate()
      const { passed: looked, open: look } = gate()
      let looks = 0
      const member = new Member()
      const client = member.client([0, 1], { fetchOffsets: async () => (looks++ > 0 && (await looked), []) })
      const source = kafka({ client, ...GROUP, concurrency: 1 })
      onTestFinished(() => (open(), source.stop()))
      const retryAt = new Date(Date.now() + 1_000)
      const isRetry = how === 'waited for its retry'
      await source.start(async (batch) => {
        if (!isRetry) await passed
        return batch.map((message) => settled(message, isRetry ? { retryAt } : undefined))
      })
      const left = member.fetched(0, 10)
      await vi.advanceTimersByTimeAsync(100)
      await left
      const waiting = how === 'waited for its turn' ? 1 : 0
      if (waiting === 1) await member.fetched(1, 10)
      expect(member.isPaused(waiting)).toBe(true)

      member.join(0, 1)
      if (how === 'is done') open()
      await vi.advanceTimersByTimeAsync(2_000)
      expect([0, 1].map((partition) => member.isPaused(partition))).toEqual([true, true])
      look()
      await vi.advanceTimersByTimeAsync(1)
      expect(member.isPaused(waiting)).toBe(false)
    },
  )
})

test('what was deleted is told, though the client has given up the offset of the group before it joins again', async () => {
  const member = new Member()
  const log = { partition: 0, low: '0', high: '20' }
  let committed = '10'
  const client = member.client([0], {
    fetchOffsets: async () => [{ topic: TOPIC, partitions: [{ partition: 0, offset: committed }] }],
    fetchTopicOffsets: async () => [log],
  })
  const source = kafka({ client, ...GROUP })
  onTestFinished(() => source.stop())
  const reports: unknown[] = []
  await source.start(
    async (batch) => batch.map((message) => settled(message)),
    (problem) => void (problem === undefined || reports.push((problem as Error).message)),
  )
  // As kafkajs does when it is told that the log has nothing there any more.
  committed = '-2'
  log.low = '20'
  member.join(0)
  await vi.waitFor(() =>
    expect(reports).toEqual([expect.stringMatching(/offset 10: 10 messages were deleted before they were read/)]),
  )
})

describe('a partition that waits for its retry', () => {
  const later = (message: Incoming): Outcome => settled(message, { retryAt: new Date(Date.now() + 3_600_000) })

  async function startWaiting(member: Member, client = member.client([0, 1])): Promise<() => number> {
    let deliveries = 0
    const source = kafka({ client, ...GROUP })
    onTestFinished(() => source.stop())
    await source.start(async (batch) => {
      deliveries++
      return batch.map(later)
    })
    await member.fetched(0, 10)
    expect(member.isPaused(0)).toBe(true)
    return () => deliveries
  }

  test('and is taken away and assigned again in one breath, as Confluent’s client does, goes on waiting', async () => {
    useFakeTime()
    const member = new Member()
    const deliveries = await startWaiting(member, member.confluent([0, 1]))
    await member.takeAway(0, 1)
    await member.assign(0, 1)
    expect(member.isPaused(0)).toBe(true)
    await member.takeAway(0, 1)
    await member.assign(1)
    await member.takeAway(1)
    await member.assign(0, 1)
    expect(member.isPaused(0)).toBe(false)
    expect(deliveries()).toBe(1)
  })

  test('and goes to another member waits no longer when it comes back', async () => {
    useFakeTime()
    const member = new Member()
    const deliveries = await startWaiting(member)
    member.join(1)
    await vi.advanceTimersByTimeAsync(1)
    member.join(0, 1)
    await vi.advanceTimersByTimeAsync(1)
    expect(member.isPaused(0)).toBe(false)
    await member.fetched(0, 20)
    expect(deliveries()).toBe(2)
    expect(member.isPaused(0)).toBe(true)
  })

  test('and stays with its member goes on waiting', async () => {
    useFakeTime()
    const member = new Member()
    await startWaiting(member)
    member.join(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(member.isPaused(0)).toBe(true)
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(member.isPaused(0)).toBe(false)
  })
})

test('a source that tells what was deleted is not back for that: it has not read anything yet', async () => {
  const member = new Member()
  let committed = '20'
  const client = member.client([0], {
    fetchOffsets: async () => [{ topic: TOPIC, partitions: [{ partition: 0, offset: committed }] }],
    fetchTopicOffsets: async () => [{ partition: 0, low: '20', high: '20' }],
  })
  const source = kafka({ client, ...GROUP })
  onTestFinished(() => source.stop())
  const reports: (string | undefined)[] = []
  await source.start(
    async (batch) => batch.map((message) => settled(message)),
    (problem) => void reports.push((problem as Error | undefined)?.message),
  )
  committed = '10'
  member.crash(new Error('no broker'))
  const told = ['no broker', expect.stringContaining('10 messages were deleted')]
  await vi.waitFor(() => expect(reports).toEqual(told), 10_000)
  await member.fetched(0, 20)
  expect(reports).toEqual([...told, undefined])
})
