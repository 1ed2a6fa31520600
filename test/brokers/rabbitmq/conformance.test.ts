import { afterAll, beforeAll, describe, test } from 'vitest'
import { brokerConformance } from 'oncebox/testing'
import type { Service } from '../../../tools/services/process.mjs'
import { loadAdapter, openBroker } from '../adapter.js'

const adapter = await loadAdapter(new URL('./adapter.mjs', import.meta.url))
let service: Service
beforeAll(async () => {
  service = await adapter.start()
}, 300_000)
afterAll(() => service?.stop())

describe.each(['quorum', 'classic'])('a %s queue', (type) => {
  const { capabilities, create } = adapter
  const open = () => openBroker({ ...adapter, create: (url) => create(url, { type }) }, service.url)
  for (const { name, run } of brokerConformance({ open, capabilities })) test(name, { timeout: 60_000 }, run)
})
