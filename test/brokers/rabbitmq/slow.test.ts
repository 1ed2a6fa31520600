/** A sink of a broker that is slow, or takes nothing for now. */
import { connect } from 'amqplib'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Sink } from 'oncebox'
import { rabbitmq } from 'oncebox/rabbitmq'
import type { PrivateRabbit } from '../../../tools/services/rabbitmq.mjs'
import { slowProxy } from '../../drivers/slow-proxy.js'
import { waitUntil } from '../../support/wait.js'
import { loadAdapter } from '../adapter.js'
import { event } from '../recorder.js'

const adapter = await loadAdapter(new URL('./adapter.mjs', import.meta.url))
const DELAY_MS = 50
const TIMEOUT = { timeout: 240_000 }

let service: PrivateRabbit
beforeAll(async () => {
  service = (await adapter.start()) as PrivateRabbit
}, 300_000)
afterAll(() => service?.stop())

const open = (options: Parameters<typeof rabbitmq>[0] & { exchange: string }): Sink => {
  const sink = rabbitmq(options)
  onTestFinished(() => sink.close())
  return sink
}
const limitsOf = (timeoutMs: number) => ({ timeoutMs, signal: AbortSignal.timeout(timeoutMs) })

async function slow(): Promise<{ url: string; exchange: string; idsOf(): Promise<string[]> }> {
  const settings = await adapter.create(service.url, { type: 'classic' })
  const proxy = await slowProxy(service.url, DELAY_MS)
  onTestFinished(() => proxy.close())
  const idsOf = async (): Promise<string[]> => {
    const connection = await connect(service.url)
    const channel = await connection.createChannel()
    const ids: string[] = []
    for (;;) {
      const message = await channel.get(settings['queue'] as string, { noAck: true })
      if (message === false) break
      ids.push(message.properties.messageId as string)
    }
    await connection.close()
    return ids
  }
  return { url: proxy.url, exchange: settings['exchange'] as string, idsOf }
}
const ofOneKey = (count: number) => Array.from({ length: count }, (_, n) => event(`e${n}`, { key: 'k' }))

test('when half of its time is over it begins no more, and nothing is doubled', TIMEOUT, async () => {
  const { idsOf, ...where } = await slow()
  const sink = open(where)
  await sink.publish([event('first')])
  const batch = ofOneKey(60)
  const answers = await sink.publish(batch, limitsOf(1_500))
  const count = answers.findIndex((answer) => answer !== undefined)
  expect(count).toBeGreaterThan(0)
  expect(answers.slice(count).map((answer) => answer?.afterMs)).toEqual(batch.slice(count).map(() => 0))
  expect(await sink.publish(batch.slice(count))).toEqual(batch.slice(count).map(() => undefined))
  expect(await idsOf()).toEqual(['first', ...batch.map(({ id }) => id)])
})

test('a broker that confirms one event after the other is not taken for one that is silent', TIMEOUT, async () => {
  const { idsOf, ...where } = await slow()
  const sink = open({ ...where, timeoutMs: 1_000 })
  const batch = ofOneKey(40)
  expect(await sink.publish(batch)).toEqual(batch.map(() => undefined))
  expect(await idsOf()).toEqual(batch.map(({ id }) => id))
})

test(
  'a broker that is short of memory is told of by that name, and publishes when it has some',
  TIMEOUT,
  async ({ skip }) => {
    skip(service.kind === 'given', 'the broker is not ours')
    const settings = await adapter.create(service.url)
    const sink = open({ url: service.url, exchange: settings['exchange'] as string, timeoutMs: 2_000 })
    expect(await sink.publish([event('before')])).toEqual([undefined])
    const batch = [event('meanwhile'), event('too')]
    await service.control('set_vm_memory_high_watermark', '0.0000001')
    try {
      await expect(sink.publish(batch)).rejects.toThrow(/takes no messages .*memory/)
      await expect(sink.publish(batch, limitsOf(1_000))).rejects.toThrow(/takes no messages .*memory/)
    } finally {
      await service.control('set_vm_memory_high_watermark', '0.4')
    }
    const isPublished = async (): Promise<boolean> => {
      const answers = await sink.publish(batch).catch(() => [null])
      return answers.every((answer) => answer === undefined)
    }
    await waitUntil(isPublished, { timeoutMs: 60_000 })
  },
)
