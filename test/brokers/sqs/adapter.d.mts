import type { SQSClient } from '@aws-sdk/client-sqs'
import type { BrokerCapabilities } from 'oncebox/testing'
import type { SqsOptions, SqsQueue } from 'oncebox/sqs'
import type { PrivateService } from '../../../tools/services/process.mjs'

export interface Settings {
  url: string
  queueUrl: string
  visibilitySeconds: number
  /** Of a queue with a limit of deliveries. */
  deadLetterUrl?: string
}

/** A message as it is sent past our sink. */
export interface Sent {
  headers?: Record<string, string>
  body: string | Uint8Array
  key?: string
  id?: string
}

export const name: string
export const capabilities: BrokerCapabilities
export function start(): Promise<PrivateService>
export function connect(url: string): SQSClient
export function create(
  url: string,
  options?: { fifo?: boolean; attributes?: Record<string, string>; deliveryLimit?: number; ackMs?: number },
): Promise<Settings>
export function remove(settings: Settings): Promise<void>
export function source(settings: Settings, options?: Partial<SqsOptions>): SqsQueue
export function sink(settings: Settings, options?: Partial<SqsOptions>): SqsQueue
export function publish(settings: Settings, messages: readonly Sent[]): Promise<void>
export function backlog(settings: Settings): Promise<number>
