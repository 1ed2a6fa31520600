/** Responses, with the headers that all of them have. No cookie is ever set. */
import { refusalPage } from './page.js'
import { STATUS, type Problem } from './problem.js'

const COMMON = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

const NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Nothing inline, nothing from elsewhere. */
export const PAGE_POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'",
  "base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
].join('; ')

type Body = string | Uint8Array | ReadableStream<Uint8Array> | null

export interface Described {
  readonly type: string
  readonly status?: number
  /** Default: not kept by anybody. */
  readonly cache?: string
  /** Default: nothing may be loaded. */
  readonly policy?: string
  readonly headers?: Readonly<Record<string, string>>
}

export function respond(
  body: Body,
  { type, status = 200, cache = 'no-store', policy = NOTHING, headers = {} }: Described,
): Response {
  return new Response(body as never, {
    status,
    headers: { ...COMMON, 'content-type': type, 'cache-control': cache, 'content-security-policy': policy, ...headers },
  })
}

export function json(answer: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return respond(JSON.stringify(answer), { type: 'application/json; charset=utf-8', status, headers })
}

/** To a browser that goes to a page, a page; to all others JSON. The words are the same. */
export function refusal(request: Request, problem: Problem, headers: Readonly<Record<string, string>> = {}): Response {
  const later: Record<string, string> = ['BUSY', 'TOO_FAST', 'DATABASE_AWAY'].includes(problem.code)
    ? { 'retry-after': '1' }
    : {}
  const status = STATUS[problem.code]
  const all = { ...later, ...headers }
  if (!/\btext\/html\b/i.test(request.headers.get('accept') ?? '')) return json(problem.answer, status, all)
  return respond(refusalPage(status, problem.message), { type: 'text/html; charset=utf-8', status, headers: all })
}

/** The answer of `authorize` goes out as it is, but for what protects. */
export function passOn(response: Response): Response {
  const headers = new Headers(response.headers)
  for (const [name, value] of Object.entries(COMMON)) headers.set(name, value)
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  return new Response(response.body, { status: response.status, headers })
}
