/** RabbitMQ as the suites for all brokers see it. */
import { randomBytes } from 'node:crypto'
import { connect } from 'amqplib'
import { rabbitmq } from 'oncebox/rabbitmq'

import * as service from '../../../tools/services/rabbitmq.mjs'

export const name = 'rabbitmq'
export const capabilities = { prefix: 'cloudEvents_', messageId: true }

/** A quorum queue that was just made does not survive the kill of its node: what is known of it is not on disk yet. */
const SETTLED_MS = 2_000
let createdAt = 0

export async function start() {
  const running = await service.start()
  const { kill } = running
  return Object.assign(running, {
    async kill() {
      await new Promise((resolve) => setTimeout(resolve, createdAt + SETTLED_MS - Date.now()))
      await kill()
    },
  })
}

/** The broker waits for half an hour until it delivers again, and is not told otherwise by a queue. */
export async function create(url, { type = 'quorum', deliveryLimit, ackMs: _, ...further } = {}) {
  if (deliveryLimit !== undefined && type === 'quorum') further['x-delivery-limit'] = deliveryLimit
  const suffix = randomBytes(6).toString('hex')
  const settings = { url, queue: `queue-${suffix}`, exchange: `exchange-${suffix}` }
  await withChannel(url, async (channel) => {
    await channel.assertQueue(settings.queue, { durable: true, arguments: { 'x-queue-type': type, ...further } })
    await channel.assertExchange(settings.exchange, 'topic', { durable: true })
    await channel.bindQueue(settings.queue, settings.exchange, '#')
  })
  createdAt = Date.now()
  return settings
}

export function source({ url, queue }, options = {}) {
  return rabbitmq({ url, queue, ...options })
}

export function sink({ url, exchange }, options = {}) {
  return rabbitmq({ url, exchange, ...options })
}

export async function publish({ url, exchange }, messages) {
  await withChannel(url, async (channel) => {
    for (const { headers: all, body, id, key } of messages) {
      const { 'content-type': contentType, ...headers } = all
      if (key !== undefined) headers['cloudEvents_partitionkey'] ??= key
      const properties = { headers, contentType, persistent: true, ...(id !== undefined && { messageId: id }) }
      channel.publish(exchange, 'test', Buffer.from(body), properties)
    }
    await channel.waitForConfirms()
  })
}

/** Queued and in flight. Only the management can say, which listens 10 000 above by convention; it lags by 250 ms. */
export async function backlog({ url, queue }) {
  const { hostname, port, username, password } = new URL(url)
  const management = `http://${hostname}:${Number(port || 5672) + 10_000}`
  const totals = 'columns=name,messages&disable_stats=true&enable_queue_totals=true'
  const response = await fetch(`${management}/api/queues?${totals}`, {
    headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
  })
  if (!response.ok) throw new Error(`the management of RabbitMQ answered ${response.status}`)
  const queues = await response.json()
  return queues.find((one) => one.name === queue)?.messages ?? 0
}

export async function remove({ url, queue, exchange }) {
  await withChannel(url, async (channel) => {
    await channel.deleteQueue(queue)
    await channel.deleteExchange(exchange)
  })
}

async function withChannel(url, work) {
  const connection = await connect(url)
  connection.on('error', () => {})
  try {
    const channel = await connection.createConfirmChannel()
    channel.on('error', () => {})
    return await work(channel)
  } finally {
    await connection.close().catch(() => {})
  }
}
