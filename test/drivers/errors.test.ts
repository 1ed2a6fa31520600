/** What each error means: the table that everybody who judges an error relies on. */
import net from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  isConnectionLoss,
  isPoolEnded,
  isUnavailable,
  mayHaveCommitted,
  notTheDatabase,
  silent,
  sqlState,
} from '../../src/postgres/errors.js'

const server = (code: string, message = code) => Object.assign(new Error(message), { code, severity: 'ERROR' })
const system = (code: string, syscall: string) =>
  Object.assign(new Error(`${syscall} ${code}`), { code, errno: -2, syscall })
const coded = (code: string, message = code) => Object.assign(new Error(message), { code })

type Meaning = 'the server refused' | 'the server cannot serve' | 'connection lost' | 'nothing of the database'

const TABLE: [what: string, error: unknown, meaning: Meaning][] = [
  ['a unique violation', server('23505'), 'the server refused'],
  ['a serialization failure', server('40001'), 'the server refused'],
  ['a cancelled statement', server('57014'), 'the server refused'],
  ['an internal error', server('XX000'), 'the server refused'],
  ['a plpgsql error', server('P0001'), 'the server refused'],
  ['a foreign data wrapper', server('HV000'), 'the server refused'],
  ['an error of our own SQL', coded('OB001'), 'the server refused'],
  ['a code that RAISE made up', server('MYERR'), 'the server refused'],
  ['a wrapped server error without its fields', coded('23505'), 'the server refused'],

  ['a statement prepared elsewhere', server('26000'), 'the server cannot serve'],
  ['a name that is taken on this connection', server('42P05'), 'the server cannot serve'],
  ['a wrong password', server('28P01'), 'the server cannot serve'],
  ['a role that may not log in', server('28000'), 'the server cannot serve'],
  ['no memory left', server('53200'), 'the server cannot serve'],
  ['no disk left', server('53100'), 'the server cannot serve'],
  ['a server that only reads', server('25006'), 'the server cannot serve'],
  ['an I/O error', server('58030'), 'the server cannot serve'],
  ['a database that is not there', server('3D000'), 'the server cannot serve'],

  ['too many connections', server('53300'), 'connection lost'],
  ['an administrator', server('57P01'), 'connection lost'],
  ['a crash of another backend', server('57P02'), 'connection lost'],
  ['a server that starts', server('57P03'), 'connection lost'],
  ['an idle session that was ended', server('57P05'), 'connection lost'],
  ['a lost node of a cluster', server('08006'), 'connection lost'],
  ['a pooler that gave up', server('08P01'), 'connection lost'],
  ['a broken pipe', system('EPIPE', 'write'), 'connection lost'],
  ['a broken pipe without its system call', coded('EPIPE'), 'connection lost'],
  ['a reset', system('ECONNRESET', 'read'), 'connection lost'],
  ['a refused connection', system('ECONNREFUSED', 'connect'), 'connection lost'],
  ['a unix socket that is gone', system('ENOENT', 'connect'), 'connection lost'],
  ['a unix socket of somebody else', system('EACCES', 'connect'), 'connection lost'],
  ['no file descriptor left', system('EMFILE', 'connect'), 'connection lost'],
  ['a name that is not found', system('ENOTFOUND', 'getaddrinfo'), 'connection lost'],
  ['a certificate that ran out', coded('CERT_HAS_EXPIRED'), 'connection lost'],
  ['a self-signed certificate', coded('DEPTH_ZERO_SELF_SIGNED_CERT'), 'connection lost'],
  ['an unknown issuer', coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'connection lost'],
  ['a TLS handshake', coded('ERR_SSL_WRONG_VERSION_NUMBER'), 'connection lost'],
  ['a server without TLS', new Error('The server does not support SSL connections'), 'connection lost'],
  ['a server that cannot fork', new Error('There was an error establishing an SSL connection'), 'connection lost'],
  ['pg: an ended connection', new Error('Connection terminated unexpectedly'), 'connection lost'],
  ['pg: no connection in time', new Error('timeout exceeded when trying to connect'), 'connection lost'],
  ['postgres.js: a closed connection', coded('CONNECTION_CLOSED'), 'connection lost'],
  ['a connection that fell silent', coded('CONNECTION_SILENT'), 'connection lost'],

  ['pg: an ended pool', new Error('Cannot use a pool after calling end on the pool'), 'nothing of the database'],
  ['postgres.js: an ended pool', coded('CONNECTION_ENDED'), 'nothing of the database'],
  ['a missing file', system('ENOENT', 'open'), 'nothing of the database'],
  ['too many files', system('EMFILE', 'open'), 'nothing of the database'],
  ['Prisma', coded('P2010'), 'nothing of the database'],
  ['five capitals', coded('ABORT'), 'nothing of the database'],
  ['a broken pipe of somebody else', notTheDatabase(system('EPIPE', 'write')), 'nothing of the database'],
  ['an exception', new TypeError('x is not a function'), 'nothing of the database'],
  ['a text', '23505', 'nothing of the database'],
  ['nothing', undefined, 'nothing of the database'],
]

