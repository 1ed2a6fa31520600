/**
 * What an error of the database means. The one home for it: everybody else asks here.
 *
 * Three questions, from the narrowest to the widest:
 * - `sqlState`: did the server itself answer with this error?
 * - `isConnectionLoss`: does nobody know whether the server finished what it was doing?
 * - `isUnavailable`: is the database unable to serve, whatever was asked of it? Then the message is not to blame.
 */
import { sharedByCopies } from '../copies.js'
import { OnceboxError } from '../errors.js'
import { someCause } from '../failure.js'

/** The classes of Appendix A of PostgreSQL's manual, and OB, which our own SQL raises. */
const CLASSES = new Set(
  (
    '00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D 2F 34 38 39 3B 3D 3F 40 42 44 53 54 55 57 ' +
    '58 72 F0 HV P0 XX OB'
  ).split(' '),
)

/**
 * The SQLSTATE of an error, if it came from the server. Five characters are not enough: EPIPE has five, and so have the
 * codes of ORMs, such as P2010. Either the class is one of PostgreSQL's, or the error has the fields of a server's
 * answer, as has one that `RAISE … USING ERRCODE` made up.
 */
export function sqlState(error: unknown): string | undefined {
  const { code, errno, syscall, severity } = (error ?? {}) as Record<string, unknown>
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code)) return undefined
  // What the operating system says has these.
  if (typeof errno === 'number' || typeof syscall === 'string') return undefined
  return CLASSES.has(code.slice(0, 2)) || typeof severity === 'string' ? code : undefined
}

/**
 * Where errors came from, for those who know it to tell: a handler's own calls fail in the same words as the database.
 * - elsewhere: it is not of our database, whatever it looks like
 * - connection: it came over a connection of the driver, so that there is nothing to guess
 * - own statement: the same, and it was oncebox that had sent the statement
 */
type Origin = 'elsewhere' | 'connection' | 'own statement'
const origins = sharedByCopies('origins-of-errors', () => new WeakMap<object, Origin>())

function originOf(error: unknown): Origin | undefined {
  return isObject(error) ? origins.get(error) : undefined
}

function note<E>(error: E, origin: Origin): E {
  if (isObject(error) && origins.get(error) !== 'elsewhere') origins.set(error, origin)
  return error
}

/** Notes that this error does not come from the database connection, whatever it looks like. */
export function notTheDatabase<E>(error: E): E {
  return note(error, 'elsewhere')
}

/** Notes that this error came over a connection of the driver: for drivers to call. */
export function fromTheDatabase<E>(error: E): E {
  return note(error, originOf(error) ?? 'connection')
}

/** Notes that a statement of oncebox failed with this error. */
export function ofOwnStatement<E>(error: E): E {
  return note(error, 'own statement')
}

/** True if a driver has vouched for this error. */
export function isFromTheDatabase(error: unknown): boolean {
  return originOf(error) === 'connection' || originOf(error) === 'own statement'
}

/** True if a statement of oncebox lacked a permission: a handler's own fail with the same error. */
export function isDenied(error: unknown): boolean {
  return originOf(error) === 'own statement' && sqlState(error) === '42501'
}

/**
 * True if the error says nothing about whether the server finished what it was doing: connection lost, shutdown, or no
 * connection to be had.
 */
export function isConnectionLoss(error: unknown): boolean {
  if (isPoolEnded(error) || originOf(error) === 'elsewhere') return false
  const state = sqlState(error)
  return state === undefined ? isClientError(error) : /^(08...|57P0[1-5]|53300)$/.test(state)
}

/**
 * True if the database cannot serve at present, whatever is asked of it: a lost connection, credentials that were changed,
 * no memory, disk or connection left, a server that only reads, an I/O error, a connection whose plans are stale.
 */
export function isUnavailable(error: unknown): boolean {
  if (isConnectionLoss(error)) return true
  if (originOf(error) === 'elsewhere') return false
  return /^(28...|53...|25006|58030|3D000)$/.test(sqlState(error) ?? '') || isStalePlan(error)
}

/** Deadlock, lock timeout, serialization failure: nobody's fault, and worth another try. */
export function isConflict(error: unknown): boolean {
  return someCause(error, (cause) => /^(40P01|55P03|40001)$/.test(sqlState(cause) ?? ''))
}

/** The encoding of the database lacks a character of what it was given: written in ASCII, it would be taken. */
export function isUntranslatable(error: unknown): boolean {
  return someCause(error, (cause) => sqlState(cause) === '22P05')
}

/** The transaction has failed before, and this statement was not even looked at. */
export function isRefusedUnheard(error: unknown): boolean {
  return sqlState(error) === '25P02'
}

/** Says the error of a statement of ours something of the server, and nothing of the message? */
export function isServersState(error: unknown): boolean {
  // A cancelled statement, a plan or a statement that this session has lost, internal errors.
  return isServersStateAtCommit(error) || /^(57014|26000|0A000|XX...)$/.test(sqlState(error) ?? '')
}

/**
 * The same of the error of a COMMIT, which checks what handlers left to it, and may fail of that in any words but those of
 * a server that is short of something.
 */
