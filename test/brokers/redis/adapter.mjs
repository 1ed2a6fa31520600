/** Redis Streams, as the suites for brokers use it. */
import { randomUUID } from 'node:crypto'
import { createClient } from 'redis'
import { redis } from 'oncebox/redis'

export { start } from '../../../tools/services/redis.mjs'

export const name = 'redis'

/** Entries of a process that was killed are taken over after that. */
const MIN_IDLE_MS = 3_000

export const capabilities = { prefix: 'ce_', messageId: true, position: true }

/** A stream of its own, and a group. */
export async function create(url, { ackMs: minIdleMs = MIN_IDLE_MS } = {}) {
  const settings = { url, stream: `test-${randomUUID()}`, group: 'workers', minIdleMs }
  await withClient(url, (client) => client.xGroupCreate(settings.stream, settings.group, '0', { MKSTREAM: true }))
  return settings
}

export function source({ url, stream, group, minIdleMs }, options = {}) {
  return redis({ url, stream, group, minIdleMs, ...options })
}

export function sink({ url, stream }, options = {}) {
  return redis({ url, to: stream, ...options })
}

export async function publish({ url, stream }, messages) {
  await withClient(url, (client) =>
    Promise.all(
      messages.map(({ headers, body, key, id }) => {
        const fields = { ...headers, ...(key !== undefined && { key }), ...(id !== undefined && { id }) }
        return client.sendCommand(['XADD', stream, '*', ...Object.entries(fields).flat(), 'data', Buffer.from(body)])
      }),
    ),
  )
}

export async function backlog({ url, stream, group }) {
  return withClient(url, async (client) => {
    const groups = await client.xInfoGroups(stream)
    const found = groups.find(({ name }) => String(name) === group)
    // After a restart the server may not know how far behind the group is.
    const lag = found.lag ?? (await client.xRange(stream, `(${found['last-delivered-id']}`, '+')).length
    return Number(found.pending) + Number(lag)
  })
}

export async function remove({ url, stream }) {
  await withClient(url, (client) => client.del(stream))
}

async function withClient(url, work) {
  const client = createClient({ url, socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    client.destroy()
  }
}
