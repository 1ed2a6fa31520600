import type { Message } from '../message.js'

/**
 * The third seam: where events go.
 *
 * `publish` resolves after the broker has confirmed, with one answer per message, in order: undefined for a published
 * one, else the error and whether it is worth another try. Within a key it sends nothing after a failure.
 */
export interface Sink {
  publish(batch: readonly Message[]): Promise<readonly (undefined | { error: unknown; retry: boolean })[]>
  close(): Promise<void>
}
