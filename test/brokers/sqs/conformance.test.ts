import { afterAll, beforeAll, describe, test } from 'vitest'
import { brokerConformance, type ChannelOptions } from 'oncebox/testing'
import type { Service } from '../../../tools/services/process.mjs'
import { loadAdapter, openBroker } from '../adapter.js'

const adapter = await loadAdapter(new URL('./adapter.mjs', import.meta.url))
let service: Service
beforeAll(async () => {
  service = await adapter.start()
})
afterAll(() => service?.stop())

describe.each([
  { kind: 'standard', fifo: false },
  { kind: 'FIFO', fifo: true },
])('a $kind queue', ({ fifo }) => {
  // A group waits for whole seconds, and the server hands out one message of it at a time.
  const capabilities = { ...adapter.capabilities, order: fifo, waitMs: 180_000 }
  const create: typeof adapter.create = (url, channel) => adapter.create(url, { ...channel, fifo })
  const open = (channel?: ChannelOptions) => openBroker({ ...adapter, create }, service.url, channel)
  for (const { name, run } of brokerConformance({ open, capabilities })) test(name, { timeout: 480_000 }, run)
})
