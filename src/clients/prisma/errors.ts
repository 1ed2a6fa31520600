/** Prisma's errors: what the database has said is inside them, and its own codes (P2010) are none of PostgreSQL's. */
import { causes } from '../../failure.js'
import { sqlState } from '../../postgres/errors.js'
import { type Expected, transactionRequired } from '../../postgres/drivers/loan-errors.js'

interface PrismaError extends Error {
  readonly code?: unknown
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: Original } }
}

interface Original {
  readonly originalCode?: unknown
  readonly originalMessage?: unknown
}

/** Prisma's classes cannot be imported: each generated client may have its own. */
function isPrismaError(error: unknown): error is PrismaError {
  return error instanceof Error && error.name.startsWith('PrismaClient')
}

/** The same error, with the client's own as the `cause` of the one that Prisma made of it. */
export function withCause(error: unknown, failures: readonly unknown[]): unknown {
  for (const wrapper of causes(error)) {
    if (!isPrismaError(wrapper) || wrapper.cause !== undefined || !Object.isExtensible(wrapper)) continue
    const value = failures.findLast((failure) => isOf(wrapper, failure))
    if (value !== undefined) Object.defineProperty(wrapper, 'cause', { value, writable: true, configurable: true })
  }
  return error
}

/** True if Prisma has made this error of that failure: it keeps the code of what the server answered, and no other. */
function isOf({ code, meta }: PrismaError, failure: unknown): boolean {
  const said = meta?.driverAdapterError?.cause
  const state = sqlState(failure)
  if (said?.originalCode !== undefined || state !== undefined) return said?.originalCode === state
  // Refusals keep their code, and lost connections get one of Prisma's: none of its own checks is known by any.
  return code !== undefined || said !== undefined
}

/** What a statement in a transaction of the user's failed with, as the client would have said it. */
export function original(error: unknown, expected: Expected): unknown {
  if (!isPrismaError(error)) return error
  if (error.code === 'P2028') return transactionRequired('a transaction that is over', expected)
  const { originalCode, originalMessage } = error.meta?.driverAdapterError?.cause ?? {}
  if (typeof originalCode !== 'string') return error
  return Object.assign(new Error(String(originalMessage), { cause: error }), { code: originalCode })
}
