/**
 * What every broker adapter must keep, as cases for any test runner:
 *
 *     for (const { name, run } of brokerConformance({ open, capabilities })) test(name, run)
 *
 * Each case works on a channel of its own, against the real broker. A case that the broker cannot pass by its nature is
 * left out by `capabilities`, so that what is missing stands in the test file.
 */
import { boolean, integer, name, orElse, resolve } from '../../options.js'
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
  capabilities?: BrokerCapabilities | undefined
}

const CAPABILITIES = {
  prefix: orElse(name(), 'ce-'),
  messageId: boolean(false),
  position: boolean(false),
  redelivered: boolean(true),
  order: boolean(true),
  binary: boolean(true),
  shared: boolean(true),
  maxBytes: integer({ least: 1, fallback: 5 * 1024 * 1024 }),
  independent: boolean(true),
  waitMs: integer({ least: 1, fallback: 30_000 }),
  outageMs: integer({ least: 0, fallback: Number(process.env['ONCEBOX_OUTAGE_MS'] ?? 5_000) }),
}

export function brokerConformance(suite: BrokerConformance): ConformanceCase[] {
  const capabilities: Capabilities = resolve('brokerConformance: capabilities', suite.capabilities ?? {}, CAPABILITIES)
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
