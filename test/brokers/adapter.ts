/** What `adapter.mjs` of each broker exports, and how the conformance suite sees it. */
import { fileURLToPath } from 'node:url'
import type { Sink, Source } from 'oncebox'
import type { BrokerCapabilities, BrokerUnderTest, ChannelOptions, RawMessage } from 'oncebox/testing'
import type { Service } from '../../tools/services/process.mjs'

/** Plain JSON: child processes get it. */
export interface Settings {
  url: string
  [name: string]: unknown
}

export interface Adapter {
  readonly name: string
  readonly capabilities: BrokerCapabilities
  start(): Promise<Service>
  /** A fresh queue, topic or stream, with what it can be told of `ChannelOptions`. */
  create(url: string, options?: object): Promise<Settings>
  source(settings: Settings, options?: object): Source
  sink(settings: Settings, options?: object): Sink
  /** Through the broker's client, past our sink. */
  publish(settings: Settings, messages: readonly RawMessage[]): Promise<void>
  /** What the broker has not seen acknowledged. */
  backlog(settings: Settings): Promise<number>
  remove(settings: Settings): Promise<void>
}

/** For `brokerConformance`: a fresh channel of the broker, removed when its case ends. */
export async function openBroker(adapter: Adapter, url: string, channel?: ChannelOptions): Promise<BrokerUnderTest> {
  const settings = await adapter.create(url, channel)
  // Nobody listens on port 1.
  const elsewhere = { ...settings, url: settings.url.replace(/:\d+(?=\D*$)/, ':1') }
  return {
    source: (options) => adapter.source(settings, options),
    sink: (options) => adapter.sink(settings, options),
    unreachable: () => ({ source: adapter.source(elsewhere), sink: adapter.sink(elsewhere) }),
    publish: (messages) => adapter.publish(settings, messages),
    backlog: () => adapter.backlog(settings),
    close: () => adapter.remove(settings),
  }
}

/** Give it as `new URL('./adapter.mjs', import.meta.url)`. */
export async function loadAdapter(url: URL): Promise<Adapter> {
  return (await import(/* @vite-ignore */ fileURLToPath(url))) as Adapter
}
