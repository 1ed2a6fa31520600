/** What the tests use of examples/scale, which is JavaScript with its types in comments. */
import type { Incoming, Logger, Outcome, Sink, Source } from 'oncebox'

interface Receiver {
  receive(messages: readonly Incoming[]): Promise<readonly Outcome[]>
}

export interface Shards {
  readonly boxes: readonly (Receiver & { migrate(): Promise<unknown> })[]
  /** On the server of that box. */
  query(shard: number, text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

interface ShardsModule {
  readonly BOXES: number
  readonly ENTRY: string
  schemaOf(shard: number): string
  shardOf(key: string): number
  openShards(placement: readonly string[], options: { entries?: string; logger?: Logger; poolMax?: number }): Shards
  migrate(shards: Shards): Promise<void>
}

type Route = (key: string) => number

interface SpreadModule {
  spreadReceive(boxes: readonly Receiver[], route: Route): (messages: readonly Incoming[]) => Promise<Outcome[]>
  spreadSource(
    boxes: readonly Receiver[],
    source: Source,
    options: { route: Route; from?: object },
  ): { start(): Promise<void>; stop(): Promise<void> }
  spreadLink(boxes: readonly Receiver[], route: Route): Sink & { name: string }
}

const fileOf = (name: string): string => new URL(`../../examples/scale/${name}`, import.meta.url).href

export const { BOXES, ENTRY, schemaOf, shardOf, openShards, migrate } = (await import(
  fileOf('shards.mjs')
)) as ShardsModule
export const { spreadLink, spreadReceive, spreadSource } = (await import(fileOf('spread.mjs'))) as SpreadModule
export const WORKER = fileOf('worker.mjs')
