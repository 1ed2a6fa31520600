import { afterAll, beforeAll, describe, test } from 'vitest'
import { brokerConformance } from 'oncebox/testing'
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
  const capabilities = { ...adapter.capabilities, order: fifo, waitMs: 60_000 }
  const open = () => openBroker({ ...adapter, create: (url) => adapter.create(url, { fifo }) }, service.url)
  for (const { name, run } of brokerConformance({ open, capabilities })) test(name, { timeout: 240_000 }, run)
})
