/**
 * The address of a request. Its path is the one that the framework has routed: a URL that made another one of it would
 * lead past whatever stands before a prefix, and two requests would pass for one.
 */
import type { IncomingMessage } from 'node:http'

const HOST = /^[\w.:[\]-]+$/
/** Of a request for a proxy. Frameworks do not agree on where an odd host ends, nor on one without a path. */
const WHOLE = /^https?:\/\/[\w.:[\]-]+(?=\/|$)/i

/**
 * The whole address, also where a framework has cut off what it is mounted under; undefined for a path that nobody sends
 * honestly. The host is the one that the client has named, or `localhost`: nothing that a proxy says is believed here.
 */
export function addressOf({ url = '/', headers, socket }: IncomingMessage, given = url): string | undefined {
  const protocol = (socket as { encrypted?: boolean } | null)?.encrypted ? 'https' : 'http'
  const named = headers.host ?? (headers[':authority'] as string | undefined) ?? ''
  const host = HOST.test(named) && URL.canParse(`${protocol}://${named}/`) ? named : 'localhost'
  const path = given.replace(WHOLE, '') || '/'
  return isStable(path) ? `${protocol}://${host}${path}` : undefined
}

/** Whether the path stays what it is as a part of a URL, which resolves dots and backslashes, and drops a fragment. */
function isStable(path: string): boolean {
  const [beforeQuery = ''] = path.split('?', 1)
  if (!path.startsWith('/') || beforeQuery.includes('\\') || path.includes('#')) return false
  // A URL drops white space too, which HTTP/2 may carry.
  return !/[\0- \x7f]/.test(path) && !/\/(\.|%2e){1,2}(?=\/|$)/i.test(beforeQuery)
}
