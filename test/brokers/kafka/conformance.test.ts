import { describe, test } from 'vitest'
import { brokerConformance, type ChannelOptions } from 'oncebox/testing'
import { loadAdapter, openBroker } from '../adapter.js'
import { useBroker } from './fixture.js'

const adapter = await loadAdapter(new URL('./adapter.mjs', import.meta.url))
const broker = useBroker()

describe('kafka, or kafka-mock', () => {
  const open = (channel?: ChannelOptions) => openBroker(adapter, broker.service.url, channel)
  const { capabilities } = adapter
  for (const { name, run } of brokerConformance({ open, capabilities })) test(name, { timeout: 300_000 }, run)
})
