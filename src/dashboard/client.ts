/**
 * A typed client of the dashboard's JSON API, for browsers and scripts: it needs `fetch`, and nothing else.
 *
 *     const ops = createClient({ url: 'https://ops.example.com/inbox', headers: { authorization: `Bearer ${token}` } })
 *     const { items } = await ops.messages({ box: 'orders', q: 'state:dead type:order.placed' })
 */
import type { ProblemAnswer, ProblemCode } from './answers/index.js'
import { parametersOf, ROUTES, type Route, type RouteAnswer, type RouteInput, type RouteName } from './routes.js'

export type * from './answers/index.js'
export type { RouteAnswer, RouteInput, RouteName } from './routes.js'

/** Those that answer data. */
type DataRoute = { [K in RouteName]: [RouteAnswer<K>] extends [never] ? never : K }[RouteName]

/** A method for each of them. */
export type Client = {
  readonly [K in DataRoute]: (input: RouteInput<K>, options?: { signal?: AbortSignal }) => Promise<RouteAnswer<K>>
} & {
  /** The address of the stream of a box, for an EventSource. */
  streamUrl(box: string): string
}

export interface ClientOptions {
  /** Where the dashboard is: its address, or in a browser its base path. */
  url: string
  /** Sent with every request: what `authorize` goes by. */
  headers?: Readonly<Record<string, string>> | undefined
  /** Default: the global one. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
}

/** What the server refused, or could not do. */
export class DashboardError extends Error {
  override readonly name = 'DashboardError'
  readonly code: ProblemCode
  readonly status: number
  /** All that it said. */
  readonly detail: ProblemAnswer['error']

  constructor(status: number, detail: ProblemAnswer['error']) {
    super(detail.message)
    this.status = status
    this.code = detail.code
    this.detail = detail
  }
}

export function createClient({ url, headers = {}, fetch: ask = globalThis.fetch }: ClientOptions): Client {
  const base = url.replace(/\/+$/, '')
  const call = async (
    route: Route,
    input: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<unknown> => {
    const { address, init } = requestOf(route, input, base)
    const response = await ask(address, {
      ...init,
      headers: { accept: 'application/json', ...init.headers, ...headers },
      ...(signal && { signal }),
    })
    if (!response.ok) throw await problemOf(response)
    return route.kind === 'text' ? response.text() : response.json()
  }
  const methods = Object.entries(ROUTES as Readonly<Record<string, Route>>)
    .filter(([, { kind }]) => kind === 'json' || kind === 'text')
    .map(([name, route]): [string, unknown] => [
      name,
      (input: Readonly<Record<string, unknown>> = {}, { signal }: { signal?: AbortSignal } = {}) =>
        call(route, input, signal),
    ])
  const streamUrl = (box: string): string => requestOf(ROUTES.stream, { box }, base).address
  return { ...Object.fromEntries(methods), streamUrl } as unknown as Client
}

function requestOf(
  { method, path, input: declared }: Route,
  input: Readonly<Record<string, unknown>>,
  base: string,
): { address: string; init: { method: string; body?: string; headers: Record<string, string> } } {
  const parameters = parametersOf(path)
  const address = base + path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(input[name])))
  const rest = Object.keys(declared).filter((name) => !parameters.includes(name) && input[name] !== undefined)
  if (method === 'GET') {
    const query = new URLSearchParams(rest.map((name): [string, string] => [name, String(input[name])])).toString()
    return { address: query === '' ? address : `${address}?${query}`, init: { method, headers: {} } }
  }
  const body = JSON.stringify(Object.fromEntries(rest.map((name) => [name, input[name]])))
  // A browser says where it comes from by itself, and forbids to say so; elsewhere nobody else does.
  const origin: Record<string, string> = /^https?:/.test(base) ? { origin: new URL(base).origin } : {}
  return { address, init: { method, body, headers: { 'content-type': 'application/json', ...origin } } }
}

async function problemOf(response: Response): Promise<DashboardError> {
  const { status } = response
  try {
    const { error } = (await response.json()) as ProblemAnswer
    if (typeof error?.message === 'string') return new DashboardError(status, error)
  } catch {
    // Not ours: a proxy's, perhaps.
  }
  return new DashboardError(status, { code: 'INTERNAL', message: `the server answered ${status}` })
}
