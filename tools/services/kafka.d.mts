import type { Service } from './process.mjs'

export const name: string
export const variable: string
/** `kind` says what it is: 'installed' is Kafka, 'mock' is librdkafka's mock of it, called kafka-mock. */
export function start(): Promise<Service>
/** What `start` would start. */
export function kindOf(): Promise<Service['kind']>
