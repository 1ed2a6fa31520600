/** What an HTTP endpoint gets of its box: a name that remembers, and transactions as handlers get them. */
import type { EndpointHost } from '../endpoint.js'
import type { Runtime } from '../runtime.js'
import { checkNew, type ConsumerDeclaration } from './consumer.js'
import { resolveOptions } from './options.js'

export function createHost(
  { db }: Runtime,
  workers: ReadonlyMap<string, unknown>,
  endpoints: Map<string, ConsumerDeclaration>,
  added: () => void,
): EndpointHost {
  return {
    declare(name, retainMs) {
      checkNew(name, workers, endpoints)
      endpoints.set(name, declareEndpoint(name, retainMs))
      added()
    },
    transaction: (work, isolation) => db.transaction(work, isolation),
    lend: (tx) => db.driver.lend?.(tx),
  }
}

/** It takes no message, and remembers what `once` is called with. */
function declareEndpoint(name: string, retainMs: number): ConsumerDeclaration {
  // By its mode it is no consumer whose memory a source goes by.
  return { name, options: resolveOptions(name, { mode: 'direct', retainMs }), types: [], handlerOf: () => undefined }
}
