/** Prisma's errors: what the database has said is inside them, and its own codes (P2010) are none of PostgreSQL's. */
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

/** True if Prisma has made this error of that failure: it keeps the code of what the server answered, and no other. */
export function isOf(error: Error, failure: unknown): boolean {
  if (!isPrismaError(error)) return false
  const { code, meta } = error
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
