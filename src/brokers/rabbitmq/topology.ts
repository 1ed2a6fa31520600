/** Creates what is missing; what is there must be as it is asked for, or the broker refuses. */
import type { RabbitChannel } from './client.js'
import type { ResolvedSink, ResolvedSource } from './options.js'

export async function assertQueue(channel: RabbitChannel, { queue, topology }: ResolvedSource): Promise<void> {
  if (!topology) return
  const { type = 'quorum', deadLetterExchange, bindings = {}, arguments: further, exchangeType } = topology
  await channel.assertQueue(queue, {
    durable: true,
    ...(deadLetterExchange !== undefined && { deadLetterExchange }),
    arguments: { 'x-queue-type': type, ...further },
  })
  for (const [exchange, patterns] of Object.entries(bindings)) {
    await assertExchangeOf(channel, exchange, exchangeType)
    for (const pattern of [patterns].flat()) await channel.bindQueue(queue, exchange, pattern)
  }
}

export async function assertExchange(channel: RabbitChannel, { exchange, topology }: ResolvedSink): Promise<void> {
  if (topology) await assertExchangeOf(channel, exchange, topology.exchangeType)
}

async function assertExchangeOf(channel: RabbitChannel, exchange: string, type = 'topic'): Promise<void> {
  // The default exchange, and those that the broker brings along, are there.
  if (exchange !== '' && !exchange.startsWith('amq.')) await channel.assertExchange(exchange, type, { durable: true })
}
