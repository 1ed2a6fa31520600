/** NATS JetStream, as the suites for brokers use it. */
import { randomUUID } from 'node:crypto'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import { nats } from 'oncebox/nats'

export { start } from '../../../tools/services/nats.mjs'

export const name = 'nats'

/** Messages of a process that was killed come back after that. */
const ACK_WAIT_MS = 3_000

export const capabilities = { prefix: 'ce-', messageId: true, position: true }

/** A stream of its own, and a consumer. */
export async function create(url, { deliveryLimit = -1, ackMs = ACK_WAIT_MS } = {}) {
  const stream = `test-${randomUUID()}`
  const settings = { url, stream, consumer: 'worker', subject: `${stream}.>` }
  await withConnection(url, async (nc) => {
    const jsm = await jetstreamManager(nc)
    await jsm.streams.add({ name: stream, subjects: [settings.subject] })
    const limits = { ack_wait: ackMs * 1e6, max_deliver: deliveryLimit }
    await jsm.consumers.add(stream, { durable_name: settings.consumer, ack_policy: 'explicit', ...limits })
  })
  return settings
}

export function source({ url, stream, consumer }, options = {}) {
  return nats({ url, stream, consumer, key: (raw) => raw.headers?.get('key') || undefined, ...options })
}

export function sink({ url, subject }, options = {}) {
  return nats({ url, subject, ...options })
}

export async function publish({ url, stream }, messages) {
  await withConnection(url, async (nc) => {
    const js = jetstream(nc)
    const publishing = messages.map(({ headers: given, body, key, id }) => {
      const all = headers()
      for (const [header, value] of Object.entries(given)) all.set(header, value)
      if (key !== undefined) all.set('key', key)
      return js.publish(`${stream}.raw`, body, { headers: all, ...(id !== undefined && { msgID: id }) })
    })
    await Promise.all(publishing)
  })
}

export async function backlog({ url, stream, consumer }) {
  return withConnection(url, async (nc) => {
    const { num_pending, num_ack_pending } = await (await jetstreamManager(nc)).consumers.info(stream, consumer)
    return num_pending + num_ack_pending
  })
}

export async function remove({ url, stream }) {
  await withConnection(url, async (nc) => (await jetstreamManager(nc)).streams.delete(stream))
}

async function withConnection(url, work) {
  const nc = await connect({ servers: url, reconnect: false })
  try {
    return await work(nc)
  } finally {
    await nc.close()
  }
}
