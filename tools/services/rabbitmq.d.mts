import type { PrivateService, Service } from './process.mjs'

export const name: string
export const variable: string
export function start(): Promise<Service | PrivateRabbit>

/** One that we started. */
export interface PrivateRabbit extends PrivateService {
  /** Runs rabbitmqctl on its node. */
  control(...args: string[]): Promise<void>
}
