/** Koa: a middleware that answers every request it gets. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { resolveMount, type FetchHandler, type MountOptions } from './handler.js'
import { serve } from './node.js'

/** What the middleware uses of a context. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly request: object
  respond?: boolean | undefined
}

/** A middleware for a route, or for `koa-mount`. It does not call the next one. */
export function toKoa(handler: FetchHandler, options?: MountOptions): (context: KoaContext) => Promise<void> {
  const mount = resolveMount('toKoa', handler, options)
  return (context) => {
    context.respond = false
    const { req: incoming, res: outgoing, request: kept } = context
    const { mountPath: base = '', originalUrl: path } = context as { mountPath?: string; originalUrl?: string }
    return serve(mount, { incoming, outgoing, path, kept, base, request: context })
  }
}
