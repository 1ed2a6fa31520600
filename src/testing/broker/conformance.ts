/**
 * What every broker adapter must keep, as cases for any test runner:
 *
 *     for (const { name, run } of brokerConformance({ open, capabilities })) test(name, run)
 *
 * Each case works on a channel of its own, against the real broker. A case that the broker cannot pass by its nature is
 * left out by `capabilities`, so that what is missing stands in the test file.
 */
import type { ConformanceCase } from '../driver-conformance/index.js'
import { acknowledging } from './acknowledging.js'
import {
  BrokerBench,
  type Add,
  type BrokerCapabilities,
  type BrokerUnderTest,
  type Capabilities,
  type ChannelOptions,
} from './bench.js'
import { codecs } from './codecs.js'
import { hostile } from './hostile.js'
import { identity } from './identity.js'
import { messages } from './messages.js'
import { rejecting, sharing } from './order.js'
import { sinks } from './sinks.js'
import { starting } from './starting.js'
import { waiting } from './waiting.js'

export type { BrokerCapabilities, BrokerUnderTest, ChannelOptions, RawMessage } from './bench.js'

export interface BrokerConformance {
  /** A channel of the broker, fresh and empty, and as far as the broker can be told so: as the case asks for it. */
  open(channel?: ChannelOptions): Promise<BrokerUnderTest>
  capabilities?: BrokerCapabilities
}

const DEFAULTS: Capabilities = {
  prefix: 'ce-',
  messageId: false,
  position: false,
  redelivered: true,
  order: true,
  binary: true,
  shared: true,
  maxBytes: 5 * 1024 * 1024,
  independent: true,
  waitMs: 30_000,
  outageMs: Number(process.env['ONCEBOX_OUTAGE_MS'] ?? 5_000),
}

export function brokerConformance(suite: BrokerConformance): ConformanceCase[] {
  const capabilities: Capabilities = { ...DEFAULTS, ...suite.capabilities }
  const cases: ConformanceCase[] = []
  const promise: Add = (name, run, needs = () => true, channel) => {
    if (!needs(capabilities)) return
    const open = async (): Promise<void> => {
      const broker = await suite.open(channel)
      const bench = new BrokerBench(broker, capabilities)
      try {
        await run(bench)
      } finally {
        await bench.clean()
        await broker.close()
      }
    }
    cases.push({ name, run: open })
  }
  messages(promise)
  identity(promise)
  codecs(promise)
  acknowledging(promise)
  starting(promise)
  sharing(promise)
  rejecting(promise)
  hostile(promise)
  waiting(promise)
  sinks(promise)
  return cases
}
