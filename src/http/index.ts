/**
 * Mounts a fetch handler, such as a webhook, on whatever serves HTTP:
 *
 *     http.createServer(toNodeListener(hook)).listen(3000)
 *     app.post('/hook', toNodeListener(hook))                  // Express, before express.json()
 *     app.register(toFastify(hook), { prefix: '/hook' })
 *     router.post('/hook', toKoa(hook))
 *
 * Hono, Next.js, Bun and Deno take `hook.fetch` as it is.
 */
export { mountOf, type FetchHandler, type Mount, type MountOptions } from './handler.js'
export { toFastify, type FastifyScope } from './fastify.js'
export { toKoa, type KoaContext } from './koa.js'
export { toNodeListener, type RawReply, type RawRequest } from './node.js'
