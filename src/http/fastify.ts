/** Fastify: a plugin that serves a prefix, and leaves bodies alone. */
import { resolveMount, type FetchHandler, type MountOptions } from './handler.js'
import { serve, takeOver, type RawReply, type RawRequest } from './node.js'

/** What the plugin uses of the scope that it is given. */
export interface FastifyScope {
  readonly prefix: string
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null) => void) => void,
  ): unknown
  all(path: string, handler: (request: RawRequest, reply: RawReply) => void): unknown
}

/** A plugin: `app.register(toFastify(handler), { prefix: '/hook' })`. It serves the prefix and whatever is below it. */
export function toFastify(handler: FetchHandler, options?: MountOptions): (scope: FastifyScope) => Promise<void> {
  const mount = resolveMount('toFastify', handler, options)
  return async (scope) => {
    // In this scope alone. Fastify would parse JSON, and a signature is of the bytes.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    const route = (request: RawRequest, reply: RawReply): void => {
      const { raw: incoming } = request
      const outgoing = takeOver(reply)
      void serve(mount, { incoming, outgoing, path: undefined, kept: request, base: scope.prefix, request })
    }
    scope.all('/', route)
    scope.all('/*', route)
  }
}
