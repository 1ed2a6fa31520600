import type { Admin, Kafka } from 'kafkajs'
import type { Sink, Source } from 'oncebox'
import type { BrokerCapabilities } from 'oncebox/testing'
import type { Service } from '../../../tools/services/process.mjs'

export interface Settings {
  [name: string]: unknown
  readonly url: string
  readonly mock: boolean
  readonly topic: string
  readonly groupId: string
  readonly consumer: Readonly<Record<string, unknown>>
}

export interface Published {
  readonly headers: Readonly<Record<string, string | Buffer | (string | Buffer)[]>>
  readonly body: string | Uint8Array | null
  readonly key?: string | Buffer
  readonly id?: string
}

export const name: string
export const capabilities: BrokerCapabilities
export function start(): Promise<Service>
export function create(url: string): Promise<Settings>
export function remove(settings: Settings): Promise<void>
export function source(settings: Settings, options?: object): Source
export function sink(settings: Settings, options?: object): Sink & { readonly name?: string }
export function publish(settings: Settings, messages: readonly Published[]): Promise<void>
export function backlog(settings: Settings): Promise<number>
export function committedOffsets(settings: Settings): Promise<Map<number, number>>
export function clientOf(url: string): Kafka
export function withAdmin<T>(url: string, ask: (admin: Admin) => Promise<T>): Promise<T>
