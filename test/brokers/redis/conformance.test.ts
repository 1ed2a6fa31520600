import { afterAll, beforeAll, test } from 'vitest'
import { brokerConformance } from 'oncebox/testing'
import type { Service } from '../../../tools/services/process.mjs'
import { loadAdapter, openBroker } from '../adapter.js'

const adapter = await loadAdapter(new URL('./adapter.mjs', import.meta.url))
let service: Service
beforeAll(async () => {
  service = await adapter.start()
}, 300_000)
afterAll(() => service?.stop())

const { capabilities } = adapter
for (const { name, run } of brokerConformance({
  open: (channel) => openBroker(adapter, service.url, channel),
  capabilities,
})) {
  test(name, { timeout: 240_000 }, run)
}
