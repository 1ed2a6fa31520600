/** Why there is no connection, in words, and what to do. Nothing of the client's own text, which may quote a URL, is printed. */
import { isUnavailable, sqlState } from '../../postgres/errors.js'
import { EXIT, Exit } from '../exit.js'
import { decoded, mayBeMisread } from '../secrets.js'
import type { Place } from './place.js'

/** `127.0.0.1:5432, database orders, user app`: the URL without its password. */
export function describePlace(place: Place, env: Readonly<Record<string, string | undefined>>): string {
  if ('box' in place) return 'the database of the config’s box'
  const url = place.url === undefined ? undefined : new URL(place.url)
  if (url !== undefined && mayBeMisread(url)) {
    return `the database of ${place.from}, which has an @ behind its host (in a password, write / as %2F, ? as %3F and # as %23)`
  }
  const host = url?.searchParams.get('host') || url?.hostname || env['PGHOST'] || 'localhost'
  const port = url?.port || env['PGPORT'] || '5432'
  const database = decoded(url?.pathname.slice(1)) || env['PGDATABASE']
  const user = decoded(url?.username) || env['PGUSER']
  const facts = [`${host}:${port}`, database && `database ${database}`, user && `user ${user}`]
  return `${facts.filter(Boolean).join(', ')} (from ${place.from})`
}

export function cannotConnect(error: unknown, where: string): Exit {
  const [reason, advice] = reasonOf(error)
  return new Exit(EXIT.unconnected, `cannot connect to ${where}: ${reason}`, advice)
}

/** Is the database away, rather than the question wrong? */
export function isAway(error: unknown): boolean {
  return isUnavailable(error) || networkReason(error) !== undefined || tlsReason(error) !== undefined
}

function reasonOf(error: unknown): [reason: string, advice: string] {
  const state = sqlState(error)
  const text = textOf(error)
  if (state === '28P01' || /client password must be a string|password.*(required|missing)/i.test(text)) {
    return ['wrong password, or none', 'set PGPASSWORD, or PGPASSFILE, or DATABASE_URL with the password in it']
  }
  if (state?.startsWith('28')) {
    // Whether it is for want of TLS is said in the language of the server alone.
    const advice =
      'check the user, and pg_hba.conf of the server; if it takes encrypted connections only, add ?sslmode=require to the URL'
    return ['the server does not let this user in', advice]
  }
  if (state === '3D000') return ['there is no such database', 'check its name, or create it: createdb <name>']
  if (state === '53300') return ['the server has no connection left', 'close some, or raise max_connections']
  if (state?.startsWith('57P')) return ['the server is starting up or shutting down', 'try again in a moment']
  const file = unreadFile(error)
  if (file !== undefined) return [`TLS: ${file}`, 'check sslrootcert, sslcert and sslkey of the URL']
  const tls = tlsReason(error)
  if (tls !== undefined) return [`TLS: ${tls}`, 'check sslmode of the URL, and the certificate of the server']
  const network = networkReason(error)
  if (network !== undefined) return [network, 'is it running, and are host and port right?']
  return [`the connection failed${state === undefined ? '' : ` (SQLSTATE ${state})`}`, 'look at the log of the server']
}

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there (ECONNREFUSED)',
  ENOTFOUND: 'there is no host of this name (ENOTFOUND)',
  EAI_AGAIN: 'the name of the host cannot be looked up (EAI_AGAIN)',
  EHOSTUNREACH: 'the host cannot be reached (EHOSTUNREACH)',
  ENETUNREACH: 'the network cannot be reached (ENETUNREACH)',
  ETIMEDOUT: 'no answer in time (ETIMEDOUT)',
  CONNECT_TIMEOUT: 'no answer in time',
  ECONNRESET: 'the connection was cut (ECONNRESET)',
  EPIPE: 'the connection was cut (EPIPE)',
  ENOENT: 'there is no socket of this name (ENOENT)',
  CONNECTION_CLOSED: 'the connection was cut',
  CONNECTION_ENDED: 'the connection was cut',
  CONNECTION_DESTROYED: 'the connection was cut',
}

/** A file that the client was to read, and no socket that it was to connect to: both may be ENOENT. */
function unreadFile(error: unknown): string | undefined {
  const found = causesOf(error).find(({ syscall, path }) => syscall === 'open' && typeof path === 'string')
  return found && `${found.path as string} cannot be read (${String(found.code)})`
}

function networkReason(error: unknown): string | undefined {
  const codes = causesOf(error).map(({ code }) => code)
  const known = codes.find((code) => typeof code === 'string' && code in NETWORK)
  if (known !== undefined) return NETWORK[known as string]
  const text = textOf(error)
  if (/timeout/i.test(text)) return 'no answer in time'
  return /Connection terminated|connection is closed|Client has encountered a connection error/i.test(text)
    ? 'the connection was cut'
    : undefined
}

function tlsReason(error: unknown): string | undefined {
  for (const { code, message } of causesOf(error)) {
    if (
      typeof message === 'string' &&
      /does not support SSL|SSL.*not supported|before secure TLS connection/i.test(message)
    ) {
      return 'the server has none, or cut it'
    }
    if (typeof code === 'string' && /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)|EPROTO/.test(code))
      return code
  }
  return undefined
}

interface Cause {
  readonly code?: unknown
  readonly message?: unknown
  /** Of an error of the system. */
  readonly syscall?: unknown
  readonly path?: unknown
}

/** The error, those that it sums up, and what caused it. */
function causesOf(error: unknown, depth = 0): Cause[] {
  if (typeof error !== 'object' || error === null || depth > 5) return []
  const { errors, cause } = error as { errors?: unknown; cause?: unknown }
  const inner = [...(Array.isArray(errors) ? (errors as unknown[]) : []), cause]
  return [error, ...inner.flatMap((one) => causesOf(one, depth + 1))]
}

function textOf(error: unknown): string {
  return causesOf(error)
    .map(({ message }) => (typeof message === 'string' ? message : ''))
    .join('\n')
}