export function isServersStateAtCommit(error: unknown): boolean {
  if (error instanceof OnceboxError) return error.code === 'SCHEMA_OUTDATED'
  const state = sqlState(error)
  // What JavaScript cannot build is too large, and that is the message's.
  if (state === undefined) return !(error instanceof RangeError || error instanceof TypeError)
  // Insufficient resources, system errors, a server that became a standby.
  return /^(53...|58...|25006)$/.test(state)
}

/**
 * May a statement of ours that failed so succeed later, with nothing changed but the server, or the way to it? A client may say
 * in any words that it cannot connect: what gives it its password has failed, perhaps.
 */
export function isPassing(error: unknown): boolean {
  if (error instanceof OnceboxError || isPoolEnded(error)) return false
  return isUnavailable(error) || isConflict(error) || isServersState(error)
}

/**
 * May a statement that commits on its own have taken effect, though it was answered so? Not if the server has refused it, or if
 * it was never sent.
 */
export function mayHaveCommitted(error: unknown): boolean {
  if (error instanceof OnceboxError) return error.code === 'COMMIT_UNCERTAIN'
  if (error instanceof RangeError || error instanceof TypeError || isOfConnecting(error)) return false
  return sqlState(error) === undefined || isConnectionLoss(error)
}

/** True if there was no connection to send anything on. False says nothing: most errors come before as well as after. */
function isOfConnecting(error: unknown): boolean {
  const { code, syscall, message } = (error ?? {}) as Record<string, unknown>
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // Too many connections, and a server that starts or stops.
  if (/^(53300|57P03)$/.test(sqlState(error) ?? '')) return true
  // Of several addresses, Node tells only the code.
  if (code === 'ECONNREFUSED' || code === 'CONNECT_TIMEOUT') return true
  return typeof message === 'string' && NOT_CONNECTED_IN_WORDS.test(message)
}

/** The guard of open_group: see migration 004. */
export function isGuard(error: unknown): boolean {
  const violation = sqlState(error) === '23503' && error instanceof Error
  return violation && error.message.includes('a_handler_must_not_end_its_transaction')
}

/**
 * A named statement that this connection cannot run: after a migration, or behind a pooler that hands its clients
 * connections on which other names are prepared. It never began, so it can be sent again, without a name.
 */
export function isStalePlan(error: unknown): boolean {
  const { routine } = (error ?? {}) as { routine?: unknown }
  return isNameLost(error) || (sqlState(error) === '0A000' && routine === 'RevalidateCachedQuery')
}

/** A name that this connection does not know, or knows for another statement: a pooler that cannot keep names, if it goes on. */
export function isNameLost(error: unknown): boolean {
  const state = sqlState(error)
  return state === '26000' || state === '42P05'
}

/**
 * The server at the other end only reads: a standby, or a primary that was demoted. A new connection may find the primary,
 * so this one is not used again.
 */
export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === '25006'
}

/** A connection that gives no answer though others may: packets vanish, and TCP has not noticed. */
export function silent(ms: number): Error {
  return silence(`the database connection gave no answer within ${Math.round(ms)} ms and was closed`)
}

export function silence(text: string): Error {
  return fromTheDatabase(Object.assign(new Error(text), { code: 'CONNECTION_SILENT' }))
}

export function isSilence(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'CONNECTION_SILENT'
}

/** The pool was ended by its owner: that is no lost connection, since no waiting brings it back. */
export function isPoolEnded(error: unknown): boolean {
  const { code, message } = (error ?? {}) as Record<string, unknown>
  return code === 'CONNECTION_ENDED' || (typeof message === 'string' && POOL_ENDED.test(message))
}

/** What a box says whose pool is gone. */
export function poolEnded(cause?: unknown): Error {
  const text = 'the pool was ended while a box still uses it; call box.stop() first, and then end the pool'
  return Object.assign(new Error(text, { cause }), { code: 'CONNECTION_ENDED' })
}

const POOL_ENDED = /cannot use a pool after calling end|pglite is (closed|closing)/i

const LOST = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ENOTCONN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EAI_NODATA',
  'EAI_NONAME',
  // postgres.js
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'SASL_SIGNATURE_MISMATCH',
  // Ours
  'CONNECTION_SILENT',
])

/** These are also said of files and programs: of a connection only if that is what was being opened. */
const LOST_IF_CONNECTING = new Set(['ENOENT', 'EACCES', 'EPERM', 'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EAGAIN'])

/** Handshakes and certificates: Node and OpenSSL have dozens of codes. */
const TLS =
  /^(ERR_SSL_|ERR_TLS_|EPROTO$|CERT_|UNABLE_TO_(GET|VERIFY|DECRYPT|DECODE)_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA$|CRL_)/

/** pg says it in words alone. */
const LOST_IN_WORDS =
  /connection (terminated|error|closed)|not queryable|socket|timeout (expired|exceeded when trying to connect)|query read timeout|server does not support SSL|error establishing an SSL connection|SASL: /i

/** Of these, what it says of a connection that did not come about. */
const NOT_CONNECTED_IN_WORDS = /^timeout (expired|exceeded when trying to connect)$|due to connection timeout$/

function isClientError(error: unknown): boolean {
  const { code, syscall } = (error ?? {}) as Record<string, unknown>
  if (typeof code === 'string') {
    if (LOST.has(code) || TLS.test(code)) return true
    if (LOST_IF_CONNECTING.has(code)) return syscall === 'connect' || syscall === 'socket'
  }
  return error instanceof Error && LOST_IN_WORDS.test(error.message)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
