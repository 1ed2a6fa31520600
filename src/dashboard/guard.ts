/**
 * Guard: whether a request comes from the dashboard itself, and not from another site in the operator's browser.
 *
 * Browsers say so in `Sec-Fetch-Site`, and older ones in `Origin` with whatever changes something. A name that an attacker has
 * pointed at this server (DNS rebinding) is the same site to a browser, so names can be listed (`hosts`). What is no browser
 * says neither, and has to give an `Origin` for a change: no form and no image can leave that out and pass.
 */
import { isLoopback, isLoopbackHost } from './loopback.js'
import { mountOf } from '../http/handler.js'
import { Problem } from './problem.js'
import type { Route } from './routes.js'

/** The name and port that the client has asked for. */
function hostOf(request: Request): string {
  return (request.headers.get('host') ?? new URL(request.url).host).toLowerCase()
}

export function checkHost(request: Request, hosts: readonly string[] | undefined): void {
  if (hosts === undefined || isListed(hostOf(request), hosts)) return
  throw new Problem('HOST_UNKNOWN', 'this server does not go by that name here; see the option hosts of the dashboard')
}

/** A listed name without a port is that name at any port. */
function isListed(host: string, hosts: readonly string[]): boolean {
  return hosts.some((one) => one === host || one === host.replace(/:\d+$/, ''))
}

export function checkSite(request: Request, { method, kind }: Route, hosts: readonly string[] | undefined): void {
  const { headers } = request
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  // A link from elsewhere may lead to a page. It may lead to nothing else.
  const isVisit =
    kind === 'page' && headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document'
  if (site !== null && site !== 'same-origin' && !(site === 'none' && method === 'GET') && !isVisit) throw crossSite()
  if (origin !== null && !isOwn(origin, request, hosts)) throw crossSite()
  if (method === 'GET' || site === 'same-origin' || origin !== null) return
  throw new Problem('CROSS_SITE', 'a change has to say where it comes from: send Origin, as browsers do')
}

/** Its scheme is not compared: behind a proxy that ends TLS this server does not know its own. */
function isOwn(origin: string, request: Request, hosts: readonly string[] | undefined): boolean {
  if (!URL.canParse(origin)) return false
  const { host, protocol } = new URL(origin)
  if (protocol !== 'http:' && protocol !== 'https:') return false
  return withoutDefault(host) === withoutDefault(hostOf(request)) || (hosts !== undefined && isListed(host, hosts))
}

/** A URL leaves the port of its scheme out; a Host header may have it. */
function withoutDefault(host: string): string {
  return host.replace(/:(80|443)$/, '')
}

function crossSite(): Problem {
  const advice = 'behind a proxy that changes Host, list the public name in hosts'
  return new Problem('CROSS_SITE', `requests from other sites are refused; ${advice}`)
}

/** What proxies add. One that adds nothing cannot be told from whoever is on this machine. */
const FORWARDED = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-server',
  'x-real-ip',
  'x-client-ip',
  'cf-connecting-ip',
  'fly-client-ip',
  'true-client-ip',
]

/** Why it is for this machine alone, and how others are let in. */
export interface LocalWords {
  readonly runs: string
  readonly otherwise: string
}

const OF_THE_OPTION: LocalWords = { runs: 'runs with dev: true', otherwise: 'or give it authorize' }

/**
 * Without `authorize`, whoever reaches the server may do everything: so it has to be somebody on this machine. The peer of the
 * connection says so, which the bridges of oncebox/http know; where nobody knows it, everybody is refused. A proxy on this
 * machine would make everybody local, so what says that it came through one is refused, and so is a name that is not this machine's.
 */
export function checkLocal(request: Request, words: LocalWords = OF_THE_OPTION): void {
  const peer = peerOf(mountOf(request).request)
  const isLocal = peer !== undefined && isLoopback(peer) && isLoopbackHost(hostOf(request))
  if (isLocal && !FORWARDED.some((header) => request.headers.has(header))) return
  const why =
    peer === undefined ? 'and who asks is not known here: mount it with oncebox/http' : 'and you are not on it'
  throw new Problem('NOT_LOCAL', `this dashboard ${words.runs}, for the machine it runs on, ${why}; ${words.otherwise}`)
}

interface Framework {
  readonly socket?: { readonly remoteAddress?: unknown }
  readonly raw?: Framework
  readonly req?: Framework
}

/** Of a request of Node.js or Express, of Fastify (`raw`), or of Koa (`req`). Not `ip`, which may be what a header says. */
function peerOf(request: unknown): string | undefined {
  if (typeof request !== 'object' || request === null) return undefined
  const { socket, raw, req } = request as Framework
  const address = (raw?.socket ?? req?.socket ?? socket)?.remoteAddress
  return typeof address === 'string' ? address : undefined
}
