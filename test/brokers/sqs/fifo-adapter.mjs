/** SQS with a FIFO queue: messages of a key in their order. */
import * as standard from './adapter.mjs'

export * from './adapter.mjs'

export const capabilities = { ...standard.capabilities, order: true }

export function create(url, options) {
  return standard.create(url, { ...options, fifo: true })
}