describe('an error means one thing', () => {
  test.each(TABLE)('%s', (_, error, meaning) => {
    expect(meaningOf(error)).toBe(meaning)
  })
})

const LAST_WORDS: [what: string, error: unknown, sent: boolean][] = [
  ['a reset', system('ECONNRESET', 'read'), true],
  ['a broken pipe', system('EPIPE', 'write'), true],
  ['a wait for the other side that TCP gave up', system('ETIMEDOUT', 'read'), true],
  ['a route that is gone', system('EHOSTUNREACH', 'read'), true],
  ['an administrator', server('57P01'), true],
  ['a crash of another backend', server('57P02'), true],
  ['pg: an ended connection', new Error('Connection terminated unexpectedly'), true],
  ['pg: no answer in time', new Error('Query read timeout'), true],
  ['postgres.js: a closed connection', coded('CONNECTION_CLOSED'), true],
  ['a connection that fell silent', silent(100), true],

  ['a unique violation', server('23505'), false],
  ['a refused connection', system('ECONNREFUSED', 'connect'), false],
  ['a refused connection to each of several addresses', coded('ECONNREFUSED'), false],
  ['a connection that never came about', system('ETIMEDOUT', 'connect'), false],
  ['a route that is not there', system('EHOSTUNREACH', 'connect'), false],
  ['a name that is not found', system('ENOTFOUND', 'getaddrinfo'), false],
  ['no connection in time', coded('CONNECT_TIMEOUT'), false],
  ['pg: none of the pool in time', new Error('timeout exceeded when trying to connect'), false],
  ['pg: none opened in time', new Error('timeout expired'), false],
  ['too many connections', server('53300'), false],
  ['a server that starts', server('57P03'), false],
]

describe('a statement that commits on its own may have taken effect only if it was sent', () => {
  test.each(LAST_WORDS)('%s', (_, error, sent) => {
    expect(mayHaveCommitted(error)).toBe(sent)
  })
})

function meaningOf(error: unknown): Meaning {
  if (isConnectionLoss(error)) {
    expect(isUnavailable(error)).toBe(true)
    return 'connection lost'
  }
  if (isUnavailable(error)) return 'the server cannot serve'
  return sqlState(error) === undefined ? 'nothing of the database' : 'the server refused'
}

test('what the operating system says is never an SQLSTATE', async () => {
  const error = await new Promise((resolve) => net.connect('/nowhere/.s.PGSQL.5432').on('error', resolve))
  expect(sqlState(error)).toBeUndefined()
  expect(isConnectionLoss(error)).toBe(true)
  expect(sqlState(coded('EPIPE'))).toBeUndefined()
})

test('a pool that was ended is told from a database that is away', () => {
  expect(isPoolEnded(new Error('Cannot use a pool after calling end on the pool'))).toBe(true)
  expect(isPoolEnded(coded('CONNECTION_ENDED'))).toBe(true)
  expect(isPoolEnded(coded('CONNECTION_CLOSED'))).toBe(false)
})
