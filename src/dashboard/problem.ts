/** Problems: what is not answered with what was asked for, and what the caller is told of it. */
import { OnceboxError, type OnceboxErrorCode } from '../errors.js'
import { someCause } from '../failure.js'
import { isUnavailable, sqlState } from '../postgres/errors.js'
import type { ProblemAnswer, ProblemCode } from './answers/index.js'
import { FieldProblem } from './fields.js'

type Detail = Omit<ProblemAnswer['error'], 'code' | 'message'>

/** Thrown anywhere below a route, and answered. Its cause is for the operator. */
export class Problem extends Error {
  constructor(
    readonly code: ProblemCode,
    message: string,
    readonly detail: Detail = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
  }

  get answer(): ProblemAnswer {
    return { error: { code: this.code, message: this.message, ...this.detail } }
  }
}

export const STATUS: Readonly<Record<ProblemCode, number>> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  CROSS_SITE: 403,
  HOST_UNKNOWN: 403,
  NOT_LOCAL: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  NOT_JSON: 415,
  TOO_LARGE: 413,
  INPUT_INVALID: 400,
  QUERY_INVALID: 400,
  CURSOR_INVALID: 400,
  CONFIRMATION_INVALID: 409,
  COUNT_CHANGED: 409,
  RATE_REQUIRED: 400,
  REASON_REQUIRED: 400,
  NOTHING_MATCHES: 409,
  TOO_MANY: 409,
  TOO_FAST: 429,
  BUSY: 503,
  TIMEOUT: 504,
  CONFLICT: 409,
  DATABASE_AWAY: 503,
  COMMIT_UNCERTAIN: 503,
  INTERNAL: 500,
}

/** What the admin refuses in words that are the caller's to read. */
const OF_THE_ADMIN: Readonly<Partial<Record<OnceboxErrorCode, ProblemCode>>> = {
  FILTER_INVALID: 'QUERY_INVALID',
  CURSOR_INVALID: 'CURSOR_INVALID',
  OPTION_INVALID: 'INPUT_INVALID',
  NOT_FOUND: 'NOT_FOUND',
  CONSUMER_UNKNOWN: 'NOT_FOUND',
  RIGHTS_MISSING: 'FORBIDDEN',
  SCHEMA_OUTDATED: 'DATABASE_AWAY',
}

const TIMED_OUT = 'the database did not answer within five seconds; narrow the query down'

/** Whatever was thrown, as a problem. What is nobody's business but the operator's is INTERNAL, and has no words of it. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof FieldProblem) return new Problem('INPUT_INVALID', error.message, { field: error.field })
  if (someCause(error, (cause) => sqlState(cause) === '57014')) return new Problem('TIMEOUT', TIMED_OUT)
  if (error instanceof OnceboxError) {
    const code = OF_THE_ADMIN[error.code]
    if (code === 'DATABASE_AWAY')
      return new Problem(code, 'the tables of this box are missing or old; run its migration')
    if (code) return new Problem(code, error.message)
  }
  if (someCause(error, (cause) => sqlState(cause) === '42501')) {
    return new Problem('FORBIDDEN', 'the database role of this dashboard lacks a right for this')
  }
  if (someCause(error, isUnavailable)) {
    return new Problem('DATABASE_AWAY', 'the database does not answer; nothing was changed, try again')
  }
  return new Problem('INTERNAL', 'something went wrong here; the log of the server says what')
}

export function cursorInvalid(of: 'list' | 'query'): Problem {
  const what = `this cursor is of another ${of}, reader, box or server process; begin again without it`
  return new Problem('CURSOR_INVALID', what)
}

export function notFound(what: string): Problem {
  return new Problem('NOT_FOUND', what)
}
