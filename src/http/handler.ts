/** A fetch handler, and where it is mounted. */
import { sharedByCopies } from '../copies.js'
import { callback, checked, invalid, optional, resolve } from '../options.js'
import { type Report, warning } from './report.js'

/** What is mounted: a function of a Request, or an object that has one, such as a webhook or a Hono app. */
export type FetchHandler = Fetch | { readonly fetch: Fetch }

type Fetch = (request: Request) => Response | Promise<Response>

export interface MountOptions {
  /** The path that the handler is mounted under, such as `/admin`. Default: as the framework says. */
  base?: string | undefined
  /** Told when the handler throws, or its response breaks off; the client is answered 500. Default: a process warning. */
  onError?: ((error: unknown) => void) | undefined
}

/** What a Request came through. */
export interface Mount {
  /** The path that the handler is mounted under, without a slash at its end: `/admin`, or an empty string. */
  readonly base: string
  /** The framework's own: the request of Node.js, Express, Fastify or Nest, the context of Koa. Undefined for others. */
  readonly request: unknown
}

const mounts = sharedByCopies('mounts', () => new WeakMap<Request, Mount>())
const NOWHERE: Mount = { base: '', request: undefined }

/** Where a request came through, for a handler that looks for a user in it, or makes links to itself. */
export function mountOf(request: Request): Mount {
  return mounts.get(request) ?? NOWHERE
}

export function rememberMount(request: Request, mount: Mount): Request {
  mounts.set(request, mount)
  return request
}

export const MOUNT = {
  base: optional(checked(checkBase), 'as above'),
  onError: optional(callback<Report>(), 'a process warning, without details'),
}

export interface ResolvedMount {
  readonly fetch: Fetch
  readonly base: string | undefined
  readonly onError: Report
}

const WARNING = warning('a fetch handler failed, and its client was answered 500', 'ONCEBOX_HTTP')

export function resolveMount(where: string, handler: FetchHandler, options: MountOptions = {}): ResolvedMount {
  const { base, onError = WARNING } = resolve(where, options, MOUNT)
  if (typeof handler === 'function') return { fetch: handler, base, onError }
  if (typeof handler?.fetch !== 'function') {
    throw invalid(`${where} takes a function of a Request, or an object with a method fetch, such as a webhook`)
  }
  return { fetch: (request) => handler.fetch(request), base, onError }
}

function checkBase(where: string, base: string): string {
  if (typeof base === 'string' && /^(\/[^/?#]+)*$/.test(base)) return base
  throw invalid(`${where} must be a path that begins with a slash and does not end with one, such as '/admin'`)
}
