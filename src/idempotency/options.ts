/** The options of an idempotent endpoint. */
import { DAY_MS, LONGEST_MS, MIB } from '../figures.js'
import { type Report, warning } from '../http/report.js'
import { boolean, callback, checked, integer, invalid, name, oneOf, optional, resolve } from '../options.js'
import type { Isolation } from '../postgres/driver.js'

export interface IdempotentOptions {
  /** The route, as a consumer's name: the unit of deduplication. Keys of two names are two keys. */
  name: string
  /**
   * Whose key it is: a tenant, a user. Callers of two scopes never see each other's responses. A Response refuses the
   * request. `'shared'` is for an endpoint whose callers may all see all responses.
   */
  scope: 'shared' | ((request: Request) => string | Response | Promise<string | Response>)
  /** Whether a request without a key is answered 400, or runs without being remembered. Default: true. */
  required?: boolean | undefined
  /** How long a copy of a request in flight waits for its response before it is answered 409. Default: 0. */
  waitMs?: number | undefined
  /** How long a response is replayed. Default: 2 days. */
  retainMs?: number | undefined
  /** Larger bodies are answered 413. Default: 1 MiB. */
  maxBytes?: number | undefined
  /** A larger response is an error, and nothing of its request is kept. Default: 1 MiB. */
  maxResponseBytes?: number | undefined
  /** For a body to arrive. Default: 10 000. */
  bodyTimeoutMs?: number | undefined
  /** For one call of the handler, its response included. Default: 30 000. */
  timeoutMs?: number | undefined
  /** Of the handler's transaction. Default: 'read committed'. */
  isolation?: Isolation | undefined
  /** The methods that are served. Default: POST, PUT, PATCH and DELETE. */
  methods?: readonly string[] | undefined
  /** Whether Set-Cookie is for the first response alone, or replayed too. Default: 'first'. */
  cookies?: 'first' | 'replay' | undefined
  /** Told of what the client does not see: the handler threw, the database is away. Default: a process warning. */
  onError?: ((error: unknown) => void) | undefined
}

type Scope = IdempotentOptions['scope']

export const ENDPOINT = {
  name: name(200),
  scope: checked((where, given: Scope): Scope => {
    if (given === 'shared' || typeof given === 'function') return given
    const advice = `scope: (request) => the caller's name; if all callers may see all responses, scope: 'shared'`
    throw invalid(`${where} must say whose a key is: ${advice}`)
  }),
  required: boolean(true),
  waitMs: integer({ least: 0, most: DAY_MS, fallback: 0 }),
  retainMs: integer({ least: 1, most: LONGEST_MS, fallback: 2 * DAY_MS }),
  maxBytes: integer({ least: 1, most: 64 * MIB, fallback: MIB }),
  maxResponseBytes: integer({ least: 1, most: 64 * MIB, fallback: MIB }),
  bodyTimeoutMs: integer({ least: 1, most: DAY_MS, fallback: 10_000 }),
  timeoutMs: integer({ least: 1, most: DAY_MS, fallback: 30_000 }),
  isolation: oneOf(['read committed', 'repeatable read', 'serializable'], 'read committed'),
  methods: optional(checked(checkMethods), 'POST, PUT, PATCH and DELETE'),
  cookies: oneOf(['first', 'replay'], 'first'),
  onError: optional(callback<Report>(), 'a process warning, without details'),
}

const WARNING = warning('a request with an Idempotency-Key failed', 'ONCEBOX_IDEMPOTENCY')

export type ResolvedEndpoint = ReturnType<typeof resolveEndpoint>

export function resolveEndpoint(given: IdempotentOptions) {
  if (typeof given !== 'object' || given === null) throw invalid('idempotent takes options: { name, scope }')
  const options = resolve('idempotent', given, ENDPOINT)
  const { methods = ['POST', 'PUT', 'PATCH', 'DELETE'], onError = WARNING } = options
  return { ...options, methods, onError }
}

function checkMethods(where: string, given: readonly string[]): readonly string[] {
  const isList = Array.isArray(given) && given.length > 0
  if (isList && given.every((one: unknown) => /^[A-Z]+$/.test(String(one)))) return given as readonly string[]
  throw invalid(`${where} must be a list of methods in capitals, such as ['POST']`)
}
